"""Who may watch: whoever reads runs, and the workers of a pool."""

from factory.identity.permissions import permit

WATCH_RUNS = permit("WatchRuns", scope="runs.read", roles=None).operation
WATCH_POOL = permit("WatchPool", scope="worker", roles=None, kinds=("worker",)).operation

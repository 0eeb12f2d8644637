"""Who may watch, and who loads releases to work with them."""

from factory.identity.permissions import permit

WATCH_RUNS = permit("WatchRuns", scope="runs.read", roles=None).operation
WATCH_POOL = permit("WatchPool", scope="worker", roles=None, kinds=("worker",)).operation
LOAD_FOR_WORK = permit("LoadReleaseForWork", scope="worker", roles=None, kinds=("worker",)).operation

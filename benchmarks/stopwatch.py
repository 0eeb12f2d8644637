"""Times of named acts, and the baseline that they are told in."""

import os
import statistics
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

BASELINE = "insert + commit"


class Stopwatch:
    """Collects seconds by name."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = defaultdict(list)

    @contextmanager
    def timing(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.seconds[name].append(time.perf_counter() - start)

    def median(self, name: str) -> float:
        return statistics.median(self.seconds[name])

    def p95(self, name: str) -> float:
        return statistics.quantiles(self.seconds[name], n=20)[-1]

    def ratio(self, name: str) -> float:
        return self.median(name) / self.median(BASELINE)


class Baseline:
    """One row and one commit, by the driver alone: on this server, in the same minutes as everything else."""

    def __init__(self) -> None:
        self._connection = psycopg.connect(os.environ["DATABASE_OWNER_URL"])
        self._connection.execute("DROP TABLE IF EXISTS bench_baseline")
        self._connection.execute("CREATE TABLE bench_baseline (id bigserial PRIMARY KEY, body text NOT NULL)")
        self._connection.commit()

    def once(self) -> None:
        self._connection.execute("INSERT INTO bench_baseline (body) VALUES (%s)", ["x" * 200])
        self._connection.commit()

    def close(self) -> None:
        self._connection.execute("DROP TABLE bench_baseline")
        self._connection.commit()
        self._connection.close()

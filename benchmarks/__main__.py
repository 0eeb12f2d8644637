"""`python -m benchmarks [rounds]`: brings up a durable database of its own, measures, compares, tells."""

import json
import os
import sys
from pathlib import Path

from tests import databases

ROUNDS = 200
CEILINGS = Path(__file__).with_name("ratios.json")


def prepare() -> databases.Session:
    """Servers below var/bench with their durability on: without it a commit would cost next to nothing."""
    os.environ.setdefault("FACTORY_TEST_HOME", str(databases.ROOT / "var" / "bench"))
    session = databases.Session({"max_connections": "200"})
    os.environ.update(session.environment())
    return session


def main() -> int:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    session = prepare()
    try:
        return report(rounds)
    finally:
        session.close()


def report(rounds: int) -> int:
    import django

    django.setup()
    from benchmarks import paths, tables
    from factory.evidence.auditor import audit_all

    found = paths.measure(rounds)
    print(tables.table(found))  # noqa: T201  a program's output
    over = tables.over(found, json.loads(CEILINGS.read_text(encoding="utf-8")))
    over += [f"the auditor: {violation}" for violation in audit_all()]
    for line in over:
        print(line)  # noqa: T201
    print(json.dumps(tables.summary(found, over)))  # noqa: T201
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())

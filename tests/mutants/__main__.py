"""Break requirements one by one in a copy of the tree, and see that a test that names each one fails.

    python -m tests.mutants            twenty, drawn by chance
    SEED=7 python -m tests.mutants     the same twenty again
    ALL=1 python -m tests.mutants      every line of the table
    ONLY="LSE-07 APR-09" …             these

The tests of those drawn are run as they are first: one that is red already would prove nothing. Nothing is
ever changed in the tree.
"""

import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.architecture.requirements import ROOT, marked
from tests.databases import Session
from tests.mutants.table import MUTANTS, Mutant

DRAWN, MINUTES = 20, 8
KILLED, SURVIVED, TIMED_OUT, BROKEN = "killed", "SURVIVED", "TIMED OUT", "BROKEN"


def copied(to: Path) -> Path:
    """Return a copy of what git knows or would add, with nothing of what was made by running."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    for name in filter(None, names):
        if (ROOT / name).is_file() and not (ROOT / name).is_symlink():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, to / name)
    return to


def tried(mutant: Mutant, tree: Path) -> str:
    """Return what became of a mutant: killed when a test that names the requirement failed."""
    file = tree / mutant.file
    whole = file.read_text()
    if whole.count(mutant.text) != 1:
        return BROKEN
    file.write_text(whole.replace(mutant.text, mutant.instead, 1))
    try:
        done = tested(marked()[mutant.id], tree, minutes=MINUTES)
    except subprocess.TimeoutExpired:
        return TIMED_OUT
    finally:
        file.write_text(whole)
    if done.returncode not in (0, 1):
        sys.stdout.write(done.stdout[-2000:])
    return {0: SURVIVED, 1: KILLED}.get(done.returncode, BROKEN)


def tested(tests: Iterable[str], tree: Path, minutes: int) -> subprocess.CompletedProcess[str]:
    """Run tests in a tree until the first that fails."""
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-n0", "-x", "-q", "-p", "no:cacheprovider", *tests],
        cwd=tree,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=60 * minutes,
        check=False,
    )


def chosen() -> list[Mutant]:
    """Return those that are named, all, or some by chance; say how the same are drawn again."""
    only = os.environ.get("ONLY", "").split()
    if only:
        return [mutant for mutant in MUTANTS if mutant.id in only]
    if os.environ.get("ALL"):
        return list(MUTANTS)
    seed = os.environ.get("SEED") or str(random.SystemRandom().randrange(10**6))
    sys.stdout.write(f"SEED={seed}\n")
    return random.Random(seed).sample(MUTANTS, min(DRAWN, len(MUTANTS)))


@contextmanager
def servers(folder: Path) -> Iterator[None]:
    """Keep private servers of our own below a folder, so that no run of pytest has to start them."""
    os.environ["FACTORY_TEST_HOME"] = str(folder)
    held = Session()
    try:
        yield
    finally:
        held.close()


def main() -> int:
    survivors = []
    with tempfile.TemporaryDirectory(prefix="factory-mutants-") as folder, servers(Path(folder) / "servers"):
        tree, mutants = copied(Path(folder) / "tree"), chosen()
        unbroken = tested(sorted({test for m in mutants for test in marked()[m.id]}), tree, minutes=60)
        if unbroken.returncode:
            sys.stdout.write(f"{unbroken.stdout[-4000:]}\nThese fail as they are: mend them first.\n")
            return 1
        for mutant in mutants:
            began = time.monotonic()
            result = tried(mutant, tree)
            sys.stdout.write(f"{mutant.id:8} {result:9} {time.monotonic() - began:4.0f} s  {mutant.file}\n")
            sys.stdout.flush()
            survivors += [mutant.id] if result != KILLED else []
    sys.stdout.write(f"Not killed: {' '.join(survivors) or 'none'}\n")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())

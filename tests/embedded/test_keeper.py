"""What is private to a process ends with it, however it ends."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from factory.embedded import postgres, valkey
from factory.embedded.keeper import Keeper
from factory.embedded.system import is_alive, wait_until
from tests.embedded.conftest import FAST

USER = """
import subprocess, sys, time
from pathlib import Path
from factory.embedded import postgres, valkey
from factory.embedded.keeper import Keeper
home = Path(sys.argv[1])
keeper = Keeper(home)
postgres.start(home, {"fsync": "off"})
valkey.start(home)
stubborn = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    "print('up', flush=True); time.sleep(600)"
)
child = subprocess.Popen([sys.executable, "-c", stubborn], stdout=subprocess.PIPE, start_new_session=True)
child.stdout.readline()
keeper.include(child.pid)
print(child.pid, flush=True)
time.sleep(600)
"""


def start_user(home: Path) -> tuple["subprocess.Popen[str]", int]:
    root = Path(__file__).resolve().parents[2]
    user = subprocess.Popen(
        [sys.executable, "-c", USER, str(home)], cwd=root, stdout=subprocess.PIPE, text=True,
        env=os.environ | {"PYTHONPATH": str(root)},
    )  # fmt: skip
    assert user.stdout
    return user, int(user.stdout.readline())


def nothing_runs(home: Path) -> bool:
    return postgres.running(home) is None and valkey.running(home) is None


def test_a_killed_user_leaves_no_server_and_no_child(home: Path) -> None:
    user, child = start_user(home)
    assert not nothing_runs(home)
    user.send_signal(signal.SIGKILL)
    user.wait()
    assert wait_until(lambda: nothing_runs(home) and not is_alive(child, holding=""), seconds=20)


def test_servers_stay_for_as_long_as_anybody_uses_them(home: Path) -> None:
    first, second = Keeper(home), Keeper(home)
    postgres.start(home, FAST)
    first.release()
    assert postgres.running(home)
    second.release()
    assert nothing_runs(home)

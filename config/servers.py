"""Which PostgreSQL and which Redis a process talks to. Settings never start a server."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import dj_database_url
from django.core.exceptions import ImproperlyConfigured

from config.environment import text

DATABASE_VARIABLES = {
    "default": "DATABASE_URL",
    "owner": "DATABASE_OWNER_URL",
    "auditor": "DATABASE_AUDITOR_URL",
    "retention": "DATABASE_RETENTION_URL",
}
RECORD = "servers.json"
NOWHERE = {
    # Commands that need no database (`makemigrations`, `check`, type checks) still find settings.
    "DATABASE_URL": "postgresql://factory_app@run-make-up-or-set-DATABASE_URL.invalid/factory",
    "DATABASE_OWNER_URL": "postgresql://factory_owner@set-DATABASE_OWNER_URL.invalid/factory",
    "DATABASE_AUDITOR_URL": "postgresql://factory_auditor@set-DATABASE_AUDITOR_URL.invalid/factory",
    "DATABASE_RETENTION_URL": "postgresql://factory_retention@set-DATABASE_RETENTION_URL.invalid/factory",
    "REDIS_URL": "redis://run-make-up-or-set-REDIS_URL.invalid/0",
}
POOL_SECONDS = 3
"""A request that finds no free connection for so long answers 503 rather than queue up."""
STATEMENT_TIMEOUTS = {"job": "30s", "relay": "30s", "command": "30s"}
"""Web and stream keep the five seconds of their role."""


def recorded(secrets: Path) -> dict[str, str]:
    """The URLs of the embedded servers that run now, as their launcher left them."""
    try:
        found = json.loads((secrets / RECORD).read_text())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ImproperlyConfigured(
            f"{secrets / RECORD} cannot be read; remove it and start again."
        ) from error
    return {str(name): str(url) for name, url in found.items()}


def urls(secrets: Path, process: str) -> dict[str, str]:
    """The variables where they are set; else the embedded servers of this folder."""
    names = (*DATABASE_VARIABLES.values(), "REDIS_URL")
    running = recorded(secrets)
    found = {name: text(name, running.get(name, "")) for name in names}
    missing = [name for name in ("DATABASE_URL", "REDIS_URL") if not found[name]]
    if missing and process != "command":
        raise ImproperlyConfigured(
            f"{' and '.join(missing)} must be set for a {process} process: or run `make up`, which starts "
            "private servers and sets them."
        )
    return {name: url or NOWHERE[name] for name, url in found.items()}


def databases(found: Mapping[str, str], *, process: str, threads: int) -> dict[str, dict[str, Any]]:
    """Django's DATABASES: the application, the owner (`migrate`), the auditor (`verify`) and `purge`."""
    made = {alias: _database(name, found[name], process) for alias, name in DATABASE_VARIABLES.items()}
    if process in ("web", "stream"):
        # As many connections as threads, and from the start: a pool that grows does so one connection after
        # another, and on a busy machine the last of a burst of callers would not live to see it.
        sizes = {"min_size": threads, "max_size": threads}
        made["default"]["OPTIONS"]["pool"] = {**sizes, "timeout": POOL_SECONDS}
    elif process in ("job", "relay"):
        made["default"]["CONN_MAX_AGE"] = 60
        made["default"]["CONN_HEALTH_CHECKS"] = True
    return made


def _database(name: str, url: str, process: str) -> dict[str, Any]:
    if urlsplit(url).scheme not in ("postgres", "postgresql"):
        raise ImproperlyConfigured(f"{name} must be a postgresql:// URL: nothing else keeps the promises.")
    database: dict[str, Any] = dict(dj_database_url.parse(url))
    options = database.setdefault("OPTIONS", {})
    options["application_name"] = f"factory-{process}"
    options["connect_timeout"] = 5
    if name == "DATABASE_URL" and process in STATEMENT_TIMEOUTS:
        options["options"] = f"-c statement_timeout={STATEMENT_TIMEOUTS[process]}"
    database["DISABLE_SERVER_SIDE_CURSORS"] = True  # a transaction pooler in between may not know them
    return database

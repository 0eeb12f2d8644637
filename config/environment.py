"""The environment, read by type and within bounds: a wrong value refuses to start, in a sentence.

Every variable is read through these functions; that is also how a misspelt one is found out. One that the
platform made for another service counts as not set, also where its name is that of a setting.
"""

import difflib
import errno
import os
from collections.abc import Callable, Iterable
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any

from celery.schedules import ParseException, crontab
from django.core.exceptions import ImproperlyConfigured
from environs import Env, EnvError, validate

from config.links import platform_made

Network = IPv4Network | IPv6Network
PREFIX = "FACTORY_"
READ_ELSEWHERE = (
    "FACTORY_TEST_*",  # tests/databases.py
    "FACTORY_FAULT_*",  # tests/faults/rounds.py
    "FACTORY_WORKER_*",  # the reference worker, which knows no Django
    "FACTORY_ARTIFACT_REPOSITORY",  # … where its reports go
    "FACTORY_ADMIN_DATABASE_URL",  # manage.py provision, before there is anything to serve
    "FACTORY_PG_USER",  # the embedded PostgreSQL, when root starts it
    "FACTORY_CHECK_ONLY",
)

_env = Env()
_known: set[str] = set(READ_ELSEWHERE)


def text(name: str, default: str) -> str:
    return str(_read(name, default, lambda: _env.str(name, default), "a text"))


def flag(name: str, default: bool) -> bool:
    return bool(_read(name, default, lambda: _env.bool(name, default), "true or false"))


def integer(name: str, default: int, *, least: int, most: int) -> int:
    within = validate.Range(min=least, max=most)
    read: Callable[[], Any] = lambda: _env.int(name, default, validate=within)  # noqa: E731
    return int(_read(name, default, read, f"a whole number from {least} to {most}"))


def words(name: str, default: Iterable[str]) -> list[str]:
    found = _read(name, default, lambda: _env.list(name, list(default)), "a list, separated by commas")
    return [str(word).strip() for word in found]


def networks(name: str) -> list[Network]:
    """Return networks and single addresses, such as 10.0.0.0/8 and 192.0.2.7; none by default."""

    def read() -> list[Network]:
        named: list[str] = _env.list(name, [])
        return [ip_network(word.strip()) for word in named if word.strip()]

    expected = "a list of networks such as 10.0.0.0/8, separated by commas"
    found: list[Network] = _read(name, [], read, expected)
    return found


def document(name: str, default: Any) -> Any:
    return _read(name, default, lambda: _env.json(name, default), "JSON")


def cron(name: str, default: str) -> str:
    """A time to come back to, as a cron line of five fields."""
    line = text(name, default)
    minute, hour, day, month, weekday = (line.split() + [""] * 5)[:5]
    try:
        if len(line.split()) != 5:
            raise ValueError("five fields")
        crontab(minute=minute, hour=hour, day_of_month=day, month_of_year=month, day_of_week=weekday)
    except (ParseException, ValueError) as fault:
        told = f"{name} must be a cron line such as {default}. Correct it or unset it."
        raise ImproperlyConfigured(told) from fault
    return line


def choice(name: str, default: str, options: Iterable[str]) -> str:
    allowed = sorted(options)
    read: Callable[[], Any] = lambda: _env.str(name, default, validate=validate.OneOf(allowed))  # noqa: E731
    return str(_read(name, default, read, "one of " + ", ".join(allowed)))


def metrics_shared_in(folder: str) -> None:
    """Have the Prometheus client count in files of this folder; it looks for its own variable once."""
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as fault:
        raise ImproperlyConfigured(f"FACTORY_METRICS_DIR is {folder!r}: {fault.strerror}.") from fault
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder


def refuse_unknown() -> None:
    """Call when everything has been read: a variable that nobody knows is a misspelt one."""
    for name in sorted(set(os.environ) - platform_made(os.environ)):
        if name.startswith(PREFIX) and not _is_known(name):
            near = difflib.get_close_matches(name, _known, n=1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise ImproperlyConfigured(f"{name} is not a setting of this product.{hint}")


def _is_known(name: str) -> bool:
    return name in _known or any(
        known.endswith("*") and name.startswith(known[:-1]) for known in READ_ELSEWHERE
    )


def _read(name: str, default: Any, read: Callable[[], Any], expected: str) -> Any:
    _known.add(name)
    if name in platform_made(os.environ):
        return default
    try:
        return read()
    except (EnvError, ValueError) as error:
        # The value may be a secret that went into the wrong variable: it is not repeated.
        raise ImproperlyConfigured(f"{name} must be {expected}. Correct it or unset it.") from error

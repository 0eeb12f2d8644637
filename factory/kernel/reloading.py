"""Settings that change without a restart: a row overrides the variable, and each process looks again soon.

The rows are the platform's, and no tenant's. `value` is asked in hot paths, so a process remembers what it
read for a moment.
"""

import threading
import time
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.utils.translation import ngettext

from factory.kernel.models import Setting

SECONDS_REMEMBERED = 2.0
"""The longest that another process goes on with the old value."""

ABOUT = {
    "FACTORY_LEASES_DURATION_SECONDS": "How long a lease lasts from when it is offered, acquired or renewed.",
    "FACTORY_LEASES_RENEWAL_GRACE_SECONDS": "How long after its end a lease is left to its holder.",
    "FACTORY_RETRIES_DEFAULT_MAX_ATTEMPTS": "How often a step may be tried that does not say so itself.",
    "FACTORY_APPROVALS_DEFAULT_EXPIRY_HOURS": "How long a request may wait for its decision, at most.",
}

NAMED = {
    "FACTORY_LEASES_DURATION_SECONDS": ("Duration of a lease", "second", "seconds"),
    "FACTORY_LEASES_RENEWAL_GRACE_SECONDS": ("Grace after a lease", "second", "seconds"),
    "FACTORY_RETRIES_DEFAULT_MAX_ATTEMPTS": ("Tries of a step", "try", "tries"),
    "FACTORY_APPROVALS_DEFAULT_EXPIRY_HOURS": ("Time for a decision", "hour", "hours"),
}
"""What each is called on its page, and what it counts: one, and several."""

_lock = threading.Lock()
_rows: dict[str, int] = {}
_read_at = -SECONDS_REMEMBERED


@dataclass(frozen=True, slots=True)
class Reloadable:
    """A setting with its bounds, what the variable says, and the row that overrides it, if there is one."""

    name: str
    about: str
    least: int
    most: int
    variable: Any
    row: Setting | None

    @property
    def value(self) -> Any:
        return self.variable if self.row is None else self.row.value

    @property
    def title(self) -> str:
        return NAMED[self.name][0]

    @property
    def unit(self) -> str:
        """Return what it counts, in the plural."""
        return NAMED[self.name][2]

    @property
    def told(self) -> str:
        """Return what holds now, with its unit."""
        return self._counted(self.value)

    @property
    def told_of_variable(self) -> str:
        return self._counted(self.variable)

    def _counted(self, number: int) -> str:
        _, one, several = NAMED[self.name]
        return f"{number} {ngettext(one, several, number)}"


def value(name: str) -> Any:
    """Return what holds now: the row's value, or the variable's."""
    overridden = _overrides().get(name)
    return getattr(settings, name) if overridden is None else overridden


def bounds(name: str) -> tuple[int, int] | None:
    """The least and the most of a reloadable setting; None for any other name."""
    found: tuple[int, int] | None = settings.FACTORY_RELOADABLE.get(name)
    return found


def every() -> list[Reloadable]:
    """All of them, freshly read, for the page on which they are changed."""
    rows = {row.name: row for row in Setting.objects.all()}
    return [
        Reloadable(
            name, ABOUT[name], *settings.FACTORY_RELOADABLE[name], getattr(settings, name), rows.get(name)
        )
        for name in sorted(settings.FACTORY_RELOADABLE)
    ]


def forget() -> None:
    """Look again at the next question: something was changed here."""
    global _read_at
    _read_at = -SECONDS_REMEMBERED


def _overrides() -> dict[str, int]:
    global _rows, _read_at
    if time.monotonic() - _read_at < SECONDS_REMEMBERED:
        return _rows
    with _lock:
        if time.monotonic() - _read_at >= SECONDS_REMEMBERED:
            _rows = dict(Setting.objects.values_list("name", "value"))
            _read_at = time.monotonic()
    return _rows

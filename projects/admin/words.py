"""What roles and grants let somebody do: the words of "Who can do what here", by role."""

from collections.abc import Iterable

from django.utils.text import capfirst

from factory.admin.parts import abilities
from projects.states import GRANTS

LOOKS = "Look at what is here, and change nothing."


def role_lets(role: str) -> str:
    """What a role opens. Each lets look; one that opens nothing else says so."""
    found = [each.words for each in abilities() if role in each.roles]
    return _listed(found) if found else LOOKS


def grant_lets(grant: str) -> str:
    """What a grant opens beside the roles."""
    return _listed([each.words for each in abilities() if grant in each.grants])


def role_options(roles: Iterable[str]) -> tuple[tuple[str, str, str], ...]:
    """Roles as a form offers them, each with what it lets do."""
    return tuple((role, role, role_lets(role)) for role in roles)


def grant_options() -> tuple[tuple[str, str, str], ...]:
    """All grants, likewise."""
    return tuple((grant, grant, grant_lets(grant)) for grant in GRANTS)


def _listed(words: list[str]) -> str:
    return capfirst("; ".join(one[:1].lower() + one[1:] for one in words)) + "." if words else ""

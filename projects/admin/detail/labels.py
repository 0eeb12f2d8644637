"""What roles and grants let somebody do: the words of "Who can do what here", by role."""

from collections.abc import Iterable

from django.utils.text import capfirst

from factory.console.page_extensions import Ability, abilities
from projects.states import GRANTS

LOOKS = "Look at what is here, and change nothing."


def role_lets(role: str, *, wide: bool) -> str:
    """Return what a role opens, in the whole tenant or in one project. Each lets look; one that opens
    nothing else says so."""
    return _told((each for each in abilities() if role in each.roles), wide) or LOOKS


def grant_lets(grant: str, *, wide: bool) -> str:
    """Return what a grant opens beside the roles, likewise."""
    return _told((each for each in abilities() if grant in each.grants), wide)


def role_options(roles: Iterable[str], *, wide: bool) -> tuple[tuple[str, str, str], ...]:
    """Roles as a form offers them, each with what it lets do."""
    return tuple((role, role, role_lets(role, wide=wide)) for role in roles)


def grant_options(*, wide: bool) -> tuple[tuple[str, str, str], ...]:
    """All grants, likewise."""
    return tuple((grant, grant, grant_lets(grant, wide=wide)) for grant in GRANTS)


def _told(opened: Iterable[Ability], wide: bool) -> str:
    return _listed([_words(each, wide) for each in opened if wide or not each.only_widely])


def _words(ability: Ability, wide: bool) -> str:
    """Return what somebody can do by what they hold in that place, and on what else it depends there."""
    if wide:
        return ability.widely or ability.words
    return f"{ability.words}, where they are that in each project" if ability.everywhere else ability.words


def _listed(words: list[str]) -> str:
    return capfirst("; ".join(one[:1].lower() + one[1:] for one in words)) + "." if words else ""

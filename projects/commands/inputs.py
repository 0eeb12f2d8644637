"""What may be asked for, and where a fault of it is: every refusal points at the member at fault."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from factory.kernel.addresses import LONGEST, NoAddress, normal_address, normal_subject
from factory.kernel.errors import FieldError, InvalidInput
from factory.kernel.reasons import length_faults
from factory.kernel.text import is_blank
from projects.errors import RoleOfPeople
from projects.models import SLUG, SLUG_WORDS
from projects.states import GRANTS, OF_MACHINES, OF_PEOPLE, ROLES, Role

SERVICE_PREFIX = "service:"
RESERVED_PREFIXES = (SERVICE_PREFIX, "system:", "worker:", "policy:", "waiver:")
MOST_EMAIL = LONGEST
MOST_SUBJECT = 255
_SLUG = re.compile(SLUG)


@dataclass(frozen=True, slots=True)
class NewEnvironment:
    slug: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class NewMember:
    """A subject and what it shall be. `subject` is the `sub` of its tokens."""

    subject: str
    roles: tuple[str, ...]
    grants: tuple[str, ...] = ()
    email: str = ""
    display_name: str = ""


def refuse(faults: Sequence[FieldError], what: str) -> None:
    """Raise `InvalidInput` with every fault, if there is one."""
    if faults:
        raise InvalidInput(what, errors=faults)


def slug_faults(slug: str, pointer: str) -> list[FieldError]:
    return [] if _SLUG.fullmatch(slug) else [FieldError(pointer, f"Only {SLUG_WORDS}.")]


def text_faults(text: str, pointer: str, *, limit: int) -> list[FieldError]:
    if is_blank(text):
        return [FieldError(pointer, "It may not be empty.")]
    return length_faults(text, "This", pointer, most=limit)


def name_faults(name: str, pointer: str, *, limit: int) -> list[FieldError]:
    """As of any text; a name is one line besides: it stands in lists, titles and mails."""
    if any(unicodedata.category(c) in ("Cc", "Zl", "Zp") for c in name):
        return [FieldError(pointer, "A name is one line, without control characters.")]
    return text_faults(name, pointer, limit=limit)


def subject_faults(subject: str, pointer: str) -> list[FieldError]:
    """As of a name; and there is one spelling of it, for by it people tell who decides from who does not."""
    if is_blank(subject) or len(subject) > MOST_SUBJECT:
        return name_faults(subject, pointer, limit=MOST_SUBJECT)
    return _spelling_faults(normal_subject, subject, pointer)


def email_faults(email: str, pointer: str) -> list[FieldError]:
    """As of a subject that is an address; it may also be left empty."""
    return _spelling_faults(normal_address, email, pointer) if email else []


def _spelling_faults(normal: Callable[[str], str], text: str, pointer: str) -> list[FieldError]:
    try:
        normal(text)
    except NoAddress as fault:
        return [FieldError(pointer, str(fault))]
    return []


def label_faults(name: str, pointer: str) -> list[FieldError]:
    """As of a name, which may also be left empty: the slug stands for it then."""
    return name_faults(name, pointer, limit=200) if name else []


def repeated(values: Sequence[str], pointer: Callable[[int], str]) -> list[FieldError]:
    """Return a fault for each value that was named before."""
    firsts: dict[str, int] = {}
    faults = []
    for index, value in enumerate(values):
        first = firsts.setdefault(value, index)
        if first != index:
            faults.append(FieldError(pointer(index), f"{value} is named already, as number {first + 1}."))
    return faults


def unknown(values: Iterable[str], known: Sequence[str], pointer: str) -> list[FieldError]:
    return [
        FieldError(f"{pointer}/{index}", f"There is no {value}; there is {', '.join(known)}.")
        for index, value in enumerate(values)
        if value not in known
    ]


def grant_faults(roles: Sequence[str], grants: Sequence[str], pointer: str) -> list[FieldError]:
    """Return the faults of a set of roles and grants."""
    faults = [] if roles else [FieldError(f"{pointer}/roles", "A member has at least one role.")]
    faults += unknown(roles, ROLES, f"{pointer}/roles")
    return faults + unknown(grants, GRANTS, f"{pointer}/grants")


def scope_faults(roles: Sequence[str], *, tenant_wide: bool, pointer: str) -> list[FieldError]:
    if tenant_wide or Role.PLATFORM_ADMIN not in roles:
        return []
    detail = "PlatformAdmin is a role in the whole tenant, not in one project."
    return [FieldError(f"{pointer}/roles/{list(roles).index(Role.PLATFORM_ADMIN)}", detail)]


def refuse_deciding_machine(roles: Sequence[str], pointer: str) -> None:
    """Refuse roles of people for a service account. Raises `RoleOfPeople` with every one of them."""
    rule = f"A service account never decides, so it cannot be this: {', '.join(OF_MACHINES)} it can be."
    faults = [FieldError(f"{pointer}/roles/{at}", rule) for at, role in enumerate(roles) if role in OF_PEOPLE]
    if faults:
        named = ", ".join(role for role in roles if role in OF_PEOPLE)
        raise RoleOfPeople(f"A service account never decides, so it is no {named}.", errors=faults)


def member_faults(member: NewMember, *, tenant_wide: bool, pointer: str) -> list[FieldError]:
    faults = subject_faults(member.subject, f"{pointer}/subject")
    faults += label_faults(member.display_name, f"{pointer}/displayName")
    faults += email_faults(member.email, f"{pointer}/email")
    faults += grant_faults(member.roles, member.grants, pointer)
    return faults + scope_faults(member.roles, tenant_wide=tenant_wide, pointer=pointer)


def ordered(values: Iterable[str], known: Sequence[str]) -> list[str]:
    """Return the values once each, in the order in which they are declared."""
    wanted = set(values)
    return [value for value in known if value in wanted]

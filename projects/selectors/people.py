"""Which names are one person: owners of machines, joined sign-ins, and members who share an address.

An address is compared in its normal spelling, whatever a row that is older than that rule says.
"""

import unicodedata
from collections.abc import Iterable
from typing import cast

import idna
from django.db import connection
from django.db.models import Func, Q, QuerySet, TextField
from django.db.models.expressions import RawSQL

from factory.identity.directory import SignIn
from factory.kernel.addresses import addresses_in
from factory.kernel.tenancy import active
from projects.models import Identity, Membership, ServiceAccount
from projects.states import IdentityState, MembershipState, SubjectKind

_LETTERS = "lower(btrim(normalize({}, NFKC), E' \\t\\r\\n'))"


def address_sql(column: str) -> str:
    """Return SQL for the address in a column, as it is compared; NULL where that holds none."""
    return f"CASE WHEN strpos({column}, '@') > 0 AND {column} !~ '[:|]' THEN {_LETTERS.format(column)} END"


def known_by(alias: str) -> str:
    """Return SQL for the addresses of one membership."""
    return f"ARRAY[{address_sql(f'{alias}.subject')}, {address_sql(f'{alias}.email')}]"


BEHIND = f"""
    joined AS (
        SELECT tenant_id, subject::text AS name, person::text FROM projects_identity
        UNION SELECT tenant_id, subject, owner FROM projects_serviceaccount),
    address AS (
        SELECT DISTINCT m.tenant_id, m.subject::text AS name, a.address
        FROM projects_membership m, unnest({known_by("m")}) AS a(address)
        WHERE m.kind = 'person' AND a.address IS NOT NULL),
    alike AS (
        SELECT DISTINCT one.tenant_id, one.name, other.name AS person
        FROM address one JOIN address other USING (tenant_id, address) WHERE one.name <> other.name),
    further AS (
        SELECT * FROM joined
        UNION SELECT j.tenant_id, j.name, i.person FROM joined j JOIN joined i
              ON i.tenant_id = j.tenant_id AND i.name = j.person),
    behind AS (
        SELECT tenant_id, name, array_agg(DISTINCT person) AS people FROM (
            SELECT * FROM further
            UNION SELECT * FROM alike
            UNION SELECT f.tenant_id, f.name, a.person FROM further f JOIN alike a
                  ON a.tenant_id = f.tenant_id AND a.name = f.person) every
        GROUP BY tenant_id, name)
"""
"""For the auditor, `people_behind` of every name in all tenants: (tenant_id, name, people)."""

_PEOPLE = f"""
WITH account AS (SELECT owner::text AS name FROM projects_serviceaccount
                 WHERE tenant_id = %(tenant)s AND subject = ANY (%(names)s::text[])),
     named AS (SELECT unnest(%(names)s::text[]) AS name UNION SELECT name FROM account),
     answering AS (SELECT name FROM named UNION
                   SELECT person FROM projects_identity
                   WHERE tenant_id = %(tenant)s AND subject IN (SELECT name FROM named)),
     known AS (SELECT {address_sql("name")} AS address FROM answering UNION
               SELECT unnest({known_by("m")}) FROM projects_membership m
               WHERE m.tenant_id = %(tenant)s AND m.kind = 'person'
                 AND m.subject IN (SELECT name FROM answering))
SELECT name FROM answering UNION
SELECT m.subject FROM projects_membership m
WHERE m.tenant_id = %(tenant)s AND m.kind = 'person'
  AND {known_by("m")} && ARRAY(SELECT address FROM known WHERE address IS NOT NULL)
"""

_NAMES = f"""
WITH own AS (SELECT unnest({known_by("m")}) AS address FROM projects_membership m
             WHERE m.tenant_id = %s AND m.kind = 'person' AND m.subject = %s),
     alike AS (SELECT m.subject FROM projects_membership m
               WHERE m.tenant_id = %s AND m.kind = 'person'
                 AND {known_by("m")} && ARRAY(SELECT address FROM own WHERE address IS NOT NULL))
SELECT subject FROM alike UNION
SELECT subject FROM projects_identity
WHERE tenant_id = %s AND (person = %s OR person IN (SELECT subject FROM alike))
"""


class Letters(Func):
    """Any name without what tells no two apart: blanks around it, the size and the width of its letters."""

    template = _LETTERS.format("%(expressions)s")
    output_field = TextField()


def letters(text: str) -> str:
    """Return what `Letters` makes of a text."""
    return unicodedata.normalize("NFKC", text).strip().lower()


def spellings(addresses: Iterable[str]) -> frozenset[str]:
    """Return normal addresses, each also with its domain in the letters that it may have been kept in."""
    spelled = set(addresses)
    for address in addresses:
        local, _, domain = address.rpartition("@")
        try:
            spelled.add(f"{local}@{idna.decode(domain)}")
        except idna.IDNAError:
            continue
    return frozenset(spelled)


def called(names: Iterable[str], addresses: Iterable[str]) -> QuerySet[Membership]:
    """Return the active memberships of these names in any letters, and of who has one of these addresses."""
    wanted = spellings(list(addresses))
    either = Q(by__in=wanted | {letters(name) for name in names}) | Q(mail__in=wanted)
    rows = Membership.objects.alias(by=Letters("subject"), mail=Letters("email")).filter(either)
    return cast(QuerySet[Membership], rows.filter(state=MembershipState.ACTIVE))


def people_with(addresses: Iterable[str]) -> QuerySet[Membership]:
    """Return the active memberships of people who are known by one of these addresses (normal ones)."""
    return called((), addresses).filter(kind=SubjectKind.PERSON)


def people_behind(subjects: Iterable[str]) -> frozenset[str]:
    """Return the subjects with everybody who answers for them: the owners of service accounts, whose sign-ins
    those are or were, and whoever is or was a member by an address of one of these."""
    named = frozenset(subjects) - {""}
    if not named:
        return named
    with connection.cursor() as cursor:
        cursor.execute(_PEOPLE, {"tenant": active().tenant_id, "names": sorted(named)})
        return named | {name for (name,) in cursor.fetchall()}


def names_of(person: str) -> RawSQL:
    """Return the names for which a person answers beside their own: their sign-ins and, by an address that
    is theirs too, members; for a question about rows that name subjects."""
    tenant = active().tenant_id
    return RawSQL(_NAMES, (tenant, person, tenant, tenant, person))


def person_of(subject: str) -> str:
    """Return who answers for a subject: a service account's owner, whose sign-in it is, else the subject."""
    owner = ServiceAccount.objects.filter(subject=subject).values_list("owner", flat=True).first()
    if owner is None:
        joined = Identity.objects.filter(subject=subject, state=IdentityState.ACTIVE)
        owner = joined.values_list("person", flat=True).first()
    return owner or subject


def spelled(subject: str) -> str:
    """Return how a subject that somebody has typed is kept: as the member there is, if there is one
    of that address; else in its normal spelling, or as it is where it has none."""
    known = addresses_in(subject)
    there = _by_address(known).values_list("subject", flat=True).first() if known else None
    return there or next(iter(known), subject.strip())


def _by_address(addresses: Iterable[str]) -> QuerySet[Membership]:
    rows = Membership.objects.alias(by=Letters("subject")).filter(by__in=spellings(list(addresses)))
    return cast(QuerySet[Membership], rows.filter(state=MembershipState.ACTIVE))


def members_of_sign_in(sign_in: SignIn) -> frozenset[str]:
    """Return the subjects of the members whom a sign-in may be: by an administrator's act, by an address that
    its issuer has verified, or by its own name where that can mean one person only."""
    if sign_in.ours:
        return frozenset({sign_in.subject})
    joined = Identity.objects.filter(
        issuer=sign_in.issuer, subject=sign_in.subject, state=IdentityState.ACTIVE
    ).values_list("person", flat=True)
    named = Q(subject=sign_in.subject) if sign_in.alone else Q(pk__in=[])
    if sign_in.address:
        named |= Q(pk__in=people_with([sign_in.address]).values("pk"))
    rows = Membership.objects.filter(named, kind=SubjectKind.PERSON, state=MembershipState.ACTIVE)
    return frozenset(joined) | frozenset(rows.values_list("subject", flat=True))


def one_name(first: str, second: str) -> bool:
    """Return whether two subjects are spellings of one."""
    shared = addresses_in(first) & addresses_in(second)
    return bool(shared) or letters(first) == letters(second)

"""What the auditor checks here; each query answers with what is wrong."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from django.db.backends.utils import CursorWrapper

from factory.evidence.auditor import check, invariant, judged, streamed
from factory.kernel.addresses import NoAddress, normal_address, normal_subject
from projects.selectors.people import known_by
from projects.states import GRANTS, MACHINE, OF_PEOPLE, ROLES


def _array(values: tuple[str, ...]) -> str:
    return "ARRAY[" + ", ".join(f"'{value}'" for value in values) + "]::varchar[]"


@invariant("P1", "A membership carries roles and grants that are known, and at least one role")
def roles_known() -> str:
    return f"""
        SELECT tenant_id, 'membership:' || id AS subject,
               'roles ' || roles::text || ', grants ' || grants::text AS detail
        FROM projects_membership
        WHERE NOT roles <@ {_array(ROLES)} OR cardinality(roles) = 0 OR NOT grants <@ {_array(GRANTS)}
    """


@invariant("P2", "A subject has at most one active membership in a project, and one in the whole tenant")
def one_active_membership() -> str:
    return """
        SELECT tenant_id, subject, count(*) || ' active memberships of one scope' AS detail
        FROM projects_membership WHERE state = 'Active'
        GROUP BY tenant_id, project_id, subject HAVING count(*) > 1
    """


@invariant("P3", "An active service account has an owner who is an active member of the tenant")
def owner_is_member() -> str:
    return """
        SELECT a.tenant_id, a.subject, 'owner ' || a.owner || ' is no active member' AS detail
        FROM projects_serviceaccount a
        WHERE a.state = 'Active' AND NOT EXISTS (
            SELECT 1 FROM projects_membership m
            WHERE m.tenant_id = a.tenant_id AND m.subject = a.owner
              AND m.kind = 'person' AND m.state = 'Active')
    """


@invariant("P4", "A service account is a member only where its owner is one, and names that person")
def service_memberships_are_answered_for() -> str:
    return """
        SELECT m.tenant_id, 'membership:' || m.id AS subject,
               coalesce('the account is ' || a.state || ', owned by ' || a.owner, 'no such account') AS detail
        FROM projects_membership m
        LEFT JOIN projects_serviceaccount a ON a.tenant_id = m.tenant_id AND a.subject = m.subject
        WHERE m.kind = 'service' AND m.state = 'Active'
          AND (a.id IS NULL OR a.state <> 'Active' OR a.owner <> m.person OR NOT EXISTS (
              SELECT 1 FROM projects_membership o
              WHERE o.tenant_id = m.tenant_id AND o.subject = m.person AND o.kind = 'person'
                AND o.state = 'Active' AND (o.project_id IS NULL OR o.project_id = m.project_id)))
    """


@invariant(
    "P5", "A suspended project has the row of its suspension, which stops the clocks, and no other has"
)
def suspensions_open() -> str:
    return """
        SELECT p.tenant_id, 'project:' || p.id, p.state || ' with ' || count(s.id) || ' open suspensions'
        FROM projects_project p LEFT JOIN projects_suspension s
          ON s.project_id = p.id AND s.tenant_id = p.tenant_id AND s.resumed_at IS NULL
        WHERE p.state IN ('Active', 'Suspended')
        GROUP BY p.tenant_id, p.id, p.state
        HAVING count(s.id) <> CASE p.state WHEN 'Suspended' THEN 1 ELSE 0 END
    """


@invariant("P6", "No service account is a member with a role by which one decides, or lends or borrows one")
def machines_decide_nothing() -> str:
    return f"""
        SELECT tenant_id, 'membership:' || id AS subject,
               subject || ' holds ' || array_to_string(roles, ', ') || '; it counts for nothing' AS detail
        FROM projects_membership
        WHERE state = 'Active' AND (kind = 'service' OR subject ~ '{MACHINE}')
          AND roles && {_array(OF_PEOPLE)}
        UNION ALL
        SELECT tenant_id, 'delegation:' || id, delegator || ' lends ' || role || ' to ' || delegate
        FROM projects_delegation
        WHERE state = 'Active' AND (delegator ~ '{MACHINE}' OR delegate ~ '{MACHINE}')
    """


@invariant("P7", "No address is that of two people who are members of one tenant")
def one_person_by_an_address() -> str:
    return f"""
        SELECT tenant_id, 'address:' || address AS subject,
               'of ' || string_agg(person, ', ' ORDER BY person) AS detail
        FROM (SELECT DISTINCT m.tenant_id, m.person, a.address
              FROM projects_membership m, unnest({known_by("m")}) AS a(address)
              WHERE m.kind = 'person' AND m.state = 'Active' AND a.address IS NOT NULL) known
        GROUP BY tenant_id, address HAVING count(*) > 1
    """


@invariant("P8", "A sign-in is one member's, who is a person, and no member's name beside it")
def one_person_by_a_sign_in() -> str:
    return """
        SELECT i.tenant_id, 'identity:' || i.id AS subject, concat_ws(', ',
               CASE WHEN i.others > 0 THEN 'it is that of ' || i.others || ' others too' END,
               CASE WHEN p.id IS NULL THEN i.person || ' is no member' END,
               CASE WHEN o.id IS NOT NULL THEN o.subject || ' is a member by it' END) AS detail
        FROM (SELECT z.*, count(*) OVER (PARTITION BY tenant_id, issuer, subject) - 1 AS others
              FROM projects_identity z WHERE z.state = 'Active') i
        LEFT JOIN LATERAL (
            SELECT m.id FROM projects_membership m WHERE m.tenant_id = i.tenant_id AND m.subject = i.person
               AND m.kind = 'person' AND m.state = 'Active' LIMIT 1) p ON true
        LEFT JOIN LATERAL (
            SELECT m.id, m.subject FROM projects_membership m WHERE m.tenant_id = i.tenant_id
               AND m.subject = i.subject AND m.subject <> i.person AND m.state = 'Active' LIMIT 1) o ON true
        WHERE i.others > 0 OR p.id IS NULL OR o.id IS NOT NULL
    """


@check("P9", "Who is a member is known by the normal spelling of their name and address")
def people_normally_spelled(cursor: CursorWrapper) -> Iterator[tuple[Any, Any, Any]]:
    query = """
        SELECT tenant_id, id, subject, email FROM projects_membership
        WHERE kind = 'person' AND state = 'Active' ORDER BY tenant_id, id
    """
    for rows in streamed(cursor, query):
        for tenant_id, key, subject, email in rows:
            yield from judged(tenant_id, f"membership:{key}", partial(_misspelled, subject, email))


def _misspelled(subject: str, email: str) -> str:
    """Return which of a member's names is not as it would be kept now; empty where both are."""
    try:
        kept = (normal_subject(subject), normal_address(email) if email else "")
    except NoAddress as fault:
        return f"{subject!r} with {email!r}: {fault}"
    if kept == (subject, email):
        return ""
    return f"{subject!r} with {email!r} would be kept as {kept[0]!r} with {kept[1]!r}"

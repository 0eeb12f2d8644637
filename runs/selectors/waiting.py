"""Who waits for a worker, across tenants: ids and due times only, as the scan role may see them."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db.backends.utils import CursorWrapper

from factory.kernel import reloading
from factory.kernel.tenancy import scanning

ALIVE = timedelta(seconds=60)
"""A heartbeat older than this is none: a poll or a renewal makes one."""
PAGE = 25
"""So many waiting steps are looked at together; a poll with free slots goes on to the next page."""
MOST_LAPSED = 20


@dataclass(frozen=True, slots=True)
class WaitingStep:
    """A step that could be given to a worker now."""

    tenant_id: str
    project_id: UUID
    run_id: UUID
    step_id: UUID


@dataclass(frozen=True, slots=True)
class Lapsed:
    """A lease whose time and grace are over."""

    tenant_id: str
    lease_id: UUID
    fencing_token: int


@dataclass(frozen=True, slots=True)
class Offer:
    """An offer that its worker has not acquired yet."""

    tenant_id: str
    lease_id: UUID
    attempt_id: UUID


_HOLDS_A_SLOT = """
l.state IN ('Offered', 'Held') AND l.expires_at >= statement_timestamp() - make_interval(secs => %(grace)s)
AND NOT (l.state = 'Offered' AND EXISTS (
    SELECT 1 FROM runs_run f WHERE f.id = l.run_id AND f.frozen_at IS NOT NULL))
"""
"""A lease that lapsed, or that nobody can acquire because its run is frozen, keeps nothing from others, even
while whatever should end it cannot."""
_WAITING = f"""
SELECT tenant_id, project_id, run_id, step_id FROM (
    SELECT w.*, row_number() OVER (PARTITION BY w.tenant_id ORDER BY w.due_at, w.step_id) AS turn
    FROM unnest(%(tenants)s::text[]) AS t(tenant_id) CROSS JOIN LATERAL (
        (SELECT s.tenant_id, r.project_id, s.run_id, s.id AS step_id, s.next_dispatch_at AS due_at
         FROM runs_step s JOIN runs_run r ON r.id = s.run_id JOIN projects_project p ON p.id = r.project_id
         WHERE s.tenant_id = t.tenant_id AND s.state = 'Pending'
           AND s.next_dispatch_at <= statement_timestamp()
           AND r.state IN ('Accepted', 'Running') AND p.state = 'Active'
           AND (r.deadline_at IS NULL OR r.deadline_at > statement_timestamp() OR r.clock_because <> '{{}}')
           AND s.id <> ALL(%(passed)s)
           AND r.frozen_at IS NULL
           AND s.agent_id || '/' || s.skill_id LIKE ANY(%(patterns)s)
         ORDER BY s.next_dispatch_at, s.id LIMIT %(most)s)
        UNION ALL
        (SELECT a.tenant_id, r.project_id, a.run_id, a.step_id, a.resume_at
         FROM runs_attempt a JOIN runs_step s ON s.id = a.step_id JOIN runs_run r ON r.id = a.run_id
         JOIN projects_project p ON p.id = r.project_id
         WHERE a.tenant_id = t.tenant_id AND a.state = 'Parked' AND a.resume_at <= statement_timestamp()
           AND r.state = 'Running' AND p.state = 'Active'
           AND (r.deadline_at > statement_timestamp() OR r.clock_because <> '{{}}')
           AND s.id <> ALL(%(passed)s)
           AND r.frozen_at IS NULL
           AND s.agent_id || '/' || s.skill_id LIKE ANY(%(patterns)s)
         ORDER BY a.resume_at, a.id LIMIT %(most)s)
    ) AS w
    WHERE NOT EXISTS (
        SELECT 1 FROM runs_tenantquota q WHERE q.tenant_id = t.tenant_id AND q.open_attempts <= (
            SELECT count(*) FROM runs_attempt o JOIN runs_lease l ON l.attempt_id = o.id
            WHERE o.tenant_id = q.tenant_id AND o.state = 'Open' AND {_HOLDS_A_SLOT}))
) AS ranked
ORDER BY turn, (tenant_id <= %(last)s), tenant_id LIMIT %(most)s
"""
_LAPSED = """
SELECT tenant_id, id, fencing_token FROM runs_lease
WHERE state IN ('Offered', 'Held') AND expires_at < statement_timestamp() - make_interval(secs => %s)
  AND tenant_id = ANY(%s) AND id <> ALL(%s)
  AND NOT EXISTS (SELECT 1 FROM runs_run r WHERE r.id = run_id AND r.frozen_at IS NOT NULL
                  AND r.state <> 'Cancelling')
ORDER BY expires_at, id LIMIT %s
"""
_OFFERS = "SELECT tenant_id, id, attempt_id FROM runs_lease WHERE worker_id = %s AND state = 'Offered'"
_TODO = """
SELECT tenant_id, count(*) || ' ' || max(at) FROM (
    SELECT s.tenant_id, s.next_dispatch_at AS at
    FROM runs_step s JOIN runs_run r ON r.id = s.run_id
    WHERE s.tenant_id = ANY(%(tenants)s) AND s.state = 'Pending'
           AND s.next_dispatch_at <= statement_timestamp()
      AND r.state IN ('Accepted', 'Running') AND r.frozen_at IS NULL
    UNION ALL
    SELECT a.tenant_id, a.resume_at FROM runs_attempt a JOIN runs_run r ON r.id = a.run_id
    WHERE a.tenant_id = ANY(%(tenants)s) AND a.state = 'Parked' AND a.resume_at <= statement_timestamp()
      AND r.state = 'Running' AND r.frozen_at IS NULL
    UNION ALL
    SELECT tenant_id, expires_at FROM runs_lease
    WHERE tenant_id = ANY(%(tenants)s) AND state IN ('Offered', 'Held')
      AND expires_at < statement_timestamp() - make_interval(secs => %(grace)s)
      AND NOT EXISTS (SELECT 1 FROM runs_run r WHERE r.id = run_id AND r.frozen_at IS NOT NULL
                      AND r.state <> 'Cancelling')
) AS due GROUP BY tenant_id
"""
_LAST_SERVED = (
    "SELECT tenant_id FROM runs_lease WHERE tenant_id = ANY(%s) ORDER BY fencing_token DESC LIMIT 1"
)
_OPEN_OF = f"""
SELECT l.worker_id, count(*) FROM runs_lease l
WHERE l.worker_id = ANY(%(workers)s) AND {_HOLDS_A_SLOT} GROUP BY l.worker_id
"""
_AT_WORK = f"""
SELECT count(*) FROM runs_attempt o JOIN runs_lease l ON l.attempt_id = o.id
WHERE o.tenant_id = %(tenant)s AND o.state = 'Open' AND {_HOLDS_A_SLOT}
"""


def _grace() -> float:
    """Return for how many seconds after its end a lease may still be acquired or renewed.

    Asked before the scan role is taken on, which may not read settings.
    """
    return float(reloading.value("FACTORY_LEASES_RENEWAL_GRACE_SECONDS"))


def like(capability: str) -> str:
    """A capability such as `assessor/*` as a pattern of SQL's LIKE."""
    escaped = capability.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return escaped.replace("*", "%")


@dataclass(frozen=True, slots=True)
class DispatchBoard:
    """Hold what a poll finds: what has lapsed, what the worker was offered before, what it could be given."""

    lapsed: list[Lapsed]
    offers: list[Offer]
    waiting: list[WaitingStep]


def look(
    worker_id: UUID,
    tenants: Sequence[str],
    capabilities: Sequence[str],
    last_tenant: str,
    grace: timedelta,
    passed: Sequence[UUID] = (),
) -> DispatchBoard:
    """One look across tenants, in one transaction: polls are many.

    The oldest waiting steps that match, tenants in turn, beginning after the one that was served last;
    none of a tenant that is at its quota. Steps and lapsed leases in `passed` are left out.
    """
    with scanning() as cursor:
        cursor.execute(_LAPSED, [grace.total_seconds(), list(tenants), list(passed), MOST_LAPSED])
        lapsed = [Lapsed(*row) for row in cursor.fetchall()]
        cursor.execute(_OFFERS, [worker_id])
        offers = [offer for row in cursor.fetchall() if (offer := Offer(*row)).tenant_id in tenants]
        waiting = _waiting(cursor, tenants, capabilities, last_tenant, passed, grace.total_seconds())
        return DispatchBoard(lapsed, offers, waiting)


def look_further(
    tenants: Sequence[str], capabilities: Sequence[str], last_tenant: str, passed: Sequence[UUID]
) -> list[WaitingStep]:
    """The next page of waiting steps: those that match, without the ones that were passed over."""
    grace = _grace()
    with scanning() as cursor:
        return _waiting(cursor, tenants, capabilities, last_tenant, passed, grace)


def _waiting(
    cursor: CursorWrapper,
    tenants: Sequence[str],
    capabilities: Sequence[str],
    last_tenant: str,
    passed: Sequence[UUID],
    grace: float,
) -> list[WaitingStep]:
    params: dict[str, Any] = {
        "grace": grace,
        "tenants": list(tenants),
        "patterns": [like(c) for c in capabilities],
        "last": last_tenant,
        "passed": list(passed),
        "most": PAGE,
    }
    cursor.execute(_WAITING, params)
    return [WaitingStep(*row) for row in cursor.fetchall()]


def last_served(tenants: Sequence[str]) -> str:
    """Return which of the tenants was given a lease last, by whichever worker; empty if none ever was."""
    with scanning() as cursor:
        cursor.execute(_LAST_SERVED, [list(tenants)])
        row = cursor.fetchone()
    return str(row[0]) if row else ""


def todo(tenants: Iterable[str], grace: timedelta) -> dict[str, str]:
    """By tenant, what a poll could do now: dispatch, or recover a lease; in a word that tells changes."""
    seconds = grace.total_seconds()
    with scanning() as cursor:
        cursor.execute(_TODO, {"tenants": list(tenants), "grace": seconds})
        return dict(cursor.fetchall())


def pool_names() -> list[str]:
    """Every pool of workers."""
    with scanning() as cursor:
        cursor.execute("SELECT name FROM runs_workerpool ORDER BY name")
        return [name for (name,) in cursor.fetchall()]


def offers_of(worker_id: UUID) -> list[Offer]:
    """Return what was offered to a worker and not acquired yet."""
    with scanning() as cursor:
        cursor.execute(_OFFERS, [worker_id])
        return [Offer(*row) for row in cursor.fetchall()]


def slots_used(worker_ids: Collection[UUID]) -> dict[UUID, int]:
    """Return how many slots each of these uses, in whichever tenant; one that uses none is not in it."""
    if not worker_ids:
        return {}
    params: dict[str, Any] = {"workers": list(worker_ids), "grace": _grace()}
    with scanning() as cursor:
        cursor.execute(_OPEN_OF, params)
        return dict(cursor.fetchall())


def attempts_at_work(tenant_id: str) -> int:
    """Return how many attempts of a tenant hold a slot: what its quota is about."""
    params: dict[str, Any] = {"tenant": tenant_id, "grace": _grace()}
    with scanning() as cursor:
        cursor.execute(_AT_WORK, params)
        return int(cursor.fetchone()[0])

"""What the auditor checks about runs: attempts, leases, tokens, outcomes, and what a run rests on."""

import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import partial
from typing import Any

from django.db.backends.utils import CursorWrapper

from factory.evidence.auditor import check, invariant, judged
from factory.evidence.readable import array_of, number_of
from factory.kernel.hashing import digest
from runs.models.lease import USED_UP
from runs.operations.timing import grace

PATIENCE = 300
"""Seconds beyond the grace within which a lapsed lease has been settled, by schedule or by a poll."""
ORDERED = 900
"""Seconds within which an order over many runs was carried out on each: a round a minute, and many rounds."""


@invariant("B1", "A step has at most one open attempt")
def one_open_attempt() -> str:
    return """
        SELECT tenant_id, 'step:' || step_id, count(*) || ' open attempts'
        FROM runs_attempt WHERE state IN ('Open', 'Parked')
        GROUP BY tenant_id, step_id HAVING count(*) > 1
    """


@invariant("B1b", "An open attempt has exactly one current lease, its own; any other attempt has none")
def one_current_lease() -> str:
    return """
        SELECT a.tenant_id, 'attempt:' || a.id, a.state || ' with ' || count(l.id) || ' current leases'
        FROM runs_attempt a LEFT JOIN runs_lease l
          ON l.attempt_id = a.id AND l.state IN ('Offered', 'Held')
        GROUP BY a.tenant_id, a.id, a.state, a.lease_id
        HAVING count(l.id) <> CASE a.state WHEN 'Open' THEN 1 ELSE 0 END
            OR (a.state = 'Open' AND min(l.id::text) <> a.lease_id::text)
    """


@invariant("B2", "Fencing tokens rise with every lease of a step")
def tokens_rise() -> str:
    return """
        SELECT tenant_id, 'step:' || step_id, 'token ' || fencing_token || ' came after ' || before
        FROM (SELECT l.tenant_id, l.step_id, l.fencing_token, max(l.fencing_token) OVER (
                  PARTITION BY l.step_id ORDER BY a.number, l.offered_at
                  ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
              FROM runs_lease l JOIN runs_attempt a ON a.id = l.attempt_id) t
        WHERE fencing_token <= before
    """


@invariant("B3", "An attempt has at most one outcome")
def one_outcome() -> str:
    return """
        SELECT tenant_id, 'attempt:' || entity_id, count(*) || ' outcomes in the journal'
        FROM factory_journalentry
        WHERE entity = 'attempt'
          AND to_state IN ('Succeeded', 'Failed', 'TimedOut', 'Cancelled', 'Uncertain')
        GROUP BY tenant_id, entity_id HAVING count(*) > 1
    """


@invariant("B4", "An attempt whose lease was settled has an outcome with its hash, and no other has one")
def outcomes_reported() -> str:
    return """
        SELECT a.tenant_id, 'attempt:' || a.id, a.state || ', ' || count(l.id) || ' settled leases, hash '
               || quote_literal(a.outcome_hash)
        FROM runs_attempt a LEFT JOIN runs_lease l ON l.attempt_id = a.id AND l.state = 'Settled'
        GROUP BY a.tenant_id, a.id, a.state, a.outcome_hash, a.settled_at
        HAVING count(l.id) > 1
            OR (count(l.id) = 1) <> (a.outcome_hash <> '')
            OR (count(l.id) = 1 AND a.settled_at IS NULL)
    """


@invariant("B5", "No lease is left lapsed beyond the time in which it is settled")
def leases_recovered() -> str:
    seconds = int(grace().total_seconds()) + PATIENCE
    return f"""
        SELECT tenant_id, 'lease:' || id, state || ' since it ended at ' || expires_at
        FROM runs_lease WHERE state IN ('Offered', 'Held')
        AND expires_at + interval '{seconds} seconds' < clock_timestamp()
        AND NOT EXISTS (SELECT 1 FROM runs_run r WHERE r.id = run_id AND r.frozen_at IS NOT NULL
                        AND r.state <> 'Cancelling')
    """


@invariant("B6", "A step succeeds once at most, and a step that is done has its success")
def one_success() -> str:
    return """
        SELECT s.tenant_id, 'step:' || s.id, s.state || ' with ' || count(a.id) || ' successes'
        FROM runs_step s LEFT JOIN runs_attempt a ON a.step_id = s.id AND a.state = 'Succeeded'
        GROUP BY s.tenant_id, s.id, s.state
        HAVING count(a.id) > 1 OR (s.state = 'Succeeded' AND count(a.id) = 0 AND NOT EXISTS (
            SELECT 1 FROM runs_resolution r WHERE r.step_id = s.id AND r.resolution = 'effect-happened')
            AND NOT EXISTS (SELECT 1 FROM factory_journalentry j WHERE j.entity_id = s.id
                AND j.cause IN ('ApprovalGranted', 'NothingToFanOut')))
    """


@invariant("B7", "Nothing waits, is offered or is parked of a run that is over; a Completed one is done")
def nothing_left_over() -> str:
    return """
        SELECT r.tenant_id, 'run:' || r.id, r.state || ' with the step ' || s.node_key || ' ' || s.state
        FROM runs_run r JOIN runs_step s ON s.run_id = r.id
        WHERE (r.state IN ('Completed', 'Failed', 'Cancelled') AND s.state IN ('Pending', 'Dispatched'))
           OR (r.state = 'Completed' AND s.state NOT IN ('Succeeded', 'Skipped'))
           OR (r.state = 'Cancelled' AND s.state = 'Running')
        UNION ALL
        SELECT a.tenant_id, 'attempt:' || a.id, 'parked in a run that is ' || r.state
        FROM runs_attempt a JOIN runs_run r ON r.id = a.run_id
        WHERE a.state = 'Parked' AND r.state NOT IN ('Running', 'WaitingForApproval')
    """


@invariant("B8", "A run waits for an approval exactly while one is Pending; an Accepted one for its money's")
def waits_with_reason() -> str:
    return """
        SELECT r.tenant_id, 'run:' || r.id, r.state || ' with ' || count(a.id) || ' pending approvals'
        FROM runs_run r LEFT JOIN approvals_approvalrequest a ON a.run_id = r.id AND a.state = 'Pending'
        GROUP BY r.tenant_id, r.id, r.state
        HAVING (r.state = 'WaitingForApproval') <> (count(a.id) > 0)
           AND NOT (r.state = 'Accepted' AND bool_and(a.subject_type = 'spend'))
    """


@invariant("B9", "A human step has no attempt, and it is done exactly by an approval of its own")
def people_answered() -> str:
    return """
        SELECT s.tenant_id, 'step:' || s.id, s.state || ' with ' || count(a.id) || ' attempts and '
               || coalesce(string_agg(q.state, '/'), 'no question')
        FROM runs_step s LEFT JOIN runs_attempt a ON a.step_id = s.id
        LEFT JOIN approvals_approvalrequest q ON q.step_id = s.id AND q.tenant_id = s.tenant_id
             AND q.state IN ('Pending', 'Approved')
        WHERE s.kind = 'Human' GROUP BY s.tenant_id, s.id, s.state
        HAVING count(a.id) > 0
            OR (s.state = 'Succeeded') <> coalesce(bool_or(q.state = 'Approved'), false)
            OR (s.state = 'Running') <> coalesce(bool_or(q.state = 'Pending'), false)
    """


@invariant("B10", "A node that fanned out has all of its instances, numbered from 0 without a gap")
def fanned_out_whole() -> str:
    return f"""
        SELECT tenant_id, 'run:' || run_id,
               node || ' has ' || count(*) || ' instances up to ' || coalesce(max(place)::text, 'none')
        FROM (SELECT tenant_id, run_id, split_part(node_key, '[', 1) AS node,
                     {number_of("rtrim(split_part(node_key, '[', 2), ']')")} AS place
              FROM runs_step WHERE node_key LIKE '%[%') instances
        GROUP BY tenant_id, run_id, node HAVING count(*) <> coalesce(max(place), -1) + 1 OR count(*) > 100
    """


@invariant("B16", "A run of which nothing is left to do is over, and no step that is over still asks anybody")
def nothing_asked_in_vain() -> str:
    return f"""
        SELECT r.tenant_id, 'run:' || r.id, r.state || ', though each of its nodes is done'
        FROM runs_run r JOIN runs_snapshot n ON n.id = r.snapshot_id AND n.tenant_id = r.tenant_id
        WHERE r.state IN ('Running', 'WaitingForApproval')
          AND NOT EXISTS (SELECT 1 FROM runs_step s
              WHERE s.run_id = r.id AND s.state IN ('Pending', 'Dispatched', 'Running'))
          AND NOT EXISTS (SELECT 1
              FROM jsonb_array_elements({array_of("n.content #> '{workflow,nodes}'")}) AS each
              WHERE NOT EXISTS (SELECT 1 FROM runs_step s
                  WHERE s.run_id = r.id AND split_part(s.node_key, '[', 1) = each ->> 'key'))
        UNION ALL
        SELECT q.tenant_id, 'run:' || q.run_id, 'asks for ' || s.node_key || ', which is ' || s.state
        FROM approvals_approvalrequest q JOIN runs_step s ON s.id = q.step_id AND s.tenant_id = q.tenant_id
        WHERE q.state = 'Pending' AND s.state IN ('Succeeded', 'Failed', 'Skipped', 'Cancelled')
    """


@invariant("B17", "No step is tried again once its attempts are used up")
def attempts_bounded() -> str:
    return f"""
        SELECT s.tenant_id, 'step:' || s.id, count(*) || ' leases were held, of ' || s.max_attempts
        FROM runs_step s
        JOIN runs_lease ON runs_lease.step_id = s.id AND runs_lease.tenant_id = s.tenant_id
        WHERE s.state IN ('Pending', 'Dispatched', 'Running') AND {USED_UP}
        GROUP BY s.tenant_id, s.id, s.max_attempts
        HAVING count(*) > s.max_attempts + (
            SELECT count(*) FROM runs_resolution r
            WHERE r.step_id = s.id AND r.resolution = 'effect-did-not-happen')
    """


@invariant("B18", "A clock that was noted stands still exactly while something of its run stops it")
def clocks_stopped() -> str:
    return """
        SELECT r.tenant_id, 'run:' || r.id, 'its clock ' || coalesce('stands still because of '
               || nullif(array_to_string(r.clock_because, ', '), ''), 'runs') || ', what stops it is '
               || coalesce(nullif(array_to_string(s.because, ', '), ''), 'nothing')
        FROM runs_run r CROSS JOIN LATERAL (SELECT array_remove(ARRAY[
            CASE WHEN r.state = 'WaitingForApproval' THEN 'approval' END,
            CASE WHEN r.frozen_at IS NOT NULL THEN 'frozen' END,
            CASE WHEN EXISTS (SELECT 1 FROM runs_step d WHERE d.run_id = r.id AND d.attention = 'uncertain')
                 THEN 'operator' END], NULL) AS because) s
        WHERE r.state IN ('Running', 'WaitingForApproval') AND r.clock_because::text[] <> s.because::text[]
          AND r.clock_since IS NOT NULL
    """


@invariant(
    "B19", "A deadline is the limit after the start, and later at most by what the clock can have stood"
)
def deadlines_counted() -> str:
    return f"""
        SELECT tenant_id, 'run:' || id,
               'begun ' || started_at || ', ' || coalesce(limits ->> 'maxMinutes', 'unknown')
               || ' minutes at most, due ' || deadline_at || ' as counted up to ' || clock_since
        FROM (SELECT *, started_at + interval '1 minute'
                     * least({number_of("limits ->> 'maxMinutes'")}, 10000000) AS earliest
              FROM runs_run WHERE state IN ('Running', 'WaitingForApproval', 'Cancelling')) r
        WHERE earliest IS NULL OR deadline_at < earliest
           OR deadline_at > earliest + (clock_since - started_at)
           OR clock_since > clock_timestamp()
    """


@invariant(
    "D4",
    "An effect that happened has an authorization of its own, or an Operator is, or was, asked about it",
)
def effects_authorized() -> str:
    return """
        SELECT e.tenant_id, 'receipt:' || e.receipt_id, 'no authorization under its attempt covers it'
        FROM (SELECT *, row_number() OVER (PARTITION BY attempt_id, approval_id, proposal_hash
                                           ORDER BY recorded_at, id) AS place
              FROM runs_receipt
              WHERE kind = 'effect' AND content #> '{details,tookPlace}' IS DISTINCT FROM 'false'::jsonb) e
        JOIN runs_attempt a ON a.id = e.attempt_id JOIN runs_step s ON s.id = e.step_id
        WHERE a.settled_at IS NOT NULL AND s.attention = ''
          AND NOT EXISTS (
            SELECT 1 FROM runs_resolution r WHERE r.step_id = e.step_id AND r.resolved_at >= e.recorded_at)
          AND e.place > (
            SELECT count(*) FROM approvals_authorization u WHERE u.attempt_id = e.attempt_id
            AND u.approval_id = e.approval_id AND u.proposal_hash = e.proposal_hash)
    """


@invariant("F2", "Runs rest on releases that were published, with the hash that they had")
def released_digests() -> str:
    return """
        SELECT r.tenant_id, 'run:' || r.id, 'pinned ' || r.release_hash || ', the release has '
               || coalesce(c.hash, 'no closure') || ', published ' || coalesce(p.published_at::text, 'never')
        FROM runs_run r
        LEFT JOIN registry_release p ON p.id = r.release_id AND p.tenant_id = r.tenant_id
        LEFT JOIN registry_closure c ON c.id = p.closure_id AND c.tenant_id = r.tenant_id
        WHERE c.hash IS DISTINCT FROM r.release_hash OR p.published_at IS NULL
    """


@check("F2b", "A snapshot has the hash of its content")
def snapshots_genuine(cursor: CursorWrapper) -> Iterator[tuple[Any, Any, Any]]:
    cursor.execute("SELECT tenant_id, id, content::text, hash FROM runs_snapshot")
    for tenant_id, snapshot_id, content, stored in cursor.fetchall():
        judge = partial(_unlike, partial(json.loads, content), stored)
        yield from judged(tenant_id, f"snapshot:{snapshot_id}", judge)


def _unlike(content: Callable[[], Any], stored: str) -> str | None:
    content_hash = digest(content())
    return None if content_hash == stored else f"hashes to {content_hash}, stored is {stored}"


@check("E2e", "A run's reservation was never raised above what a person approved")
def raised_by_people(cursor: CursorWrapper) -> Iterator[tuple[Any, Any, Any]]:
    cursor.execute("""
        SELECT m.tenant_id, m.run_id, m.amount + m.extended, array_agg(p.content)
        FROM usage_reservation m
        LEFT JOIN approvals_approvalrequest q ON q.tenant_id = m.tenant_id AND q.run_id = m.run_id
             AND q.subject_type = 'spend' AND q.state = 'Approved'
        LEFT JOIN approvals_proposal p ON p.id = q.proposal_id
        WHERE m.extended > 0 GROUP BY m.tenant_id, m.id, m.run_id, m.amount, m.extended
    """)
    for tenant_id, run_id, aside, proposals in cursor.fetchall():
        yield from judged(tenant_id, f"run:{run_id}", partial(_raised, aside, proposals))


def _raised(aside: Decimal, proposals: list[bytes | None]) -> str | None:
    signed = [Decimal(json.loads(each)["amount"]["amount"]) for each in proposals if each is not None]
    if aside <= max(signed, default=Decimal(0)):
        return None
    return f"set aside {aside}, approved {max(signed) if signed else 'nothing'}"


@invariant("E4f", "Usage is added up under the workflow and the release that its run is pinned to")
def sums_under_their_release() -> str:
    return """
        SELECT s.tenant_id, 'run:' || s.run_id, 'added up under ' || s.workflow_id || ' of ' || s.release_id
               || ', the run is ' || coalesce(r.workflow_id || ' of ' || r.release_id, 'not there')
        FROM usage_usagesum s LEFT JOIN runs_run r ON r.id = s.run_id AND r.tenant_id = s.tenant_id
        WHERE (s.project_id, s.workflow_id, s.release_id)
              IS DISTINCT FROM (r.project_id, r.workflow_id, r.release_id)
    """


@invariant("E4g", "Each receipt of a call has its usage, each usage its receipt, and they say the same")
def receipts_and_usage() -> str:
    return """
        SELECT coalesce(c.tenant_id, u.tenant_id), 'run:' || coalesce(c.run_id, u.run_id),
               'the receipt ' || coalesce(c.receipt_id, u.receipt_id) || ' of '
               || coalesce(c.provider, u.provider)
               || CASE WHEN u.id IS NULL THEN ' has no usage'
                       WHEN c.id IS NULL THEN ' is not there, and its usage is'
                       ELSE ' and its usage differ' END
        FROM (SELECT * FROM runs_receipt WHERE kind <> 'effect'
              OR content ->> 'quantities' IS NOT NULL OR content ->> 'cost' IS NOT NULL) c
        FULL JOIN usage_usagerecord u ON (c.tenant_id, c.run_id, c.provider, c.receipt_id)
             = (u.tenant_id, u.run_id, u.provider, u.receipt_id)
        WHERE u.id IS NULL OR (c.id IS NULL AND NOT starts_with(u.receipt_id, 'refused '))
           OR (c.id IS NOT NULL AND (c.attempt_id, c.kind, c.name) <> (u.attempt_id, u.kind, u.name))
    """


@invariant(
    "E4i", "Each refused receipt of a call has usage that it does not price, and each such usage its receipt"
)
def refused_receipts_and_usage() -> str:
    """An effect that was refused is usage only where it states what was paid."""
    return """
        SELECT coalesce(x.tenant_id, u.tenant_id), 'run:' || coalesce(x.run_id, u.run_id),
               'the refused receipt ' || coalesce('refused ' || x.id, u.receipt_id)
               || CASE WHEN u.id IS NULL THEN ' has no usage'
                       WHEN x.id IS NULL THEN ' is not there, and its usage is'
                       ELSE ' and its usage differ' END
        FROM runs_refusedreceipt x
        FULL JOIN (SELECT * FROM usage_usagerecord WHERE starts_with(receipt_id, 'refused ')) u
             ON (x.tenant_id, x.run_id, 'refused ' || x.id) = (u.tenant_id, u.run_id, u.receipt_id)
        WHERE x.id IS NULL OR (u.id IS NULL AND x.kind <> 'effect') OR x.attempt_id <> u.attempt_id
           OR u.pricing_revision_id IS NOT NULL OR u.quantities IS NOT NULL
    """


@invariant("E4h", "A receipt refused for a conflict names the one that stands under its identity")
def conflicts_name_what_stands() -> str:
    return """
        SELECT x.tenant_id, 'run:' || x.run_id, 'the refused receipt ' || x.receipt_id || ' of ' || x.provider
        FROM runs_refusedreceipt x
        LEFT JOIN runs_receipt r ON r.id = x.recorded_id AND r.tenant_id = x.tenant_id
        WHERE x.code = 'receipt-conflict' AND (x.run_id, x.provider, x.receipt_id)
              IS DISTINCT FROM (r.run_id, r.provider, r.receipt_id)
    """


@invariant("E2c", "Money is set aside for a run only while it lives, and nothing of a run starts without")
def money_while_it_lives() -> str:
    return """
    SELECT r.tenant_id, 'run:' || r.id, 'the run is ' || r.state || ', its reservation '
           || coalesce(m.state, 'missing')
    FROM runs_run r LEFT JOIN usage_reservation m ON m.tenant_id = r.tenant_id AND m.run_id = r.id
    WHERE (r.state IN ('Completed', 'Failed', 'Cancelled') AND m.state = 'Reserved')
       OR (r.state IN ('Running', 'WaitingForApproval', 'Cancelling', 'Completed')
           AND (m.dispatched_at IS NULL OR m.state IN ('Denied', 'Released', 'Expired')))
    """


@invariant("B11", "Runs of a release that was taken out of use with `block` or `cancel` are ended in time")
def withdrawals_followed() -> str:
    ended = "coalesce(p.revoked_at, p.deprecated_at)"
    return f"""
        SELECT r.tenant_id, 'run:' || r.id, r.state || ', though the release ' || p.id || ' was '
               || p.state || ' with ' || p.in_flight || ' at ' || {ended}
        FROM registry_release p
        JOIN runs_run r ON r.tenant_id = p.tenant_id AND (r.release_id = p.id OR (
            p.state = 'Revoked' AND r.release_id IN (
                SELECT n.id FROM registry_release n JOIN registry_closuredependency d
                  ON d.closure_id = n.closure_id AND d.tenant_id = n.tenant_id
                WHERE d.release_id = p.id AND d.tenant_id = p.tenant_id)))
        WHERE p.in_flight IN ('block', 'cancel') AND r.state IN ('Accepted', 'Running', 'WaitingForApproval')
          AND {ended} + interval '{ORDERED} seconds' < clock_timestamp()
    """


@invariant("B12", "Runs of a project whose kill switch was thrown are asked to stop in time")
def kill_switch_finished() -> str:
    return f"""
        SELECT r.tenant_id, 'run:' || r.id, r.state || ', though ' || p.slug || ' is being killed since '
               || p.killing_since
        FROM projects_project p JOIN runs_run r ON r.project_id = p.id AND r.tenant_id = p.tenant_id
        WHERE r.state IN ('Accepted', 'Running', 'WaitingForApproval')
          AND p.killing_since + interval '{ORDERED} seconds' < clock_timestamp()
    """


@invariant("B13", "A run under a template is what the template fixes, and began while it was there")
def templates_followed() -> str:
    return """
        SELECT r.tenant_id, 'run:' || r.id, 'not what the template '
               || coalesce(t.name, s.content #>> '{template,id}', 'that is not there') || ' fixes'
        FROM runs_run r
        LEFT JOIN runs_snapshot s ON s.id = r.snapshot_id AND s.tenant_id = r.tenant_id
        LEFT JOIN runs_runtemplate t ON t.id = r.template_id AND t.tenant_id = r.tenant_id
        WHERE s.content #>> '{template,id}' IS DISTINCT FROM r.template_id::text
           OR s.content #>> '{template,hash}' IS DISTINCT FROM t.content_hash
           OR (t.id IS NOT NULL AND (
               (r.project_id, r.workflow_id, r.model_profile_id, r.limits)
               <> (t.project_id, t.workflow_id, t.model_profile_id, t.limits)
               OR r.created_at < t.created_at OR r.created_at >= t.retired_at))
    """


@invariant("B14", "What was approved in advance is a step of the class, in a run that its waiver is about")
def waived_for_their_runs() -> str:
    return """
        SELECT a.tenant_id, 'approval:' || a.id, 'given in advance by the waiver ' || w.id || ' to '
               || coalesce(s.side_effect_class || ' of ' || r.workflow_id, 'no run')
        FROM approvals_approvalrequest a
        JOIN approvals_waiver w ON w.id = a.waiver_id AND w.tenant_id = a.tenant_id
        LEFT JOIN runs_run r ON r.id = a.run_id AND r.tenant_id = a.tenant_id
        LEFT JOIN runs_step s ON s.id = a.step_id AND s.tenant_id = a.tenant_id
        WHERE r.id IS NULL OR s.id IS NULL OR s.side_effect_class <> w.action_class
           OR (r.template_id, r.workflow_id, r.release_id, r.requester_person)
              IS DISTINCT FROM (w.template_id, w.workflow_id, w.release_id, a.requester_person)
           OR r.environment_id IS NULL OR r.environment_id <> ALL (w.environment_ids)
    """


def _content_of(workflow_id: str, profile: str, limits: str, schema: str | None) -> dict[str, Any]:
    return {
        "workflowId": workflow_id,
        "modelProfileId": profile,
        "limits": json.loads(limits),
        "inputSchema": None if schema is None else json.loads(schema),
    }


@check("B15", "A template is what its hash says, and so is what was signed about it")
def templates_genuine(cursor: CursorWrapper) -> Iterator[tuple[Any, Any, Any]]:
    cursor.execute(
        "SELECT tenant_id, id, workflow_id, model_profile_id, limits::text, input_schema::text, content_hash "
        "FROM runs_runtemplate"
    )
    for tenant_id, template_id, *content, stored in cursor.fetchall():
        judge = partial(_unlike, partial(_content_of, *content), stored)
        yield from judged(tenant_id, f"run-template:{template_id}", judge)
    cursor.execute("""
        SELECT t.tenant_id, w.id, p.content, t.content_hash
        FROM approvals_waiver w JOIN runs_runtemplate t ON t.id = w.template_id AND t.tenant_id = w.tenant_id
        JOIN approvals_approvalrequest g ON g.id = w.approval_id AND g.tenant_id = w.tenant_id
        JOIN approvals_proposal p ON p.id = g.proposal_id AND p.hash = g.proposal_hash
    """)
    for tenant_id, waiver_id, proposal, stored in cursor.fetchall():
        yield from judged(tenant_id, f"waiver:{waiver_id}", partial(_signed_otherwise, proposal, stored))


def _signed_otherwise(proposal: bytes, stored: str) -> str | None:
    signed = json.loads(proposal).get("manifest", {}).get("template", {}).get("hash")
    return None if signed == stored else f"signed was {signed or 'no template'}"

"""What the auditor checks about approvals: who decided, on what, and what was done with it."""

import json
from collections.abc import Iterator
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

from django.db.backends.utils import CursorWrapper

from factory.evidence.auditor import check, invariant, judged
from projects.selectors.people import BEHIND
from projects.states import MACHINE

ASKERS = ("requested_by", "requester_person", "author_person")


def _join_behind(*names: str) -> str:
    """Return SQL that joins who answers for the names in these columns of `a`: `people_behind`, in SQL."""
    return "".join(
        f" LEFT JOIN behind {name}_ ON {name}_.tenant_id = a.tenant_id AND {name}_.name = a.{name}"
        for name in names
    )


def _people(*names: str) -> str:
    """Return SQL for the array of these columns of `a` and everybody who answers for them."""
    own = ", ".join(f"nullif(a.{name}, '')" for name in names)
    return f"(ARRAY[{own}]::text[]" + "".join(f" || {name}_.people" for name in names) + ")"


@invariant("D1", "Nobody has decided on what they asked for or wrote: people are compared, not accounts")
def duties_separate() -> str:
    return f"""
        WITH {BEHIND}
        SELECT a.tenant_id, 'approval:' || a.id, a.decided_by || ' asked for it, wrote it, or owns who did'
        FROM approvals_approvalrequest a {_join_behind(*ASKERS)}
        LEFT JOIN projects_serviceaccount decider
          ON decider.subject = a.decided_by AND decider.tenant_id = a.tenant_id
        WHERE a.decided_by <> '' AND (
            a.decided_person = ''
            OR ARRAY[a.decided_by, a.decided_person, nullif(a.decided_for, ''), decider.owner]::text[]
               && {_people(*ASKERS)})
    """


@invariant("D1b", "Every answer has its person, its time and its words, and nothing else has")
def answers_whole() -> str:
    return """
        SELECT tenant_id, 'approval:' || id, state || ' with the decision ' || quote_literal(decision)
        FROM approvals_approvalrequest
        WHERE NOT CASE state
            WHEN 'Approved' THEN decision = 'approve' AND decided_by <> '' AND decided_at IS NOT NULL
            WHEN 'Rejected' THEN decision = 'reject' AND decided_by <> '' AND decided_at IS NOT NULL
            WHEN 'Stale' THEN decision = ''
                OR (decision = 'request_changes' AND decided_by <> '' AND reason <> '')
            ELSE decision = '' AND decided_by = '' AND decided_at IS NULL END
           OR decided_at >= expires_at OR (state = 'Expired' AND closed_at < expires_at)
    """


@invariant("D2", "What is decided about is what was asked: the request's hash is that of the stored bytes")
def proposals_genuine() -> str:
    return """
        SELECT a.tenant_id, 'approval:' || a.id, 'asked about ' || a.proposal_hash || ', stored is '
               || coalesce('sha256:' || encode(sha256(p.content), 'hex'), 'nothing')
        FROM approvals_approvalrequest a LEFT JOIN approvals_proposal p
          ON p.id = a.proposal_id AND p.tenant_id = a.tenant_id
        WHERE p.id IS NULL OR a.proposal_hash <> p.hash
           OR p.hash <> 'sha256:' || encode(sha256(p.content), 'hex')
    """


@invariant("D2b", "Each request rests on the policy revision that it names, and asks those whom it may")
def policy_pinned() -> str:
    return """
        SELECT a.tenant_id, 'approval:' || a.id, 'names ' || a.policy_revision || ' and rests on '
               || coalesce('r' || r.number, 'nothing') || ', decided by ' || a.approver_roles
        FROM approvals_approvalrequest a LEFT JOIN approvals_policyrevision r
          ON r.id = a.policy_id AND r.tenant_id = a.tenant_id
        WHERE r.id IS NULL OR a.policy_revision <> 'r' || r.number
           OR NOT a.approver_roles <@ '["Reviewer", "WorkspaceAdmin"]'
           OR (a.action_class = 'publication' AND NOT a.approver_roles <@ '["Reviewer"]')
           OR a.expires_at > a.requested_at + interval '72 hours'
    """


@invariant("D3", "An approval is used once, for its own step and proposal, within its validity")
def used_as_signed() -> str:
    return """
        SELECT u.tenant_id, 'authorization:' || u.id, concat_ws(', ',
               CASE WHEN a.id IS NULL THEN 'it rests on no approval' END,
               CASE WHEN a.state <> 'Approved' THEN 'the request is ' || a.state END,
               CASE WHEN u.authorized_at < a.decided_at THEN 'taken before the decision' END,
               CASE WHEN u.authorized_at >= a.valid_until + u.paused THEN 'taken after its validity' END,
               CASE WHEN u.proposal_hash <> a.proposal_hash THEN 'taken for another proposal' END,
               CASE WHEN (u.run_id, u.step_id) IS DISTINCT FROM (a.run_id, a.step_id)
                    THEN 'taken by another step' END,
               CASE WHEN u.uses > 1 THEN 'taken ' || u.uses || ' times' END)
        FROM (SELECT z.*, count(*) OVER (PARTITION BY z.approval_id) AS uses,
                     coalesce(projects_paused(q.project_id, q.valid_until - q.valid_for, q.valid_until,
                                              z.authorized_at), interval '0') AS paused
              FROM approvals_authorization z
              LEFT JOIN approvals_approvalrequest q ON q.id = z.approval_id AND q.tenant_id = z.tenant_id) u
        LEFT JOIN approvals_approvalrequest a ON a.id = u.approval_id AND a.tenant_id = u.tenant_id
        WHERE a.id IS NULL OR a.state <> 'Approved' OR u.uses > 1 OR u.proposal_hash <> a.proposal_hash
           OR u.authorized_at < a.decided_at OR u.authorized_at >= a.valid_until + u.paused
           OR (u.run_id, u.step_id) IS DISTINCT FROM (a.run_id, a.step_id)
    """


@invariant("D3b", "Every use is journaled, and every journaled use is there")
def uses_journaled() -> str:
    return """
        SELECT coalesce(u.tenant_id, j.tenant_id), 'approval:' || coalesce(u.approval_id, j.entity_id),
               CASE WHEN u.id IS NULL THEN 'the journal knows a use that is not there'
                    ELSE 'the journal does not know of its use' END
        FROM approvals_authorization u FULL JOIN
             (SELECT * FROM factory_journalentry WHERE entity = 'approval' AND cause = 'Authorized') j
          ON j.entity_id = u.approval_id AND j.tenant_id = u.tenant_id
         AND j.detail->>'attemptId' = u.attempt_id::text
        WHERE u.id IS NULL OR j.entity_id IS NULL
    """


@invariant("D5", "Policy revisions are numbered from 1 without a gap")
def policies_gapless() -> str:
    return """
        SELECT tenant_id, 'policy:' || policy_id, count(*) || ' revisions from ' || min(number) || ' to '
               || max(number)
        FROM approvals_policyrevision GROUP BY tenant_id, policy_id
        HAVING min(number) <> 1 OR max(number) <> count(*)
    """


@invariant("D6", "What needed several people was approved by as many, each once, for its hash and version")
def quorums_reached() -> str:
    return f"""
        WITH {BEHIND}
        SELECT a.tenant_id, 'approval:' || a.id, concat_ws(', ',
               CASE WHEN a.votes <> coalesce(v.cast_, 0)
                    THEN a.votes || ' votes on the request, ' || coalesce(v.cast_, 0) || ' kept' END,
               CASE WHEN a.state = 'Approved' AND NOT a.break_glass AND coalesce(v.people, 0) < a.quorum
                    THEN coalesce(v.people, 0) || ' people for a quorum of ' || a.quorum END,
               CASE WHEN v.strange > 0 THEN v.strange || ' votes of who asked, or for another proposal' END,
               CASE WHEN a.state = 'Approved' AND NOT a.break_glass AND NOT v.decider
                    THEN 'who decided has not voted' END)
        FROM approvals_approvalrequest a {_join_behind(*ASKERS)} LEFT JOIN LATERAL (
            SELECT count(*) AS cast_,
                   count(DISTINCT least(whose, (SELECT min(name) FROM unnest(b.people) AS name))) AS people,
                   bool_or(voter = a.decided_by) AS decider,
                   count(*) FILTER (WHERE proposal_hash <> a.proposal_hash OR version >= a.version
                       AND a.state = 'Approved'
                       OR ARRAY[voter, person, nullif(acting_for, '')]::text[]
                          && {_people(*ASKERS)})
                   AS strange
            FROM (SELECT *, coalesce(nullif(acting_for, ''), person)::text AS whose FROM approvals_vote
                  WHERE approval_id = a.id AND tenant_id = a.tenant_id) c
            LEFT JOIN behind b ON b.tenant_id = a.tenant_id AND b.name = c.whose) v ON true
        WHERE a.waiver_id IS NULL AND (a.quorum > 1 OR a.votes > 0 OR v.cast_ > 0) AND (
               a.votes <> coalesce(v.cast_, 0) OR v.strange > 0
               OR (a.state = 'Approved' AND NOT a.break_glass
                   AND (coalesce(v.people, 0) < a.quorum OR NOT coalesce(v.decider, false))))
    """


@invariant("D7", "Who decided or voted by a lent role had borrowed it at that moment, and the rule named it")
def delegations_in_force() -> str:
    return """
        WITH used AS (
            SELECT tenant_id, id AS approval_id, decided_by AS who, decided_for AS of_whom, delegation_id,
                   decided_at AS at FROM approvals_approvalrequest WHERE delegation_id IS NOT NULL
            UNION ALL
            SELECT tenant_id, approval_id, voter, acting_for, delegation_id, voted_at FROM approvals_vote
            WHERE delegation_id IS NOT NULL)
        SELECT u.tenant_id, 'approval:' || u.approval_id, u.who || ' for ' || u.of_whom || ' by '
               || coalesce(d.role || ', ' || d.state, 'a delegation that is not there')
        FROM used u JOIN approvals_approvalrequest a ON a.id = u.approval_id AND a.tenant_id = u.tenant_id
        LEFT JOIN projects_delegation d ON d.id = u.delegation_id AND d.tenant_id = u.tenant_id
        WHERE d.id IS NULL OR d.delegate <> u.who OR d.delegator <> u.of_whom
           OR d.project_id IS DISTINCT FROM a.project_id OR NOT a.approver_roles ? d.role
           OR u.at < d.lent_at OR u.at >= d.expires_at OR (d.state = 'Revoked' AND u.at > d.ended_at)
    """


@invariant(
    "D8",
    "Every broken glass has its reason, audit entry and journal entry, and nothing else has",
)
def glass_broken_in_sight() -> str:
    return """
        SELECT coalesce(a.tenant_id, n.tenant_id, j.tenant_id),
               coalesce('approval:' || a.id, n.subject, 'approval:' || j.entity_id), concat_ws(', ',
               CASE WHEN a.id IS NULL THEN 'told of a request that broke no glass' END,
               CASE WHEN a.reason = '' THEN 'no reason' END,
               CASE WHEN n.id IS NULL THEN 'no audit entry' END,
               CASE WHEN j.id IS NULL THEN 'no word in the journal' END)
        FROM (SELECT * FROM approvals_approvalrequest WHERE break_glass) a
        FULL JOIN (SELECT * FROM factory_auditentry WHERE action = 'BreakGlass') n
          ON n.subject = 'approval:' || a.id AND n.tenant_id = a.tenant_id
        FULL JOIN (SELECT * FROM factory_journalentry
                   WHERE entity = 'approval' AND detail->>'breakGlass' = 'true') j
          ON j.entity_id = a.id AND j.tenant_id = a.tenant_id
        WHERE a.id IS NULL OR a.reason = '' OR n.id IS NULL OR j.id IS NULL
    """


@invariant("D9", "A question is asked once more only after it has expired, and is the same question")
def asked_again_as_before() -> str:
    return """
        SELECT n.tenant_id, 'approval:' || n.id, 'renews ' || n.renews || ', which is '
               || coalesce(o.state || ' at hash ' || o.proposal_hash, 'not there')
        FROM approvals_approvalrequest n LEFT JOIN approvals_approvalrequest o
          ON o.id = n.renews AND o.tenant_id = n.tenant_id
        WHERE n.renews IS NOT NULL AND (o.id IS NULL OR o.state <> 'Expired' OR o.renews IS NOT NULL
           OR o.on_expiry <> 're-request' OR n.requested_at < o.expires_at OR o.policy_id <> n.policy_id
           OR o.quorum <> n.quorum OR o.approver_roles <> n.approver_roles
           OR (o.subject_id, o.proposal_hash, o.action_class, o.requester_person, o.author_person)
              <> (n.subject_id, n.proposal_hash, n.action_class, n.requester_person, n.author_person))
    """


@invariant("D10", "What was approved in advance is what its waiver allows, in its time, for none who gave it")
def waived_as_allowed() -> str:
    return f"""
        WITH {BEHIND}
        SELECT tenant_id, subject, detail FROM (
            SELECT a.tenant_id, 'approval:' || a.id AS subject, concat_ws(', ',
                CASE WHEN w.id IS NULL THEN 'it names no waiver that there is' END,
                CASE WHEN a.decided_by <> 'waiver:' || w.id OR a.decided_person <> w.decided_person
                     THEN 'decided by ' || a.decided_by END,
                CASE WHEN (a.project_id, a.release_id, a.action_class)
                          IS DISTINCT FROM (w.project_id, w.release_id, w.action_class)
                     THEN 'another project, release or class' END,
                CASE WHEN a.environment_id IS NULL OR a.environment_id <> ALL (w.environment_ids)
                     THEN 'another environment' END,
                CASE WHEN w.decided_at IS NULL OR a.decided_at < w.decided_at
                          OR a.decided_at >= least(w.expires_at, w.ended_at)
                     THEN 'not in force at ' || a.decided_at END,
                CASE WHEN {_people(*ASKERS[:2])}
                          && (ARRAY[w.requested_by, w.requester_person]::text[] || w.deciders::text[])
                     THEN 'asked for by ' || a.requested_by || ', who gave it' END,
                CASE WHEN NOT g.approver_roles <@ a.approver_roles OR g.quorum < a.quorum
                     THEN 'given by fewer or others than its rule names' END) AS detail
            FROM approvals_approvalrequest a {_join_behind(*ASKERS[:2])}
            LEFT JOIN approvals_waiver w ON w.id = a.waiver_id AND w.tenant_id = a.tenant_id
            LEFT JOIN approvals_approvalrequest g ON g.id = w.approval_id AND g.tenant_id = w.tenant_id
            WHERE a.waiver_id IS NOT NULL OR a.decided_by LIKE 'waiver:%') found
        WHERE detail <> ''
    """


@check("D10b", "A waiver is what was put before those who decided it, and in force by their yes alone")
def waivers_as_signed(cursor: CursorWrapper) -> Iterator[tuple[Any, Any, Any]]:
    cursor.execute("""
            SELECT w.tenant_id, w.id, concat_ws(', ',
                CASE WHEN g.id IS NULL OR (g.subject_type, g.subject_id, g.action_class)
                          <> ('waiver', w.id, 'publication') THEN 'no request is about it' END,
                CASE WHEN (w.requested_by, w.requester_person, w.author_person)
                          <> (g.requested_by, g.requester_person, g.author_person)
                     THEN 'asked for by others than its request says' END,
                CASE WHEN (w.decided_at IS NOT NULL) <> (g.state = 'Approved') OR (w.decided_at IS NOT NULL
                          AND (g.break_glass OR (w.decided_at, w.decided_by, w.decided_person)
                               <> (g.decided_at, g.decided_by, g.decided_person)))
                     THEN w.state || ', and its request is ' || g.state END,
                CASE WHEN w.decided_at IS NOT NULL AND NOT (w.deciders::text[] @> p.people
                          AND p.people @> w.deciders::text[])
                     THEN 'given by others than it says' END,
                CASE WHEN w.expires_at > w.requested_at + interval '30 days'
                     THEN 'it is good for more than 30 days' END),
                o.content, w.action_class, w.template_id, w.workflow_id, w.release_id, w.expires_at,
                w.environment_ids
            FROM approvals_waiver w
            LEFT JOIN approvals_approvalrequest g ON g.id = w.approval_id AND g.tenant_id = w.tenant_id
            LEFT JOIN approvals_proposal o ON o.id = g.proposal_id AND o.tenant_id = g.tenant_id
                 AND o.hash = g.proposal_hash AND g.subject_type = 'waiver'
            LEFT JOIN LATERAL (
                SELECT array_agg(x.who::text) AS people FROM (
                    SELECT unnest(ARRAY[g.decided_by, g.decided_person, g.decided_for]) AS who
                    UNION SELECT unnest(ARRAY[v.voter, v.person, v.acting_for]) FROM approvals_vote v
                    WHERE v.approval_id = g.id AND v.tenant_id = g.tenant_id) x
                WHERE x.who <> '') p ON true
    """)
    for tenant_id, waiver_id, fault, content, *waiver in cursor.fetchall():
        judge = partial(_signed_otherwise, fault, content, waiver_id, *waiver)
        yield from judged(tenant_id, f"waiver:{waiver_id}", judge)


def _signed_otherwise(
    fault: str,
    content: bytes | None,
    waiver_id: UUID,
    action_class: str,
    template_id: UUID,
    workflow_id: str,
    release_id: UUID,
    expires_at: datetime,
    environment_ids: list[UUID],
) -> str | None:
    """Return what the tables say against a waiver, and whether it differs from what was signed."""
    if content is None:
        return fault or None
    signed = json.loads(bytes(content))
    manifest = signed.get("manifest", {})
    template, release = manifest.get("template", {}), manifest.get("release", {})
    same = (
        (signed.get("waiverId"), signed.get("actionClass")) == (str(waiver_id), action_class)
        and (template.get("templateId"), template.get("workflowId")) == (str(template_id), workflow_id)
        and release.get("releaseId") == str(release_id)
        and datetime.fromisoformat(signed["until"]) == expires_at
        and {UUID(each["environmentId"]) for each in manifest["environments"]} == set(environment_ids)
    )
    return ", ".join(filter(None, (fault, "" if same else "it is not what was signed"))) or None


@invariant("D11", "A use names the waiver that its approval rests on, and was taken while that was in force")
def used_while_in_force() -> str:
    return """
        SELECT u.tenant_id, 'authorization:' || u.id, 'taken at ' || u.authorized_at || ' under the waiver '
               || coalesce(u.waiver_id::text, 'that it does not name') || ', in force until '
               || coalesce(least(w.expires_at, w.ended_at)::text, 'never')
        FROM approvals_authorization u
        JOIN approvals_approvalrequest a ON a.id = u.approval_id AND a.tenant_id = u.tenant_id
        LEFT JOIN approvals_waiver w ON w.id = a.waiver_id AND w.tenant_id = a.tenant_id
        WHERE u.waiver_id IS DISTINCT FROM a.waiver_id OR (a.waiver_id IS NOT NULL AND (
              w.decided_at IS NULL OR u.authorized_at < w.decided_at
              OR u.authorized_at >= least(w.expires_at, w.ended_at)))
    """


@invariant("D12", "No service account has decided, voted, broken a glass or given a waiver")
def decided_by_people() -> str:
    return f"""
        WITH answered AS (
            SELECT tenant_id, 'approval:' || id AS subject, who
            FROM approvals_approvalrequest, unnest(ARRAY[decided_by, decided_person, decided_for]) AS who
            UNION
            SELECT tenant_id, 'approval:' || approval_id, who
            FROM approvals_vote, unnest(ARRAY[voter, person, acting_for]) AS who
            UNION
            SELECT tenant_id, 'waiver:' || id, who
            FROM approvals_waiver, unnest(ARRAY[decided_by, decided_person] || deciders) AS who)
        SELECT a.tenant_id, a.subject, a.who || ' is a service account, and answered'
        FROM answered a LEFT JOIN projects_serviceaccount s ON s.subject = a.who AND s.tenant_id = a.tenant_id
        WHERE a.who ~ '{MACHINE}' OR s.id IS NOT NULL
    """

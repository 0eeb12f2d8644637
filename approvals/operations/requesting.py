"""Opening a request: what is asked, by whom, and who may answer, all of it fixed from here on."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cache
from typing import Any
from uuid import UUID

import structlog

from approvals.errors import ApprovalNotNeeded, PolicyDenied
from approvals.events import ApprovalRequested
from approvals.models import ApprovalRequest, Proposal
from approvals.operations.closing import answer_of, decided, supersede
from approvals.operations.draft import ApprovalDraft
from approvals.operations.waiving import serving
from approvals.selectors import (
    ApprovalView,
    PolicyVerdict,
    approval_view,
    eligible_people,
    evaluate,
    evaluate_at_the_limit,
    evaluate_unknown_usage,
    everybody_who_may,
    genuine,
    involved_in,
    requests,
)
from approvals.states import ApprovalState, Effect, OnExpiry, SubjectType
from factory.kernel import clock
from factory.kernel.commanding import operation
from factory.kernel.context import Context
from factory.kernel.errors import Unprocessable
from factory.kernel.recording import audit, record, record_new, save
from projects import selectors as projects

log = structlog.get_logger("approvals")

OF_THE_DRAFT = (
    "project_id", "subject_type", "subject_id", "run_id", "step_id", "attempt_id", "release_id",
    "environment_id", "action_class", "summary", "proposal_hash", "requested_by", "requester_person",
    "author_person",
)  # fmt: skip
OF_THE_VERDICT = ("quorum", "on_expiry", "valid_for")
RENEWED = (
    *OF_THE_DRAFT, *OF_THE_VERDICT, "tenant_id", "policy_id", "policy_revision", "approver_rule",
    "approver_roles",
)  # fmt: skip
"""The columns that a request keeps when it is opened once more."""


@operation
def open_request(ctx: Context, draft: ApprovalDraft) -> ApprovalView:
    """Open a request for a decision about exactly this proposal; `ApprovalRequested`.

    The same draft again gives the same request while it is Pending, and its answer once there is one
    that still counts. Another proposal of the same step makes the pending one Stale first. What a waiver of
    the run's template serves is opened already Approved for exactly this hash, and names the waiver;
    `ApprovalRequested` and `ApprovalDecided`.

    Raises `PolicyDenied`, `ApprovalNotNeeded` (the policy allows it), `TooLarge` past 1 MiB,
    `ProposalNotReadable` for what is of no known kind or not whole, `InvalidInput`, `Unprocessable`.
    """
    draft.check()
    return _present_answer(draft) or _open(ctx, draft)


def _present_answer(draft: ApprovalDraft) -> ApprovalView | None:
    """Return the newest request that already answers this draft, or will."""
    wanted: dict[str, Any] = {
        "proposal_hash": draft.proposal_hash,
        "action_class": draft.action_class,
        "environment_id": draft.environment_id,
    }
    same = requests().filter(**draft.about, **wanted)
    views, at = [approval_view(row) for row in same.order_by("-requested_at", "-id")], clock.now()
    return next((view for view in views if _still_answers(view, draft, at)), None)


def _still_answers(view: ApprovalView, draft: ApprovalDraft, at: datetime) -> bool:
    if view.is_pending:
        return True
    if draft.subject_type is not SubjectType.RUN:
        return False  # a release that was rejected is reviewed anew, whatever has changed around it
    if view.authorization is not None:
        return view.authorization.attempt_id == draft.attempt_id
    return view.use(at) == "not-yet-used" or view.state == ApprovalState.REJECTED or view.sent_back


def _open(ctx: Context, draft: ApprovalDraft) -> ApprovalView:
    verdict = _required(draft, _environment(draft.project_id, draft.environment_id))
    waiver = serving(ctx, draft, verdict)
    for older in ApprovalRequest.objects.filter(**draft.about, state=ApprovalState.PENDING):
        supersede(ctx, older.id)
    at = clock.now()
    row = _row(ctx, draft, verdict, at)
    save(row.proposal)
    if waiver is not None:
        row.open_under(waiver, at=at, expires_at=at + verdict.expires_in)
        return _waived(ctx, row)
    row.open(at=at, expires_at=at + verdict.expires_in)
    genuine(row.proposal, row.proposal_hash)
    return _opened(ctx, row, "ApprovalRequested")


def _waived(ctx: Context, row: ApprovalRequest) -> ApprovalView:
    """Record a request that nobody is asked: the waiver's deciders have said yes before."""
    detail = {**answer_of(row), "waiverId": row.waiver_id}
    record(ctx, row, "WaiverApplied", _requested(row), decided(row), detail=detail)
    audit(
        ctx, "ApplyWaiver", subject=f"approval:{row.id}", reason=row.reason, detail=detail, stream=row.stream
    )
    return approval_view(row)


def _opened(ctx: Context, row: ApprovalRequest, cause: str) -> ApprovalView:
    people = eligible_people(row.project_id, row.approver_roles, involved_in(row))
    row.nobody_eligible = len(people) < row.quorum
    record(ctx, row, cause, _requested(row))
    if row.nobody_eligible:
        _flag(ctx, row)
    return approval_view(row)


@operation
def open_requests(ctx: Context, drafts: Sequence[ApprovalDraft]) -> None:
    """Open those of the human steps of one run that were just made, in a number of statements that does not
    grow with theirs. Nobody can have asked for them before, and no waiver serves a human step.
    """
    at, environment = clock.now(), cache(_environment)
    rows = []
    for draft in drafts:
        draft.check()
        verdict = _required(draft, environment(draft.project_id, draft.environment_id))
        row = _row(ctx, draft, verdict, at)
        row.open(at=at, expires_at=at + verdict.expires_in)
        rows.append(row)
    never = involved_in(rows[0])
    able = {roles: len(eligible_people(rows[0].project_id, roles, never)) for roles in set(map(_roles, rows))}
    for row in rows:
        row.nobody_eligible = able[_roles(row)] < row.quorum
    Proposal.objects.bulk_create([row.proposal for row in rows])
    record_new(ctx, [(row, "ApprovalRequested", [_requested(row)]) for row in rows])
    for row in rows:
        if row.nobody_eligible:
            _flag(ctx, row)


def _roles(row: ApprovalRequest) -> tuple[str, ...]:
    return tuple(row.approver_roles)


@operation
def renew(ctx: Context, row: ApprovalRequest, *, second: bool = True) -> ApprovalView:
    """Open a request that has just expired once more, for as long as before; `ApprovalRequested`.

    The same proposal with the same hash, under the same rule. It is the second and last time that people are
    asked, unless nobody could answer (`second=False`): then it is asked as often as it still would have been.
    """
    at = clock.now()
    content = genuine(row.proposal, row.proposal_hash)
    proposal = Proposal(content=content, hash=row.proposal_hash, size=len(content), created_at=at)
    save(proposal)
    columns = {name: getattr(row, name) for name in RENEWED}
    if not second and row.renews is not None:
        columns["on_expiry"] = OnExpiry.FAIL  # it was the last time
    renewed = ApprovalRequest(**columns, proposal=proposal, renews=row.id if second else None)
    renewed.open(at=at, expires_at=at + (row.expires_at - row.requested_at))
    return _opened(ctx, renewed, "AskedAgain")


def _environment(project_id: UUID | None, environment_id: UUID | None) -> str | None:
    """Return the name by which a policy knows an environment."""
    if environment_id is None:
        return None
    environment = projects.environment(project_id, environment_id)
    if environment is None:
        raise Unprocessable(f"The project has no environment {environment_id}.")
    return environment.slug


def _required(draft: ApprovalDraft, environment: str | None) -> PolicyVerdict:
    """Return the pinned revision's verdict, which must be that somebody decides."""
    verdict, revision = _verdict(draft, environment), draft.policy.revision
    if draft.is_human and verdict.effect is Effect.ALLOW:
        verdict = replace(
            verdict, effect=Effect.REQUIRE_APPROVAL, roles=everybody_who_may(draft.action_class)
        )
    verdict = verdict.narrowed(draft.approvers)
    if verdict.effect is Effect.DENY:
        raise PolicyDenied(f"Policy {revision} denies {draft.action_class} here ({verdict.rule}).")
    if verdict.effect is Effect.ALLOW:
        raise ApprovalNotNeeded(f"Policy {revision} allows {draft.action_class} by itself.")
    return verdict


def _verdict(draft: ApprovalDraft, environment: str | None) -> PolicyVerdict:
    spend, policy = draft.spend, draft.policy
    if spend is not None and spend.at_the_limit:
        return evaluate_at_the_limit(policy, environment)
    if spend is not None and spend.of_unknown_cost:
        return evaluate_unknown_usage(policy, environment)
    amount = None if spend is None else spend.amount
    return evaluate(policy, draft.action_class, environment, amount=amount)


def _row(ctx: Context, draft: ApprovalDraft, verdict: PolicyVerdict, at: datetime) -> ApprovalRequest:
    """Return the unsaved row of a draft, with its proposal."""
    content, tenant_id = draft.content, ctx.tenant_id
    proposal = Proposal(
        tenant_id=tenant_id, content=content, hash=draft.proposal_hash, size=len(content), created_at=at
    )
    return ApprovalRequest(
        **{name: getattr(draft, name) for name in OF_THE_DRAFT},
        **{name: getattr(verdict, name) for name in OF_THE_VERDICT},
        tenant_id=tenant_id,
        proposal=proposal,
        policy_id=draft.policy.id,
        policy_revision=draft.policy.revision,
        approver_rule=verdict.approver_rule[:1000],
        approver_roles=list(verdict.roles),
    )


def _requested(row: ApprovalRequest) -> ApprovalRequested:
    return ApprovalRequested(
        approval_id=row.id,
        run_id=row.run_id,
        step_id=row.step_id,
        tenant_id=row.tenant_id,
        action_class=row.action_class,
        proposal_hash=row.proposal_hash,
        approver_rule=row.approver_rule,
        expires_at=row.expires_at,
        subject=None if row.subject_type == SubjectType.RUN else f"{row.subject_type}:{row.subject_id}",
    )


def _flag(ctx: Context, row: ApprovalRequest) -> None:
    """Tell at once of a request that nobody can decide, not when it expires."""
    log.warning("approval_without_approver", approval=str(row.id), roles=row.approver_roles)
    evidence: Mapping[str, Any] = {
        "roles": row.approver_roles,
        "quorum": row.quorum,
        "policyRevision": row.policy_revision,
    }
    audit(
        ctx,
        "ApprovalWithoutApprover",
        subject=f"approval:{row.id}",
        outcome="noted",
        reason="The project has not enough members who could decide on this request.",
        detail=evidence,
        stream=row.stream,
    )

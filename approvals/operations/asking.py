"""Opening a request: what is asked, by whom, and who may answer, all of it fixed from here on."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cache
from typing import Any
from uuid import UUID

import structlog

from approvals.errors import ApprovalNotNeeded, PolicyDenied, ProposalHashMismatch
from approvals.events import ApprovalRequested
from approvals.models import MAX_PROPOSAL_BYTES, MAX_SUMMARY, ApprovalRequest, Proposal
from approvals.operations import kinds
from approvals.operations.closing import answer_of, decided, supersede
from approvals.operations.question import ApprovalDraft, HumanQuestion, Spend
from approvals.operations.waiving import serving
from approvals.selectors import (
    ApprovalView,
    PolicyVerdict,
    PolicyView,
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
from approvals.states import ApprovalState, Effect, SubjectType
from factory.kernel import clock
from factory.kernel.commanding import operation
from factory.kernel.context import Context
from factory.kernel.errors import FieldError, InvalidInput, TooLarge, Unprocessable
from factory.kernel.hashing import canonical, digest_bytes
from factory.kernel.recording import audit, record, record_new, save
from factory.kernel.text import is_blank
from projects import selectors as projects

log = structlog.get_logger("approvals")


CARRIED = (
    "tenant_id", "project_id", "subject_type", "subject_id", "run_id", "step_id", "attempt_id", "release_id",
    "environment_id", "action_class", "summary", "proposal_hash", "policy_id", "policy_revision",
    "approver_rule", "approver_roles", "quorum", "on_expiry", "valid_for", "requested_by",
    "requester_person", "author_person",
)  # fmt: skip
"""What a question keeps when it is asked once more."""


@operation
def open_request(
    ctx: Context,
    *,
    subject_type: str,
    subject_id: UUID,
    run_id: UUID | None,
    step_id: UUID | None,
    attempt_id: UUID | None,
    action_class: str,
    environment_id: UUID | None,
    proposal: Any,
    summary: str,
    requested_by: str,
    requester_person: str,
    release_id: UUID | None,
    policy: PolicyView,
    author_person: str = "",
    project_id: UUID | None = None,
    proposal_hash: str | None = None,
    approvers: Mapping[str, Any] | None = None,
    template_id: UUID | None = None,
    spend: Spend | None = None,
) -> ApprovalView:
    """Ask for a decision about exactly this proposal; `ApprovalRequested`.

    The same question again gives the same request while it is Pending, and its answer once there is one
    that still counts. Another proposal of the same step makes the pending one Stale first. Whoever is
    named by `requested_by`, `requester_person` or `author_person` can never decide. `approvers` are the
    words of a workflow's node: fewer roles or a larger quorum than the policy's. A run of the template
    `template_id` may be served by a waiver: then the request is opened already Approved for exactly this
    hash, and names the waiver; `ApprovalRequested` and `ApprovalDecided`. `spend` says how much money it
    is about.

    Raises `PolicyDenied`, `ApprovalNotNeeded` (the policy allows it), `TooLarge` past 1 MiB,
    `ProposalHashMismatch` when `proposal_hash` is given and is another, `ProposalNotReadable` for what is
    of no known kind or not whole, `InvalidInput`, `Unprocessable`.
    """
    content = _bounded(proposal, proposal_hash)
    question = ApprovalDraft(
        project_id=project_id or ctx.project_id,
        subject_type=SubjectType(subject_type),
        subject_id=subject_id,
        run_id=run_id,
        step_id=step_id,
        attempt_id=attempt_id,
        release_id=release_id,
        environment_id=environment_id,
        action_class=action_class,
        summary=_worded(summary),
        proposal_hash=digest_bytes(content),
        requested_by=requested_by,
        requester_person=requester_person,
        author_person=author_person,
        approvers=approvers,
        template_id=template_id,
        spend=spend,
    )
    return _standing_answer(question) or _ask(ctx, question, content, policy)


def _bounded(proposal: Any, claimed: str | None) -> bytes:
    content = canonical(proposal, "/proposal")
    if len(content) > MAX_PROPOSAL_BYTES:
        raise TooLarge(f"A proposal may have {MAX_PROPOSAL_BYTES} bytes; this one has {len(content)}.")
    if claimed is not None and claimed != digest_bytes(content):
        raise ProposalHashMismatch(f"The proposal's hash is {digest_bytes(content)}, not {claimed[:80]}.")
    kinds.check(proposal)
    return content


def _worded(summary: str) -> str:
    if is_blank(summary) or len(summary) > MAX_SUMMARY:
        errors = [FieldError("/summary", f"From 1 to {MAX_SUMMARY} characters.")]
        raise InvalidInput("The summary says in one sentence what will happen.", errors=errors)
    return summary


def _standing_answer(question: ApprovalDraft) -> ApprovalView | None:
    """The newest request that already answers this question, or will."""
    wanted: dict[str, Any] = {
        "proposal_hash": question.proposal_hash,
        "action_class": question.action_class,
        "environment_id": question.environment_id,
    }
    same = requests().filter(**question.about, **wanted)
    views, at = [approval_view(row) for row in same.order_by("-requested_at", "-id")], clock.now()
    return next((view for view in views if _still_answers(view, question, at)), None)


def _still_answers(view: ApprovalView, question: ApprovalDraft, at: datetime) -> bool:
    if view.is_pending:
        return True
    if question.subject_type is not SubjectType.RUN:
        return False  # a release that was rejected is reviewed anew, whatever has changed around it
    if view.authorization is not None:
        return view.authorization.attempt_id == question.attempt_id
    return view.use(at) == "not-yet-used" or view.state == ApprovalState.REJECTED or view.sent_back


def _ask(ctx: Context, question: ApprovalDraft, content: bytes, policy: PolicyView) -> ApprovalView:
    verdict = _gate(question, policy, _environment(question.project_id, question.environment_id))
    waiver = serving(ctx, question, verdict)
    for older in ApprovalRequest.objects.filter(**question.about, state=ApprovalState.PENDING):
        supersede(ctx, older.id)
    at = clock.now()
    proposal = Proposal(content=content, hash=question.proposal_hash, size=len(content), created_at=at)
    save(proposal)
    row = _request(question, proposal, policy, verdict)
    row.tenant_id = ctx.tenant_id
    if waiver is not None:
        row.open_under(waiver, at=at, expires_at=at + verdict.expires_in)
        return _waived(ctx, row)
    row.open(at=at, expires_at=at + verdict.expires_in)
    genuine(proposal, row.proposal_hash)
    return _opened(ctx, row, "ApprovalRequested")


def _waived(ctx: Context, row: ApprovalRequest) -> ApprovalView:
    """Nobody is asked: the waiver's deciders have said yes before. It is told like any request and answer."""
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
def open_questions(ctx: Context, asked: Sequence[HumanQuestion], *, policy: PolicyView) -> None:
    """`open_request` for the human steps of one run that were just made, in a number of statements that
    does not grow with theirs. Nobody can have asked for them before, and no waiver answers a question.
    """
    at, place = clock.now(), cache(_environment)
    rows = [_asked_of_people(ctx, each, policy, place, at) for each in asked]
    never = involved_in(rows[0])
    kinds_of_gates = {_roles(row) for row in rows}
    able = {roles: len(eligible_people(rows[0].project_id, roles, never)) for roles in kinds_of_gates}
    for row in rows:
        row.nobody_eligible = able[_roles(row)] < row.quorum
    Proposal.objects.bulk_create([row.proposal for row in rows])
    record_new(ctx, [(row, "ApprovalRequested", [_requested(row)]) for row in rows])
    for row in rows:
        if row.nobody_eligible:
            _flag(ctx, row)


def _roles(row: ApprovalRequest) -> tuple[str, ...]:
    return tuple(row.approver_roles)


def _asked_of_people(
    ctx: Context,
    asked: HumanQuestion,
    policy: PolicyView,
    place: Callable[[UUID | None, UUID | None], str | None],
    at: datetime,
) -> ApprovalRequest:
    content = _bounded(asked.proposal, None)
    question = _question(asked, digest_bytes(content))
    verdict = _gate(question, policy, place(question.project_id, question.environment_id))
    proposal = Proposal(content=content, hash=question.proposal_hash, size=len(content), created_at=at)
    row = _request(question, proposal, policy, verdict)
    row.tenant_id = proposal.tenant_id = ctx.tenant_id
    row.open(at=at, expires_at=at + verdict.expires_in)
    return row


def _question(asked: HumanQuestion, proposal_hash: str) -> ApprovalDraft:
    return ApprovalDraft(
        project_id=asked.project_id,
        subject_type=SubjectType.RUN,
        subject_id=asked.step_id,
        run_id=asked.run_id,
        step_id=asked.step_id,
        attempt_id=None,
        release_id=asked.release_id,
        environment_id=asked.environment_id,
        action_class=asked.action_class,
        summary=_worded(asked.summary),
        proposal_hash=proposal_hash,
        requested_by=asked.requested_by,
        requester_person=asked.requester_person,
        author_person="",
        approvers=asked.approvers,
    )


@operation
def ask_again(ctx: Context, row: ApprovalRequest) -> ApprovalView:
    """Open the same question once more, for as long as before; `row` has just expired for the first time.

    The same proposal with the same hash, under the same rule; `ApprovalRequested`.
    """
    at = clock.now()
    content = genuine(row.proposal, row.proposal_hash)
    proposal = Proposal(content=content, hash=row.proposal_hash, size=len(content), created_at=at)
    save(proposal)
    again = ApprovalRequest(
        **{name: getattr(row, name) for name in CARRIED}, proposal=proposal, renews=row.id
    )
    again.open(at=at, expires_at=at + (row.expires_at - row.requested_at))
    return _opened(ctx, again, "AskedAgain")


def _environment(project_id: UUID | None, environment_id: UUID | None) -> str | None:
    """By which name a policy knows it."""
    if environment_id is None:
        return None
    found = projects.environment(project_id, environment_id)
    if found is None:
        raise Unprocessable(f"The project has no environment {environment_id}.")
    return found.slug


def _gate(question: ApprovalDraft, policy: PolicyView, environment: str | None) -> PolicyVerdict:
    """The pinned revision's answer, which must be that somebody decides."""
    verdict = _verdict(question, policy, environment)
    if question.is_human and verdict.effect is Effect.ALLOW:
        verdict = replace(
            verdict, effect=Effect.REQUIRE_APPROVAL, roles=everybody_who_may(question.action_class)
        )
    verdict = verdict.narrowed(question.approvers)
    if verdict.effect is Effect.DENY:
        raise PolicyDenied(f"Policy {policy.revision} denies {question.action_class} here ({verdict.rule}).")
    if verdict.effect is Effect.ALLOW:
        raise ApprovalNotNeeded(f"Policy {policy.revision} allows {question.action_class} by itself.")
    return verdict


def _verdict(question: ApprovalDraft, policy: PolicyView, environment: str | None) -> PolicyVerdict:
    spend = question.spend
    if spend is not None and spend.at_the_limit:
        return evaluate_at_the_limit(policy, environment)
    if spend is not None and spend.of_unknown_cost:
        return evaluate_unknown_usage(policy, environment)
    amount = None if spend is None else spend.amount
    return evaluate(policy, question.action_class, environment, amount=amount)


def _request(
    question: ApprovalDraft, proposal: Proposal, policy: PolicyView, verdict: PolicyVerdict
) -> ApprovalRequest:
    return ApprovalRequest(
        project_id=question.project_id,
        subject_type=question.subject_type,
        subject_id=question.subject_id,
        run_id=question.run_id,
        step_id=question.step_id,
        attempt_id=question.attempt_id,
        release_id=question.release_id,
        environment_id=question.environment_id,
        action_class=question.action_class,
        summary=question.summary,
        proposal=proposal,
        proposal_hash=question.proposal_hash,
        policy_id=policy.id,
        policy_revision=policy.revision,
        approver_rule=verdict.approver_rule[:1000],
        approver_roles=list(verdict.roles),
        quorum=verdict.quorum,
        on_expiry=verdict.on_expiry,
        valid_for=verdict.valid_for,
        requested_by=question.requested_by,
        requester_person=question.requester_person,
        author_person=question.author_person,
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
    """A gate that nobody can open is said at once, not when it expires."""
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

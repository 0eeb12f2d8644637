"""Waivers at work: which one serves a request, and how they end.

A waiver is locked below everything that a run has, and above the request: shared by whoever rests something
on it, alone by whoever ends it.
"""

from typing import Literal
from uuid import UUID

from approvals.events import WaiverChanged
from approvals.models import ApprovalRequest, Waiver
from approvals.operations.closing import cancel_pending
from approvals.operations.draft import ApprovalDraft
from approvals.selectors import PolicyVerdict, why_not_serving
from approvals.states import WAIVABLE, Effect, SubjectType, WaiverState
from factory.kernel import clock
from factory.kernel.commanding import operation
from factory.kernel.context import Context
from factory.kernel.locking import lock, lock_many
from factory.kernel.recording import record


def serving(ctx: Context, draft: ApprovalDraft, verdict: PolicyVerdict) -> Waiver | None:
    """Return the waiver under which exactly this draft needs no decision, held until the caller commits.

    None wherever there is a doubt, and then people are asked: no template, no environment, another class, a
    release, environment or project that it does not name; asked for or decided by who answers for the run;
    decided by fewer people or by other roles than the rule names here; ended; or a step about which people
    have been asked before, because then it is theirs.
    """
    if not _may_be_waived(draft, verdict):
        return None
    waivers = Waiver.objects.filter(
        template_id=draft.template_id,
        release_id=draft.release_id,
        project_id=draft.project_id,
        environment_ids__contains=[draft.environment_id],
        state=WaiverState.ACTIVE,
    )
    ids = waivers.order_by("id").values_list("id", flat=True)
    locked = [lock(Waiver, waiver_id, shared=True) for waiver_id in ids]
    lasting = sorted(locked, key=lambda waiver: waiver.expires_at, reverse=True)
    requesters = {draft.requested_by, draft.requester_person}
    at = clock.now()
    return next((row for row in lasting if not why_not_serving(row, verdict, requesters, at)), None)


def _may_be_waived(draft: ApprovalDraft, verdict: PolicyVerdict) -> bool:
    return (
        draft.subject_type == SubjectType.RUN
        and not draft.is_human
        and draft.action_class == WAIVABLE
        and verdict.effect is Effect.REQUIRE_APPROVAL
        and draft.template_id is not None
        and draft.environment_id is not None
        and not ApprovalRequest.objects.filter(**draft.about, waiver__isnull=True).exists()
    )


@operation
def hold_waiver_of(ctx: Context, approval_id: UUID) -> None:
    """Keep the waiver that a request rests on, if it does, from ending until the caller commits."""
    waiver_id = ApprovalRequest.objects.filter(pk=approval_id).values_list("waiver_id", flat=True).first()
    if waiver_id is not None:
        lock(Waiver, waiver_id, shared=True)


@operation
def end_waivers_of(
    ctx: Context, of: Literal["template_id", "release_id"], subject: UUID, *, reason: str
) -> None:
    """End the waivers of a template that is retired, or of a release that is taken out of use.

    Requested and Active ones → Revoked; `WaiverChanged` for each.
    """
    cause = {"template_id": "TemplateRetired", "release_id": "ReleaseEnded"}[of]
    open_ = Waiver.objects.filter(state__in=[WaiverState.REQUESTED, WaiverState.ACTIVE])
    for row in lock_many(open_.filter(**{of: subject})):
        end_waiver(ctx, row, cause, reason)


def end_waiver(ctx: Context, row: Waiver, cause: str, reason: str) -> None:
    """→ Revoked of a locked waiver that is open; a question about it that still waits is Cancelled."""
    requested = row.state == WaiverState.REQUESTED
    row.revoke(at=clock.now(), by=ctx.actor.subject, reason=reason)
    record(ctx, row, cause, waiver_changed(ctx, row))
    if requested:
        cancel_pending(ctx, subject=row.id, cause="SubjectWithdrawn")


def waiver_changed(ctx: Context, row: Waiver) -> WaiverChanged:
    """Return the event of a waiver as it is now."""
    return WaiverChanged(
        waiver_id=row.id,
        tenant_id=ctx.tenant_id,
        project_id=row.project_id,
        state=str(row.state),
        approval_id=row.approval_id,
        template_id=row.template_id,
        workflow_id=row.workflow_id,
        release_id=row.release_id,
        action_class=row.action_class,
        environment_ids=list(row.environment_ids),
        expires_at=row.expires_at,
        changed_by=ctx.actor.subject,
        deciders=list(row.deciders),
        reason=(row.end_reason or row.reason) or None,
    )

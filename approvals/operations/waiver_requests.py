"""Asking for a waiver: what exactly would be approved in advance, put before a reviewer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from approvals.errors import WaiverNeverServes, WaiverPending
from approvals.models import LONGEST_WAIVER, MAX_REASON, Waiver
from approvals.operations.draft import ApprovalDraft
from approvals.operations.requesting import open_request
from approvals.operations.waiving import waiver_changed
from approvals.policy.messages import format_rule
from approvals.selectors import PolicyVerdict, PolicyView, evaluate, is_enough
from approvals.states import WAIVABLE, ActionClass, Effect, SubjectType, WaiverState
from factory.kernel import clock
from factory.kernel.commanding import operation
from factory.kernel.context import Context
from factory.kernel.errors import FieldError, InvalidInput, NotFound
from factory.kernel.events import wire
from factory.kernel.ids import uuid7
from factory.kernel.locking import one_at_a_time
from factory.kernel.reasons import reason_faults
from factory.kernel.recording import record
from projects import selectors as projects
from projects.selectors import EnvironmentView

MOST_ENVIRONMENTS = 20


@dataclass(frozen=True, slots=True)
class WaiverTerms:
    """Say what would be approved in advance, in the words of the app that knows templates and releases.

    `template` and `release` are put before the reviewer as they are, `steps` too: the ones of the class.
    """

    template_id: UUID
    template_name: str
    workflow_id: str
    author_person: str
    release_id: UUID
    release_name: str
    template: Mapping[str, Any]
    release: Mapping[str, Any]
    steps: Sequence[Mapping[str, Any]]


@operation
def request_waiver(
    ctx: Context,
    terms: WaiverTerms,
    *,
    environment_ids: Sequence[UUID],
    expires_at: datetime,
    reason: str,
    policy: PolicyView,
) -> Waiver:
    """Ask for the approval, of class publication, of a waiver; `WaiverChanged`, `ApprovalRequested`.

    Neither who asks nor the template's author can decide it. Raises `InvalidInput` (environments that are
    not the project's, an end that is not near, no reason), `WaiverNeverServes` (environments where it could
    answer no question), `WaiverPending`, and what `open_request` raises.
    """
    if ctx.project_id is None:
        raise NotFound("There is no such project here.")
    at = clock.now()
    environments = _environments(ctx.project_id, environment_ids)
    _check(expires_at, at, reason)
    _check_serves(policy, terms, environments, environment_ids)
    _check_not_asked(ctx, terms, environments)
    row = Waiver(
        id=uuid7(),
        project_id=ctx.project_id,
        template_id=terms.template_id,
        template_name=terms.template_name,
        workflow_id=terms.workflow_id,
        release_id=terms.release_id,
        release_name=terms.release_name,
        action_class=WAIVABLE,
        environment_ids=[environment.id for environment in environments],
        reason=reason.strip(),
        requested_by=ctx.actor.subject,
        requester_person=ctx.actor.person or ctx.actor.subject,
        author_person=terms.author_person,
        requested_at=at,
        expires_at=expires_at,
    )
    row.tenant_id = ctx.tenant_id
    draft = ApprovalDraft(
        subject_type=SubjectType.WAIVER,
        subject_id=row.id,
        project_id=row.project_id,
        action_class=ActionClass.PUBLICATION,
        proposal=_proposal(row, terms, environments),
        summary=_summary(row, environments),
        policy=policy,
        requested_by=row.requested_by,
        requester_person=row.requester_person,
        author_person=row.author_person,
        release_id=row.release_id,
    )
    row.approval_id = open_request(ctx, draft).id
    record(ctx, row, "WaiverRequested", waiver_changed(ctx, row), detail={"approvalId": row.approval_id})
    return row


def _environments(project_id: UUID, wanted: Sequence[UUID]) -> list[EnvironmentView]:
    """Return the named environments, which are the project's; refuse those of others."""
    if not 1 <= len(set(wanted)) <= MOST_ENVIRONMENTS:
        fault = FieldError("/environmentIds", f"From 1 to {MOST_ENVIRONMENTS} environments.")
        raise InvalidInput("A waiver names the environments in which it holds.", errors=[fault])
    known = {environment.id: environment for environment in projects.environments(project_id)}
    faults = [
        FieldError(f"/environmentIds/{index}", "The project has no such environment.")
        for index, environment_id in enumerate(wanted)
        if environment_id not in known
    ]
    if faults:
        raise InvalidInput("A waiver names environments of its project.", errors=faults)
    return [known[environment_id] for environment_id in dict.fromkeys(wanted)]


def _check(expires_at: datetime, at: datetime, reason: str) -> None:
    faults = []
    if expires_at.tzinfo is None or not at < expires_at <= at + LONGEST_WAIVER:
        faults.append(FieldError("/expiresAt", f"After now, and within {LONGEST_WAIVER.days} days."))
    faults += reason_faults(reason, most=MAX_REASON)
    if faults:
        raise InvalidInput("A waiver has an end that is near, and a reason.", errors=faults)


def _check_serves(
    policy: PolicyView, terms: WaiverTerms, environments: Sequence[EnvironmentView], wanted: Sequence[UUID]
) -> None:
    """Refuse a waiver that could never serve, so that people are not bothered with it."""
    signed = evaluate(policy, ActionClass.PUBLICATION, None)
    if signed.effect is Effect.DENY:
        return  # no waiver at all: that is refused where it is asked for
    faults = [
        FieldError(f"/environmentIds/{list(wanted).index(environment.id)}", f"{environment.slug}: {problem}")
        for environment in environments
        if (problem := _why_never(signed, evaluate(policy, WAIVABLE, environment.slug), terms))
    ]
    if faults:
        raise WaiverNeverServes(
            f"Under policy {policy.revision} it would answer no question there: leave these out.",
            errors=faults,
        )


def _check_not_asked(ctx: Context, terms: WaiverTerms, environments: Sequence[EnvironmentView]) -> None:
    """Refuse a second request about the same. One in force is no hindrance: it serves other people's runs."""
    one_at_a_time("approvals.waiver", ctx.tenant_id, ctx.project_id, terms.template_id, terms.release_id)
    wanted = {environment.id for environment in environments}
    same = Waiver.objects.filter(
        project_id=ctx.project_id,
        template_id=terms.template_id,
        release_id=terms.release_id,
        state=WaiverState.REQUESTED,
        expires_at__gt=clock.now(),
    )
    for row in same.order_by("requested_at"):
        if set(row.environment_ids) == wanted:
            raise WaiverPending(
                f"{row.requested_by} has asked for it already, until {row.expires_at:%d %b %Y %H:%M:%S} UTC: "
                f"waiver {row.id} waits for its decision. For another end, withdraw that one first.",
                extra={
                    "waiverId": str(row.id),
                    "approvalId": str(row.approval_id),
                    "links": {"waiver": f"/factory/waivers/{row.id}"},
                },
            )


def _why_never(signed: PolicyVerdict, there: PolicyVerdict, terms: WaiverTerms) -> str:
    """Return why a yes under the publication's rule could serve no step there; empty if it could."""
    if there.effect is Effect.DENY:
        return format_rule(f"the policy denies {WAIVABLE} ({there.rule}).")
    if there.effect is Effect.ALLOW:
        return format_rule(f"the policy allows {WAIVABLE} without asking ({there.rule}).")
    narrowed = [there.narrowed(step.get("gate")) for step in terms.steps]
    if any(is_enough(signed.roles, signed.quorum, verdict) for verdict in narrowed):
        return ""
    rules = "; or ".join(dict.fromkeys(verdict.approver_rule for verdict in narrowed))
    return format_rule(f"asked are {rules}; a waiver is decided by {signed.approver_rule}.")


def _proposal(row: Waiver, terms: WaiverTerms, environments: Sequence[EnvironmentView]) -> dict[str, Any]:
    """Return what the reviewer signs: who may do what, where, until when, and with exactly which release."""
    proposal: dict[str, Any] = wire(
        {
            "kind": "manifest",
            "waiverId": row.id,
            "actionClass": row.action_class,
            "template": row.template_name,
            "release": row.release_name,
            "environments": ", ".join(environment.slug for environment in environments),
            "until": row.expires_at,
            "reason": row.reason,
            "neverFor": "runs of who asks for this or decides it, and where a rule asks for more",
            "manifest": {
                "template": {"templateId": row.template_id, **terms.template},
                "release": {"releaseId": row.release_id, **terms.release},
                "environments": [{"environmentId": row.id, "slug": row.slug} for row in environments],
                "steps": list(terms.steps),
            },
        }
    )
    return proposal


def _summary(row: Waiver, environments: Sequence[EnvironmentView]) -> str:
    where = ", ".join(environment.slug for environment in environments)
    summary = (
        f"approve shared writes of {row.template_name} with {row.release_name} on {where} "
        f"until {row.expires_at:%d %b %Y %H:%M:%S} UTC"
    )
    return summary if len(summary) <= 500 else summary[:499] + "…"

"""Publishing policy: a new revision stands beside the old ones, which their runs keep."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import structlog

from approvals.errors import PolicyOutOfReach
from approvals.events import PolicyRevisionPublished
from approvals.models import PolicyRevision
from approvals.policy import document as documents
from approvals.policy.evaluation import PolicyVerdict, evaluate_rules
from approvals.policy.loosening import loosened
from approvals.selectors import eligible_people, policy_revisions, slugs_of_tenant
from approvals.states import GATED, Effect
from factory.kernel import clock
from factory.kernel.commanding import command
from factory.kernel.context import Context
from factory.kernel.hashing import digest
from factory.kernel.locking import one_at_a_time
from factory.kernel.permissions import may
from factory.kernel.reasons import refuse_longer
from factory.kernel.recording import record
from projects import selectors as projects
from projects.states import Role

log = structlog.get_logger("approvals.policy")

MAX_NOTE = 500
MOST_WARNINGS = 50


@command("PublishPolicyRevision")
def publish_policy_revision(ctx: Context, *, document: Mapping[str, Any], note: str = "") -> str:
    """Publish the tenant's next policy revision and answer its word; new runs pin it from now on.

    An act of a WorkspaceAdmin of the whole tenant, or of each of its projects: it holds in all of them, and
    its warnings speak of all of them. `PolicyRevisionPublished`. What is doubtful but possible is published
    with warnings: what is looser than in the revision before, a gate that nobody could open as things are, an
    expiry that is cut to the platform's.
    Raises `PolicyOutOfReach`, and `PolicyInvalid` with a JSON Pointer for each fault, also for going below
    the platform floor.
    """
    if not may_publish(ctx):
        raise PolicyOutOfReach(
            "The policy holds in every project of the tenant: a WorkspaceAdmin of the whole tenant publishes "
            "it, or one of each project, by their own membership."
        )
    refuse_longer(note, "The note", "/note", most=MAX_NOTE)
    documents.check(document)
    return _publish(ctx, document, note).revision


def may_publish(ctx: Context) -> bool:
    """Return whether somebody may publish: for pages that offer it, and judged again by the command."""
    if not may(ctx, "PublishPolicyRevision"):
        return False
    return ctx.actor.kind == "system" or projects.holds_everywhere(ctx.actor.subject, Role.WORKSPACE_ADMIN)


@command("AdoptPlatformPolicy")
def adopt_platform_policy(ctx: Context) -> str:
    """Give a tenant that has no policy the platform's, as its revision r1; answers the revision in force.

    An act of the control plane, when a tenant is onboarded; doing it again changes nothing.
    """
    _one_at_a_time(ctx)
    present: PolicyRevision | None = policy_revisions().first()
    if present is None:
        present = _publish(ctx, documents.platform_default(), "The platform's policy")
    return present.revision


def _publish(ctx: Context, document: Mapping[str, Any], note: str) -> PolicyRevision:
    _one_at_a_time(ctx)
    newest = policy_revisions().first()
    row = PolicyRevision(
        tenant_id=ctx.tenant_id,
        number=newest.number + 1 if newest else 1,
        document=document,
        document_hash=digest(document),
        note=note,
        warnings=_warnings(ctx, document, newest),
        published_by=ctx.actor.subject,
        published_at=clock.now(),
    )
    published = PolicyRevisionPublished(
        tenant_id=ctx.tenant_id,
        policy_id=row.policy_id,
        revision=row.revision,
        document_hash=row.document_hash,
        published_by=row.published_by,
    )
    record(ctx, row, "Published", published, detail={"revision": row.revision})
    return row


def _one_at_a_time(ctx: Context) -> None:
    """Numbers have no gap: publications of one tenant queue up. Revisions themselves cannot be locked."""
    one_at_a_time("factory.policy", ctx.tenant_id)


def _warnings(ctx: Context, document: Mapping[str, Any], newest: PolicyRevision | None) -> list[str]:
    clamped = documents.clamped(document)
    if clamped:
        log.warning("policy_expiry_clamped", tenant=ctx.tenant_id, rules=len(clamped))
    weaker = loosened(newest.document, document, slugs_of_tenant()) if newest else []
    looser = [f"Against {newest.revision}: {text}" for text in weaker] if newest else []
    return [*clamped, *looser, *_gates_that_nobody_opens(ctx, document)][:MOST_WARNINGS]


def _gates_that_nobody_opens(ctx: Context, document: Mapping[str, Any]) -> list[str]:
    """Found now rather than by a run that waits for somebody who does not exist."""
    scopes = [(row.project_id, row.slug) for row in projects.environments(None)]
    own = [(project, None) for project in dict.fromkeys([ctx.project_id, *(p for p, _ in scopes)]) if project]
    warnings: dict[str, None] = {}
    able: dict[tuple[UUID, frozenset[str]], int] = {}
    for action_class in sorted(GATED, key=lambda c: c.rank):
        for project_id, environment in [*own, *scopes]:
            verdict = evaluate_rules(document, action_class, environment)
            if verdict.effect is not Effect.REQUIRE_APPROVAL:
                continue
            rule = (project_id, frozenset(verdict.roles))
            if rule not in able:  # many gates ask for the same people
                able[rule] = len(eligible_people(project_id, verdict.roles, ()))
            if able[rule] < verdict.quorum:
                home = projects.project(project_id)
                name = home.slug if home else str(project_id)
                warnings[_too_few(name, action_class, verdict, able[rule])] = None
    return list(warnings)


def _too_few(project: str, action_class: str, verdict: PolicyVerdict, there_are: int) -> str:
    roles = " or ".join(verdict.roles)
    if not there_are:
        return f"Nobody in {project} could decide about {action_class}: no member is a {roles}."
    return (
        f"Too few in {project} could decide about {action_class}: it takes {verdict.quorum} people, "
        f"and {there_are} could ({roles})."
    )

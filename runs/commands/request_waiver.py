"""RequestWaiver: somebody asks that shared writes of a template's runs be approved in advance."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import approvals.operations as approvals
import registry.selectors as registry
from approvals.selectors import current_policy
from approvals.states import WAIVABLE
from factory.kernel.commanding import command
from factory.kernel.context import Context
from factory.kernel.errors import FieldError
from projects.operations import lock_active_project
from registry.operations import hold_published
from registry.selectors import ReleaseView
from runs.errors import NothingToWaive, TemplateNotFound, TemplateUnknown
from runs.models import RunTemplate
from runs.operations.templating import find_template, hold_template


@command("RequestWaiver")
def request_waiver(
    ctx: Context,
    *,
    template_id: UUID,
    release_id: UUID,
    environment_ids: Sequence[UUID],
    expires_at: datetime,
    reason: str,
) -> dict[str, str]:
    """Ask for the approval, of class publication, that runs of a template may do shared writes by themselves.

    Runs of who asks for it or decides it are excepted, and where the rule asks for more. It is about one
    Published release that holds the template's workflow, named environments of the project, and a time of at
    most 30 days; classes above shared-write are never in it. Opens the request; who asks and the template's
    author cannot decide it. Emits `WaiverChanged`, `ApprovalRequested`. Errors:
    `TemplateNotFound`, `TemplateRetired`, `ProjectNotActive`, `ReleaseNotPublished`, `UnknownWorkflow`,
    `NothingToWaive` (422), `InvalidInput`, `PolicyDenied`, `WaiverNeverServes` (422: in a named environment
    the policy denies such writes, allows them, or asks for other roles or more people than decide this),
    `WaiverPending` (409: the same is asked for already).
    """
    template = _template(ctx, template_id)
    release = registry.resolve(template.workflow_id, release_id=release_id)
    hold_published(ctx, release.id)
    lock_active_project(ctx)
    hold_template(ctx, template)
    waiver = approvals.request_waiver(
        ctx,
        _terms(template, release),
        environment_ids=environment_ids,
        expires_at=expires_at,
        reason=reason,
        policy=current_policy(ctx),
    )
    return {"waiverId": str(waiver.id), "approvalId": str(waiver.approval_id), "state": str(waiver.state)}


def _template(ctx: Context, template_id: UUID) -> RunTemplate:
    """Refuse with 404 what a path names and is not there, where a body's member would be 422."""
    try:
        return find_template(ctx, template_id)
    except TemplateUnknown as unknown:
        raise TemplateNotFound("There is no such run template here.") from unknown


def _terms(template: RunTemplate, release: ReleaseView) -> approvals.WaiverTerms:
    steps = _steps(release.workflow)
    if not steps:
        problem = f"No agent's step of {template.workflow_id} is of class {WAIVABLE} in this release."
        raise NothingToWaive(problem, errors=[FieldError("/releaseId", problem)])
    return approvals.WaiverTerms(
        template_id=template.id,
        template_name=template.name,
        workflow_id=template.workflow_id,
        author_person=template.creator_person,
        release_id=release.id,
        release_name=f"{release.asset}@{release.version}",
        template={"name": template.name, "hash": template.content_hash, **template.content()},
        release={"hash": release.hash, "sourceCommit": release.commit, "repository": release.repository},
        steps=steps,
    )


def _steps(workflow: dict[str, Any]) -> list[dict[str, Any]]:
    """The steps that it is about: agents' ones of exactly that class, as they are declared."""
    return [
        {name: node[name] for name in ("key", "agentId", "skillId", "gate") if name in node}
        for node in workflow["nodes"]
        if node["sideEffectClass"] == WAIVABLE and node.get("kind") != "human"
    ]

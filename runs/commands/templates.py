"""Run templates are made, and retired: what one fixes never changes."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import approvals.operations as approvals
import registry.selectors as registry
from approvals.selectors import current_policy
from factory.kernel.clock import now
from factory.kernel.commanding import command
from factory.kernel.context import Context
from factory.kernel.errors import FieldError, InvalidInput
from factory.kernel.locking import lock, one_at_a_time
from factory.kernel.reasons import reasoned
from factory.kernel.recording import audit, record
from projects.operations import lock_active_project, lock_project
from runs.errors import ModelProfileNotApproved, TemplateEnded, TemplateNameTaken, TemplateNotFound
from runs.events import RunTemplateChanged
from runs.models import RunTemplate
from runs.operations.inputs import NewTemplate
from runs.states import TemplateState


@command("CreateRunTemplate")
def create_run_template(ctx: Context, *, wanted: NewTemplate) -> str:
    """Fix workflow, model profile, limits and the schema of the input for a kind of run. Answers with its id.

    Guards: the project is Active, a Published release holds the workflow and knows the profile, which the
    policy in force allows, the schema is one that inputs can be judged by and that some input could fit, no
    other Active template has the name. Emits `RunTemplateChanged`. Errors: `InvalidInput`,
    `ProjectNotActive`, `UnknownWorkflow`, `ModelProfileNotApproved` (422), `TemplateNameTaken` (409).
    """
    _check_that_something_fits(wanted)  # nobody waits for the project's lock meanwhile
    project = lock_active_project(ctx)
    _check(ctx, wanted)
    one_at_a_time("runs.template", ctx.tenant_id, project.id, wanted.name)
    held = RunTemplate.objects.filter(project_id=project.id, name=wanted.name, state=TemplateState.ACTIVE)
    if held.exists():
        raise TemplateNameTaken(f"Retire the run template {wanted.name} first, or choose another name.")
    row = RunTemplate(
        project_id=project.id,
        name=wanted.name,
        description=wanted.description,
        workflow_id=wanted.workflow_id,
        model_profile_id=wanted.model_profile_id,
        limits=dict(wanted.limits),
        input_schema=wanted.input_schema,
        created_by=ctx.actor.subject,
        creator_person=ctx.actor.person or ctx.actor.subject,
        created_at=now(),
    )
    row.tenant_id = ctx.tenant_id
    row.seal()
    record(ctx, row, "Created", _changed(ctx, row), detail={"contentHash": row.content_hash})
    return str(row.id)


@command("RetireRunTemplate")
def retire_run_template(ctx: Context, *, template_id: UUID, reason: str) -> None:
    """Begin no run from it any more. Runs that began keep what they pinned; its waivers end at once.

    Guards: Active, a reason. Emits `RunTemplateChanged`, and `WaiverChanged` for each waiver. Errors:
    `InvalidInput`, `TemplateNotFound`, `TemplateEnded` (409).
    """
    reason = reasoned(reason, "Retiring a run template needs a reason.")
    row = _locked(ctx, template_id)
    if row.state != TemplateState.ACTIVE:
        raise TemplateEnded(f"It was retired by {row.retired_by}: {row.retire_reason}")
    row.retire(at=now(), by=ctx.actor.subject, reason=reason)
    record(ctx, row, "RetireRequested", _changed(ctx, row))
    audit(ctx, "RetireRunTemplate", subject=f"run-template:{row.id}", reason=reason, stream=row.id)
    approvals.end_waivers_of(ctx, "template_id", row.id, reason=f"The template was retired: {reason}")


def _check(ctx: Context, wanted: NewTemplate) -> None:
    known = registry.profiles_of_workflow(wanted.workflow_id)
    allowed = current_policy(ctx).document["modelProfiles"]
    if wanted.model_profile_id not in known or wanted.model_profile_id not in allowed:
        both = ", ".join(sorted(known & set(allowed))) or "none"
        problem = (
            f"The model profile {wanted.model_profile_id} is not one that a release of this workflow and "
            f"the policy both name. Both name: {both}."
        )
        raise ModelProfileNotApproved(problem, errors=[FieldError("/modelProfileId", problem)])


def _check_that_something_fits(wanted: NewTemplate) -> None:
    """No run could begin where no input fits, neither by itself nor with any release that there is."""
    schema = wanted.input_schema
    if schema is None:
        return
    faults = registry.schema_faults(schema, "/inputSchema")
    if faults:
        raise InvalidInput("The schema of the input is not valid.", errors=faults)
    also, found = _excluded(wanted.workflow_id, schema)
    if found:
        where = f"at {found.place}, " if found.place else ""
        problem = f"No input could ever fit this schema{also}: {where}{found.why}."
        raise InvalidInput(problem, errors=[FieldError("/inputSchema", problem)])


def _excluded(workflow_id: str, schema: Mapping[str, Any]) -> tuple[str, registry.Contradiction | None]:
    """Together with what nothing fits the schema, and why; it may be the newest of all releases."""
    alone = registry.contradiction(schema)
    releases = [release for release, _ in registry.pinnable(workflow_id)] if alone is None else []
    theirs = [[registry.workflow(release.id, workflow_id)["inputSchema"]] for release in releases]
    together = registry.contradictions(schema, theirs)
    if not together:
        return "", alone
    return f" and the workflow's in {releases[0].asset}@{releases[0].version}", together[0]


def _locked(ctx: Context, template_id: UUID) -> RunTemplate:
    """The template after its project; another scope's looks like none."""
    missing = TemplateNotFound("There is no such run template here.")
    if not RunTemplate.objects.filter(pk=template_id, project_id=ctx.project_id).exists():
        raise missing
    lock_project(ctx)
    return lock(RunTemplate, template_id, missing=missing)


def _changed(ctx: Context, row: RunTemplate) -> RunTemplateChanged:
    return RunTemplateChanged(
        template_id=row.id,
        tenant_id=ctx.tenant_id,
        project_id=row.project_id,
        name=row.name,
        state=str(row.state),
        workflow_id=row.workflow_id,
        content_hash=row.content_hash,
        changed_by=ctx.actor.subject,
        reason=row.retire_reason or None,
    )

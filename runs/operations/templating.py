"""What a run takes from its template: everything that the template fixes, and nothing against it."""

from dataclasses import replace
from typing import Any
from uuid import UUID

from factory.kernel.commanding import operation
from factory.kernel.context import Context
from factory.kernel.errors import FieldError
from factory.kernel.locking import lock
from registry.operations import LATEST
from runs.errors import TemplateFixesIt, TemplateRetired, TemplateUnknown
from runs.models import RunTemplate
from runs.operations.inputs import Submission
from runs.states import TemplateState


def find_template(ctx: Context, template_id: UUID) -> RunTemplate:
    """A template of the caller's project, whatever its state. Raises `TemplateUnknown`."""
    rows = RunTemplate.objects.filter(pk=template_id, project_id=ctx.project_id)
    row: RunTemplate | None = rows.first()
    if row is None:
        raise _unknown()
    return row


@operation
def hold_template(ctx: Context, template: RunTemplate) -> None:
    """Keep a template from being retired until the caller commits; comes after the project's lock.

    Raises `TemplateRetired` when that has happened already.
    """
    row = lock(RunTemplate, template.pk, missing=_unknown(), shared=True)
    if row.state != TemplateState.ACTIVE:
        problem = f"The run template {row.name} was retired: {row.retire_reason}"
        raise TemplateRetired(problem, errors=[FieldError("/templateId", problem)])


def under(template: RunTemplate, submission: Submission) -> Submission:
    """The submission with what its template fixes. Raises `TemplateFixesIt` where it says otherwise.

    A submission that names no release means the one that `latest` names.
    """
    fixed: list[tuple[str, Any, Any]] = [
        ("/workflowId", submission.workflow_id, template.workflow_id),
        ("/modelProfileId", submission.model_profile_id, template.model_profile_id),
        ("/limits/maxCostUsd", submission.max_cost_usd, template.limits["maxCostUsd"]),
        ("/limits/maxMinutes", submission.max_minutes, template.limits["maxMinutes"]),
    ]
    faults = [
        FieldError(place, f"The template {template.name} fixes it: {ours}.")
        for place, said, ours in fixed
        if said and said != ours
    ]
    if faults:
        raise TemplateFixesIt("Leave out what the template fixes, or say the same.", errors=faults)
    named = submission.release_alias or submission.release_id
    return replace(
        submission,
        workflow_id=template.workflow_id,
        model_profile_id=template.model_profile_id,
        max_cost_usd=template.limits["maxCostUsd"],
        max_minutes=template.limits["maxMinutes"],
        release_alias=submission.release_alias if named else LATEST,
    )


def _unknown() -> TemplateUnknown:
    problem = "The project has no such run template."
    return TemplateUnknown(problem, errors=[FieldError("/templateId", problem)])

"""Running again: what another run of the same work would ask for, and the runs that came of one another."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection

from runs.models import Run
from runs.states import TemplateState

MOST = 100
"""A family of more runs than this is shown in part."""


@dataclass(frozen=True, slots=True)
class Kin:
    """A run of the same work: the first one, or one that was run again after another."""

    run_id: UUID
    previous_run_id: UUID | None
    state: str
    release_id: UUID
    requested_by: str
    created_at: datetime


_FAMILY = """
WITH RECURSIVE up AS (
    SELECT id, previous_run_id, 0 AS depth FROM runs_run WHERE id = %s
    UNION ALL SELECT r.id, r.previous_run_id, up.depth + 1
    FROM runs_run r JOIN up ON r.id = up.previous_run_id WHERE up.depth < %s
), down AS (
    (SELECT u.id, 0 AS depth FROM up u ORDER BY u.depth DESC LIMIT 1)
    UNION ALL SELECT r.id, down.depth + 1
    FROM runs_run r JOIN down ON r.previous_run_id = down.id WHERE down.depth < %s
)
SELECT r.id, r.previous_run_id, r.state, r.release_id, r.requested_by, r.created_at
FROM runs_run r JOIN (SELECT id FROM down LIMIT %s) d ON d.id = r.id ORDER BY r.created_at, r.id
"""


def family(run_id: UUID) -> tuple[Kin, ...]:
    """The first run of this work and all that were run again after it, oldest first, this one among them.

    Empty for a run that is alone.
    """
    with connection.cursor() as cursor:
        cursor.execute(_FAMILY, [run_id, MOST, MOST, MOST])
        related = tuple(Kin(*row) for row in cursor.fetchall())
    return related if len(related) > 1 else ()


def again(run: Run, *, release_id: UUID | None = None, alias: str | None = None) -> dict[str, Any]:
    """The submission that asks for the work of a run once more, against the same release or another.

    From the same template, unless that is retired: then what it fixed is asked for without it.
    """
    content: dict[str, Any] = run.snapshot.content
    payload: dict[str, Any] = {
        "workflowId": run.workflow_id,
        "modelProfileId": run.model_profile_id,
        "input": content["input"],
        "limits": {name: value for name, value in run.limits.items() if value is not None},
        "previousRunId": str(run.id),
    }
    if run.environment_id is not None:
        payload["environmentId"] = str(run.environment_id)
    if run.template is not None and run.template.state == TemplateState.ACTIVE:
        payload["templateId"] = str(run.template_id)
    if alias is not None:
        return payload | {"releaseAlias": alias}
    return payload | {"releaseId": str(release_id or run.release_id)}

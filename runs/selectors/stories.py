"""What a reviewer is told about the run behind a question."""

from datetime import datetime
from uuid import UUID

from django.urls import reverse

from approvals.subjects import Story
from factory.models import JournalEntry
from runs.models import Attempt, Run, Step
from usage.selectors import usage_of_run

TOLD = 40
"""A longer story is on the run's own page."""


def story_of_run(run_id: UUID) -> Story | None:
    """The run so far: its pins and cost, and what happened in it, one line each."""
    run = Run.objects.filter(pk=run_id).first()
    if run is None:
        return None
    used = usage_of_run(run_id)
    cost = f"{used.cost:.6f} USD of {run.limits.get('maxCostUsd', 'no limit')}"
    return Story(
        title=f"The run so far: {run.workflow_id}",
        url=reverse("admin:runs_run_change", args=[run_id]),
        facts=(
            ("State", str(run.state)),
            ("Cost so far", cost + (f", {used.uncertain} calls of unknown cost" if used.uncertain else "")),
            ("Requested by", run.requested_by),
            ("Model profile", run.model_profile_id),
        ),
        events=tuple(_events(run_id)),
    )


def _events(run_id: UUID) -> list[tuple[datetime, str]]:
    names = dict(Step.objects.filter(run_id=run_id).values_list("id", "node_key"))
    of_attempt = dict(Attempt.objects.filter(run_id=run_id).values_list("id", "step_id"))
    rows = JournalEntry.objects.filter(stream_id=run_id, entity__in=["run", "step", "approval"])
    told = []
    for entry in rows.order_by("sequence")[:TOLD]:
        about = names.get(of_attempt.get(entry.entity_id, entry.entity_id), entry.entity)
        told.append((entry.occurred_at, f"{about}: {entry.to_state} ({entry.cause}, by {entry.actor})"))
    return told

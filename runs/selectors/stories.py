"""What a reviewer is told about the run behind a question."""

from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from django.urls import reverse

from approvals.subjects import Bar, Story
from factory.models import JournalEntry
from runs.models import Attempt, Run, Step
from runs.selectors.limits import limit_of
from usage.selectors import BudgetView, budgets, set_aside_for, usage_of_run

TOLD = 40
"""A longer story is on the run's own page."""


def story_of_run(run_id: UUID) -> Story | None:
    """The run so far: its pins and cost, and what happened in it, one line each."""
    run = Run.objects.filter(pk=run_id).first()
    if run is None:
        return None
    used = usage_of_run(run_id)
    cost = f"{used.cost:.6f} USD of {limit_of(run):f}"
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


def story_of_spend(run_id: UUID, wanted: Decimal) -> Story | None:
    """The run, and what would be left of each budget that pays for it if it may cost `wanted` in all."""
    told, run = story_of_run(run_id), Run.objects.filter(pk=run_id).first()
    if told is None or run is None:
        return None
    asked = max(wanted - (set_aside_for(run_id) or Decimal(0)), Decimal(0))
    return replace(told, bars=tuple(_bar(budget, asked) for budget in budgets(run.project_id)))


def _bar(budget: BudgetView, asked: Decimal) -> Bar:
    whose = "project" if budget.project_id else "tenant"
    taken = budget.amount - budget.available + asked
    percent = min(100, int(100 * taken / budget.amount)) if budget.amount else 100
    short = "" if asked <= budget.available else " It is not enough: the run would be denied."
    return Bar(
        label=f"The {whose}'s budget, {budget.period_start:%B %Y}",
        percent=percent,
        words=f"{budget.available:.2f} of {budget.amount:.2f} {budget.currency} are free; "
        f"this run asks for {asked:.2f}.{short}",
    )

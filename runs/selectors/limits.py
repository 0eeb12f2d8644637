"""What a run may use, beside what it has used."""

from decimal import Decimal
from typing import Any
from uuid import UUID

from approvals.selectors import approvals_of_run, evaluate_unknown_usage, policy_revision, proposal
from approvals.states import ApprovalState, Effect, SubjectType
from projects.selectors import environment
from runs.errors import RunNotFound
from runs.models import Run
from usage.selectors import UnknownCalls, UsageView, set_aside_for, unknown_of_run, usage_of_run

UNKNOWN_USAGE = "unknownUsage"
"""The member of a spend proposal that lists calls of unknown cost."""


def over_its_limit(run: Run) -> bool:
    """Return whether the run has used more than it may cost."""
    return _over(run, usage_of_run(run.id))


def why_money_stops(run: Run) -> str:
    """Return why the money of a run stops it, in a sentence; empty where it does not."""
    used = usage_of_run(run.id)
    if _over(run, used):
        return "The run has used more than it may cost."
    if used.uncertain and not_accepted(run):
        return "The run has used something of unknown cost, and nobody has said that it may go on."
    return ""


def not_accepted(run: Run) -> list[UnknownCalls]:
    """Return the calls of unknown cost with which the run may not go on: by its policy, until a person has
    said yes to this provider and model."""
    calls = unknown_of_run(run.id)
    if not calls:
        return []
    if evaluate_unknown_usage(policy_revision(run.policy_id), environment_slug(run)).effect is Effect.ALLOW:
        return []
    accepted = _accepted(run.id)
    return [each for each in calls if (each.provider, each.name) not in accepted]


def calls_asked_about(approval_id: UUID) -> list[dict[str, Any]]:
    """Return the calls of unknown cost that a spend request is about; none for one about more money."""
    calls: list[dict[str, Any]] = proposal(approval_id).content.get(UNKNOWN_USAGE, [])
    return calls


def limit_of(run: Run) -> Decimal:
    """Return what the run may cost in all: what was pinned, and whatever was approved and set aside since."""
    return max(Decimal(str(run.limits["maxCostUsd"])), set_aside_for(run.id) or Decimal(0))


def environment_slug(run: Run) -> str | None:
    """Return the slug of the run's environment, by which a policy knows it; None for a run in none."""
    its_environment = environment(run.project_id, run.environment_id) if run.environment_id else None
    return its_environment.slug if its_environment else None


def project_of(run_id: UUID) -> UUID:
    """The project of a run of the tenant in scope. Raises `RunNotFound`."""
    project_id = Run.objects.filter(pk=run_id).values_list("project_id", flat=True).first()
    if project_id is None:
        raise RunNotFound(f"There is no run {run_id} here.")
    return UUID(str(project_id))


def _over(run: Run, used: UsageView) -> bool:
    return used.cost > Decimal(str(run.limits["maxCostUsd"])) and used.cost > limit_of(run)


def _accepted(run_id: UUID) -> set[tuple[str, str]]:
    """Return the provider and model of all calls of unknown cost to which a person has said yes."""
    asked = (view for view in approvals_of_run(run_id) if view.subject_type == SubjectType.SPEND)
    yes = [view.id for view in asked if view.state == ApprovalState.APPROVED]
    return {(each["provider"], each["name"]) for view in yes for each in calls_asked_about(view)}

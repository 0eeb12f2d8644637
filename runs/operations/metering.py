"""What the meters are told of runs, after the commit: a command that is undone is not counted."""

from factory.kernel.commanding import after_commit
from factory.kernel.context import Context
from factory.kernel.telemetry import meters
from runs.models import Attempt, Run


def count_accepted(ctx: Context, run: Run) -> None:
    tenant, project, workflow = ctx.tenant_id, str(run.project_id), run.workflow_id
    after_commit(lambda: meters.run_accepted(tenant, project, workflow))


def count_expired(ctx: Context) -> None:
    after_commit(lambda: meters.lease_expired(ctx.tenant_id))


def time_attempt(ctx: Context, attempt: Attempt, agent_id: str) -> None:
    """From the first dispatch to the outcome, parking included."""
    if attempt.settled_at is None:
        return
    seconds, outcome = (attempt.settled_at - attempt.dispatched_at).total_seconds(), str(attempt.state)
    after_commit(
        lambda: meters.attempt_settled(seconds, tenant=ctx.tenant_id, agent=agent_id, outcome=outcome)
    )

"""What runs do about news: their own acceptance, what the engine found, what became of their money, orders.

An order over many runs is carried out run by run, each by its own command, which judges again: the handler
gives a first push within a moment, and the reconciler does what is left, also when the news was lost.
"""

from uuid import UUID

import projects.states as projects
import registry.events as registry
import usage.states as usage
from factory.kernel.context import Context
from factory.kernel.hints import WORK, publish
from factory.messaging.relay.handlers import Handler, Received
from runs.commands import (
    complete_run_when_told,
    create_step_and_dispatch,
    fail_run_on_budget_denial,
    fail_run_on_expired_reservation,
    fail_run_when_told,
    release_first_step,
    start_run,
)
from runs.reconcilers import KillSwitchReconciler, LeaseExpiryReconciler, WithdrawalReconciler
from runs.states import (
    ATTEMPT_OUTCOME_RECORDED,
    RUN_ACCEPTED,
    STEP_READY,
    WORKFLOW_RUN_COMPLETED,
    WORKFLOW_RUN_FAILED,
)

START = "runs.start_run"
EXPIRE = "runs.fail_run_on_expired_reservation"
CREATE = "runs.create_step_and_dispatch"
COMPLETE = "runs.complete_run"
FAIL = "runs.fail_run"
RELEASE = "runs.release_first_step_on_reservation"
DENY = "runs.fail_run_on_budget_denial"
DISPATCH = "runs.wake_the_pollers"


def start_run_when_accepted(ctx: Context, event: Received) -> None:
    """A run was accepted: set its money aside and make its first steps."""
    if event.run_id is not None:
        start_run.under(event.once(START))(ctx, run_id=event.run_id)


def fail_run_when_its_reservation_expires(ctx: Context, event: Received) -> None:
    """Nothing was dispatched in time: the run cannot go on without its money."""
    if event.run_id is not None and event.payload["state"] == usage.ReservationState.EXPIRED:
        fail_run_on_expired_reservation.under(event.once(EXPIRE))(ctx, run_id=event.run_id)


def create_step_when_ready(ctx: Context, event: Received) -> None:
    """A node is ready: its step is there already, or is made now."""
    create_step_and_dispatch.under(event.once(CREATE))(
        ctx, run_id=_run(event), step_run_id=event.payload["stepRunId"]
    )


def complete_run_when_engine_did(ctx: Context, event: Received) -> None:
    complete_run_when_told.under(event.once(COMPLETE))(ctx, run_id=_run(event))


def fail_run_when_engine_did(ctx: Context, event: Received) -> None:
    payload = event.payload
    fail_run_when_told.under(event.once(FAIL))(
        ctx, run_id=_run(event), failure_class=payload["failureClass"], reason=payload["reason"]
    )


def release_first_step_on_reservation(ctx: Context, event: Received) -> None:
    """Money was set aside: the run's first steps are made, unless that is done."""
    release_first_step.under(event.once(RELEASE))(
        ctx, run_id=_run(event), reservation_id=UUID(event.payload["reservationId"])
    )


def fail_run_on_denial(ctx: Context, event: Received) -> None:
    fail_run_on_budget_denial.under(event.once(DENY))(ctx, run_id=_run(event), reason=event.payload["reason"])


def wake_the_pollers(ctx: Context, event: Received) -> None:
    """A slot is free. A poll dispatches, under its own locks; this only makes it soon."""
    publish(WORK)


def _run(event: Received) -> UUID:
    return UUID(str(event.payload["runId"]))


A_MOMENT = 2.0
"""Seconds that a handler may take: others wait behind it."""


def follow_withdrawal_of_release(ctx: Context, event: Received) -> None:
    """A release was taken out of use: its open runs end as was decreed."""
    if event.payload["inFlight"] != "drain":
        WithdrawalReconciler().run_once(ctx.tenant_id, seconds=A_MOMENT)


def let_clocks_go_on(ctx: Context, event: Received) -> None:
    """A project was resumed: runs whose time seems over have theirs counted, without the suspension."""
    if event.payload["cause"] == "ResumeRequested":
        LeaseExpiryReconciler().run_once(ctx.tenant_id, seconds=A_MOMENT)


def kill_runs_of_project(ctx: Context, event: Received) -> None:
    """A project's kill switch was thrown: every open run of it is cancelled."""
    if event.payload["cause"] == "KillSwitchThrown":
        KillSwitchReconciler().run_once(ctx.tenant_id, seconds=A_MOMENT)


HANDLERS = (
    Handler(START, RUN_ACCEPTED, start_run_when_accepted),
    Handler(EXPIRE, usage.RESERVATION_SETTLED, fail_run_when_its_reservation_expires),
    Handler(CREATE, STEP_READY, create_step_when_ready),
    Handler(COMPLETE, WORKFLOW_RUN_COMPLETED, complete_run_when_engine_did),
    Handler(FAIL, WORKFLOW_RUN_FAILED, fail_run_when_engine_did),
    Handler(RELEASE, usage.BUDGET_RESERVED, release_first_step_on_reservation),
    Handler(DENY, usage.BUDGET_DENIED, fail_run_on_denial),
    Handler(DISPATCH, ATTEMPT_OUTCOME_RECORDED, wake_the_pollers),
    Handler("runs.follow_deprecation", registry.AssetReleaseDeprecated.topic, follow_withdrawal_of_release),
    Handler("runs.follow_revocation", registry.AssetReleaseRevoked.topic, follow_withdrawal_of_release),
    Handler("runs.let_clocks_go_on", projects.STATE_CHANGED, let_clocks_go_on),
    Handler("runs.kill_runs", projects.STATE_CHANGED, kill_runs_of_project),
)

"""What is told about events. Each makes its messages once, however often it comes."""

from datetime import date
from uuid import UUID

from approvals.events import ApprovalBreakGlass, ApprovalDecided, ApprovalRequested
from factory.kernel.context import Context
from factory.messaging.relay.handlers import Received, on
from notifications.commands import notify_of_approval, notify_of_ending_budget, notify_of_sign_in
from notifications.states import BUDGET_ENDING, Kind
from projects.events import SignInLinkRequested

REQUESTED = "notifications.tell_of_request"
DECIDED = "notifications.tell_of_decision"
BREAK_GLASS = "notifications.tell_of_break_glass"
SIGN_IN = "notifications.tell_of_sign_in"
ENDING = "notifications.tell_of_ending_budget"


@on(ApprovalRequested.topic, name=REQUESTED)
def notify_of_request(ctx: Context, event: Received) -> None:
    _notify(ctx, event, REQUESTED, Kind.REQUESTED)


@on(ApprovalDecided.topic, name=DECIDED)
def notify_of_decision(ctx: Context, event: Received) -> None:
    _notify(ctx, event, DECIDED, Kind.DECIDED)


@on(ApprovalBreakGlass.topic, name=BREAK_GLASS)
def notify_of_break_glass(ctx: Context, event: Received) -> None:
    _notify(ctx, event, BREAK_GLASS, Kind.BREAK_GLASS, tuple(event.payload["passedOver"]))


@on(SignInLinkRequested.topic, name=SIGN_IN)
def notify_of_sign_in_link(ctx: Context, event: Received) -> None:
    payload = event.payload
    project_id = UUID(payload["projectId"]) if payload["projectId"] else None
    notify_of_sign_in.under(event.once(SIGN_IN))(ctx, project_id=project_id, subject=payload["subject"])


@on(BUDGET_ENDING, name=ENDING)
def notify_budget_ends(ctx: Context, event: Received) -> None:
    """Tell who can open a budget that the coming month has none."""
    project_id = event.payload["projectId"]
    month = date.fromisoformat(f"{event.payload['nextMonth']}-01")
    tell = notify_of_ending_budget.under(event.once(ENDING))
    tell(ctx, project_id=UUID(project_id) if project_id else None, month=month)


def _notify(
    ctx: Context, event: Received, handler: str, kind: Kind, passed_over: tuple[str, ...] = ()
) -> None:
    approval_id = UUID(event.payload["approvalId"])
    tell = notify_of_approval.under(event.once(handler))
    tell(ctx, kind=kind, approval_id=approval_id, passed_over=passed_over)

"""What is told about events. Each makes its messages once, however often it comes."""

from datetime import date
from uuid import UUID

from approvals.events import ApprovalBreakGlass, ApprovalDecided, ApprovalRequested
from factory.kernel.context import Context
from factory.messaging.relay.handlers import Handler, Received
from notifications.commands import notify_of_approval, notify_of_ending_budget, notify_of_sign_in
from notifications.states import BUDGET_ENDING, Kind
from projects.events import SignInLinkRequested

REQUESTED = "notifications.tell_of_request"
DECIDED = "notifications.tell_of_decision"
BREAK_GLASS = "notifications.tell_of_break_glass"
SIGN_IN = "notifications.tell_of_sign_in"
ENDING = "notifications.tell_of_ending_budget"


def notify_of_request(ctx: Context, event: Received) -> None:
    _notify(ctx, event, REQUESTED, Kind.REQUESTED)


def notify_of_decision(ctx: Context, event: Received) -> None:
    _notify(ctx, event, DECIDED, Kind.DECIDED)


def notify_of_break_glass(ctx: Context, event: Received) -> None:
    _notify(ctx, event, BREAK_GLASS, Kind.BREAK_GLASS, tuple(event.payload["passedOver"]))


def notify_of_sign_in_link(ctx: Context, event: Received) -> None:
    payload = event.payload
    project_id = UUID(payload["projectId"]) if payload["projectId"] else None
    notify_of_sign_in.under(event.once(SIGN_IN))(ctx, project_id=project_id, subject=payload["subject"])


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


HANDLERS = (
    Handler(REQUESTED, ApprovalRequested.topic, notify_of_request),
    Handler(DECIDED, ApprovalDecided.topic, notify_of_decision),
    Handler(BREAK_GLASS, ApprovalBreakGlass.topic, notify_of_break_glass),
    Handler(SIGN_IN, SignInLinkRequested.topic, notify_of_sign_in_link),
    Handler(ENDING, BUDGET_ENDING, notify_budget_ends),
)

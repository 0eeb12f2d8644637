"""What is told about the events of approvals. Each makes its messages once, however often it comes."""

from uuid import UUID

from approvals.events import ApprovalBreakGlass, ApprovalDecided, ApprovalRequested
from factory.context import Context
from factory.relay.handlers import Received, on
from notifications.commands import tell_of_approval
from notifications.states import Kind

REQUESTED = "notifications.tell_of_request"
DECIDED = "notifications.tell_of_decision"
BREAK_GLASS = "notifications.tell_of_break_glass"


@on(ApprovalRequested.topic, name=REQUESTED)
def tell_of_request(ctx: Context, event: Received) -> None:
    _tell(ctx, event, REQUESTED, Kind.REQUESTED)


@on(ApprovalDecided.topic, name=DECIDED)
def tell_of_decision(ctx: Context, event: Received) -> None:
    _tell(ctx, event, DECIDED, Kind.DECIDED)


@on(ApprovalBreakGlass.topic, name=BREAK_GLASS)
def tell_of_break_glass(ctx: Context, event: Received) -> None:
    _tell(ctx, event, BREAK_GLASS, Kind.BREAK_GLASS, tuple(event.payload["passedOver"]))


def _tell(ctx: Context, event: Received, handler: str, kind: Kind, passed_over: tuple[str, ...] = ()) -> None:
    approval_id = UUID(event.payload["approvalId"])
    tell = tell_of_approval.under(event.once(handler))
    tell(ctx, kind=kind, approval_id=approval_id, passed_over=passed_over)

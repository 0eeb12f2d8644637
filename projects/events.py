"""What this app tells the others."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from factory.kernel.events import Event, FixedWords, event
from projects.states import DELEGATION_CHANGED, SIGN_IN_LINK_REQUESTED, STATE_CHANGED, DelegationState


@event(STATE_CHANGED)
class ProjectStateChanged(Event):
    """A project was onboarded (it had no state before), suspended or resumed."""

    project_id: UUID
    tenant_id: str
    from_state: str | None
    to_state: str
    cause: str


@event(DELEGATION_CHANGED)
class DelegationChanged(Event):
    """A role was lent, or a delegation has ended: by its time, or because somebody took it back."""

    delegation_id: UUID
    tenant_id: str
    project_id: UUID
    state: Annotated[str, FixedWords(sorted(DelegationState.values))]
    expires_at: datetime
    delegator: str
    delegate: str
    role: str


@event(SIGN_IN_LINK_REQUESTED)
class SignInLinkRequested(Event):
    """A member is to be sent a link, to their own mailbox, by which they set a password for the console."""

    membership_id: UUID
    tenant_id: str
    project_id: UUID | None
    subject: str
    requested_by: str

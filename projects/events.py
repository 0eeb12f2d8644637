"""What this app tells the others."""

from uuid import UUID

from factory.events import Event, event
from projects.states import STATE_CHANGED


@event(STATE_CHANGED)
class ProjectStateChanged(Event):
    """A project was onboarded (it had no state before), suspended or resumed."""

    project_id: UUID
    tenant_id: str
    from_state: str | None
    to_state: str
    cause: str

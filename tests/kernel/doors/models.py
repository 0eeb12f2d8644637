from datetime import datetime
from typing import ClassVar

from django.db import models
from django_fsm import FSMField, transition

from factory.kernel.events import Event, event
from factory.kernel.lifecycle import Edge, Lifecycle
from factory.kernel.models.base import Journaled, TenantForeignKey, TenantModel, uuid_key


@event("doors.doors.v1.door-built")
class DoorBuilt(Event):
    """A door stands."""

    door_id: str
    colour: str


@event("doors.doors.v1.door-shut")
class DoorShut(Event):
    """A door was shut."""

    door_id: str


DOOR = Lifecycle(
    "door",
    (
        Edge("", "Open", ("Built",), ("doors.doors.v1.door-built",)),
        Edge("Open", "Shut", ("Pushed",), ("doors.doors.v1.door-shut",)),
        Edge("Shut", "Open", ("Pulled",)),
        Edge("Open", "Open", ("Painted",)),
    ),
)


class Door(Journaled):
    lifecycle = DOOR
    state = FSMField(default="Open", protected=True)
    version = models.BigIntegerField(default=0)
    colour = models.CharField(max_length=20)
    shut_at = models.DateTimeField(null=True)

    @transition(field=state, source="Open", target="Shut")
    def shut(self, *, at: datetime) -> None:
        self.shut_at = at

    @transition(field=state, source="Shut", target="Open")
    def pull(self) -> None:
        self.shut_at = None

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=models.Q(state="Open", shut_at__isnull=True)
                | models.Q(state="Shut", shut_at__isnull=False),
                name="door_shut_at",
            )
        ]

    def __str__(self) -> str:
        return f"{self.colour} door"


class Handle(TenantModel):
    id = uuid_key()
    door = TenantForeignKey(Door)

    def __str__(self) -> str:
        return "handle"

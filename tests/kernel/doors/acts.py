from typing import Any
from uuid import UUID

from factory.kernel import clock
from factory.kernel.commanding import command, operation
from factory.kernel.context import Context
from factory.kernel.errors import Conflict
from factory.kernel.locking import lock
from factory.kernel.recording import record, save

from .models import Door, DoorBuilt, DoorShut, Handle


class DoorIsStuck(Conflict):
    code = "door-is-stuck"
    audited = True


@command("BuildDoor")
def build_door(ctx: Context, *, colour: str = "red") -> dict[str, Any]:
    return {"doorId": str(hang(ctx, colour=colour).id)}


@operation
def hang(ctx: Context, *, colour: str) -> Door:
    door = Door(colour=colour)
    record(ctx, door, "Built", DoorBuilt(door_id=str(door.id), colour=colour))
    handle = Handle(door=door)
    save(handle)
    return door


@command("ShutDoor")
def shut_door(ctx: Context, *, door_id: UUID, stuck: bool = False) -> int:
    door = lock(Door, door_id)
    door.shut(at=clock.now())
    record(ctx, door, "Pushed", DoorShut(door_id=str(door.id)))
    if stuck:
        raise DoorIsStuck("It does not move.", extra={"subject": f"door:{door_id}"})
    return door.version


@command("ShutAndOpenDoor")
def shut_and_open_door(ctx: Context, *, door_id: UUID) -> None:
    door = lock(Door, door_id)
    door.shut(at=clock.now())
    record(ctx, door, "Pushed", DoorShut(door_id=str(door.id)))
    door.pull()
    record(ctx, door, "Pulled")


@command("PaintDoor")
def paint_door(ctx: Context, *, door_id: UUID, colour: str) -> None:
    door = lock(Door, door_id)
    door.colour = colour
    record(ctx, door, "Painted")


@command("Misbehave")
def misbehave(ctx: Context, *, act: Any) -> Any:
    """Runs whatever a test wants to see refused."""
    return act(ctx)

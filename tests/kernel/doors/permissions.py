from factory.kernel.permissions import permit

OPERATIONS = (
    "BuildDoor",
    "ShutDoor",
    "ShutAndOpenDoor",
    "PaintDoor",
    "BuildAndShutDoor",
    "Misbehave",
    "HangDoor",
)
PERMITS = tuple(permit(operation, scope="projects.write", roles=["Operator"]) for operation in OPERATIONS)

from factory.kernel.permissions import permit

for operation in ("BuildDoor", "ShutDoor", "ShutAndOpenDoor", "PaintDoor", "BuildAndShutDoor", "Misbehave"):
    permit(operation, scope="projects.write", roles=["Operator"])
permit("HangDoor", scope="projects.write", roles=["Operator"])

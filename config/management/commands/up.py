"""`manage.py up`: everything at once on this machine, for as long as the terminal is open."""

from typing import Any

from config.launching.command import LaunchingCommand
from config.launching.tour import show_around


class Command(LaunchingCommand):
    help = "Start everything (private servers too, where none are named), show a run, and stay until Ctrl-C."

    def handle(self, *args: Any, **options: Any) -> None:
        self.launch(options, show_around, stay=True)

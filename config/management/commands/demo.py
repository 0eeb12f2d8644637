"""`manage.py demo`: one run from submission to completion, and out again."""

from typing import Any

from config.launching.command import LaunchingCommand
from config.launching.tour import carry_one_to_the_end


class Command(LaunchingCommand):
    help = "Start everything, carry one run to its end, print JSON as the last line, and stop everything."

    def handle(self, *args: Any, **options: Any) -> None:
        self.launch(options, carry_one_to_the_end, stay=False)

"""What `up` and `demo` have in common."""

import json
import shutil
import sys
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from config.launching import repository
from config.launching.launcher import Launcher, Tour
from config.launching.options import LaunchOptions
from config.launching.terminal import Terminal
from factory.embedded.system import EmbeddedError

NO_GIT = "git was not found; releases and reports are Git commits. On Debian: apt-get install git"


class LaunchingCommand(BaseCommand):
    """A command that brings everything up."""

    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--repo", default="", help="the Git repository to assess (default: this one)")
        parser.add_argument("--revision", default="", help="the branch, tag or commit (default: HEAD)")
        parser.add_argument("--port", type=int, default=8000, help="where the web should be")
        parser.add_argument("--stream-port", type=int, default=7402, help="where workers should connect")

    def launch(self, options: dict[str, Any], tour: Tour, *, stay: bool) -> None:
        if shutil.which("git") is None:
            raise CommandError(NO_GIT)
        chosen = LaunchOptions(
            root=settings.BASE_DIR,
            home=settings.HOME,
            port=options["port"],
            stream_port=options["stream_port"],
            repository=options["repo"],
            revision=options["revision"],
        )
        try:
            repository.chosen(chosen)  # before anything is started
            launcher = Launcher(chosen, Terminal())
            code = launcher.run(tour, stay=stay)
        except EmbeddedError as error:
            raise CommandError(str(error)) from error
        if launcher.result:
            self.stdout.write(json.dumps(launcher.result))
        sys.exit(code)

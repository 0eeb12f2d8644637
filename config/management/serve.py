"""What `manage.py web` and `manage.py stream` share: each becomes its server."""

import os
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand

from config.serving import LOCAL

ROOT = Path(__file__).resolve().parents[2]


class Serve(BaseCommand):
    kind: str
    port: int
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default=LOCAL)
        parser.add_argument("--port", type=int, default=self.port)
        parser.add_argument("--share-port", action="store_true", help="several processes may listen on it")

    def handle(self, *args: Any, **options: Any) -> None:
        # A process of its own kind: its settings (pool, time-outs) are read anew.
        environment = {**os.environ, "FACTORY_PROCESS": self.kind}
        argv = [sys.executable, "-m", f"config.serving.{self.kind}"]
        argv += ["--host", options["host"], "--port", str(options["port"])]
        argv += ["--share-port"] if options["share_port"] else []
        os.chdir(ROOT)
        os.execve(sys.executable, argv, environment)

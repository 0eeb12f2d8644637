"""Serve the stream process: watching runs, and the workers' surface."""

import os
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand


class Command(BaseCommand):
    help = "Serve GET /factory/watch and the workers' surface (an internal port: never on a public gateway)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1")
        parser.add_argument("--port", type=int, default=7402)

    def handle(self, *args: Any, **options: Any) -> None:
        # A process of its own kind: its settings (pool, time-outs) are read anew.
        environment = {**os.environ, "FACTORY_PROCESS": "stream"}
        argv = [sys.executable, "-m", "uvicorn", "config.asgi:application", "--no-access-log"]
        argv += ["--host", options["host"], "--port", str(options["port"])]
        argv += ["--log-level", "warning", "--timeout-graceful-shutdown", "2"]
        os.chdir(Path(__file__).resolve().parents[3])
        os.execve(sys.executable, argv, environment)

"""Deliver committed events to the handlers and to the streams."""

import signal
from typing import Any

from django.core.management.base import BaseCommand

from factory.evidence.schema.readiness import require_schema
from factory.messaging.relay.loop import Relay


class Command(BaseCommand):
    help = "Deliver committed events until it is stopped. Several may run: they share the lanes."

    def handle(self, *args: Any, **options: Any) -> None:
        require_schema()
        relay = Relay()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: relay.stop())
        relay.run()

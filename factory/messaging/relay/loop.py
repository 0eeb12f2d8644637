"""The relay process: rounds without end, woken by hints and looking by itself in between."""

import threading
import time

import psycopg
import redis
import structlog
from django.db import DatabaseError, InterfaceError, connections

from factory.kernel.hints import OUTBOX, channel_name, connect
from factory.kernel.telemetry import setup
from factory.messaging.relay.delivery import Destination, DestinationAway, deliver_due
from factory.messaging.relay.destinations import Handlers, Streams
from factory.messaging.relay.webhooks import Courier

log = structlog.get_logger("factory.messaging.relay")

IDLE_SECONDS = 0.2
"""How long a commit waits at the most when its hint is lost."""
STREAMS_IDLE_SECONDS = 1.0
WEBHOOKS_IDLE_SECONDS = 0.5


class Relay:
    """Handlers, streams and webhooks, each in a thread of its own, so that none waits for another."""

    def __init__(self) -> None:
        self.stopping = threading.Event()
        self._woken = threading.Event()

    def run(self) -> None:
        """Deliver until `stop()`; a database or broker that is away is waited for."""
        setup.serve("relay")
        threads = [
            threading.Thread(target=self._listen, name="hints", daemon=True),
            threading.Thread(target=self._rounds, args=(Streams(), STREAMS_IDLE_SECONDS), name="streams"),
            threading.Thread(target=self._webhooks, name="webhooks"),
        ]
        for thread in threads:
            thread.start()
        self._rounds(Handlers(), IDLE_SECONDS)
        for thread in threads[1:]:
            thread.join(timeout=5)

    def stop(self) -> None:
        """End after the present round."""
        self.stopping.set()
        self._woken.set()

    def _rounds(self, destination: Destination, idle: float) -> None:
        while not self.stopping.is_set():
            try:
                delivered = deliver_due(destination)
            except Exception as fault:  # a thread that ended would leave half a relay, and nobody would know
                self._recover(destination.prefix, fault)
                delivered = 0
            if not delivered and destination.prefix == "handle":
                self._woken.wait(idle)
                self._woken.clear()
            elif not delivered:
                self.stopping.wait(idle)
        connections.close_all()

    def _webhooks(self) -> None:
        courier = Courier()
        while not self.stopping.is_set():
            try:
                courier.round()
            except Exception as fault:
                self._recover("webhook", fault)
            if not courier.busy:
                self.stopping.wait(WEBHOOKS_IDLE_SECONDS)
        courier.close()
        connections.close_all()

    def _recover(self, destination: str, fault: Exception) -> None:
        """Begin the next round with nothing of this one, after a moment."""
        expected = isinstance(fault, DestinationAway | DatabaseError | InterfaceError | psycopg.Error)
        say = log.warning if expected else log.exception
        say("delivery_waits", destination=destination, fault=str(fault)[:200])
        connections.close_all()
        self.stopping.wait(1)

    def _listen(self) -> None:
        while not self.stopping.is_set():
            try:
                client = connect(socket_timeout=None)
                with client.pubsub(ignore_subscribe_messages=True) as hints:  # type: ignore[no-untyped-call]
                    hints.subscribe(channel_name(OUTBOX))
                    while not self.stopping.is_set():
                        if hints.get_message(timeout=0.2) is not None:
                            self._woken.set()
            except (redis.RedisError, OSError):
                time.sleep(1)

"""The two destinations: this product's own handlers, and Redis Streams for everybody else's."""

import json
import socket
import time
from typing import Any

import redis
from django.conf import settings
from django.db import InterfaceError, OperationalError

from factory.kernel.absence import database_away
from factory.kernel.commanding import IdempotentReplay
from factory.kernel.context import Context
from factory.kernel.events import wire
from factory.kernel.hints import broker
from factory.kernel.models import OutboxEvent
from factory.kernel.telemetry import meters
from factory.messaging.relay.delivery import DestinationAway
from factory.messaging.relay.handlers import Received, handlers

HOST = socket.gethostname()


class Handlers:
    """In-process handlers; each one's effect and its inbox record commit together."""

    prefix = "handle"
    done_column = "handled_at"

    def deliver(self, ctx: Context, event: OutboxEvent) -> None:
        """Call every handler of the topic. One that did it before answers so, which is success.

        One that fails keeps no other from this event; what it raised is raised when all have had their turn.
        """
        failed: Exception | None = None
        received = Received(
            id=event.id,
            topic=event.topic,
            payload=event.payload,
            occurred_at=event.occurred_at,
            stream_id=event.stream_id,
            run_id=event.run_id,
            correlation_id=event.correlation_id,
        )
        for handler in handlers(event.topic):
            try:
                handler.handle(ctx, received)
            except IdempotentReplay:
                continue
            except (OperationalError, InterfaceError) as fault:
                if database_away(fault):
                    raise DestinationAway(str(fault)) from fault
                failed = failed or fault
            except Exception as fault:
                failed = failed or fault
        if failed is not None:
            raise failed


class Streams:
    """Redis Streams, one for each topic: an event may arrive twice, so consumers keep an inbox."""

    prefix = "stream"
    done_column = "streamed_at"

    def deliver(self, ctx: Context, event: OutboxEvent) -> None:
        """Append the event in its envelope; raises `DestinationAway` while the broker is."""
        try:
            broker().xadd(
                f"factory:{event.topic}",
                {"event": json.dumps(envelope(event), separators=(",", ":"))},
                maxlen=settings.FACTORY_STREAM_LENGTH,
                approximate=True,
            )
        except redis.ResponseError as fault:
            if str(fault).startswith("WRONGTYPE"):  # somebody's key stands in this topic's way alone
                raise
            raise DestinationAway(str(fault)) from fault  # full, read-only, loading: no event is to blame
        except (redis.ConnectionError, redis.TimeoutError) as fault:
            raise DestinationAway(str(fault)) from fault
        meters.outbox_published(max(0.0, time.time() - event.occurred_at.timestamp()), host=HOST)


def envelope(event: OutboxEvent) -> dict[str, Any]:
    """The event as CloudEvents 1.0 (structured JSON) with the control plane's extension attributes."""
    attributes = {
        "specversion": "1.0",
        "id": event.id,
        "source": "/factory/" + event.topic.split(".", 1)[0],
        "type": event.topic,
        "time": event.occurred_at,
        "datacontenttype": "application/json",
        "dataschema": f"/factory/events/{event.topic}.json",
        "subject": event.run_id or event.stream_id,
        "tenantid": event.tenant_id,
        "projectid": event.project_id,
        "runid": event.run_id,
        "stepid": event.step_id,
        "attemptid": event.attempt_id,
        "correlationid": event.correlation_id,
        "causationid": event.causation_id,
        "schemaversion": event.schema_version,
        "traceparent": event.traceparent or None,
        "sequence": event.sequence,
    }
    return {name: wire(value) for name, value in attributes.items() if value is not None} | {
        "data": event.payload
    }

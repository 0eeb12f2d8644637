"""The receiver's code in the how-to is run as it stands there."""

import json
import re
import textwrap
import time
from pathlib import Path
from typing import Any
from uuid import uuid4

import redis
from django.conf import settings

from factory.kernel.context import Context
from factory.messaging.relay.delivery import drain
from factory.messaging.relay.destinations import Streams
from tests.kernel.doors.acts import build_door
from tests.kernel.doors.models import DoorBuilt
from tests.support.webhooks import deliver_all
from tests.webhooks.conftest import Subscribe
from tests.webhooks.receiver import Receiver

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "consume-events.md"


def code(mark: str) -> dict[str, Any]:
    """The names that a marked block of the page defines."""
    found = re.search(rf"<!-- {mark} -->\n((?:    .*\n|\n)+)", PAGE.read_text())
    assert found is not None
    names: dict[str, Any] = {}
    exec(textwrap.dedent(found[1]), names)  # our own page
    return names


def test_a_receiver_without_a_library_verifies(
    ctx: Context, receiver: Receiver, subscribe: Subscribe
) -> None:
    _, secret = subscribe()
    build_door(ctx)
    deliver_all(ctx.tenant_id)
    [message] = receiver.messages
    verified = code("receiver")["verified"]
    assert verified(secret, message.headers, message.body)
    assert not verified(secret, message.headers, message.body + b" ")
    old = message.headers | {"webhook-timestamp": str(int(time.time()) - 600)}
    assert not verified(secret, old, message.body)


def test_a_group_takes_each_event_of_a_stream_once(ctx: Context) -> None:
    for _ in range(3):
        build_door(ctx)
    drain(Streams(), ctx.tenant_id)
    store, group = redis.Redis.from_url(settings.REDIS_URL), uuid4().hex
    heard: list[dict[str, Any]] = []
    consume = code("group")["consume"]
    while consume(store, DoorBuilt.topic, group, "one", heard.append):
        continue
    mine = [event for event in heard if event["tenantid"] == ctx.tenant_id]
    assert len({event["id"] for event in mine}) == len(mine) == 3
    assert consume(store, DoorBuilt.topic, group, "two", heard.append) == 0
    assert json.dumps(mine)

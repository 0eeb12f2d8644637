"""Webhooks: each event once or more, in order, signed; and one endpoint's trouble is nobody else's."""

import threading
import time
from dataclasses import replace
from uuid import UUID, uuid4

import pytest
from django.db import connection
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from factory.kernel.context import Context
from factory.kernel.models import OutboxEvent, WebhookDelivery, WebhookSubscription
from factory.kernel.retries import DELAYS
from factory.kernel.tenancy import bound, reading
from factory.messaging.relay import webhooks as relay
from factory.messaging.relay.destinations import envelope
from factory.messaging.relay.webhooks import Courier
from factory.messaging.webhooks import sending
from factory.messaging.webhooks.commands import disable_webhook, enable_webhook, ping_webhook, rotate_secret
from factory.messaging.webhooks.signing import new_secret
from tests.kernel.doors.acts import build_door, shut_and_open_door
from tests.kernel.doors.models import DoorShut
from tests.support.evidence import audits, violations
from tests.support.webhooks import deliver_all
from tests.webhooks.conftest import Subscribe
from tests.webhooks.receiver import Message, Receiver


def deliveries(ctx: Context) -> list[WebhookDelivery]:
    with reading(ctx):
        return list(WebhookDelivery.objects.order_by("created_at", "sequence", "position"))


def subscription(ctx: Context, webhook_id: UUID) -> WebhookSubscription:
    with reading(ctx):
        return WebhookSubscription.objects.get(pk=webhook_id)


def make_due(ctx: Context) -> None:
    with bound(ctx), connection.cursor() as cursor:
        cursor.execute("UPDATE factory_webhookdelivery SET due_at = NULL")
        cursor.execute("UPDATE factory_webhooksubscription SET resume_at = NULL")


@pytest.mark.requirement("EVT-01", "EVT-02")
def test_an_event_arrives_whole_and_signed_as_standard_webhooks_say(
    ctx: Context, receiver: Receiver, subscribe: Subscribe
) -> None:
    _, secret = subscribe(consumer="StudioBff")
    door_id = build_door(ctx)["doorId"]
    assert deliver_all(ctx.tenant_id) == 1
    [message] = receiver.messages
    with reading(ctx):
        event = OutboxEvent.objects.get()
    assert message.event == envelope(event)
    assert message.event["data"] == {"doorId": door_id, "colour": "red"}
    assert message.headers["webhook-id"] == message.event["id"] == str(event.id)
    assert message.headers["content-type"] == "application/cloudevents+json"
    assert Webhook(secret).verify(message.body, message.headers) == message.event
    with pytest.raises(WebhookVerificationError):
        Webhook(new_secret()).verify(message.body, message.headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(secret).verify(message.body.replace(b"red", b"tan"), message.headers)
    [row] = deliveries(ctx)
    assert (row.attempts, row.last_status, row.delivered_at is not None) == (1, 204, True)
    assert deliver_all(ctx.tenant_id) == 0
    assert violations(ctx.tenant_id) == []


def test_a_subscription_gets_what_it_asked_for_of_its_own_scope_from_then_on(
    ctx: Context, receiver: Receiver, subscribe: Subscribe
) -> None:
    build_door(ctx)
    sister = replace(ctx, project_id=uuid4())
    everything = replace(ctx, project_id=None)
    for number, (by, topics) in enumerate(
        [(ctx, ()), (ctx, (DoorShut.topic,)), (sister, ()), (everything, ())]
    ):
        subscribe(*topics, by=by, url=f"{receiver.url}/{number}")
    door_id = UUID(build_door(ctx)["doorId"])
    shut_and_open_door(ctx, door_id=door_id)
    deliver_all(ctx.tenant_id)
    got = {number: [m for m in receiver.messages if m.path.endswith(f"/{number}")] for number in range(4)}
    kinds = {n: [m.event["type"].rsplit(".", 1)[-1] for m in messages] for n, messages in got.items()}
    assert kinds == {
        0: ["door-built", "door-shut"], 1: ["door-shut"], 2: [], 3: ["door-built", "door-shut"],
    }  # fmt: skip


def test_two_secrets_are_good_for_a_day_after_a_change(
    ctx: Context, receiver: Receiver, subscribe: Subscribe
) -> None:
    webhook_id, old = subscribe()
    new = new_secret()
    rotate_secret(ctx, webhook_id=webhook_id, secret=new)
    ping_webhook(ctx, webhook_id=webhook_id)
    deliver_all(ctx.tenant_id)
    [both] = receiver.messages
    assert both.headers["webhook-signature"].count("v1,") == 2
    for secret in (old, new):
        Webhook(secret).verify(both.body, both.headers)
    with bound(ctx), connection.cursor() as cursor:
        cursor.execute("UPDATE factory_webhooksubscription SET previous_until = now() - interval '1 s'")
    ping_webhook(ctx, webhook_id=webhook_id)
    deliver_all(ctx.tenant_id)
    one = receiver.messages[-1]
    Webhook(new).verify(one.body, one.headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(old).verify(one.body, one.headers)


def test_a_ping_reaches_its_own_endpoint_whatever_that_wants_and_no_other(
    ctx: Context, receiver: Receiver, subscribe: Subscribe
) -> None:
    one, _ = subscribe(DoorShut.topic, url=f"{receiver.url}/one")
    subscribe(url=f"{receiver.url}/two")
    ping_webhook(ctx, webhook_id=one)
    deliver_all(ctx.tenant_id)
    assert [(m.path, m.event["data"]["webhookId"]) for m in receiver.messages] == [("/hook/one", str(one))]


@pytest.mark.requirement("EVT-04", "EVT-06")
def test_what_fails_holds_up_its_own_stream_at_its_own_endpoint_alone(
    ctx: Context, receiver: Receiver, subscribe: Subscribe
) -> None:
    sick, well = (UUID(build_door(ctx)["doorId"]) for _ in range(2))
    subscribe(url=f"{receiver.url}/bad")
    subscribe(url=f"{receiver.url}/good")
    receiver.reply = lambda m: 500 if m.path.endswith("bad") and str(sick) in m.body.decode() else 200
    for door_id in (sick, well):
        for _ in range(2):
            shut_and_open_door(ctx, door_id=door_id)
    deliver_all(ctx.tenant_id)
    waiting = [row for row in deliveries(ctx) if row.delivered_at is None]
    assert {row.stream_id for row in waiting} == {sick}
    assert [row.attempts for row in waiting] == [1, 0], "nothing goes past what has not been delivered"
    assert waiting[0].error == "The endpoint answered 500."
    for _ in range(len(DELAYS) + 2):
        make_due(ctx)
        deliver_all(ctx.tenant_id)
    first, second = [row for row in deliveries(ctx) if row.delivered_at is None]
    assert (first.attempts, second.attempts) == (len(DELAYS) + 1, 0)
    assert first.set_aside_at is not None
    assert second.set_aside_at is None
    assert violations(ctx.tenant_id) == []


def test_the_waits_between_tries_grow_to_a_day(
    ctx: Context, receiver: Receiver, subscribe: Subscribe
) -> None:
    assert 20 * 3600 < sum(DELAYS) < 28 * 3600
    subscribe()
    receiver.reply = lambda _: (503, {"Retry-After": "1800"})
    build_door(ctx)
    deliver_all(ctx.tenant_id)
    [row] = deliveries(ctx)
    assert row.due_at is not None
    assert 1700 < (row.due_at - row.created_at).total_seconds() < 1900, "it says itself when to come again"


def test_an_endpoint_that_is_gone_is_asked_no_more(
    ctx: Context, receiver: Receiver, subscribe: Subscribe
) -> None:
    webhook_id, _ = subscribe()
    receiver.reply = lambda _: 410
    build_door(ctx)
    build_door(ctx)
    deliver_all(ctx.tenant_id)
    told = subscription(ctx, webhook_id)
    assert (told.state, told.disabled_reason[:26]) == ("Disabled", "The endpoint answered 410 ")
    assert [entry.reason for entry in audits(ctx, "DisableWebhook")] == [told.disabled_reason]
    sent = len(receiver.messages)
    make_due(ctx)
    assert deliver_all(ctx.tenant_id) == 0
    receiver.reply = lambda _: 204
    enable_webhook(ctx, webhook_id=webhook_id)
    deliver_all(ctx.tenant_id)
    assert len(receiver.messages) == sent + 2, "what waited goes out when it is enabled again"
    assert violations(ctx.tenant_id) == []


def test_a_disabled_webhook_is_sent_nothing(ctx: Context, receiver: Receiver, subscribe: Subscribe) -> None:
    webhook_id, _ = subscribe()
    disable_webhook(ctx, webhook_id=webhook_id, reason="moving house")
    build_door(ctx)
    assert deliver_all(ctx.tenant_id) == 0
    assert deliveries(ctx) == []


def test_redirects_are_not_followed(ctx: Context, receiver: Receiver, subscribe: Subscribe) -> None:
    subscribe()
    receiver.reply = lambda _: (302, {"Location": f"{receiver.url}/elsewhere"})
    build_door(ctx)
    deliver_all(ctx.tenant_id)
    assert [m.path for m in receiver.messages] == ["/hook"]
    assert deliveries(ctx)[0].error.endswith("redirects are not followed.")


def test_a_hung_endpoint_holds_up_no_other_and_is_given_up(
    ctx: Context, receiver: Receiver, subscribe: Subscribe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "SECONDS", 1.5)
    released = threading.Event()

    def reply(message: Message) -> int:
        if message.path.endswith("slow"):
            released.wait(20)
        return 204

    receiver.reply = reply
    slow, _ = subscribe(url=f"{receiver.url}/slow")
    subscribe(url=f"{receiver.url}/fast")
    for _ in range(8):
        build_door(ctx)
    courier, started = Courier(ctx.tenant_id), time.monotonic()
    try:
        while len([m for m in receiver.messages if m.path.endswith("fast")]) < 8:
            courier.round(0.05)
            assert time.monotonic() - started < 10
        assert len([m for m in receiver.messages if m.path.endswith("slow")]) <= relay.PER_SUBSCRIPTION
        while courier.busy and time.monotonic() - started < 20:
            courier.round(0.05)
    finally:
        released.set()
        courier.close()
    told = subscription(ctx, slow)
    assert told.failures >= relay.PER_SUBSCRIPTION
    assert told.last_error == "The endpoint did not answer within 2 seconds."
    assert told.resume_at is not None, "after a few it rests before it is tried again, one request at a time"


def test_several_relays_share_the_work_and_keep_the_order(
    ctx: Context, receiver: Receiver, subscribe: Subscribe
) -> None:
    subscribe()
    doors = [UUID(build_door(ctx)["doorId"]) for _ in range(3)]
    stop = threading.Event()

    def relay_process() -> None:
        courier = Courier(ctx.tenant_id)
        while not stop.is_set() or courier.busy:
            courier.round(0.02)
        courier.close()
        connection.close()

    relays = [threading.Thread(target=relay_process) for _ in range(3)]
    for thread in relays:
        thread.start()
    for _ in range(4):
        for door_id in doors:
            shut_and_open_door(ctx, door_id=door_id)
    for _ in range(200):
        if len({m.event["id"] for m in receiver.messages}) == 15:
            break
        time.sleep(0.1)
    stop.set()
    for thread in relays:
        thread.join()
    assert len(receiver.messages) == 15, "each was sent once"
    places: dict[str, list[int]] = {}
    for message in receiver.messages:
        places.setdefault(message.event["subject"], []).append(message.event["sequence"])
    assert all(found == sorted(found) for found in places.values())
    assert violations(ctx.tenant_id) == []


def test_a_claim_that_a_killed_relay_left_is_taken_over(
    ctx: Context, receiver: Receiver, subscribe: Subscribe
) -> None:
    subscribe()
    build_door(ctx)
    assert len(list(relay.take({}, ctx.tenant_id))) == 1  # claimed, and never sent
    assert deliver_all(ctx.tenant_id) == 0
    with bound(ctx), connection.cursor() as cursor:
        cursor.execute("UPDATE factory_webhookdelivery SET claimed_until = now() - interval '1 s'")
    assert deliver_all(ctx.tenant_id) == 1


def test_one_tenant_whose_endpoints_never_answer_leaves_room_for_every_other(
    own_database: str, ctx: Context, receiver: Receiver, subscribe: Subscribe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay, "IN_FLIGHT", 8)
    release, quick = threading.Event(), replace(ctx, tenant_id=f"{ctx.tenant_id}-b")

    def reply(message: Message) -> int:
        if message.path.endswith("/slow"):
            release.wait(10)
        return 204

    receiver.reply = reply
    for _ in range(5):
        subscribe(url=f"{receiver.url}/slow")
    subscribe(by=quick, url=f"{receiver.url}/quick")
    for _ in range(3):
        build_door(ctx)
    courier = Courier()
    try:
        for _ in range(3):
            courier.round(seconds=0.05)
        assert len(receiver.messages) == 4, "half of what there is room for, though fifteen wait"
        build_door(quick)
        came = sum(courier.round(seconds=1) for _ in range(2))
        assert (came, receiver.messages[-1].path) == (1, "/hook/quick")
        assert [row.delivered_at is None for row in deliveries(quick)] == [False]
    finally:
        release.set()
        courier.close()


def test_the_room_of_each_tenant_shrinks_as_others_come() -> None:
    held: dict[str, int] = {}
    for tenant in ("a", "b", "c"):
        while relay.may_send(held, tenant):
            held[tenant] = held.get(tenant, 0) + 1
    assert held == {"a": 50, "b": 25, "c": 13}
    assert relay.may_send(held, "d")


def test_a_fault_of_the_database_while_messages_are_made_is_blamed_on_none_of_them(
    ctx: Context, receiver: Receiver, subscribe: Subscribe, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is claimed then, and nothing is told to be."""
    subscribe()
    build_door(ctx)

    def faulty(event: OutboxEvent) -> dict[str, object]:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 / 0")
        return {}

    with monkeypatch.context() as patched:
        patched.setattr(relay, "envelope", faulty)
        assert list(relay.take({}, ctx.tenant_id)) == []
    [row] = deliveries(ctx)
    assert (row.claimed_until, row.attempts) == (None, 0)
    assert deliver_all(ctx.tenant_id) == 1


def test_an_event_that_makes_no_message_is_told_and_keeps_no_other(
    ctx: Context, receiver: Receiver, subscribe: Subscribe, monkeypatch: pytest.MonkeyPatch
) -> None:
    subscribe()
    broken = UUID(build_door(ctx)["doorId"])
    build_door(ctx)

    def made(event: OutboxEvent) -> dict[str, object]:
        return {"no": "\ud800" if event.stream_id == broken else ""}

    monkeypatch.setattr(relay, "envelope", made)
    deliver_all(ctx.tenant_id, seconds=2)
    assert len(receiver.messages) == 1
    told = {row.error for row in deliveries(ctx) if row.delivered_at is None}
    assert told == {"The event could not be made into a message."}

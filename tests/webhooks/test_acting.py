"""Webhooks over the API and in the console: who may, what is shown, and what is never shown again."""

import json
import re
from dataclasses import replace
from uuid import UUID, uuid4

import pytest
from django.conf import settings
from django.db import connection

from factory.kernel.context import Context
from factory.kernel.models import (
    AuditEntry,
    IdempotencyRecord,
    JournalEntry,
    OutboxEvent,
    User,
    WebhookDelivery,
    WebhookSubscription,
)
from factory.kernel.tenancy import bound, reading
from factory.messaging.relay.delivery import drain
from factory.messaging.relay.destinations import Handlers
from factory.messaging.webhooks.commands import create_webhook
from factory.messaging.webhooks.signing import SecretUnreadable, new_secret, opened, sealed
from projects.commands import suspend_project
from tests.kernel.damage import corrupt
from tests.support.api import Api, problem
from tests.support.client import Client
from tests.support.evidence import audits, violations
from tests.support.webhooks import deliver_all
from tests.support.world import World, context_of, subject_of, world
from tests.webhooks.receiver import Receiver

HOOKS = "/factory/subscriptions/webhooks"
CONSUMERS = "/admin/factory/outboxevent/consumers/"
NEW = {
    "url": "https://hooks.example.com/x",
    "topics": ["run-control.runs.v1.run-completed"],
    "consumer": "StudioBff",
}


@pytest.fixture
def w(tenant_id: str) -> World:
    return world(tenant_id)


def browser(ctx: Context) -> Client:
    subject = ctx.actor.subject
    user = User.objects.filter(subject=subject).first() or User.objects.create_user(subject, subject=subject)
    client = Client()
    client.force_login(user)
    return client


def test_the_whole_life_of_a_webhook_over_the_api(w: World, receiver: Receiver) -> None:
    api = Api.as_(w.workspace_admin)
    made = api.post(HOOKS, {**NEW, "url": receiver.url, "topics": []}, Idempotency_Key="k1")
    assert made.status_code == 201, made.content
    body = made.json()
    secret, path = body["secret"], f"{HOOKS}/{body['webhookId']}"
    assert secret.startswith("whsec_")
    assert (body["state"], body["projectId"], body["consumer"]) == ("Active", str(w.project), "StudioBff")
    again = api.post(HOOKS, {**NEW, "url": receiver.url, "topics": []}, Idempotency_Key="k1")
    assert (again.json()["webhookId"], again.json()["secret"]) == (body["webhookId"], None)
    assert api.post(f"{path}/ping", None).status_code == 202
    assert deliver_all(w.tenant) == 1
    assert [m.event["type"].rsplit(".", 1)[-1] for m in receiver.messages] == ["webhook-pinged"]
    version = api.get(path).json()["version"]
    stale = api.call("PATCH", path, {**NEW, "version": version - 1})
    assert (stale.status_code, problem(stale)["type"].rsplit("/", 1)[-1]) == (409, "version-mismatch")
    changed = api.call("PATCH", path, {**NEW, "version": version})
    assert (changed.json()["url"], changed.json()["topics"]) == (NEW["url"], NEW["topics"])
    rotated = api.post(f"{path}/rotate-secret", None).json()
    assert rotated["secret"] != secret
    assert rotated["previousSecretUntil"] is not None
    assert api.post(f"{path}/disable", {"reason": "moving"}).json()["disabledReason"] == "moving"
    assert api.post(f"{path}/disable", {"reason": "moving"}).status_code == 409
    assert api.post(f"{path}/ping", None).status_code == 409
    assert api.post(f"{path}/enable", None).json()["state"] == "Active"
    assert [item["webhookId"] for item in api.get(HOOKS).json()["items"]] == [body["webhookId"]]
    assert [entry.reason for entry in audits(w.system(), "DisableWebhook")] == ["moving"]
    assert violations(w.tenant) == []


def test_a_secret_is_nowhere_but_in_the_answer_that_made_it(
    w: World, caplog: pytest.LogCaptureFixture
) -> None:
    api = Api.as_(w.workspace_admin)
    made = api.post(HOOKS, NEW, Idempotency_Key="k").json()
    secret, path = made["secret"], f"{HOOKS}/{made['webhookId']}"
    for answer in (api.get(path), api.get(HOOKS), api.post(f"{path}/ping", None)):
        assert b'secret"' not in answer.content
    with reading(w.system()):
        kept = [
            json.dumps(list(model.objects.values()), default=str)
            for model in (WebhookSubscription, IdempotencyRecord, JournalEntry, AuditEntry)
        ]
        row = WebhookSubscription.objects.get()
    client = browser(w.workspace_admin)
    pages = [
        client.get(f"/admin/factory/webhooksubscription/{end}").content.decode()
        for end in ("", f"{row.id}/change/")
    ]
    assert "hooks.example.com" in pages[1]
    raw = secret.removeprefix("whsec_")
    assert not [text for text in (*kept, *pages, caplog.text) if raw in text]
    assert opened(row.secret) == secret
    assert row.secret not in "".join(pages)


def test_a_changed_secret_key_is_told_and_a_fallback_still_opens(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = sealed("whsec_x")
    old = settings.SECRET_KEY
    monkeypatch.setattr(settings, "SECRET_KEY", "another-key-of-at-least-32-characters")
    with pytest.raises(SecretUnreadable, match="make a new one"):
        opened(kept)
    monkeypatch.setattr(settings, "SECRET_KEY_FALLBACKS", [old])
    assert opened(kept) == "whsec_x"


def test_only_admins_say_where_events_go(w: World) -> None:
    for who in ("requester", "reviewer", "operator", "observer", "finance", "auditor"):
        api = Api.as_(getattr(w, who))
        assert api.post(HOOKS, NEW).status_code == 403
        assert api.get(HOOKS).status_code == 403


def test_a_projects_admin_neither_sees_nor_touches_the_tenants(w: World) -> None:
    whole = context_of(subject_of(w.tenant, "tenant_admin"), w.tenant, None)
    everybodys = Api.as_(whole).post(HOOKS, NEW).json()
    assert everybodys["projectId"] is None
    api = Api.as_(w.workspace_admin)
    assert api.get(HOOKS).json()["items"] == []
    assert api.get(f"{HOOKS}/{everybodys['webhookId']}").status_code == 404
    assert api.post(f"{HOOKS}/{everybodys['webhookId']}/disable", {"reason": "x"}).status_code == 404


def test_refuses_what_is_no_subscription(w: World) -> None:
    api = Api.as_(w.workspace_admin)
    for change, pointer in (
        ({"url": "http://hooks.example.com/"}, "/url"),
        ({"url": "https://127.0.0.1/"}, "/url"),
        ({"topics": ["run-control.runs.v1.run-exploded"]}, "/topics/0"),
        ({"secret": "whsec_mine"}, "/secret"),
    ):
        answer = api.post(HOOKS, NEW | change)
        assert answer.status_code == 400
        assert [fault["pointer"] for fault in problem(answer)["errors"]] == [pointer]


def test_the_console_shows_a_secret_once_and_sends_a_ping(w: World, receiver: Receiver) -> None:
    client = browser(w.workspace_admin)
    base = "/admin/factory/webhooksubscription/"
    assert "New webhook" in client.get(base).content.decode()
    assert client.get(f"{base}new/").status_code == 200
    refused = client.post(f"{base}new/", {"url": "http://10.0.0.1/"})
    assert refused.status_code == 400
    assert "has to begin with https" in refused.content.decode()
    made = client.post(
        f"{base}new/", {"url": receiver.url, "description": "<b>ours</b>", "consumer": "StudioBff"}
    )
    assert made.status_code == 200
    assert "no-store" in made["Cache-Control"]
    [secret] = re.findall(r"whsec_[A-Za-z0-9+/=]{20,}", made.content.decode())
    assert "<b>ours" not in made.content.decode()
    with reading(w.system()):
        row = WebhookSubscription.objects.get()
    page = f"{base}{row.id}/change/"
    client.post(f"{base}{row.id}/ping-it/")
    assert deliver_all(w.tenant) == 1
    shown = client.get(page).content.decode()
    assert "delivered" in shown
    assert secret not in shown
    rotated = client.post(f"{base}{row.id}/rotate-it/").content.decode()
    assert len(re.findall(r"whsec_[A-Za-z0-9+/=]{20,}", rotated)) == 1
    client.post(f"{base}{row.id}/disable-it/", {"reason": "enough"})
    assert "enough" in client.get(page).content.decode()
    assert client.post(f"{base}{row.id}/enable-it/").status_code == 302
    outsider = browser(w.requester)
    assert outsider.get(page).status_code in (403, 404)
    assert outsider.post(f"{base}{row.id}/ping-it/").status_code in (302, 403, 404)
    with reading(w.system()):
        assert WebhookDelivery.objects.count() == 1
    assert violations(w.tenant) == []


def set_aside(w: World, receiver: Receiver) -> UUID:
    """An event that a webhook refused to the end, and one that the handlers did."""
    receiver.reply = lambda _: 422
    made = Api.as_(w.workspace_admin).post(HOOKS, {"url": receiver.url, "consumer": "StudioBff"}).json()
    Api.as_(w.workspace_admin).post(f"{HOOKS}/{made['webhookId']}/ping", None)
    with bound(w.system()), connection.cursor() as cursor:
        cursor.execute("UPDATE factory_webhookdelivery SET attempts = 10")
        cursor.execute(
            "UPDATE factory_outboxevent SET handle_attempts = 12, handle_set_aside_at = now(), "
            "handle_error = 'ValueError: cannot digest this' WHERE topic LIKE '%%webhook-pinged'"
        )
    deliver_all(w.tenant)
    return UUID(made["webhookId"])


@pytest.mark.requirement("JOB-14")
def test_what_was_set_aside_is_seen_with_its_reason_and_offered_again(w: World, receiver: Receiver) -> None:
    webhook_id = set_aside(w, receiver)
    operator = Api.as_(w.operator)
    items = operator.get("/factory/events/set-aside").json()["items"]
    assert {(one["kind"], one["reason"], one["attempts"]) for one in items} == {
        ("handlers", "ValueError: cannot digest this", 12), ("webhook", "The endpoint answered 422.", 11),
    }  # fmt: skip
    event = items[0]["eventId"]
    told = {one["name"]: one for one in operator.get("/factory/events/consumers").json()["items"]}
    assert len(told) == 2 + 21, "the two inside, and every known service once"
    assert (told["StudioBff"]["kind"], told["StudioBff"]["setAside"], told["StudioBff"]["waiting"]) == (
        "webhook",
        1,
        1,
    )
    assert told["StudioBff"]["lagSeconds"] > 0
    assert (told["LicenseService"]["kind"], told["LicenseService"]["topics"]) == (
        "not-subscribed", ["run-control.approvals.v1.approval-decided"],
    )  # fmt: skip
    path, hook = f"/factory/events/{event}/retry", {"kind": "webhook", "webhookId": str(webhook_id)}
    assert operator.post(path, hook | {"reason": " "}).status_code == 400
    assert Api.as_(w.workspace_admin).post(path, hook | {"reason": "x"}).status_code == 403
    assert operator.post(f"/factory/events/{uuid4()}/retry", hook | {"reason": "x"}).status_code == 404
    receiver.reply = lambda _: 204
    assert operator.post(path, hook | {"reason": "they mended it"}).status_code == 202
    assert operator.post(path, {"kind": "handlers", "reason": "we mended it"}).status_code == 202
    again = operator.post(path, hook | {"reason": "x"})
    assert problem(again)["type"].endswith("not-set-aside")
    assert deliver_all(w.tenant) == 1
    assert operator.get("/factory/events/set-aside").json()["items"] == []
    done = [a for a in audits(w.system(), "RetryDelivery") if a.outcome == "done"]
    assert [(a.reason, a.detail["kind"]) for a in done] == [
        ("they mended it", "webhook"),
        ("we mended it", "handlers"),
    ]
    assert violations(w.tenant) == []


def test_the_console_lists_consumers_and_offers_again(w: World, receiver: Receiver) -> None:
    webhook_id = set_aside(w, receiver)
    client = browser(w.operator)
    page = CONSUMERS
    shown = client.get(page).content.decode()
    for words in ("The endpoint answered 422.", "cannot digest this", "StudioBff", "SecretBrokerService"):
        assert words in shown
    assert "1 event did not reach" in client.get("/admin/").content.decode()
    assert browser(w.requester).get(page).status_code == 403
    with reading(w.system()):
        event = WebhookDelivery.objects.get().event_id
    sent = {"kind": "webhook", "webhook": str(webhook_id), "reason": "mended"}
    assert client.post(f"/admin/factory/outboxevent/{event}/retry/", sent).status_code == 302
    with reading(w.system()):
        assert WebhookDelivery.objects.get().set_aside_at is None


def test_what_was_set_aside_is_skipped_for_good_and_what_waits_behind_it_goes_on(
    w: World, receiver: Receiver
) -> None:
    webhook_id = set_aside(w, receiver)
    Api.as_(w.workspace_admin).post(f"{HOOKS}/{webhook_id}/ping", None)
    receiver.reply, before = (lambda _: 204), len(receiver.messages)
    assert deliver_all(w.tenant) == 0, "The later one waits behind the one that was set aside."
    with reading(w.system()):
        event = WebhookDelivery.objects.get(set_aside_at__isnull=False).event_id
    operator, path = Api.as_(w.operator), f"/factory/events/{event}/skip"
    hook = {"kind": "webhook", "webhookId": str(webhook_id), "reason": "they took it by hand"}
    assert operator.post(path, hook | {"reason": " "}).status_code == 400
    assert Api.as_(w.workspace_admin).post(path, hook).status_code == 403
    streams = {"kind": "streams", "reason": "nobody reads them"}
    assert problem(operator.post(path, streams))["type"].endswith("insufficient-role")
    assert operator.post(path, hook).status_code == 202
    assert problem(operator.post(path, hook))["type"].endswith("not-set-aside")
    again = operator.post(f"/factory/events/{event}/retry", hook)
    assert problem(again)["type"].endswith("not-set-aside"), "It would come after what it stood before."
    assert deliver_all(w.tenant) == 1
    assert [m.headers["webhook-id"] == str(event) for m in receiver.messages[before:]] == [False]
    inside = {"kind": "handlers", "webhook": "", "reason": "nothing is to be done about it"}
    url = f"/admin/factory/outboxevent/{event}/skip/"
    assert "Go past it" not in browser(w.operator).get(CONSUMERS).content.decode()
    refused = browser(w.operator).post(url, inside, follow=True).content.decode()
    assert "only a PlatformAdmin" in refused
    platform = browser(w.platform_admin)
    assert "stays undone" in platform.get(CONSUMERS).content.decode()
    assert "The event is skipped" in platform.post(url, inside, follow=True).content.decode()
    drain(Handlers(), w.tenant)
    assert "skipped after 12 tries" in platform.get("/admin/factory/outboxevent/").content.decode()
    assert operator.get("/factory/events/set-aside").json()["items"] == []
    with reading(w.system()):
        assert not OutboxEvent.objects.filter(handled_at__isnull=True).exists()
    done = [(a.reason, a.detail["fault"]) for a in audits(w.system(), "SkipDelivery") if a.outcome == "done"]
    assert done == [
        ("they took it by hand", "The endpoint answered 422."),
        ("nothing is to be done about it", "ValueError: cannot digest this"),
    ]
    assert violations(w.tenant) == []


def test_nobody_of_one_project_skips_for_the_whole_tenants_webhook(w: World, receiver: Receiver) -> None:
    receiver.reply = lambda _: 422
    url = receiver.url
    made = create_webhook(
        replace(w.tenant_admin, project_id=None), url=url, topics=(), consumer="", description="",
        secret=new_secret(),
    )  # fmt: skip
    suspend_project(w.workspace_admin, project_id=w.project, reason="a pause")
    with bound(w.system()), connection.cursor() as cursor:
        cursor.execute("UPDATE factory_webhookdelivery SET attempts = 10")
    deliver_all(w.tenant)
    with reading(w.system()):
        event = WebhookDelivery.objects.get(set_aside_at__isnull=False).event_id
    hook = {"kind": "webhook", "webhookId": str(made), "reason": "we do not need it"}
    for act in ("skip", "retry"):
        assert Api.as_(w.operator).post(f"/factory/events/{event}/{act}", hook).status_code == 404


def test_the_auditor_sees_what_was_sent_out_of_order_or_out_of_scope(w: World, receiver: Receiver) -> None:
    api = Api.as_(w.workspace_admin)
    made = api.post(HOOKS, {"url": receiver.url}).json()
    for _ in range(2):
        api.post(f"{HOOKS}/{made['webhookId']}/ping", None)
    deliver_all(w.tenant)
    order = """
        UPDATE factory_webhookdelivery SET delivered_at = now() + interval '1 hour' WHERE id = (
            SELECT id FROM factory_webhookdelivery WHERE tenant_id = %s ORDER BY sequence LIMIT 1)
    """
    scope = "UPDATE factory_webhookdelivery SET topic = 'another' WHERE tenant_id = %s"
    for code, sql in (("C5", order), ("C6", scope)):
        assert corrupt(code, [(sql, (w.tenant,))], tenant_id=w.tenant), code


def test_a_schema_stands_where_each_event_says_that_it_does(w: World) -> None:
    answer = Client().get("/factory/events/run-control.runs.v1.run-failed.json")
    assert (answer.status_code, answer.json()["title"]) == (200, "RunFailed")
    assert Client().get("/factory/events/run-control.runs.v1.run-exploded.json").status_code == 404

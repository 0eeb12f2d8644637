"""Sending: outside any transaction, tried for a day, seen by whoever can help, and silent about secrets."""

import logging
from dataclasses import replace
from uuid import uuid4

import pytest
import redis
from celery.exceptions import SoftTimeLimitExceeded
from django.conf import settings
from django.db import connection, connections, transaction
from django.test.utils import CaptureQueriesContext
from redis.backoff import NoBackoff
from redis.retry import Retry

from factory.kernel.context import system
from factory.kernel.errors import Forbidden, InvalidInput, NotFound
from factory.kernel.reconciling import reconcilers
from factory.kernel.retries import DELAYS
from factory.kernel.tenancy import reading
from factory.messaging.relay import jobs
from factory.messaging.webhooks.signing import opened
from notifications import tasks
from notifications.channels import services
from notifications.commands import (
    add_channel,
    change_channel,
    change_preference,
    claim,
    remove_channel,
    retry_notification,
    send_test,
    settle,
)
from notifications.errors import AddressRefused, ChannelNameTaken, NotificationNotSetAside, TooManyChannels
from notifications.models import Channel
from notifications.reconcilers.sending import send_one
from notifications.selectors import set_aside
from notifications.states import SEND
from projects.commands import add_member
from projects.commands.inputs import NewMember
from tests.faults.rounds import rounds
from tests.notifications.post import post_office
from tests.notifications.support import EVERY, gotify, handle, make_due, rows, send
from tests.registry.test_hints import waiting
from tests.support.approvals import asking
from tests.support.evidence import audits, violations
from tests.support.races import race, refusals

SECRET = "SecretOfMine"


def only_services(asker) -> None:
    """Nobody of the world is told by e-mail."""
    for member in ("reviewer", "reviewer2", "workspace_admin", "tenant_admin"):
        change_preference(getattr(asker.world, member), kinds=[], version=0)


def test_there_is_a_hint_with_ids_only_and_nothing_depends_on_it(asker, mails, monkeypatch):
    w, away = asker.world, redis.Redis.from_url("redis://127.0.0.1:1/0", retry=Retry(NoBackoff(), 0))
    asker.ask()
    handle(w.tenant)
    assert {"tenant_id": w.tenant} in waiting(SEND)
    for _ in range(2):
        tasks.send(tenant_id=w.tenant)
    assert len(mails) == 4
    monkeypatch.setattr(jobs, "broker", lambda: away)
    asker.again().ask()
    handle(w.tenant)
    assert waiting(SEND).count({"tenant_id": w.tenant}) == 1
    assert send(w.tenant).repaired == 4
    assert len(mails) == 8


@pytest.mark.slow
def test_a_mail_travels_whole_and_what_the_server_says_is_minded(asker, monkeypatch):
    w, view = asker.world, asker.ask()
    handle(w.tenant)
    with post_office() as post:
        monkeypatch.setattr(settings, "EMAIL_BACKEND", "django.core.mail.backends.smtp.EmailBackend")
        monkeypatch.setattr(settings, "EMAIL_HOST", "127.0.0.1")
        monkeypatch.setattr(settings, "EMAIL_PORT", post.port)
        monkeypatch.setattr(settings, "EMAIL_USE_TLS", False)
        post.answer = "451 come back later"
        assert send(w.tenant).found == 4
        later = rows(asker.house)
        assert {(row.state, row.attempts, row.error) for row in later} == {
            ("Waiting", 1, "The mail server refused the recipient (451).")
        }
        assert send(w.tenant).found == 0, "not before its time"
        first, *others = later
        make_due(asker.house)
        post.answer = "250 OK"
        assert send_one(asker.house, first.id)
        post.answer = "550 no such person"
        send(w.tenant)
        assert {row.state for row in rows(asker.house) if row.id != first.id} == {"Set aside"}, "for good"
    [mail] = post.mails
    assert mail["To"] == first.subject
    assert mail["Message-ID"] == f"<{first.id}@127.0.0.1>"
    assert mail["Auto-Submitted"] == "auto-generated"
    assert mail.get_content_type() == "text/plain"
    assert str(view.id) in mail.get_payload(decode=True).decode()
    monkeypatch.setattr(settings, "EMAIL_PORT", 1)
    retry_notification(w.operator, notification_id=others[0].id, reason="the address is mended")
    send(w.tenant)
    [away] = rows(asker.house, pk=others[0].id)
    assert (away.state, away.attempts) == ("Waiting", 1)
    assert away.error == "The message could not be handed over (ConnectionRefusedError)."
    assert violations(w.tenant) == []


def write_to(membership_id: str, email: str) -> None:
    """The member's mail goes there, as the tables' owner writes it."""
    with transaction.atomic(using="owner"), connections["owner"].cursor() as cursor:
        cursor.execute("ALTER TABLE projects_membership NO FORCE ROW LEVEL SECURITY")
        cursor.execute("ALTER TABLE projects_membership DISABLE TRIGGER pinned_columns")
        cursor.execute("UPDATE projects_membership SET email = %s WHERE id = %s", [email, membership_id])
        cursor.execute("ALTER TABLE projects_membership ENABLE ALWAYS TRIGGER pinned_columns")
        cursor.execute("ALTER TABLE projects_membership FORCE ROW LEVEL SECURITY")


def test_what_is_no_address_is_sent_nothing(asker, mails):
    w, who = asker.world, f"new@{asker.world.tenant}.test"
    made = add_member(asker.house, project_id=w.project, member=NewMember(who, ("Reviewer",)))
    write_to(made, "a@x.test, all@x.test")  # as it could be kept once; nobody is added with such a one
    asker.ask()
    handle(w.tenant)
    send(w.tenant)
    assert len(mails) == 4
    [bad] = rows(asker.house, sent_at__isnull=True)
    assert (bad.subject, bad.state, bad.error) == (who, "Set aside", "The person's e-mail address is none.")


def test_what_keeps_failing_is_set_aside_and_a_person_sends_it_again(asker, chat):
    w = asker.world
    only_services(asker)
    gotify(w.reviewer, chat)
    asker.ask()
    handle(w.tenant)
    chat.reply = lambda _: 500
    send(w.tenant)
    [row] = rows(asker.house)
    assert (row.state, row.attempts) == ("Waiting", 1)
    assert row.due_at is not None
    make_due(asker.house, attempts=len(DELAYS) - 1)
    for _ in range(4):
        send(w.tenant)
        make_due(asker.house)
    [row] = rows(asker.house)
    assert (row.state, row.attempts, row.error) == ("Set aside", 11, "The service answered 500.")
    assert len(chat.messages) == 3
    with pytest.raises(Forbidden):
        retry_notification(w.reviewer, notification_id=row.id, reason="please")
    with pytest.raises(NotFound):
        retry_notification(replace(w.operator, project_id=uuid4()), notification_id=row.id, reason="please")
    with pytest.raises(InvalidInput):
        retry_notification(w.operator, notification_id=row.id, reason=" ")
    chat.reply = lambda _: 200
    retry_notification(w.operator, notification_id=row.id, reason="it is up again")
    send(w.tenant)
    [row] = rows(asker.house)
    assert (row.state, row.attempts, row.error) == ("Sent", 1, "")
    with pytest.raises(NotificationNotSetAside):
        retry_notification(w.operator, notification_id=row.id, reason="once more")
    done = [entry.reason for entry in audits(asker.house, "RetryNotification") if entry.outcome == "done"]
    assert done == ["it is up again"]


def test_a_sender_that_dies_leaves_its_claim_to_lapse_and_the_same_message_is_sent(asker, mails):
    w = asker.world
    asker.ask()
    handle(w.tenant)
    [row, *_] = rows(asker.house)
    dead = claim(asker.house, notification_id=row.id)
    assert dead is not None
    assert claim(asker.house, notification_id=row.id) is None
    send(w.tenant)
    assert row.subject not in {mail.to[0] for mail in mails}
    make_due(asker.house)
    alive = claim(asker.house, notification_id=row.id)
    assert alive is not None
    assert (alive.id, alive.attempt) == (dead.id, 2)
    settle(asker.house, notification_id=row.id, attempt=1, error="I am late")
    assert rows(asker.house, pk=row.id)[0].error == "", "of a try that was followed, a failure says nothing"
    settle(asker.house, notification_id=row.id, attempt=1)
    settle(asker.house, notification_id=row.id, attempt=2, error="so am I")
    assert rows(asker.house, pk=row.id)[0].state == "Sent", "what arrived has arrived"
    other = rows(asker.house, sent_at__isnull=False)[-1]
    assert claim(asker.house, notification_id=other.id) is None


def test_a_try_that_the_end_of_the_job_cuts_off_counts_and_is_made_again(asker, chat, monkeypatch):
    def cut_off(*_: object, **__: object) -> bool:
        raise SoftTimeLimitExceeded

    w = asker.world
    only_services(asker)
    for member in (w.reviewer, w.reviewer2):
        gotify(member, chat)
    asker.ask()
    handle(w.tenant)
    for tried, place in enumerate(("send", "parse_url"), start=1):
        with monkeypatch.context() as patched:
            patched.setattr(f"apprise.plugins.gotify.NotifyGotify.{place}", cut_off)
            with pytest.raises(SoftTimeLimitExceeded):
                send(w.tenant)
        assert sum(row.attempts for row in rows(asker.house)) == tried, "it is not begun with the next one"
    assert {(row.state, row.attempts, row.error) for row in rows(asker.house)} == {("Waiting", 1, "")}
    make_due(asker.house)
    assert send(w.tenant).repaired == len(chat.messages) == 2


def test_what_was_set_aside_is_found_by_its_index(own_database, tenant_id):
    for ctx in (asking(tenant_id).world.operator, system(tenant_id, "test")):
        with reading(ctx), connection.cursor() as cursor:
            with CaptureQueriesContext(connection) as seen:
                set_aside(ctx, 5)
            cursor.execute("SET LOCAL enable_seqscan = off")
            cursor.execute("SET LOCAL enable_sort = off")
            cursor.execute("EXPLAIN " + seen.captured_queries[-1]["sql"])
            plan = " ".join(line for (line,) in cursor.fetchall())
        assert "notification_set_aside" in plan
        assert "Sort" not in plan


def test_two_senders_at_once_send_each_message_once(asker, mails):
    w = asker.world
    sender = reconcilers()["NotificationSender"]
    for _ in range(rounds(1)):
        asker.again().ask()
        handle(w.tenant)
        mails.clear()
        outcomes = race(*[lambda: sender.run_once(w.tenant)] * 2)
        assert refusals(outcomes) == []
        assert sorted(mail.to[0] for mail in mails) == sorted({mail.to[0] for mail in mails})
        assert len(mails) == 4
    assert violations(w.tenant) == []


def test_an_address_is_sealed_used_forgotten_and_never_told(asker, chat, caplog):
    w = asker.world
    only_services(asker)
    channel_id = gotify(w.reviewer, chat)
    with reading(asker.house):
        stored = Channel.objects.get(pk=channel_id).address
    assert SECRET not in stored
    assert SECRET in opened(stored)
    with caplog.at_level(logging.DEBUG):
        for answer in (200, 404, (302, {"Location": f"http://{chat.place}/elsewhere"})):
            chat.reply = lambda _, answer=answer: answer
            send_test(w.reviewer, channel_id=channel_id)
            send(w.tenant)
    assert [row.error for row in rows(asker.house)] == [
        "", "The service answered 404.", "The service answered 302.",
    ]  # fmt: skip
    assert {message.path for message in chat.messages} == {"/message"}, "redirects are not followed"
    assert [m.headers["x-gotify-key"] for m in chat.messages] == [SECRET] * 3
    assert b"a test" in chat.messages[0].body
    assert SECRET not in caplog.text
    asker.ask()
    handle(w.tenant)
    remove_channel(w.reviewer, channel_id=channel_id)
    send(w.tenant)
    assert rows(asker.house)[-1].error == "The channel was removed."
    with connection.cursor() as cursor, reading(asker.house):
        cursor.execute("SELECT address FROM notifications_channel WHERE id = %s", [channel_id])
        assert cursor.fetchone() == ("",)
    assert violations(w.tenant) == []


def test_a_channel_is_its_owners_alone_and_there_are_not_too_many(asker, chat):
    w = asker.world
    channel_id = gotify(w.reviewer, chat, kinds=("decided",))
    acts = (
        lambda by: remove_channel(by, channel_id=channel_id),
        lambda by: send_test(by, channel_id=channel_id),
        lambda by: change_channel(by, channel_id=channel_id, name="x", kinds=[], version=0),
    )
    for act in acts:
        with pytest.raises(NotFound):
            act(w.platform_admin)
    with pytest.raises(ChannelNameTaken):
        gotify(w.reviewer, chat)
    for number in range(9):
        gotify(w.reviewer, chat, f"phone {number}")
    with pytest.raises(TooManyChannels):
        gotify(w.reviewer, chat, "one more")
    for name in ("", "x" * 81, "a\u202eb"):
        with pytest.raises(InvalidInput):
            gotify(w.reviewer2, chat, name)
    outcomes = race(*[lambda: gotify(w.reviewer2, chat)] * 2)
    assert refusals(outcomes) == ["ChannelNameTaken"]


SEVERAL = [
    "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ/c1/c2", "ntfys://topic,other",
    "tgram://123456789:abcdefg_hijklmnop/12345/12346", "ntfy://trusted.test:80/topic/other",
]  # fmt: skip
REFUSED = [
    "json://example.com/x", "mailto://a:b@example.com", "file:///etc/passwd", "dbus://", "syslog://",
    "https://hooks.slack.com/services/T1/B1/x", "slack://", "slack", "",
    "gotify://10.0.0.1/SecretOfMine", "gotifys://intranet/SecretOfMine", "ntfy://localhost/topic",
    "gotify://trusted.test:81/SecretOfMine", "gotifys://trusted.test/SecretOfMine",
    "gotify://trusted.test:80@evil.test/SecretOfMine", "gotify://evil.test#@trusted.test:80/SecretOfMine",
    "discord://123456789/abcdefghijkl?template=/etc/passwd", "ntfys://topic?mode=private", "ntfys://a%62",
    "workflows://evil.test/" + "a" * 32 + "/" + "b" * 43, "workflows://x.logic.azure.com.evil.test/a/b",
    *SEVERAL,
    "gotify://trusted.test:80/Secret OfMine", "gotify://trusted.test:80/Sec\r\nret", "ntfys://" + "x" * 1100,
]  # fmt: skip
TAKEN = {
    "discord://123456789012345678/abcdefghijklmnopqrstuvwxyz": "discord",
    "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ/#channel": "slack",
    "tgram://123456789:abcdefg_hijklmnop/12345": "tgram",
    "ntfys://my-topic": "ntfys",
    "gotify://trusted.test:80/SecretOfMine": "gotify",
    "ntfy://trusted.test:80/topic": "ntfy",
    "workflows://prod-1.westeurope.logic.azure.com:443/" + "a" * 32 + "/" + "b" * 43: "workflows",
}


def test_only_addresses_that_lead_where_the_product_may_go_are_taken(asker, monkeypatch):
    for url in REFUSED:
        with pytest.raises(AddressRefused) as refused:
            services.checked(url, ["trusted.test:80"])
        assert "SecretOfMine" not in str(refused.value), url
    for url in SEVERAL:
        with pytest.raises(AddressRefused, match="leads to one place, and this one to 2"):
            services.checked(url, ["trusted.test:80"])
    for url, service in TAKEN.items():
        assert services.checked(url, ["trusted.test:80"]) == service, url
    with pytest.raises(AddressRefused) as told:
        add_channel(asker.world.reviewer, name="x", address=REFUSED[9], kinds=EVERY)
    assert told.value.errors[0].pointer == "/address"
    monkeypatch.setattr(settings, "FACTORY_NOTIFICATIONS_TRUSTED_HOSTS", [])
    with pytest.raises(AddressRefused):  # a host that is not trusted any more, at the moment of sending
        services.send("gotify://trusted.test:80/SecretOfMine", "t", "b")

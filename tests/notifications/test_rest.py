"""Notifications over HTTP: one's own ways, and what did not arrive."""

import pytest

from factory.kernel.tenancy import reading
from notifications.models import Notification
from tests.notifications.support import EVERY, handle, make_due, rows, send
from tests.support.api import Api, problem
from tests.support.evidence import violations
from tests.support.world import second_world

pytestmark = pytest.mark.slow

HERE = "/factory/notifications"


def code(answer) -> str:
    return problem(answer)["type"].rsplit("/", 1)[-1]


def test_a_persons_own_ways_over_the_api(asker, chat):
    w = asker.world
    mine, other = Api.as_(w.reviewer), Api.as_(w.reviewer2)
    assert mine.get(f"{HERE}/preferences").json() == {
        "kinds": list(EVERY), "version": 0, "emailIsSent": True,
    }  # fmt: skip
    chosen = mine.call("PUT", f"{HERE}/preferences", {"kinds": ["break-glass"], "version": 0})
    assert (chosen.json()["kinds"], chosen.json()["version"]) == (["break-glass"], 1)
    stale = mine.call("PUT", f"{HERE}/preferences", {"kinds": [], "version": 0})
    assert (stale.status_code, code(stale)) == (409, "version-mismatch")
    assert mine.call("PUT", f"{HERE}/preferences", {"kinds": ["test"], "version": 1}).status_code == 400
    address = f"gotify://{chat.place}/SecretOfMine"
    body = {"name": "phone", "address": address, "kinds": ["requested"]}
    made = mine.post(f"{HERE}/channels", body, Idempotency_Key="c1")
    again = mine.post(f"{HERE}/channels", body, Idempotency_Key="c1")
    assert (made.status_code, made.json()) == (201, again.json())
    assert again["Idempotent-Replayed"] == "true"
    bad = mine.post(f"{HERE}/channels", body | {"address": "json://inside/SecretOfMine"})
    assert (bad.status_code, code(bad)) == (400, "address-refused")
    channel = f"{HERE}/channels/{made.json()['channelId']}"
    assert mine.post(f"{channel}/test", None).status_code == 202
    for method, path, sent in (
        ("PATCH", channel, {"name": "x", "kinds": [], "version": 0}),
        ("DELETE", channel, None),
        ("POST", f"{channel}/test", None),
    ):
        for stranger in (other, Api.as_(second_world(w.tenant).reviewer) if method == "DELETE" else other):
            assert stranger.call(method, path, sent).status_code == 404
    changed = mine.call("PATCH", channel, {"name": "pager", "kinds": ["decided"], "version": 0})
    assert (changed.json()["name"], changed.json()["version"]) == ("pager", 1)
    listed = mine.get(f"{HERE}/channels")
    assert [one["name"] for one in listed.json()["items"]] == ["pager"]
    assert other.get(f"{HERE}/channels").json()["items"] == []
    assert mine.call("DELETE", channel).status_code == 204
    assert mine.get(f"{HERE}/channels").json()["items"] == []
    for answer in (made, again, bad, changed, listed):
        assert b"SecretOfMine" not in answer.content
    assert Api.as_(w.service).get(f"{HERE}/preferences").status_code == 403


def test_an_operator_sees_what_did_not_arrive_and_sends_it_again(asker, chat):
    w = asker.world
    phone = {"name": "phone", "address": f"gotify://{chat.place}/SecretOfMine", "kinds": ["requested"]}
    Api.as_(w.reviewer).post(f"{HERE}/channels", phone)
    asker.ask()
    handle(w.tenant)
    chat.reply = lambda _: 503
    make_due(asker.house, attempts=10)
    send(w.tenant)
    [row] = rows(asker.house, channel__isnull=False)
    operator = Api.as_(w.operator)
    [found] = operator.get(f"{HERE}?state=Set aside").json()["items"]
    told = (found["notificationId"], found["kind"], found["subject"], found["medium"], found["lastError"])
    assert told == (str(row.id), "requested", row.subject, "service", "The service answered 503.")
    assert operator.get(f"{HERE}?state=lost").status_code == 400
    assert Api.as_(w.reviewer).get(HERE).status_code == 403
    assert Api.as_(second_world(w.tenant).operator).get(HERE).json()["items"] == []
    sent = operator.post(f"{HERE}/{row.id}/retry", {"reason": "up again"}, Idempotency_Key="r1")
    assert (sent.status_code, sent.json()["state"], sent.json()["attempts"]) == (202, "Waiting", 0)
    assert operator.post(f"{HERE}/{row.id}/retry", {"reason": "up again"}).status_code == 409
    chat.reply = lambda _: 200
    send(w.tenant)
    with reading(asker.house):
        assert Notification.objects.get(pk=row.id).state == "Sent"
    assert violations(w.tenant) == []


def test_no_link_of_a_message_changes_anything_when_it_is_opened(asker, mails, client):
    """Followed by a scanner without a session, and by a person in another place."""
    from tests.console.test_pages import signed_in
    from tests.support.evidence import counts

    w, view = asker.world, asker.ask()
    handle(w.tenant)
    send(w.tenant)
    [mail] = [mail for mail in mails if mail.to == [w.tenant_admin.actor.subject]]
    link = next(line for line in mail.body.splitlines() if "/open/" in line)
    path = link.removeprefix("https://factory.example.org")
    before, seen = counts(asker.house), asker.view(view.id)
    scanner = client.get(path)
    assert (scanner.status_code, "/login/" in scanner["Location"]) == (302, True)
    browser = signed_in(w.reviewer)
    page = f"/admin/approvals/approvalrequest/{view.id}/change/"
    for verb in ("get", "head", "options"):
        answer = getattr(browser, verb)(path)
        assert (answer.status_code, answer["Location"]) == (302, page)
    assert signed_in(second_world(w.tenant).reviewer).get(path).status_code == 404
    assert browser.get(path.split("?")[0]).status_code == 404
    wide = signed_in(w.tenant_admin)
    assert wide.get(path)["Location"] == page
    assert (counts(asker.house), asker.view(view.id)) == (before, seen)

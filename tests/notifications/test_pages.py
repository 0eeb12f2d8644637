"""The console's pages of notifications: one's own, what did not arrive, and the way to another place."""

import re

import pytest
from django.urls import reverse

import config.urls  # noqa: F401 - it is what registers the pages
from factory.kernel.context import system
from projects.commands import onboard_project
from projects.commands.inputs import NewEnvironment, NewMember
from tests.console.test_pages import signed_in
from tests.notifications.support import gotify, handle, make_due, rows, send
from tests.support.evidence import audits
from tests.support.world import second_world

pytestmark = pytest.mark.slow
MINE = reverse("admin:notifications_mine")
LIST = reverse("admin:notifications_notification_changelist")


def test_ones_own_page_changes_ones_own_and_shows_no_secret(asker, chat, monkeypatch):
    w = asker.world
    browser = signed_in(w.reviewer)
    page = browser.get(MINE)
    assert page["Cache-Control"].count("no-store")
    assert "<fieldset disabled>" not in page.content.decode()
    assert w.reviewer.actor.subject in page.content.decode()
    browser.post(f"{MINE}email/", {"kinds": ["decided"], "version": 0})
    assert len(re.findall(r'value="\w[\w-]*" checked', browser.get(MINE).content.decode())) == 1 + 5
    stale = browser.post(f"{MINE}email/", {"kinds": [], "version": 0})
    assert (stale.status_code, b"Read them again" in stale.content) == (409, True)
    nasty = '"><script>alert(1)</script>'
    bad = {"name": nasty, "address": "json://inside/SecretOfMine", "kinds": ["decided"]}
    refused = browser.post(f"{MINE}add/", bad).content.decode()
    assert "Nothing was changed" in refused
    assert "&lt;script&gt;alert(1)" in refused, "what was written is kept"
    assert nasty not in refused
    assert "SecretOfMine" not in refused
    made = browser.post(f"{MINE}add/", bad | {"address": f"gotify://{chat.place}/SecretOfMine"}, follow=True)
    assert made.redirect_chain == [(MINE, 302)]
    assert nasty not in made.content.decode()
    assert "SecretOfMine" not in made.content.decode()
    [action] = set(re.findall(rf"{MINE}([0-9a-f-]{{36}})/test/", made.content.decode()))
    browser.post(f"{MINE}{action}/test/")
    chat.reply = lambda _: 401
    send(w.tenant)
    assert "The service answered 401." in browser.get(MINE).content.decode()
    for other in (w.tenant_admin, second_world(w.tenant).reviewer):
        stranger = signed_in(other)
        assert nasty[2:10] not in stranger.get(MINE).content.decode()
        for act in ("test", "remove", "change"):
            sent = {"name": "x", "version": 0}
            assert stranger.post(f"{MINE}{action}/{act}/", sent).status_code == 404
    for act in ("email", "add", f"{action}/test", f"{action}/remove"):
        assert browser.get(f"{MINE}{act}/").status_code == 405, "no GET changes anything"
    browser.post(f"{MINE}{action}/change/", {"name": "pager", "kinds": [], "version": 0})
    assert "pager" in browser.get(MINE).content.decode()
    browser.post(f"{MINE}{action}/remove/")
    assert "pager" not in browser.get(MINE).content.decode()


def test_what_only_operators_are_told_of_is_offered_to_them_alone_and_an_older_choice_is_kept(asker):
    w = asker.world
    choice = 'type="checkbox" name="kinds" value="too-few"'
    kept = 'type="hidden" name="kinds" value="too-few"'
    for somebody, offered in ((w.operator, True), (w.reviewer, False)):
        page = signed_in(somebody).get(MINE).content.decode()
        assert (choice in page, kept in page) == (offered, not offered)
    browser = signed_in(w.reviewer)
    assert browser.post(f"{MINE}email/", {"kinds": ["decided", "too-few"], "version": 0}).status_code == 302
    assert browser.get(MINE).content.decode().count(kept) == 2, "in the choice, and for a new channel"


def test_what_did_not_arrive_is_seen_and_sent_again_by_who_may(asker, chat, settings):
    w = asker.world
    gotify(w.reviewer, chat)
    asker.ask()
    handle(w.tenant)
    chat.reply = lambda _: 503
    make_due(asker.house, attempts=10)
    send(w.tenant)
    [row] = rows(asker.house, set_aside_at__isnull=False)
    operator, reviewer = signed_in(w.operator), signed_in(w.reviewer)
    retry = reverse("admin:notifications_retry", args=[row.id])
    first = operator.get("/admin/").content.decode()
    assert f"A message did not reach {row.subject}" in first
    listed = operator.get(f"{LIST}?state=Set+aside").content.decode()
    assert "Nobody is told by e-mail" not in listed
    settings.FACTORY_EMAIL_ON = False
    assert "Nobody is told by e-mail" in operator.get(LIST).content.decode()
    none = operator.get(MINE).content.decode()
    assert "there is nothing to choose here" in none
    assert "<fieldset disabled>" in none
    assert "every message to people has arrived" not in reviewer.get("/admin/").content.decode().lower()
    settings.FACTORY_EMAIL_ON = True
    for word in (row.subject, "The service answered 503.", "a channel (gotify)", "11", "Set aside"):
        assert word in listed
    assert str(row.id) not in operator.get(f"{LIST}?state=Waiting").content.decode()
    one = operator.get(reverse("admin:notifications_notification_change", args=[row.id])).content.decode()
    assert retry in one
    assert "SecretOfMine" not in one + listed
    assert reviewer.get(LIST).status_code == 403
    assert reviewer.get(retry).status_code == reviewer.post(retry, {"reason": "x"}).status_code == 403
    assert signed_in(second_world(w.tenant).operator).get(retry).status_code == 404
    assert b"Why it will arrive now" in operator.get(retry).content
    assert operator.post(retry, {"reason": ""}).status_code == 400
    assert operator.post(retry, {"reason": "up again"})["Location"] == LIST
    [entry] = [one for one in audits(asker.house, "RetryNotification") if one.outcome == "done"]
    assert (entry.reason, entry.actor) == ("up again", w.operator.actor.subject)
    chat.reply = lambda _: 200
    send(w.tenant)
    assert rows(asker.house, pk=row.id)[0].state == "Sent"


def test_a_link_into_another_project_asks_to_go_there_first(asker, mails):
    w = asker.world
    person = NewMember(w.reviewer.actor.subject, ("Reviewer",), ())
    onboard_project(
        system(w.tenant, "test"),
        slug="aaa",
        name="Another <b>project</b>",
        environments=[NewEnvironment("staging")],
        members=[person],
    )
    view = asker.ask()
    handle(w.tenant)
    send(w.tenant)
    [mail] = [mail for mail in mails if mail.to == [w.reviewer.actor.subject]]
    path = re.search(r"https://factory.example.org(/admin/\S+/open/\S+)", mail.body)[1]
    browser = signed_in(w.reviewer)
    page = browser.get(path)
    assert page.status_code == 200
    assert "Go there" in page.content.decode()
    fields = dict(
        re.findall(r'name="(place|next)" value="([^"]+)"', page.content.decode().split("Go there")[0][-700:])
    )
    there = reverse("admin:approvals_approvalrequest_change", args=[view.id])
    assert fields == {"place": f"{w.tenant}/{w.project}", "next": there}
    assert browser.get(there).status_code == 404, "opening the link went nowhere by itself"
    assert browser.post(reverse("admin:switch_place"), fields)["Location"] == there
    assert browser.get(there).status_code == 200
    assert browser.get(path)["Location"] == there

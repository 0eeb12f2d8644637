"""Who was added comes to a password by their own mailbox, or from the host, and the page says how."""

import re
from functools import partial
from io import StringIO
from uuid import UUID

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.urls import reverse
from structlog.testing import capture_logs

from factory.identity.accounts import account_of, sign_in_link
from factory.kernel.context import Context
from factory.kernel.errors import DomainError
from factory.kernel.models import User
from factory.kernel.tenancy import reading
from notifications.models import Notification
from projects.commands import add_member, remove_member, send_sign_in_link
from projects.commands.inputs import NewMember
from projects.commands.sign_ins import MOST_AN_HOUR
from projects.errors import MailOff, MemberRemoved, NoSignInLink, RoleOutOfReach, SignInLinkSent
from projects.models import Membership
from tests.console.test_member_pages import at, words
from tests.notifications.support import handle, send
from tests.support.client import Client
from tests.support.evidence import audits, journal, outbox, violations
from tests.support.issuers import outside
from tests.support.races import race
from tests.support.world import World, context_of, second_world, subject_of, world

PASSWORD = "a-long-enough-passphrase"


@pytest.fixture
def w(tenant_id) -> World:
    return world(tenant_id)


def added(w: World, subject: str = "", **other: str) -> Membership:
    subject = subject or f"ann@{w.tenant}.test"
    member = NewMember(subject, ("Reviewer",), **other)
    made = add_member(w.workspace_admin, project_id=w.project, member=member)
    with reading(w.system()):
        return Membership.objects.get(pk=made)


def page_of(member: Context, row: Membership) -> str:
    return words(at(member, row.project_id).get(reverse("admin:projects_membership_change", args=[row.pk])))


def mailed(w: World, mails: list) -> list:
    handle(w.tenant)
    send(w.tenant)
    return mails


def link_in(text: str) -> str:
    return re.search(r"https://factory\.example\.org(/admin/sign-in/\S+)", text).group(1)


def set_password(client: Client, link: str, password: str = PASSWORD):
    form = client.get(link, follow=True)
    assert form.status_code == 200, form.content
    return client.post(form.request["PATH_INFO"], {"new_password1": password, "new_password2": password})


def sign_in(address: str, password: str = PASSWORD) -> bool:
    client = Client()
    answer = client.post(reverse("admin:login"), {"username": address, "password": password})
    return answer.status_code == 302


def test_an_administrator_has_a_link_sent_by_which_the_member_sets_a_password(w, mails):
    row = added(w, email="assistant@elsewhere.test")
    assert "once they have set one" in page_of(w.workspace_admin, row)
    client = at(w.workspace_admin, w.project)
    page = client.get(reverse("admin:projects_membership_change", args=[row.pk])).content.decode()
    way = reverse("admin:projects_send_sign_in_link", args=[row.pk])
    assert way in page
    assert "good for 24 hours" in words(client.post(way, {}, follow=True))
    (mail,) = mailed(w, mails)
    assert mail.to == [row.subject]  # the account's own mailbox, wherever else mail of the member goes
    link = link_in(mail.body)

    assert "once they have set one" in page_of(w.workspace_admin, row)
    assert not sign_in(row.subject)
    browser = Client()
    assert set_password(browser, link).status_code == 302
    assert sign_in(row.subject)
    assert sign_in(f" {row.subject.upper()}")
    assert f"With a password, as {row.subject}" in page_of(w.workspace_admin, row)
    again = Client().get(link, follow=True)  # it was good once
    assert (again.status_code, "good no more" in words(again)) == (404, True)
    assert journal(w.system(), row.id)[-1] == ("Active", "Active", "SignInLinkRequested")
    assert audits(w.system(), "SendSignInLink")
    assert violations(w.tenant) == []


def test_neither_journal_nor_event_nor_message_keeps_the_link(w, mails):
    row = added(w)
    send_sign_in_link(w.workspace_admin, membership_id=row.id)
    (mail,) = mailed(w, mails)
    token = link_in(mail.body).rstrip("/").rpartition("/")[2]
    with reading(w.system()):
        kept = str([vars(one) for one in Notification.objects.all()])
    assert token not in kept + str(outbox(w.system(), row.id))
    handle(w.tenant)
    send(w.tenant)
    assert len(mails) == 1


@pytest.mark.parametrize("way", ["{}", "{}/", "/{}", "{}%00"])
@pytest.mark.parametrize("host", ["testserver", "elsewhere.example"])
def test_no_line_of_the_log_has_what_opens_a_link(w, way, host):
    row = added(w)
    call_command("sign_in_link", row.subject, stdout=StringIO(), stderr=StringIO())
    account = account_of(row.subject)
    link = sign_in_link(account).removeprefix(settings.FACTORY_PUBLIC_URL).rstrip("/")
    with capture_logs() as told:
        Client(headers={"Host": host}).get(way.format(link), follow=host == "testserver")
    assert [line for line in told if line["event"] in ("request", "host_refused")]
    assert link.rpartition("/")[2] not in str(told)


def test_of_several_who_use_a_link_at_once_one_sets_the_password(w):
    row = added(w)
    account = User.objects.create_user(row.subject, subject=row.subject, is_staff=True)
    link, passwords = sign_in_link(account), [f"{PASSWORD}-{number}" for number in range(4)]
    browsers = [Client() for _ in passwords]
    ways = [browser.get(link, follow=True).request["PATH_INFO"] for browser in browsers]

    def use(browser: Client, way: str, password: str) -> int:
        return browser.post(way, {"new_password1": password, "new_password2": password}).status_code

    answers = race(*(partial(use, *each) for each in zip(browsers, ways, passwords, strict=True)))
    assert sorted(answers) == [302, 404, 404, 404]
    assert [sign_in(row.subject, password) for password in passwords] == [code == 302 for code in answers]


def test_sessions_end_when_a_password_is_set(w, mails):
    row = added(w)
    user = User.objects.create_user(row.subject, "an-older-passphrase", subject=row.subject, is_staff=True)
    old = Client()
    old.force_login(user)
    assert old.get("/admin/").status_code == 200
    send_sign_in_link(w.workspace_admin, membership_id=row.id)
    (mail,) = mailed(w, mails)
    set_password(Client(), link_in(mail.body))
    assert old.get("/admin/").status_code == 302
    assert not sign_in(row.subject, "an-older-passphrase")


def test_a_link_has_its_time_and_a_weak_password_is_refused(w, monkeypatch):
    row = added(w)
    call_command("sign_in_link", row.subject, stdout=StringIO(), stderr=StringIO())
    account = account_of(row.subject)
    link = sign_in_link(account).removeprefix(settings.FACTORY_PUBLIC_URL)
    assert "too short" in words(set_password(Client(), link, "short"))
    monkeypatch.setattr(settings, "PASSWORD_RESET_TIMEOUT", -1)
    assert "good no more" in words(Client().get(link, follow=True))


@pytest.mark.parametrize("who", ["reviewer", "operator"])
def test_who_does_not_decide_about_members_sends_no_link(w, who):
    row = added(w)
    with pytest.raises(DomainError):
        send_sign_in_link(getattr(w, who), membership_id=row.id)
    assert account_of(row.subject) is None


def test_links_are_refused_where_they_prove_nothing_or_come_too_often(w, tenant_id):
    row = added(w)
    send_sign_in_link(w.workspace_admin, membership_id=row.id)
    with pytest.raises(SignInLinkSent):
        send_sign_in_link(w.workspace_admin, membership_id=row.id)
    with pytest.raises(NoSignInLink):
        send_sign_in_link(w.workspace_admin, membership_id=added(w, "auth0|bob").id)
    with reading(w.system()):
        robot = Membership.objects.get(subject=w.service.actor.subject)
        root = Membership.objects.get(subject=subject_of(w.tenant, "platform_admin"))
    with pytest.raises(NoSignInLink):
        send_sign_in_link(w.workspace_admin, membership_id=robot.id)
    with pytest.raises(RoleOutOfReach):
        send_sign_in_link(whole_admin(w), membership_id=root.id)
    remove_member(w.workspace_admin, membership_id=row.id)
    with pytest.raises(MemberRemoved):
        send_sign_in_link(w.workspace_admin, membership_id=row.id)
    other = second_world(tenant_id)
    with pytest.raises(DomainError):
        send_sign_in_link(other.workspace_admin, membership_id=added(w, "eve@x.test").id)


def whole_admin(w: World) -> Context:
    return context_of(subject_of(w.tenant, "tenant_admin"), w.tenant, None)


def test_an_account_of_another_name_is_not_taken_over_by_who_has_its_address(w):
    row = added(w)
    User.objects.create_user(row.subject, PASSWORD, subject="somebody-else", is_staff=True)
    with pytest.raises(NoSignInLink):
        send_sign_in_link(w.workspace_admin, membership_id=row.id)
    assert "known by another name" not in page_of(w.workspace_admin, row)
    with pytest.raises(CommandError, match="known by another name"):
        call_command("sign_in_link", row.subject, stdout=StringIO(), stderr=StringIO())


def test_a_member_who_has_left_is_sent_nothing(w, mails):
    row = added(w)
    send_sign_in_link(w.workspace_admin, membership_id=row.id)
    remove_member(w.workspace_admin, membership_id=row.id)
    assert mailed(w, mails) == []


def test_where_no_mail_is_sent_the_page_names_the_command_that_prints_the_link(w, tenant_id, monkeypatch):
    monkeypatch.setattr(settings, "FACTORY_EMAIL_ON", False)
    row = added(w)
    with pytest.raises(MailOff):
        send_sign_in_link(w.workspace_admin, membership_id=row.id)
    page = page_of(w.workspace_admin, row)
    assert f"manage.py sign_in_link {row.subject}" in page
    assert "Send a sign-in link" not in page
    other = second_world(tenant_id)
    elsewhere = add_member(
        other.workspace_admin, project_id=other.project, member=NewMember(row.subject, ("Observer",))
    )
    told = StringIO()
    call_command("sign_in_link", f" {row.subject.upper()} ", stdout=told, stderr=StringIO())
    set_password(Client(), told.getvalue().strip().removeprefix(settings.FACTORY_PUBLIC_URL))
    assert sign_in(row.subject)
    assert journal(w.system(), row.id)[-1][2] == "SignInLinkPrinted"
    assert [cause for *_, cause in journal(other.system(), UUID(elsewhere))][-1] == "SignInLinkPrinted"
    with pytest.raises(CommandError):
        call_command("sign_in_link", "nobody@nowhere.test")
    assert violations(w.tenant) == []


def test_who_is_switched_off_cannot_sign_in_and_no_page_says_that_they_can(w):
    row = added(w)
    user = User.objects.create_user(
        row.subject, PASSWORD, subject=row.subject, is_staff=True, opened_by=w.tenant
    )
    assert f"With a password, as {row.subject}." in page_of(w.workspace_admin, row)
    User.objects.filter(pk=user.pk).update(is_active=False)
    assert not sign_in(row.subject)
    page = page_of(w.workspace_admin, row)
    assert "once they have set one" in page
    assert "switched off" not in page


STRANGERS = ({}, {"password": None}, {"password": PASSWORD}, {"password": PASSWORD, "is_active": False})


def test_nothing_is_told_of_an_account_that_another_tenant_knows(w, tenant_id):
    """Whoever adds a stranger's address reads the same of every account, and of none."""
    pages = set()
    for number, account in enumerate(STRANGERS):
        address = f"stranger-{number}@{tenant_id}.test"
        if account:
            User.objects.create_user(address, subject=address, is_staff=True, opened_by="other", **account)
        row = added(w, address)
        client = at(w.workspace_admin, w.project)
        page = client.get(reverse("admin:projects_membership_change", args=[row.pk])).content.decode()
        begin = page.index('id="signs-in"')
        pages.add(page[begin : page.index("</section>", begin)].replace(address, "ADDRESS"))
        assert reverse("admin:projects_send_sign_in_link", args=[row.pk]) in page
    assert len(pages) == 1, pages


def test_who_has_acted_in_this_tenant_is_known_to_sign_in(w):
    member = w.workspace_admin.actor.subject
    client = at(w.workspace_admin, w.project)
    user = User.objects.get(subject=member)
    user.set_password(PASSWORD)
    user.save()
    client.force_login(user)
    with reading(w.system()):
        row = Membership.objects.get(pk=w.memberships["workspace_admin"])
    assert "once they have set one" in page_of(whole_admin(w), row)
    way = reverse("admin:projects_add_member", args=[w.project])
    client.post(way, {"subject": f"new@{w.tenant}.test", "roles": ["Observer"]})
    assert f"With a password, as {member}." in page_of(whole_admin(w), row)


def test_a_mailbox_is_sent_one_link_in_five_minutes_whoever_asks(w, tenant_id):
    row = added(w)
    send_sign_in_link(w.workspace_admin, membership_id=row.id)
    remove_member(w.workspace_admin, membership_id=row.id)
    again = added(w)
    with pytest.raises(SignInLinkSent):
        send_sign_in_link(w.workspace_admin, membership_id=again.id)
    other = second_world(tenant_id)
    elsewhere = add_member(
        other.workspace_admin, project_id=other.project, member=NewMember(row.subject, ("Observer",))
    )
    with pytest.raises(SignInLinkSent):
        send_sign_in_link(other.workspace_admin, membership_id=UUID(elsewhere))


def test_a_tenant_has_so_many_links_sent_in_an_hour(w):
    rows = [added(w, f"one-{number}@{w.tenant}.test") for number in range(MOST_AN_HOUR + 1)]
    for row in rows[:-1]:
        send_sign_in_link(w.workspace_admin, membership_id=row.id)
    with pytest.raises(SignInLinkSent, match="within an hour"):
        send_sign_in_link(w.workspace_admin, membership_id=rows[-1].id)
    assert account_of(rows[-1].subject) is None


def test_no_page_says_that_somebody_signs_in_who_cannot(w):
    row = added(w)
    client = at(w.workspace_admin, w.project)
    listed = words(client.get(reverse("admin:projects_membership_changelist")))
    assert row.subject in listed
    assert "signs in as" not in listed.lower()
    way = reverse("admin:projects_add_member", args=[w.project])
    for subject in (f"new@{w.tenant}.test", "auth0|new"):
        answer = client.post(way, {"subject": subject, "roles": ["Observer"]}, follow=True)
        assert "Their page says how they come in" in words(answer)


def test_who_is_known_to_an_issuer_alone_needs_no_password(w, tmp_path):
    row = added(w, "auth0|bob")
    assert "no other issuer is trusted" in page_of(w.workspace_admin, row)
    with outside(tmp_path, "https://idp.example"):
        page = page_of(w.workspace_admin, row)
        assert "By https://idp.example, which calls them auth0|bob. They need no password here." in page
        assert "Send a sign-in link" not in page
    with outside(tmp_path, "https://idp.example", "https://other.example"):
        assert "several issuers are trusted" in page_of(w.workspace_admin, row)


def test_a_page_names_the_issuers_that_are_believed_about_the_members_address(w, tmp_path):
    row = added(w)
    one, two = "https://idp.example", "https://partner.example"
    domain = row.subject.rpartition("@")[2]
    with outside(tmp_path, one, two, domains={one: [domain]}):
        assert f"Also through {one}, where that has verified the address." in page_of(w.workspace_admin, row)
    with outside(tmp_path, one, two):
        assert "Also through" not in page_of(w.workspace_admin, row)


def test_a_sign_in_is_joined_and_ended_on_the_members_page(w, tmp_path):
    row = added(w)
    with outside(tmp_path, "https://idp.example"):
        client = at(whole_admin(w), None)
        member = reverse("admin:projects_membership_change", args=[row.pk])
        join = reverse("admin:projects_join_identity", args=[row.pk])
        assert join in client.get(member).content.decode()
        assert join not in at(w.workspace_admin, w.project).get(member).content.decode()
        assert at(w.workspace_admin, w.project).get(join).status_code == 403
        sent = {"issuer": "https://idp.example", "subject": "auth0|ann", "reason": "Seen in person"}
        refused = client.post(join, {**sent, "subject": "an n"})
        assert refused.status_code == 400
        page = words(client.post(join, sent, follow=True))
        assert "auth0|ann of https://idp.example" in page
        assert "Seen in person" in page
        (end,) = re.findall(r'href="([^"]+/sign-ins/[^"]+/end/)"', client.get(member).content.decode())
        assert "nobody" in words(client.post(end, {"reason": "left"}, follow=True))
        assert "auth0|ann" not in page_of(whole_admin(w), row)
    assert violations(w.tenant) == []

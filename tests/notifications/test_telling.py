"""Who is told of what, once, and in which words."""

import pytest
from django.conf import settings

from factory.kernel.errors import Forbidden, InvalidInput, VersionMismatch
from factory.kernel.reconciling import reconcilers
from notifications.channels import messages
from notifications.commands import change_preference, notify_of_approval
from projects.commands import add_member, remove_member
from projects.commands.inputs import NewMember
from tests.approvals.test_decisions import decide
from tests.notifications.support import bring, handle, notices, remind, rows, send, time_passes, told
from tests.support.approvals import Asking
from tests.support.delegations import lend
from tests.support.evidence import violations
from tests.support.proposals import said
from tests.support.queries import within_budget


def subjects(asker: Asking, *members: str) -> set[str]:
    return {getattr(asker.world, member).actor.subject for member in members}


APPROVERS = ("reviewer", "reviewer2", "workspace_admin", "tenant_admin")


def test_those_who_may_decide_are_told_once_and_the_requester_of_the_decision(asker, mails):
    nasty = "see http://evil.example\r\nBcc: all@evil.example"
    w, view = asker.world, asker.ask(summary=nasty, proposal=said("secret plan"))
    bring(w.tenant)
    assert {mail.to[0] for mail in mails} == told(asker.house, "requested") == subjects(asker, *APPROVERS)
    [first, *_] = mails
    assert first.subject.startswith(
        "Factory: waiting for a decision: an action of class shared-write in main"
    )
    assert f"/open/{view.id}/?in={w.tenant}%2F{w.project}" in first.body
    assert "Decided by: Reviewer or WorkspaceAdmin of the project, never whoever asked for it\n" in first.body
    assert "https://factory.example.org/admin/notifications/" in first.body
    for mail in mails:
        whole = mail.message().as_string()
        assert not any(word in whole for word in ("evil", "secret plan", "report.md"))
        assert mail.content_subtype == "plain"
    mails.clear()
    decide(w.reviewer, asker.view(view.id), reason="seen")
    bring(w.tenant)
    [mail] = mails
    assert mail.to == list(subjects(asker, "requester"))
    assert mail.subject == "Factory: approved: an action of class shared-write in main"
    assert w.reviewer.actor.subject in mail.body
    assert "seen" not in mail.body, "a decider's words are read on the page"
    for _ in range(2):  # a second sender, and the same news by another event: nothing more
        bring(w.tenant)
        notify_of_approval(asker.house, kind="requested", approval_id=view.id)
    assert len(mails) == 1
    assert notices(asker.house) == ["requested", "decided"]
    assert violations(w.tenant) == []


def test_break_glass_tells_whom_it_passed_over(asker, mails):
    w, view = asker.world, asker.ask()
    handle(w.tenant)
    decide(w.platform_admin, view, break_glass=True, reason="the house burns")
    bring(w.tenant)
    assert told(asker.house, "break-glass") == subjects(asker, *APPROVERS)
    assert told(asker.house, "decided") == subjects(asker, "requester")
    passed = [mail for mail in mails if "decided past you" in mail.subject]
    assert len(passed) == len(APPROVERS)
    assert w.platform_admin.actor.subject in passed[0].body
    assert "burns" not in passed[0].body
    waiting = rows(asker.house, notice__kind="requested")
    assert {row.error for row in waiting} == {"The request was closed before this could be sent: Approved."}
    assert {row.state for row in waiting} == {"Dropped"}, "nobody is called to what is decided"


def test_loans_and_narrowing_count_and_robots_are_not_written_to(asker):
    """The one rule of who may decide, as it stands at that moment."""
    w = asker.world
    lend(w.reviewer, w.observer)
    asker.ask(requested_by=w.service.actor.subject)
    handle(w.tenant)
    assert told(asker.house, "requested") == subjects(asker, *APPROVERS, "observer")
    narrow = asker.again().ask(approvers={"roles": ["WorkspaceAdmin"]})
    handle(w.tenant)
    mine = rows(asker.house, notice__approval_id=narrow.id)
    assert {row.subject for row in mine} == subjects(asker, "workspace_admin", "tenant_admin")
    decide(w.workspace_admin, asker.view(narrow.id), "reject", reason="no")
    handle(w.tenant)
    assert told(asker.house, "decided") == subjects(asker, "requester"), "who owns the robot that asked"


def test_a_quarter_of_the_time_before_its_end_those_who_have_not_voted_are_reminded_once(asker, mails):
    w = asker.world
    view = asker.ask(policy=asker.ruled(quorum=2))
    handle(w.tenant)
    decide(w.reviewer, view)
    assert remind(w.tenant).found == 0, "three quarters are left"
    time_passes(view.id, hours=53.9)
    assert remind(w.tenant).found == 0
    time_passes(view.id, hours=0.2)
    for _ in range(2):
        assert remind(w.tenant).failed == 0
    send(w.tenant)
    assert told(asker.house, "expiring") == subjects(asker, *APPROVERS) - subjects(asker, "reviewer")
    ends = [mail for mail in mails if "Factory: ends" in mail.subject]
    assert len(ends) == 3
    assert "ends without a yes" in ends[0].body
    assert violations(w.tenant) == []


@pytest.mark.parametrize("end", ["decided", "expired"])
def test_nobody_is_reminded_of_what_is_over(asker, mails, end):
    w, view = asker.world, asker.ask()
    handle(w.tenant)
    if end == "decided":
        decide(w.reviewer, view)
        time_passes(view.id, hours=60)
    else:
        time_passes(view.id, hours=73)
        reconcilers()["ApprovalExpiryReconciler"].run_once(w.tenant)
    handle(w.tenant)
    for found in (1, 0):
        assert remind(w.tenant).found == found
    assert notices(asker.house) == ["requested", "decided"]
    send(w.tenant)
    [mail] = mails
    assert mail.to == list(subjects(asker, "requester"))
    assert mail.subject.startswith("Factory: approved" if end == "decided" else "Factory: nobody answered")


def test_what_was_cancelled_is_told_to_nobody(asker):
    asker.ask()
    asker.cancel()
    handle(asker.world.tenant)
    assert notices(asker.house) == ["requested", "decided"]
    assert rows(asker.house) == []


def test_each_chooses_in_each_tenant_what_to_be_told_by_mail(asker, monkeypatch):
    w = asker.world
    assert change_preference(w.reviewer, kinds=["decided", "expiring"], version=0) == 1
    with pytest.raises(VersionMismatch):
        change_preference(w.reviewer, kinds=[], version=0)
    with pytest.raises(InvalidInput):
        change_preference(w.reviewer, kinds=["everything"], version=1)
    asker.ask()
    handle(w.tenant)
    assert told(asker.house, "requested") == subjects(asker, *APPROVERS) - subjects(asker, "reviewer")
    monkeypatch.setattr(settings, "FACTORY_EMAIL_ON", False)
    other = asker.again().ask()
    handle(w.tenant)
    assert rows(asker.house, notice__approval_id=other.id) == [], "an installation that sends no e-mail"
    with pytest.raises(Forbidden):
        change_preference(w.service, kinds=[], version=0)


def test_telling_many_takes_as_many_statements_as_telling_few(asker):
    w, view = asker.world, asker.ask()
    with within_budget("tell_of_approval"):
        assert notify_of_approval(asker.house, kind="requested", approval_id=view.id) == 4
    for number in range(4):
        who = f"new{number}@{w.tenant}.test"
        member = NewMember(who, ("Reviewer",), (), email="" if number == 3 else who)
        add_member(asker.house, project_id=w.project, member=member)
    other = asker.again().ask()
    with within_budget("tell_of_approval"):
        assert notify_of_approval(asker.house, kind="requested", approval_id=other.id) == 7


def test_who_has_left_is_sent_nothing(asker, mails):
    w = asker.world
    asker.ask()
    handle(w.tenant)
    remove_member(w.tenant_admin, membership_id=w.memberships["reviewer"], reason="gone")
    send(w.tenant)
    assert {mail.to[0] for mail in mails} == subjects(asker, *APPROVERS) - subjects(asker, "reviewer")
    [gone] = rows(asker.house, dropped_at__isnull=False)
    assert gone.error == "The person is no member there any more."


def test_operators_are_told_where_too_few_can_decide(asker, mails):
    w = asker.world
    view = asker.ask(policy=asker.ruled(quorum=5))
    assert view.nobody_eligible
    handle(w.tenant)
    assert told(asker.house, "too-few") == subjects(asker, "operator")
    send(w.tenant)
    [mail] = [mail for mail in mails if mail.to[0] in subjects(asker, "operator")]
    assert mail.subject.startswith("Factory: too few can decide: an action of class shared-write")
    assert "decide there" not in mail.body


def test_nobody_is_told_to_add_a_member_where_none_could_decide(asker, mails):
    reviewers = asker.ruled(roles=["Reviewer"])
    assert asker.ask(policy=reviewers, approvers={"roles": ["WorkspaceAdmin"]}).names_nobody
    handle(asker.world.tenant)
    send(asker.world.tenant)
    [mail] = [mail for mail in mails if mail.to[0] in subjects(asker, "operator")]
    assert mail.subject.startswith("Factory: nobody can decide: an action of class shared-write")
    assert "or the run is cancelled" in mail.body
    assert "can add one" not in mail.body


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("ada\r\nBcc: all@x.test", "ada Bcc: all@x.test"),
        ("<!channel> @everyone [x](https://evil.test)", "channel everyone x https evil.test"),
        ("a\u202egpj.exe \x00\u2028b", "a gpj.exe b"),
        ("service:main:robot", "service:main:robot"),
        ("n" * 500, "n" * 120),
    ],
)
def test_a_name_is_reduced_to_what_a_name_is_made_of(given, kept):
    assert messages.name(given) == kept

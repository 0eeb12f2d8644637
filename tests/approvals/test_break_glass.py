"""Break-glass: outside the rule, never outside the separation of duties, and never unseen."""

import pytest

from approvals.errors import AlreadyDecided, ApprovalExpired, NotEligible, ReasonMissing, SeparationOfDuties
from tests.approvals.test_decisions import decide
from tests.support.api import Api
from tests.support.evidence import audits, counts, journal, outbox, violations
from tests.support.world import context_of

pytestmark = pytest.mark.slow

BROKEN = "run-control.approvals.v1.approval-break-glass"


@pytest.mark.requirement("APR-22", "SEC-07")
@pytest.mark.parametrize("answer", ["approve", "reject", "request_changes"])
def test_it_is_marked_audited_and_told(asker, answer):
    w, view = asker.world, asker.ask()
    done = decide(w.platform_admin, view, answer, break_glass=True, reason="the house burns")
    passed_over = {ctx.actor.subject for ctx in (w.reviewer, w.reviewer2, w.workspace_admin, w.tenant_admin)}
    assert done.break_glass
    assert set(done.passed_over) == passed_over
    (entry,) = audits(asker.house, "BreakGlass")
    assert (entry.reason, entry.subject) == ("the house burns", f"approval:{view.id}")
    told = dict(outbox(asker.house, asker.run_id))
    assert set(told[BROKEN]["passedOver"]) == passed_over
    assert told[BROKEN]["reason"] == "the house burns"
    assert told["run-control.approvals.v1.approval-decided"]["breakGlass"] is True
    assert violations(w.tenant) == []


@pytest.mark.requirement("APR-22")
@pytest.mark.parametrize("reason", ["", "  "])
def test_it_needs_a_reason(asker, reason):
    view = asker.ask()
    with pytest.raises(ReasonMissing):
        decide(asker.world.platform_admin, view, break_glass=True, reason=reason)
    assert asker.view(view.id) == view


def test_who_may_break_the_glass_reads_what_they_would_sign(asker):
    """While there is something to decide, and what they decided themselves; not what others did."""
    w, view, other = asker.world, asker.ask(), asker.again().ask()
    admin = Api.as_(w.platform_admin)

    def reads(what):
        return admin.get(f"/factory/approvals/{what.id}").json()["proposal"] is not None

    assert (reads(view), reads(other)) == (True, True)
    decide(w.platform_admin, view, break_glass=True, reason="the house burns")
    decide(w.reviewer, other)
    assert (reads(view), reads(other)) == (True, False)
    for wanted, found in (("true", view), ("false", other)):
        listed = admin.get(f"/factory/approvals?breakGlass={wanted}").json()["items"]
        assert [one["approvalId"] for one in listed] == [str(found.id)], "all of them can be listed"
    own = asker.again().ask(
        requested_by=w.platform_admin.actor.subject, requester_person=w.platform_admin.actor.person
    )
    assert not reads(own), "what is theirs they may not decide at all"


def test_it_has_to_be_meant(asker):
    """A PlatformAdmin whom the rule does not name decides nothing by accident."""
    view = asker.ask()
    with pytest.raises(NotEligible, match="break the glass"):
        decide(asker.world.platform_admin, view, reason="because")
    assert asker.view(view.id) == view


@pytest.mark.requirement("APR-22")
@pytest.mark.parametrize("who", ["reviewer", "workspace_admin", "tenant_admin", "operator", "requester"])
def test_it_is_a_platform_admins_alone(asker, who):
    view = asker.ask()
    with pytest.raises(NotEligible):
        decide(getattr(asker.world, who), view, break_glass=True, reason="me too")
    assert asker.view(view.id) == view
    assert audits(asker.house, "BreakGlass") == []


@pytest.mark.requirement("APR-21")
def test_the_requester_breaks_no_glass(asker):
    me = asker.world.platform_admin.actor
    view = asker.ask(requested_by=me.subject, requester_person=me.person)
    before = counts(asker.house)
    with pytest.raises(SeparationOfDuties):
        decide(asker.world.platform_admin, view, break_glass=True, reason="my own")
    after = counts(asker.house)
    assert (after[0], after[1], after[2]) == (before[0], before[1], before[2] + 1)


def test_who_owns_the_robot_that_asked_breaks_no_glass(asker):
    me = asker.world.platform_admin.actor
    view = asker.ask(requested_by="service:x:robot", requester_person=me.person)
    with pytest.raises(SeparationOfDuties):
        decide(asker.world.platform_admin, view, break_glass=True, reason="my robot's")


def test_the_author_of_a_release_breaks_no_glass(asker):
    view = asker.ask_publication(author_person=asker.world.platform_admin.actor.person)
    with pytest.raises(SeparationOfDuties):
        decide(asker.world.platform_admin, view, break_glass=True, reason="my release")


def test_a_token_that_leaves_the_role_out_breaks_no_glass(asker):
    from dataclasses import replace

    w, view = asker.world, asker.ask()
    narrow = replace(w.platform_admin, actor=replace(w.platform_admin.actor, roles=frozenset({"Observer"})))
    with pytest.raises(NotEligible):
        decide(narrow, view, break_glass=True, reason="with half a token")


def test_it_opens_a_gate_that_nobody_else_could(asker):
    view = asker.ask(policy=asker.ruled(roles=["Reviewer"]), approvers={"roles": ["WorkspaceAdmin"]})
    done = decide(asker.world.platform_admin, view, break_glass=True, reason="nobody could")
    assert (done.state, done.passed_over) == ("Approved", ())
    assert violations(asker.world.tenant) == []


def test_it_is_late_like_everybody(asker, soon):
    import time

    view = asker.ask()
    time.sleep(soon)
    with pytest.raises(ApprovalExpired):
        decide(asker.world.platform_admin, view, break_glass=True, reason="too late")
    assert journal(asker.house, view.id)[-1] == ("Pending", "Expired", "ExpiresAtPassed")


def test_it_undoes_no_decision(asker):
    view = decide(asker.world.reviewer, asker.ask(), "reject")
    with pytest.raises(AlreadyDecided):
        decide(asker.world.platform_admin, view, break_glass=True, reason="I know better")


def test_a_reviewer_who_is_a_platform_admin_too_needs_no_glass(asker):
    from projects.commands import add_member
    from projects.commands.inputs import NewMember

    w = asker.world
    subject = w.platform_admin.actor.subject
    add_member(w.system(), project_id=w.project, member=NewMember(subject, ("Reviewer",)))
    both = context_of(subject, w.tenant, w.project)
    assert not decide(both, asker.ask()).break_glass

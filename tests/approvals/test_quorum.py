"""Where a rule asks for several people: each counts once, all are judged at the last one, one no ends it."""

from dataclasses import replace

import pytest

from approvals.errors import AlreadyVoted, NotEligible, ProposalMoved
from approvals.selectors import mine, votes_judged
from factory.kernel.errors import InvalidInput
from factory.kernel.tenancy import reading
from projects.commands import revoke_delegation
from tests.approvals.test_decisions import decide, give_role
from tests.support.approvals import Asking
from tests.support.delegations import lend
from tests.support.evidence import audits, journal, outbox, violations
from tests.support.world import context_of

pytestmark = pytest.mark.slow


@pytest.fixture
def two(asker):
    """A request that needs two people."""
    return asker.ask(policy=asker.ruled(quorum=2))


def again(asker: Asking, member: str):
    """A member's context as a new token would give it."""
    subject = getattr(asker.world, member).actor.subject
    return context_of(subject, asker.world.tenant, asker.world.project)


def test_a_vote_leaves_the_request_as_it_was(asker, two, stage):
    assert "2 people, each Reviewer or WorkspaceAdmin" in two.approver_rule
    after = decide(asker.world.reviewer, two, reason="looks right")
    assert (after.state, after.version, after.votes) == ("Pending", two.version, 1)
    assert stage.moved == []
    assert journal(asker.house, two.id)[-1] == ("Pending", "Pending", "VoteCast")
    assert not [topic for topic, _ in outbox(asker.house, asker.run_id) if topic.endswith("decided")]
    assert len(audits(asker.house, "CastVote")) == 1
    with reading(asker.house):
        assert two.id not in {row.id for row in mine(asker.world.reviewer)}, "it waits for others now"
        assert two.id in {row.id for row in mine(asker.world.reviewer2)}
    done = decide(asker.world.reviewer2, two)
    assert (done.state, done.version, done.votes) == ("Approved", two.version + 1, 2)
    assert done.decided_by == asker.world.reviewer2.actor.subject
    assert [m.state for m in stage.moved] == ["Approved"]
    assert asker.take(done).approval_id == two.id
    assert violations(asker.world.tenant) == []


def test_nobody_counts_twice(asker, two):
    decide(asker.world.reviewer, two)
    with pytest.raises(AlreadyVoted):
        decide(asker.world.reviewer, two)
    assert asker.view(two.id).votes == 1
    (refusal,) = [e for e in audits(asker.house, "DecideApproval") if e.outcome == "refused"]
    assert refusal.detail["code"] == "already-voted"


@pytest.mark.parametrize("answer", ["reject", "request_changes"])
def test_one_no_ends_it_even_of_who_had_said_yes(asker, two, answer):
    decide(asker.world.reviewer, two)
    done = decide(asker.world.reviewer, two, answer, reason="on second thoughts")
    assert done.state == {"reject": "Rejected", "request_changes": "Stale"}[answer]
    assert violations(asker.world.tenant) == []


def test_another_hash_is_another_vote(asker, two):
    with pytest.raises(ProposalMoved):
        decide(asker.world.reviewer, two, proposal_hash="sha256:0")
    assert asker.view(two.id).votes == 0


def test_every_vote_is_judged_again_at_the_last_one(asker, two):
    """Who lost the role meanwhile does not count any more; who has it again counts, and may say so."""
    w = asker.world
    decide(w.reviewer, two)
    give_role(asker, w.reviewer, "Observer")
    after = decide(w.reviewer2, two)
    assert (after.state, after.votes) == ("Pending", 2)
    with reading(asker.house):
        assert [judged.counts for judged in votes_judged(after)] == [False, True]
    with pytest.raises(NotEligible):
        decide(again(asker, "reviewer"), two)
    give_role(asker, w.reviewer, "Reviewer", version=2)
    assert decide(again(asker, "reviewer"), two).state == "Approved"
    assert asker.view(two.id).votes == 2
    assert violations(w.tenant) == []


def test_who_lends_and_who_borrows_count_once(asker, two):
    w = asker.world
    lend(w.reviewer, w.observer)
    delegate = again(asker, "observer")
    decide(delegate, two)
    with pytest.raises(AlreadyVoted):
        decide(w.reviewer, two)
    assert decide(w.reviewer2, two).state == "Approved"
    assert violations(w.tenant) == []


def test_a_vote_by_a_loan_ends_with_the_loan(asker, two):
    w = asker.world
    loan = lend(w.reviewer, w.observer)
    decide(again(asker, "observer"), two)
    revoke_delegation(w.reviewer, delegation_id=loan)
    assert decide(w.reviewer, two).state == "Pending"
    assert decide(w.reviewer2, two).state == "Approved"
    assert violations(w.tenant) == []


def test_who_comes_to_share_a_role_after_both_have_voted_counts_once(asker):
    """Their vote stands by a borrowed role now, and its owner has voted: two votes, one of them counts."""
    w = asker.world
    view = asker.ask(policy=asker.ruled(quorum=3))
    decide(w.reviewer, view)
    decide(w.reviewer2, view)
    lend(w.reviewer, w.reviewer2)
    give_role(asker, w.reviewer2, "Observer")
    after = decide(w.tenant_admin, view)
    assert (after.state, after.votes) == ("Pending", 3)
    with reading(asker.house):
        assert [judged.counts for judged in votes_judged(after)] == [True, False, True]
    assert decide(w.workspace_admin, view).state == "Approved"
    assert violations(w.tenant) == []


def test_break_glass_completes_it(asker, two):
    done = decide(asker.world.platform_admin, two, break_glass=True, reason="it burns")
    assert (done.state, done.break_glass, done.votes) == ("Approved", True, 0)
    assert violations(asker.world.tenant) == []


def test_the_strictest_rule_and_the_node_say_how_many(asker):
    policy = asker.ruled(quorum=2)
    assert asker.ask(policy=policy).quorum == 2
    assert asker.again().ask(policy=policy, approvers={"quorum": 3}).quorum == 3
    assert asker.again().ask(policy=policy, approvers={"quorum": 1}).quorum == 2, "a node never widens"


def test_a_node_narrows_who_decides_and_never_widens(asker):
    view = asker.ask(approvers={"roles": ["WorkspaceAdmin"]})
    assert view.approver_roles == ("WorkspaceAdmin",)
    assert "narrowed by the workflow's node" in view.approver_rule
    with pytest.raises(NotEligible):
        decide(asker.world.reviewer, view)
    assert decide(asker.world.workspace_admin, view).state == "Approved"
    reviewers = asker.ruled(roles=["Reviewer"])
    nobody = asker.again().ask(policy=reviewers, approvers={"roles": ["WorkspaceAdmin"]})
    assert nobody.approver_roles == ()
    assert nobody.nobody_eligible
    for who in (asker.world.workspace_admin, asker.world.reviewer, asker.world.platform_admin):
        with pytest.raises(NotEligible):
            decide(who, nobody)


def test_too_few_people_are_found_when_it_is_asked(asker):
    view = asker.ask(policy=asker.ruled(quorum=5))
    assert view.nobody_eligible
    (noted,) = audits(asker.house, "ApprovalWithoutApprover")
    assert noted.detail["quorum"] == 5


def test_a_quorum_is_of_one_to_ten(asker):
    from approvals.policy.document import check

    document = asker.policy.document
    for wrong in (0, 11, "two", 1.5):
        with pytest.raises(InvalidInput):
            check({**document, "rules": [{**document["rules"][0], "quorum": wrong}]})
    check({**document, "rules": [{**document["rules"][0], "quorum": 10}]})
    allow = {"actionClass": "read", "effect": "allow", "quorum": 2}
    with pytest.raises(InvalidInput):
        check({**document, "rules": [allow]})


def test_votes_are_of_one_request(asker):
    """A vote on what was proposed before is no vote on what is proposed now."""
    policy = asker.ruled(quorum=2)
    first = asker.ask(policy=policy)
    decide(asker.world.reviewer, first)
    second = asker.ask(policy=policy, proposal={"kind": "text", "text": "something else"})
    assert asker.view(first.id).state == "Stale"
    after = decide(asker.world.reviewer2, second)
    assert (after.state, after.votes) == ("Pending", 1)
    assert violations(asker.world.tenant) == []


def test_an_approval_still_needs_its_own_step(asker, two):
    decide(asker.world.reviewer, two)
    other = replace(asker, step_id=asker.run_id)
    assert other.ask(policy=asker.ruled(quorum=2)).votes == 0

"""Aliases through time, and releases on their way out."""

import threading

import pytest
from django.db import connections

from approvals.commands.decide import decide_approval
from approvals.errors import ApprovalOver
from approvals.selectors import approvals_of_subject
from factory.kernel.clock import now
from factory.kernel.errors import DomainError, InsufficientRole, NotFound, VersionMismatch
from factory.kernel.tenancy import reading
from registry import selectors
from registry.commands import deprecate_release, move_alias, revoke_release
from registry.errors import (
    AliasInUse,
    InFlightNotOffered,
    ReleaseNotInState,
    ReleaseNotLoadable,
    ReleaseNotPublished,
    VersionTaken,
)
from tests.support.evidence import audits, journal, outbox, violations

pytestmark = pytest.mark.slow


def move(r, alias, release_id, version=0, by=None):
    return move_alias(
        by or r.w.workspace_admin, asset="sample", alias=alias, release_id=release_id, version=version
    )


def named(r, alias="latest", at=None):
    with reading(r.w.requester):
        return selectors.alias("sample", alias, at=at).release_id


def clock(r):
    with reading(r.w.requester):
        return now()


def test_latest_moves_at_publication_and_keeps_what_it_named(r):
    before = clock(r)
    first = r.published("1.0.0")
    between = clock(r)
    second = r.published("1.1.0")
    assert named(r) == second
    assert named(r, at=between) == first
    with pytest.raises(NotFound):
        named(r, at=before)
    assert violations(r.w.tenant) == []


def test_an_alias_moves_by_an_audited_command(r):
    first, second = r.published("1.0.0"), r.published("1.1.0")
    assert move(r, "stable", second) == 1
    assert move(r, "stable", first, version=1) == 2
    assert named(r, "stable") == first
    assert [entry.subject for entry in audits(r.w.system(), "MoveAlias")].count("alias:sample/stable") == 2
    with reading(r.w.system()):
        alias_id = selectors.Alias.objects.get(name="stable").id
    assert journal(r.w.system(), alias_id) == [("None", "Set", "AliasCreated"), ("Set", "Set", "AliasMoved")]
    assert [data["previousReleaseId"] for _, data in outbox(r.w.system(), alias_id)] == [None, str(second)]


def test_moving_an_alias_to_where_it_is_changes_nothing(r):
    first = r.published()
    assert move(r, "stable", first) == 1
    assert move(r, "stable", first, version=1) == 1


def test_refuses_to_move_an_alias_to_what_is_not_published(r):
    draft = r.resolved()
    with pytest.raises(ReleaseNotPublished):
        move(r, "stable", draft)
    with pytest.raises(NotFound):
        move_alias(r.w.workspace_admin, asset="other", alias="stable", release_id=draft, version=0)
    with pytest.raises(InsufficientRole):
        move(r, "stable", draft, by=r.w.requester)


def test_refuses_to_move_an_alias_that_moved_meanwhile(r):
    first, second = r.published("1.0.0"), r.published("1.1.0")
    move(r, "stable", first)
    with pytest.raises(VersionMismatch):
        move(r, "stable", second, version=0)


def test_of_two_moves_at_once_one_wins(r):
    first, second = r.published("1.0.0"), r.published("1.1.0")
    answers: list[object] = []
    start = threading.Barrier(6)

    def go(release_id):
        start.wait()
        try:
            answers.append(move(r, "stable", release_id))
        except DomainError as refusal:
            answers.append(refusal.code)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=go, args=(x,)) for x in [first, second] * 3]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(str, answers)) == ["1"] + ["version-mismatch"] * 5
    assert violations(r.w.tenant) == []


def test_of_two_candidates_of_a_version_one_is_reviewed(r):
    r.in_review("1.0.0")
    with pytest.raises(VersionTaken):
        r.in_review("1.0.0", modelProfiles=[{"modelProfileId": "other", "description": "Another."}])


@pytest.mark.requirement("REG-17")
def test_a_deprecated_release_loads_but_is_not_pinned(r):
    first = r.published("1.0.0")
    with pytest.raises(AliasInUse):
        deprecate_release(r.w.operator, release_id=first, in_flight="drain", reason="old")
    r.published("1.1.0")
    assert deprecate_release(r.w.operator, release_id=first, in_flight="drain", reason="old") == "Deprecated"
    with reading(r.w.requester):
        assert selectors.load_release(first)["version"] == "1.0.0"
        with pytest.raises(ReleaseNotPublished):
            selectors.resolve("survey", release_id=first)
    with pytest.raises(ReleaseNotInState):
        deprecate_release(r.w.operator, release_id=first, in_flight="drain", reason="old")
    assert violations(r.w.tenant) == []


@pytest.mark.requirement("REG-09")
def test_a_revoked_release_is_loaded_by_nobody_and_its_alias_leads_nowhere(r):
    first = r.published()
    assert revoke_release(r.w.operator, release_id=first, in_flight="drain", reason="leaks") == "Revoked"
    with reading(r.w.requester):
        with pytest.raises(ReleaseNotPublished):
            selectors.resolve("survey", alias="latest")
        with pytest.raises(ReleaseNotLoadable):
            selectors.load_release(first)
    assert journal(r.w.system(), first)[-1] == ("Published", "Revoked", "Revoked")
    with pytest.raises(ReleaseNotInState):
        revoke_release(r.w.operator, release_id=first, in_flight="drain", reason="again")
    assert violations(r.w.tenant) == []


def test_revoking_a_release_in_review_ends_the_review(r):
    release_id = r.in_review()
    revoke_release(r.w.operator, release_id=release_id, in_flight="drain", reason="leaks")
    with reading(r.w.system()):
        [asked] = approvals_of_subject(release_id)
    assert asked.state == "Cancelled"
    with pytest.raises(ApprovalOver):
        decide_approval(
            r.w.reviewer,
            approval_id=asked.id,
            decision="approve",
            version=asked.version,
            proposal_hash=asked.proposal_hash,
        )
    assert violations(r.w.tenant) == []


@pytest.mark.parametrize("act", [deprecate_release, revoke_release])
def test_refuses_an_in_flight_policy_that_is_not_offered(r, act):
    release_id = r.published()
    for word in ("stop", "", "Drain"):
        with pytest.raises(InFlightNotOffered):
            act(r.w.operator, release_id=release_id, in_flight=word, reason="old")
    with pytest.raises(DomainError, match="needs a reason"):
        act(r.w.operator, release_id=release_id, in_flight="drain", reason="\u200b")


def test_refuses_to_end_a_draft(r):
    release_id = r.resolved()
    for act in (deprecate_release, revoke_release):
        with pytest.raises(ReleaseNotInState):
            act(r.w.operator, release_id=release_id, in_flight="drain", reason="old")

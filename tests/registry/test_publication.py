"""From a commit to Published, and back."""

import pytest

from approvals.errors import NotEligible, SeparationOfDuties
from factory.kernel.tenancy import reading
from projects.commands import add_member
from projects.commands.inputs import NewMember
from registry import selectors
from registry.commands import record_evaluation, request_review
from registry.errors import (
    ClosureNotResolved,
    EvaluationMismatch,
    EvaluationMissing,
    ReleaseNotInState,
    ReleaseNotLoadable,
    ReleaseNotPublished,
    UnknownAlias,
    UnknownWorkflow,
)
from tests.registry.support import resolve
from tests.support.evidence import journal, outbox, violations
from tests.support.world import context_of

pytestmark = pytest.mark.slow


@pytest.mark.requirement("REG-01", "REG-02", "REG-03", "REG-07", "REG-08", "REG-15")
def test_a_commit_becomes_a_published_release(r):
    release_id = r.published()
    assert journal(r.w.system(), release_id) == [
        ("None", "Draft", "Submitted"),
        ("Draft", "Draft", "ClosureResolved"),
        ("Draft", "Draft", "EvaluationRecorded"),
        ("Draft", "InReview", "ReviewRequested"),
        ("InReview", "Published", "ApprovalGranted"),
    ]
    assert [topic for topic, _ in outbox(r.w.system(), release_id)] == [
        "agent-registry.releases.v1.asset-release-submitted",
        "run-control.approvals.v1.approval-requested",
        "run-control.approvals.v1.approval-decided",
        "agent-registry.releases.v1.asset-release-published",
    ]
    assert violations(r.w.tenant) == []


@pytest.mark.requirement("REG-10", "REG-11")
def test_resolves_by_alias_and_by_id_to_the_same_release(r):
    release_id = r.published()
    with reading(r.w.requester):
        by_alias = selectors.resolve("survey", alias="latest")
        by_id = selectors.resolve("survey", release_id=release_id)
        assert selectors.model_profiles(release_id) == ("none",)
    assert by_alias == by_id
    assert by_alias.hash.startswith("sha256:")
    assert by_alias.workflow["nodes"][0]["key"] == "look"


def test_refuses_what_names_no_published_release(r):
    release_id = r.published()
    draft = r.resolved("1.1.0")
    with reading(r.w.requester):
        with pytest.raises(UnknownWorkflow):
            selectors.resolve("nothing", alias="latest")
        with pytest.raises(UnknownAlias) as refused:
            selectors.resolve("survey", alias="stable")
        assert refused.value.errors[0].pointer == "/releaseAlias"
        assert "There is: latest." in refused.value.detail
        with pytest.raises(ReleaseNotPublished):
            selectors.resolve("survey", release_id=draft)
        assert selectors.loadable(release_id)
        assert not selectors.loadable(draft)
        with pytest.raises(ReleaseNotLoadable):
            selectors.load_release(draft)


@pytest.mark.requirement("REG-07")
def test_the_author_cannot_publish_though_a_reviewer_and_asked_for_by_another(r):
    author = f"author@{r.w.tenant}"
    member = NewMember(author, ("Requester", "Reviewer"))
    add_member(r.w.system(), project_id=r.w.project, member=member)
    both = context_of(author, r.w.tenant, r.w.project)
    release_id = r.submit(ctx=both)
    resolve(r.w.tenant, release_id)
    r.evaluate(release_id)
    request_review(r.w.requester, release_id=release_id)
    for involved in (both, r.w.requester):
        with pytest.raises((SeparationOfDuties, NotEligible)):
            r.decide(release_id, ctx=involved)
    assert r.row(release_id).state == "InReview"
    r.decide(release_id)
    assert r.row(release_id).state == "Published"


@pytest.mark.parametrize(
    ("decision", "cause"), [("reject", "ApprovalRejected"), ("request_changes", "ChangesRequested")]
)
def test_a_release_that_is_not_approved_goes_back_to_draft(r, decision, cause):
    release_id = r.in_review()
    r.decide(release_id, decision)
    assert journal(r.w.system(), release_id)[-1] == ("InReview", "Draft", cause)
    assert r.row(release_id).approval_id is None
    request_review(r.w.requester, release_id=release_id)
    r.decide(release_id)
    assert r.row(release_id).state == "Published"


def test_refuses_a_review_before_the_closure(r):
    release_id = r.submit()
    with pytest.raises(ClosureNotResolved):
        request_review(r.w.requester, release_id=release_id)


@pytest.mark.requirement("REG-06")
def test_refuses_a_review_without_a_passing_evaluation(r):
    release_id = r.resolved()
    with pytest.raises(EvaluationMissing):
        request_review(r.w.requester, release_id=release_id)
    assert r.evaluate(release_id, score=0.5)["verdict"] == "fail"
    with pytest.raises(EvaluationMissing):
        request_review(r.w.requester, release_id=release_id)
    assert r.evaluate(release_id, score=1)["verdict"] == "pass"
    request_review(r.w.requester, release_id=release_id)


def test_refuses_an_evaluation_of_something_else(r):
    release_id = r.resolved()
    for changes in ({"release_hash": "sha256:" + "0" * 64}, {"suite": "other"}, {"suite_version": "2.0.0"}):
        with pytest.raises(EvaluationMismatch):
            r.evaluate(release_id, **changes)


def test_refuses_an_evaluation_beyond_draft(r):
    release_id = r.in_review()
    with pytest.raises(ReleaseNotInState):
        r.evaluate(release_id)
    assert record_evaluation.name == "RecordEvaluation"

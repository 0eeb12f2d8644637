"""Shared writes that were approved in advance: for whom, with what, where, until when, and never else."""

from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import IntegrityError, connection
from django.test.utils import CaptureQueriesContext

from approvals.commands import decide_approval, publish_policy_revision, revoke_waiver
from approvals.errors import (
    AnswerNotPossible,
    ApprovalLapsed,
    NotEligible,
    PolicyDenied,
    SeparationOfDuties,
    WaiverNeverServes,
    WaiverOver,
)
from approvals.models import Waiver
from approvals.reconcilers import WaiverExpiryReconciler
from approvals.selectors import approval, current_policy, waivers, with_uses
from factory.kernel.context import Context
from factory.kernel.errors import InsufficientRole, InvalidInput
from factory.kernel.tenancy import bound, reading
from projects.commands import add_member, change_member, register_service_account
from projects.commands.inputs import NewMember
from registry.errors import ReleaseNotPublished
from runs.commands import retire_run_template
from runs.errors import NothingToWaive, TemplateNotFound, TemplateRetired
from tests.notifications.support import handle, notices
from tests.support.api import Api
from tests.support.evidence import details, journal, outbox, violations
from tests.support.proposals import OTHER_DIFF
from tests.support.queries import within_budget
from tests.support.running import House
from tests.support.waivers import ask_waiver, end_now, run_from, shown, template, waiver
from tests.support.workflows import MANIFEST, node, workflow
from tests.support.world import context_of, subject_of

pytestmark = pytest.mark.slow


@pytest.fixture
def house(tenant_id: str) -> House:
    return House(tenant_id)


def fresh(who: Context) -> Context:
    """As a token of theirs would be now."""
    return context_of(who.actor.subject, who.tenant_id, who.project_id)


def everything(house: House, name: str) -> Context:
    """A person with every role of a project."""
    subject = subject_of(house.tenant, name)
    roles = ("Requester", "Reviewer", "Operator", "WorkspaceAdmin")
    add_member(house.system, project_id=house.world.project, member=NewMember(subject, roles))
    return context_of(subject, house.tenant, house.world.project)


def machine(house: House, owner: Context, slug: str) -> Context:
    made = register_service_account(
        house.system,
        project_id=house.world.project,
        slug=slug,
        owner=owner.actor.subject,
        roles=("Requester",),
    )
    return context_of(made, house.tenant, house.world.project)


def asked(house: House, run_id: UUID, *, park: bool = False) -> tuple[Any, Any, Any, Any]:
    """The worker of a run asks before its write; with its assignment and the request."""
    hand = house.hand(f"w{run_id.hex[-6:]}", slots=9)
    [work] = [one for one in hand.poll() if one.run_id == run_id]
    hand.acquire(work)
    answer = hand.ask(work, park=park)
    [view] = [one for one in house.approvals(run_id) if one.id == answer.approval_id]
    return hand, work, answer, view


@pytest.mark.requirement("LTR-03", "APR-15")
def test_a_run_under_a_waiver_is_approved_at_once_and_names_it(house: House) -> None:
    w, kind = house.world, template(house)
    given = waiver(house, kind)
    handle(house.tenant)
    before = notices(house.system)
    run_id = run_from(house, kind)
    hand, work, answer, view = asked(house, run_id, park=True)
    handle(house.tenant)
    assert notices(house.system) == before, "nobody is asked, and no write is news to anybody"
    assert answer.decision is not None
    assert (answer.decision.decision, answer.opened, answer.parked) == ("approve", False, False)
    assert (answer.decision.waiver_id, answer.decision.decided_by) == (given, f"waiver:{given}")
    assert house.state(run_id) == "Running"
    assert (view.state, view.decided_person) == ("Approved", w.reviewer.actor.person)
    taken = hand.authorize(work, view.id)
    assert (taken.waiver_id, taken.proposal_hash) == (given, view.proposal_hash)
    assert journal(house.system, view.id) == [
        ("None", "Approved", "WaiverApplied"),
        ("Approved", "Approved", "ValidityStarted"),
        ("Approved", "Approved", "Authorized"),
    ]
    assert [one.get("waiverId") for one in details(house.system, view.id)] == [str(given), None, str(given)]
    [told] = [data for topic, data in outbox(house.system, run_id) if topic.endswith("approval-decided")]
    assert (told["state"], told["waiverId"]) == ("Approved", str(given))
    hand.report(work)
    assert (house.state(run_id), shown(house, given).uses) == ("Completed", 1)
    assert violations(house.tenant) == []


@pytest.mark.slow
@pytest.mark.requirement("LTR-03")
def test_whatever_it_does_not_name_is_asked_of_people_as_ever(house: House) -> None:
    """One waiver, and every way to stand beside it."""
    w, kind = house.world, template(house)
    given = waiver(house, kind, by=w.workspace_admin, decided_by=w.reviewer)
    other = template(house, name="weekly")
    for name in ("workspace_admin", "reviewer"):
        roles = [*getattr(w, name).actor.roles, "Requester"]
        change_member(
            house.system,
            membership_id=w.memberships[name],
            roles=roles,
            grants=[],
            version=1,
        )
    twice = house.publish(MANIFEST | {"version": "1.1.0"}, commit="b" * 40)
    beside = {
        "no template": lambda: house.run(
            "gated", environmentId=str(w.environment), releaseAlias=None, releaseId=str(house.release)
        ),
        "another template": lambda: run_from(house, other, releaseId=str(house.release)),
        "another environment": lambda: run_from(
            house, kind, environmentId=str(w.environments["production"]), releaseId=str(house.release)
        ),
        "another release": lambda: run_from(house, kind, releaseId=str(twice)),
        "asked for by its author": lambda: run_from(
            house, kind, by=fresh(w.workspace_admin), releaseId=str(house.release)
        ),
        "asked for by who decided it": lambda: run_from(
            house, kind, by=fresh(w.reviewer), releaseId=str(house.release)
        ),
        "asked for by a machine of who decided it": lambda: run_from(
            house, kind, by=machine(house, w.reviewer, "judge-bot"), releaseId=str(house.release)
        ),
    }
    for what, submitted in beside.items():
        assert waits(house, submitted()), what
    assert not waits(house, run_from(house, kind, releaseId=str(house.release))), "what it names"
    no_environment = run_from(house, kind, environmentId=None, releaseId=str(house.release))
    assert waits(house, no_environment)
    assert shown(house, given).uses == 1


def waits(house: House, run_id: UUID) -> bool:
    view = asked(house, run_id)[3]
    assert (view.waiver_id is None) == (view.state == "Pending")
    assert house.state(run_id) == ("WaitingForApproval" if view.is_pending else "Running")
    return bool(view.is_pending)


ENDS: dict[str, Callable[[House, UUID, UUID], object]] = {
    "Revoked": lambda house, kind, given: revoke_waiver(
        house.world.operator, waiver_id=given, reason="the report has changed"
    ),
    "Revoked with its template": lambda house, kind, given: retire_run_template(
        house.world.operator, template_id=kind, reason="another one follows"
    ),
    "Expired": lambda house, kind, given: end_now(given),
}


@pytest.mark.slow
@pytest.mark.requirement("LTR-03")
def test_what_has_ended_allows_nothing_any_more(house: House) -> None:
    """Neither a new request, nor an approval under it that was not used yet; then people are asked."""
    for how, end in ENDS.items():
        kind = template(house, name=how.lower().replace(" ", "-"))
        given = waiver(house, kind)
        hand, work, _, view = asked(house, run_from(house, kind))
        later = run_from(house, kind)
        end(house, kind, given)
        with pytest.raises(ApprovalLapsed, match="waiver"):
            hand.authorize(work, view.id)
        again = hand.ask(work)
        assert (again.approval_id == view.id, again.decision) == (False, None), how
        assert waits(house, later), how
        house.decide(again.approval_id)
        assert hand.authorize(work, again.approval_id).waiver_id is None
        state = shown(house, given)
        assert (state.state, state.uses) == (how.split()[0], 1)
    WaiverExpiryReconciler().run_once(house.tenant)
    assert journal(house.system, given)[-1] == ("Active", "Expired", "ExpiresAtPassed")
    moved = f"waiver:{given}"
    told = [(one.code, one.subject) for one in violations(house.tenant)]
    assert told == [("D10b", moved)], "only that its end was moved, by hand, from what was signed"


@pytest.mark.requirement("LTR-03")
def test_what_waits_for_another_question_ends_with_its_waiver_too(house: House) -> None:
    """While a sibling is asked about, the validity has not begun; the waiver's end counts all the same."""
    kind = template(house, "gates")
    run_id, hand = run_from(house, kind), house.hand("both")
    one, two = hand.poll()
    for work in (one, two):
        hand.acquire(work)
    waiting = hand.ask(one)
    given = waiver(house, kind)
    answer = hand.ask(two)
    assert answer.decision is not None
    assert house.state(run_id) == "WaitingForApproval"
    revoke_waiver(house.world.reviewer, waiver_id=given, reason="enough")
    with pytest.raises(ApprovalLapsed, match="waiver"):
        hand.authorize(two, answer.approval_id)
    house.decide(waiting.approval_id)
    with pytest.raises(ApprovalLapsed, match="waiver"):
        hand.authorize(two, answer.approval_id)


@pytest.mark.requirement("LTR-03", "APR-15")
def test_it_never_reaches_further_than_who_gave_it_could(house: House) -> None:
    """A node or a policy that asks for more people, or for others, is not served; deny denies."""
    w = house.world
    narrow = template(house, "narrow")
    waiver(house, narrow, release_id=(twice := _a_plain_one_beside(house)))
    assert waits(house, run_from(house, narrow, releaseId=str(twice))), "the node asks two WorkspaceAdmins"
    kind = template(house)
    waiver(house, kind, release_id=twice)
    words = [{"effect": "require-approval", "quorum": 2}, {"effect": "deny"}]
    with reading(w.tenant_admin):
        document = current_policy(w.tenant_admin).document
    for rule in words:
        rules = [{"actionClass": "shared-write", "environment": "stag*", **rule}]
        publish_policy_revision(w.tenant_admin, document={**document, "rules": rules})
        run_id = run_from(house, kind)
        if rule["effect"] == "deny":
            with pytest.raises(PolicyDenied):
                asked(house, run_id)
        else:
            assert waits(house, run_id)


def _a_plain_one_beside(house: House) -> UUID:
    """A release whose narrow step is followed by one that asks for no more than the policy."""
    [narrow] = [one for one in MANIFEST["workflows"] if one["workflowId"] == "narrow"]
    both = workflow("narrow", *narrow["nodes"], node("later", "publish", side_effect_class="shared-write"))
    others = [one for one in MANIFEST["workflows"] if one is not narrow]
    return house.publish(MANIFEST | {"version": "1.1.0", "workflows": [*others, both]}, commit="b" * 40)


@pytest.mark.requirement("LTR-03")
def test_nobody_is_asked_for_a_waiver_that_could_answer_nothing(house: House) -> None:
    """Each place where the policy or every step's node leaves it nothing to do is named, with the rule."""
    w, kind = house.world, template(house)
    narrow = template(house, "narrow")
    with pytest.raises(WaiverNeverServes, match="would answer no question") as refused:
        ask_waiver(house, narrow)
    [fault] = refused.value.errors
    assert (fault.pointer, "2 people, each WorkspaceAdmin" in fault.detail) == ("/environmentIds/0", True)
    with reading(w.tenant_admin):
        document = current_policy(w.tenant_admin).document
    both = [w.environment, w.environments["production"]]
    for rule, words in (
        ({"effect": "deny"}, "staging: the policy denies shared-write (rule 1"),
        ({"effect": "require-approval", "quorum": 2}, "staging: asked are 2 people"),
        ({"effect": "require-approval", "roles": ["WorkspaceAdmin"]}, "staging: asked are WorkspaceAdmin of"),
    ):
        rules = [{"actionClass": "shared-write", "environment": "stag*", **rule}]
        publish_policy_revision(w.tenant_admin, document={**document, "rules": rules})
        with pytest.raises(WaiverNeverServes) as refused:
            ask_waiver(house, kind, environment_ids=both[::-1])
        assert [(one.pointer, words in one.detail) for one in refused.value.errors] == [
            ("/environmentIds/1", True)
        ]
    ask_waiver(house, kind, environment_ids=both[1:])
    signed = {"actionClass": "publication", "effect": "require-approval", "quorum": 2}
    publish_policy_revision(w.tenant_admin, document={**document, "rules": [signed]})
    ask_waiver(house, kind, environment_ids=both)


@pytest.mark.requirement("LTR-03")
def test_a_waiver_serves_by_the_yes_to_its_own_request_alone(house: House) -> None:
    """Also where, by damage, it names another request that was approved; the lasting one of two serves."""
    kind = template(house)
    short, long = waiver(house, kind, hours=1), waiver(house, kind, hours=9)
    run_id = run_from(house, kind)
    with CaptureQueriesContext(connection) as seen:
        assert asked(house, run_id)[3].waiver_id == long
    sent = [query["sql"] for query in seen.captured_queries]
    held = [sql for sql in sent if "approvals_waiver" in sql and "FOR SHARE" in sql]
    assert [one.hex in sql for one, sql in zip((short, long), held, strict=True)] == [True, True], "by id"
    other = shown(house, waiver(house, template(house, name="other"))).approval_id
    with bound(house.system):
        Waiver.objects.filter(pk__in=(short, long)).update(approval_id=other)
    assert waits(house, run_from(house, kind)), "that yes was about another"
    with pytest.raises(IntegrityError, match="approval_id_tenant_fk"), bound(house.system):
        Waiver.objects.filter(pk=short).update(approval_id=uuid4())


@pytest.mark.requirement("LTR-03")
def test_a_page_of_waivers_costs_the_same_however_long_it_is(house: House) -> None:
    """Places are read once, and uses are counted for the rows of the page without joining all requests."""
    kind = template(house)
    waiver(house, kind)
    asked(house, run_from(house, kind))
    elsewhere = house.world.environments["production"]
    for places in ([elsewhere], [elsewhere, house.world.environment]):
        ask_waiver(house, kind, environment_ids=places)
    waiver(house, kind)
    api = Api.as_(house.world.operator)
    api.get("/factory/waivers")  # keys and caches are warm
    with within_budget("GET /waivers, 4 of one project"):
        listed = api.get("/factory/waivers").json()["items"]
    assert [one["uses"] for one in listed] == [0, 0, 0, 1]
    assert {one for row in listed for one in row["environments"]} == {"production", "staging"}
    with reading(house.system):
        assert "JOIN" not in str(with_uses(waivers(house.system)).query), "counted after the limit"


@pytest.mark.requirement("LTR-03")
def test_a_step_about_which_people_were_asked_stays_theirs(house: House) -> None:
    kind = template(house)
    run_id = run_from(house, kind)
    hand, work, answer, _ = asked(house, run_id)
    waiver(house, kind)
    assert hand.ask(work).decision is None, "the question that waits is not answered by it"
    house.decide(answer.approval_id, "request_changes", reason="say why")
    again = hand.ask(work, OTHER_DIFF)
    assert (again.decision, house.state(run_id)) == (None, "WaitingForApproval")


@pytest.mark.requirement("LTR-03", "APR-21")
def test_it_is_decided_like_a_publication(house: House) -> None:
    """A Reviewer, neither who asked nor the template's author, no broken glass; nothing before."""
    w = house.world
    everybody = everything(house, "everybody")
    kind = template(house, by=everybody)
    asked_for = ask_waiver(house, kind, by=fresh(w.workspace_admin))
    run_id = run_from(house, kind)
    assert waits(house, run_id), "what is not decided allows nothing"
    for who, refusal, glass in (
        (w.workspace_admin, NotEligible, False),
        (w.operator, NotEligible, False),
        (everybody, SeparationOfDuties, False),
        (w.platform_admin, AnswerNotPossible, True),
    ):
        with pytest.raises(refusal):
            decide(house, asked_for["approval"], who, break_glass=glass)
    own = ask_waiver(house, kind, by=everybody, environment_ids=[w.environments["production"]])
    with pytest.raises(SeparationOfDuties):
        decide(house, own["approval"], everybody)
    house.decide(own["approval"], "request_changes", reason="for one night only")
    assert (shown(house, own["waiver"]).state, shown(house, own["waiver"]).end_reason) == (
        "Refused",
        "for one night only",
    )
    house.decide(asked_for["approval"])
    assert shown(house, asked_for["waiver"]).deciders == (w.reviewer.actor.subject,)
    withdrawn = ask_waiver(house, kind)
    revoke_waiver(w.workspace_admin, waiver_id=withdrawn["waiver"], reason="not needed")
    with reading(house.system):
        assert approval(withdrawn["approval"]).state == "Cancelled"
    with pytest.raises(WaiverOver):
        revoke_waiver(w.workspace_admin, waiver_id=withdrawn["waiver"], reason="again")


def decide(house: House, approval_id: UUID, by: Context, **other: Any) -> Any:
    with reading(house.system):
        view = approval(approval_id)
    return decide_approval(
        by,
        approval_id=approval_id,
        decision="approve",
        version=view.version,
        proposal_hash=view.proposal_hash,
        reason="seen",
        **other,
    )


@pytest.mark.requirement("LTR-03")
def test_who_asks_is_told_every_fault(house: House) -> None:
    w, kind = house.world, template(house)
    plain = template(house, "single")
    for changes, place in (
        ({"environment_ids": []}, "/environmentIds"),
        ({"environment_ids": [uuid4()]}, "/environmentIds/0"),
        ({"hours": 24 * 31}, "/expiresAt"),
        ({"hours": -1}, "/expiresAt"),
        ({"reason": " "}, "/reason"),
        ({"reason": "\u200b \u2060"}, "/reason"),
    ):
        with pytest.raises(InvalidInput) as refused:
            ask_waiver(house, kind, **changes)
        assert [fault.pointer for fault in refused.value.errors] == [place]
    with pytest.raises(NothingToWaive):
        ask_waiver(house, plain)
    with pytest.raises(ReleaseNotPublished):
        ask_waiver(house, kind, release_id=uuid4())
    with pytest.raises(TemplateNotFound):
        ask_waiver(house, uuid4())
    with pytest.raises(InsufficientRole):
        ask_waiver(house, kind, by=w.requester)
    retire_run_template(w.operator, template_id=kind, reason="over")
    with pytest.raises(TemplateRetired):
        ask_waiver(house, kind)

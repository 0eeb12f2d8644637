"""What is promised for each answer about an uncertain attempt is what the answer then does."""

import itertools
from copy import deepcopy
from dataclasses import dataclass
from uuid import UUID

import pytest
from django.urls import reverse

from approvals.commands import publish_policy_revision
from approvals.selectors import current_policy
from factory.kernel.clock import now
from factory.kernel.tenancy import reading
from projects.commands import resume_project, suspend_project
from runs.admin.actions.settle import LABELS, cards
from runs.commands import cancel_run, freeze_run, resolve_step
from runs.engine import BECOMES, Outcome, outcome_of_settling
from runs.errors import RunFrozen
from runs.models import Attempt, Step
from runs.operations.resolving import Situations
from runs.reconcilers import LeaseExpiryReconciler
from runs.selectors.answers import OfferedAttempt
from runs.selectors.uncertain import uncertain_attempts
from tests.console.test_pages import signed_in
from tests.runs.test_clocks import pass_time
from tests.support.evidence import violations
from tests.support.hands import Hand
from tests.support.receipts import costing
from tests.support.running import House

pytestmark = pytest.mark.slow

HOW = {"gated": ("alone",), "gates": ("alone", "asks", "in doubt")}


@dataclass(frozen=True)
class Case:
    """One way for things to stand, and one answer."""

    workflow: str
    resolution: str
    sibling: str = "alone"
    late: bool = False
    suspended: bool = False
    ended: str = ""
    frozen: bool = False


ANSWERS = tuple(LABELS)
AT_WORK = [
    Case(flow, answer, sibling, late, suspended)
    for flow, siblings in HOW.items()
    for sibling, late, suspended, answer in itertools.product(siblings, (False, True), (False, True), ANSWERS)
]
STOPPED = [
    Case("gates", answer, ended=ended, frozen=frozen)
    for ended, frozen, answer in itertools.product(
        ("", "Cancelling", "Cancelled", "Failed"), (False, True), ANSWERS
    )
    if ended or frozen
]


def spending(house: House, on_limit: str) -> None:
    with reading(house.system):
        document = deepcopy(current_policy(house.system).document)
    document["spend"] = {**document.get("spend", {}), "onLimit": on_limit}
    publish_policy_revision(house.world.tenant_admin, document=document)


def act_in_doubt(house: House, worker: Hand, work: OfferedAttempt) -> None:
    asked = worker.ask(work)
    house.decide(asked.approval_id)
    worker.authorize(work, asked.approval_id)
    worker.report(work, "Uncertain", "uncertain", reason="the line was cut")


def stand(house: House, case: Case, worker: Hand, *, spent: bool) -> UUID:
    """A run that stands so; its first step is in doubt."""
    run_id = house.run(case.workflow)
    first, *others = sorted(worker.poll(), key=lambda work: work.snapshot["stepKey"])
    for work in (first, *others):
        worker.acquire(work)
    if case.late:
        pass_time(house, run_id, 60)
    if case.sibling == "in doubt":
        act_in_doubt(house, worker, others[0])
    act_in_doubt(house, worker, first)
    if case.sibling == "asks":
        worker.ask(others[0])
    if spent and others and case.sibling != "in doubt":  # no outcome has come with it: nobody has looked yet
        worker.receipts(others[0], costing("6"))
    if case.ended in ("Cancelling", "Cancelled"):
        cancel_run(house.world.operator, run_id=run_id, reason="stop")
    if case.ended == "Cancelled":
        worker.report(others[0], "Cancelled", "cancellation")
    if case.ended == "Failed":
        worker.fail(others[0], "permanent")
    assert case.ended in ("", house.state(run_id))
    if case.frozen:
        freeze_run(house.system, run_id=run_id, findings=["A1"])
    if case.suspended:
        suspend_project(house.world.workspace_admin, project_id=house.world.project, reason="quiet")
    return run_id


def promised(house: House, step_id: UUID, resolution: str) -> tuple[Outcome, str]:
    """What the function says, and what the page says of it."""
    with reading(house.system):
        step = Step.objects.select_related("run__snapshot").get(pk=step_id)
        attempt = Attempt.objects.filter(step_id=step_id).order_by("-number")[0]
        outcome = outcome_of_settling(Situations(step.run, now()).of(step, attempt), resolution)
        [card] = cards(step.run, uncertain_attempts([step]), now())
    said = {answer.value: answer.follows for answer in card.answers}
    return outcome, card.refused or said[resolution]


def settled(house: House, run_id: UUID, step: Step, resolution: str) -> bool:
    """Whether the answer was taken."""
    try:
        resolve_step(
            house.world.operator,
            run_id=run_id,
            step_id=step.id,
            resolution=resolution,
            evidence="I looked.",
            version=step.version,
        )
    except RunFrozen:
        return False
    return True


def check(house: House, case: Case, number: int, *, spent: bool = False) -> None:
    worker = house.hand(f"w{number}", slots=8)
    run_id = stand(house, case, worker, spent=spent)
    key = {"gated": "publish", "gates": "one"}[case.workflow]
    step, before = house.steps(run_id)[key], house.state(run_id)
    outcome, said = promised(house, step.id, case.resolution)
    assert settled(house, run_id, step, case.resolution) is not outcome.refused, (case, said)
    became = (str(house.steps(run_id)[key].state), house.state(run_id))
    assert became == (outcome.step or str(step.state), outcome.run or before), (case, said)
    again = any(work.step_id == step.id for work in worker.poll())
    assert again == outcome.retried, (case, said)
    assert ("One more attempt" in said) == (became[0] == "Pending" and not case.late), (case, said)
    assert ("frozen" in said) == outcome.refused, (case, said)
    if case.suspended:
        resume_project(house.world.workspace_admin, project_id=house.world.project, reason="go on")
    if became[1] == "Running" and case.late and case.sibling == "alone":
        LeaseExpiryReconciler().run_once(house.tenant)
        assert house.state(run_id) == "Failed", (case, said)
        return
    if became[1] in ("Running", "WaitingForApproval") and not case.frozen:
        cancel_run(house.world.operator, run_id=run_id, reason="the next one")


@pytest.mark.parametrize("money", ["enough", "ask", "fail"])
def test_what_is_promised_at_work_is_what_happens(tenant_id: str, money: str) -> None:
    house = House(tenant_id)
    if money != "enough":
        spending(house, money)
    for number, case in enumerate(AT_WORK):
        check(house, case, number, spent=money != "enough")
    assert violations(house.tenant) == []


@pytest.mark.parametrize("resolution", BECOMES)
def test_what_is_promised_while_the_step_s_own_question_is_open_is_what_happens(
    house: House, resolution: str
) -> None:
    run_id, worker = house.run("gated"), house.hand()
    work = worker.take()
    worker.ask(work)
    worker.report(work, "Uncertain", "uncertain", reason="the line was cut")
    step = house.steps(run_id)["publish"]
    outcome, said = promised(house, step.id, resolution)
    assert settled(house, run_id, step, resolution)
    became = (str(house.steps(run_id)["publish"].state), house.state(run_id))
    assert became == (outcome.step, outcome.run), said
    assert violations(house.tenant) == []


def test_what_is_promised_of_a_run_that_does_not_go_on_is_what_happens(tenant_id: str) -> None:
    house = House(tenant_id)
    for number, case in enumerate(STOPPED):
        check(house, case, number)
    assert violations(house.tenant) == []


def test_the_page_says_what_follows_and_offers_nothing_of_a_frozen_run(house: House) -> None:
    worker = house.hand()
    run_id = stand(house, Case("gates", "give-up", "asks"), worker, spent=False)
    operator, url = signed_in(house.world.operator), reverse("admin:runs_run_change", args=[run_id])
    page = operator.get(url).content.decode()
    assert "One more attempt, which asks for approval again, once a person has decided." in page
    assert "The step becomes Succeeded, and the run waits for a person." in page
    assert "stands still since" in page
    assert "an Operator is to settle what is uncertain" in page
    freeze_run(house.system, run_id=run_id, findings=["A1"])
    page = operator.get(url).content.decode()
    assert "nobody can settle this before a PlatformAdmin lifts the freeze" in page
    assert 'value="effect-happened"' not in page

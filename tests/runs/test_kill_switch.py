"""The kill switch: one reasoned act, after which nothing starts and every open run is asked to stop."""

from uuid import uuid4

import pytest

from factory.kernel.errors import InsufficientRole, InvalidInput
from factory.kernel.tenancy import reading
from projects.commands import kill_project, resume_project, suspend_project
from projects.errors import KillSwitchInProgress, ProjectNotActive
from projects.models import Project
from runs.commands import cancel_killed_run, cancel_run
from runs.models import CancellationIntent
from runs.reconcilers import KillSwitchReconciler
from runs.rest.submissions import submit
from tests.support.acts import deliver
from tests.support.api import Api
from tests.support.evidence import audits, journal, violations
from tests.support.running import House

pytestmark = pytest.mark.slow


def kill(house: House, reason: str = "it goes wild") -> str:
    return kill_project(house.world.workspace_admin, project_id=house.world.project, reason=reason)


def resume(house: House) -> str:
    return resume_project(house.world.workspace_admin, project_id=house.world.project, reason="over")


def project(house: House) -> Project:
    with reading(house.system):
        return Project.objects.get(pk=house.world.project)


@pytest.mark.requirement("RUN-25", "POL-08")
def test_stops_the_project_and_every_open_run_of_it(house: House) -> None:
    worker = house.hand()
    done, held, waiting = house.run(), house.run(), house.run("gated")
    works = {work.run_id: work for work in worker.poll()}
    for work in works.values():
        worker.acquire(work)
    worker.report(works[done], output=1)
    worker.ask(works[waiting], park=True)
    accepted = house.accept()
    assert kill(house) == "Suspended"
    with pytest.raises(ProjectNotActive):
        submit(house.world.requester, payload=house.payload(), key=str(uuid4()))
    assert worker.poll() == []
    deliver(house)
    states = [house.state(run_id) for run_id in (done, held, waiting, accepted)]
    assert states == ["Completed", "Cancelling", "Cancelled", "Cancelled"]
    with reading(house.system):
        intents = list(CancellationIntent.objects.order_by("requested_at"))
    admin = house.world.workspace_admin.actor.subject
    assert {(i.requested_by, i.reason) for i in intents} == {(admin, "Kill switch: it goes wild")}
    assert len(intents) == 3
    assert journal(house.system, house.world.project)[1:] == [
        ("Active", "Suspended", "KillSwitchThrown"),
        ("Suspended", "Suspended", "KillSwitchFinished"),
    ]
    [audit] = audits(house.system, "KillProject")
    assert (audit.reason, audit.actor, audit.outcome) == ("it goes wild", admin, "done")
    assert resume(house) == "Active"
    row = project(house)
    assert (row.killing_since, row.killed_by, row.kill_reason, row.suspension_reason) == (None, "", "", "")
    worker.report(works[held], "Cancelled", "cancellation")
    assert house.state(held) == "Cancelled"


def test_killed_half_way_it_is_finished_and_until_then_the_project_stays_shut(house: House) -> None:
    runs = [house.run() for _ in range(3)]
    kill(house)
    first = KillSwitchReconciler().find(None, house.tenant)[0]
    cancel_killed_run(house.system, run_id=first.id)
    with pytest.raises(KillSwitchInProgress):
        resume(house)
    assert kill(house, "again") == "Suspended", "The first reason stands."
    KillSwitchReconciler().run_once(house.tenant)
    assert {house.state(run_id) for run_id in runs} == {"Cancelled"}
    assert (project(house).killing_since, project(house).kill_reason) == (None, "it goes wild")
    deliver(house)
    assert KillSwitchReconciler().run_once(house.tenant).found == 0
    assert len(audits(house.system, "CancelRun")) == 3
    assert resume(house) == "Active"


def test_reaches_a_project_that_was_suspended_before_and_spares_its_sister(house: House) -> None:
    run_id = house.run()
    suspend_project(house.world.workspace_admin, project_id=house.world.project, reason="an audit")
    assert kill(house) == "Suspended"
    deliver(house)
    assert house.state(run_id) == "Cancelled"
    row = project(house)
    assert (row.suspension_reason, row.kill_reason) == ("an audit", "it goes wild")
    assert journal(house.system, row.id)[-2:] == [
        ("Suspended", "Suspended", "KillSwitchThrown"),
        ("Suspended", "Suspended", "KillSwitchFinished"),
    ]
    other = House(f"{house.tenant}-b")
    theirs = other.run()
    KillSwitchReconciler().run_once()
    assert other.state(theirs) == "Accepted"
    assert cancel_killed_run(other.system, run_id=theirs) == "Accepted", "Nobody has thrown its switch."


def test_is_an_admins_and_reasoned(house: House) -> None:
    for who in ("requester", "operator", "reviewer", "observer"):
        with pytest.raises(InsufficientRole):
            kill_project(house.world.ctx(who), project_id=house.world.project, reason="no")
    with pytest.raises(InvalidInput):
        kill(house, "  ")
    assert project(house).state == "Active"


def test_over_the_api_it_tells_what_it_would_do_and_how_far_it_is(house: House) -> None:
    house.run()
    house.run()
    worker = house.hand()
    worker.acquire(worker.poll()[0])
    api, path = Api.as_(house.world.workspace_admin), f"/factory/projects/{house.world.project}"
    assert api.get(path).json()["inUse"] == {"openRuns": 2, "heldAttempts": 1}
    answer = api.post(f"{path}/kill", {"reason": "it goes wild"}, Idempotency_Key="k")
    assert (answer.status_code, answer.json()["state"]) == (200, "Suspended")
    assert answer.json()["killingSince"] is not None
    assert api.post(f"{path}/resume", {"reason": "on"}).json()["type"].endswith("kill-switch-in-progress")
    deliver(house)
    body = api.get(path).json()
    assert (body["killingSince"], body["killReason"]) == (None, "it goes wild")
    assert body["inUse"] == {"openRuns": 0, "heldAttempts": 1}


def test_a_suspended_project_lets_decide_and_cancel_and_its_leases_finish(house: House) -> None:
    worker = house.hand()
    held, asks = house.run(), house.run("gated")
    works = {work.run_id: work for work in worker.poll()}
    for work in works.values():
        worker.acquire(work)
    asked = worker.ask(works[asks], park=True)
    suspend_project(house.world.workspace_admin, project_id=house.world.project, reason="an audit")
    house.decide(asked.approval_id)
    assert worker.poll() == [], "Decided, and dispatched when it is resumed."
    worker.report(works[held], output=1)
    assert house.state(held) == "Completed"
    stop = cancel_run(house.world.requester, run_id=asks, reason="not needed")
    assert stop == "Cancelled"
    assert violations(house.tenant) == []

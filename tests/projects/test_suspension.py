"""Suspending stops new work, and nothing else."""

import threading
import time
from uuid import uuid4

import pytest
from django.db import connections

from factory.kernel.commanding import IdempotencyKey, IdempotentReplay, command
from factory.kernel.context import system
from factory.kernel.errors import (
    InsufficientRole,
    InsufficientScope,
    InvalidInput,
    NotFound,
    TransitionRefused,
)
from factory.kernel.permissions import permit, register_permit
from factory.kernel.recording import NoCommandOpen
from factory.kernel.tenancy import reading
from projects.commands import resume_project, suspend_project
from projects.errors import ProjectNotActive
from projects.models import Project
from projects.operations import lock_active_project, lock_project
from tests.support import evidence
from tests.support.world import World, context_of, ctx, subject_of, world

pytestmark = pytest.mark.slow

TOPIC = "projects.projects.v1.project-state-changed"

register_permit(permit("TestTakeProject", scope=None, roles=None, kinds=("system", "person")))


@command("TestTakeProject", audited=False)
def take_project(context, *, meanwhile=None):
    """What a submission does first: the shared lock, and then its own work."""
    view = lock_active_project(context)
    if meanwhile:
        meanwhile()
    return view


@pytest.fixture
def w(tenant_id: str) -> World:
    return world(tenant_id)


def suspend(w, context=None, **values):
    return suspend_project(context or w.workspace_admin, project_id=w.project, reason="Audit", **values)


def resume(w, context=None, **values):
    return resume_project(context or w.workspace_admin, project_id=w.project, reason="Audit over", **values)


def test_suspends_and_resumes_with_exactly_this_evidence(w):
    assert suspend(w) == "Suspended"
    with reading(w.observer):
        row = Project.objects.get(pk=w.project)
    assert (row.suspension_reason, row.version) == ("Audit", 2)
    assert row.suspended_at is not None
    assert resume(w) == "Active"
    assert evidence.journal(w.observer, w.project) == [
        ("None", "Active", "Onboarded"),
        ("Active", "Suspended", "SuspendRequested"),
        ("Suspended", "Active", "ResumeRequested"),
    ]
    told = [
        (topic, data["fromState"], data["toState"], data["cause"])
        for topic, data in evidence.outbox(w.observer, w.project)
    ]
    assert told == [
        (TOPIC, None, "Active", "Onboarded"),
        (TOPIC, "Active", "Suspended", "SuspendRequested"),
        (TOPIC, "Suspended", "Active", "ResumeRequested"),
    ]
    [audit] = evidence.audits(w.observer, "SuspendProject")
    assert (audit.reason, audit.actor, audit.outcome) == ("Audit", w.workspace_admin.actor.subject, "done")
    assert evidence.violations(w.tenant) == []


@pytest.mark.requirement("PRJ-02")
def test_a_suspended_project_takes_no_work(w):
    suspend(w)
    with pytest.raises(ProjectNotActive) as refusal:
        take_project(w.system())
    assert refusal.value.http_status == 422
    resume(w)
    assert take_project(w.system()).state == "Active"


@pytest.mark.requirement("PRJ-01")
def test_work_in_an_unknown_project_is_not_found(w):
    other = world(f"{w.tenant}-b")
    for project in (uuid4(), other.project, None):
        with pytest.raises(NotFound):
            take_project(system(w.tenant, "test", project_id=project))


def test_refuses_to_suspend_twice(w):
    suspend(w)
    before = evidence.counts(w.observer)
    with pytest.raises(TransitionRefused, match="is Suspended"):
        suspend(w)
    assert evidence.counts(w.observer) == before


def test_refuses_to_resume_an_active_project(w):
    with pytest.raises(TransitionRefused, match="is Active"):
        resume(w)


@pytest.mark.parametrize("act", [suspend_project, resume_project])
@pytest.mark.parametrize("reason", ["", "  ", "x" * 2001])
def test_needs_a_reason(w, act, reason):
    with pytest.raises(InvalidInput) as refusal:
        act(w.workspace_admin, project_id=w.project, reason=reason)
    assert [fault.pointer for fault in refusal.value.errors] == ["/reason"]


@pytest.mark.parametrize("act", [suspend, resume])
@pytest.mark.parametrize(
    "member", ["requester", "reviewer", "operator", "finance", "auditor", "observer", "service"]
)
def test_refuses_every_role_but_an_admin(w, act, member):
    with pytest.raises(InsufficientRole):
        act(w, getattr(w, member))


@pytest.mark.parametrize("act", [suspend, resume])
def test_refuses_a_token_without_the_scope(w, act):
    with pytest.raises(InsufficientScope):
        act(w, ctx(w.workspace_admin, scopes=["factory.projects.read"]))


@pytest.mark.requirement("IDN-10")
@pytest.mark.parametrize("act", [suspend, resume])
def test_another_tenants_project_is_not_found(w, act):
    other = world(f"{w.tenant}-b")
    before = evidence.counts(w.observer)
    for stranger in (other.workspace_admin, other.tenant_admin, other.platform_admin):
        with pytest.raises(NotFound):
            act(w, stranger)
    assert evidence.counts(w.observer) == before


def test_an_admin_of_the_tenant_suspends_without_a_project_in_the_token(w):
    wide = context_of(subject_of(w.tenant, "tenant_admin"), w.tenant, None)
    assert suspend(w, wide) == "Suspended"


def test_happens_once_under_a_key(w):
    keyed = suspend_project.under(IdempotencyKey("k", "sha256:a"))
    assert keyed(w.workspace_admin, project_id=w.project, reason="Audit") == "Suspended"
    resume(w)
    with pytest.raises(IdempotentReplay) as again:
        keyed(w.workspace_admin, project_id=w.project, reason="Audit")
    assert again.value.result == "Suspended"
    with reading(w.observer):
        assert Project.objects.get(pk=w.project).state == "Active"


def in_thread(act, *args):
    """Run something on a connection of its own; what it answered or raised is in `done`."""
    done: list = []

    def run():
        try:
            done.append(act(*args))
        except Exception as fault:
            done.append(fault)
        finally:
            connections.close_all()

    thread = threading.Thread(target=run)
    thread.start()
    return thread, done


def test_a_suspension_waits_for_the_submission_that_came_first(w):
    started: list = []

    def meanwhile():
        started.append(in_thread(suspend, w))
        time.sleep(0.3)
        started.append(Project.objects.get(pk=w.project).state)

    assert take_project(w.system(), meanwhile=meanwhile).state == "Active"
    (thread, done), seen = started
    thread.join(10)
    assert (seen, done) == ("Active", ["Suspended"])
    with pytest.raises(ProjectNotActive):
        take_project(w.system())


def test_submissions_share_the_lock(w):
    inside: list = []

    def meanwhile():
        thread, done = in_thread(take_project, w.system())
        thread.join(5)
        inside.extend(done)

    take_project(w.system(), meanwhile=meanwhile)
    assert [view.state for view in inside] == ["Active"]


def test_a_submission_that_waited_for_a_suspension_is_refused(w, monkeypatch):
    """The verdict is of the row as it is once the lock is held, not as it was when the wait began."""
    import projects.commands.suspension as suspension

    waiting: list = []
    real = suspension.now

    def now():
        waiting.append(in_thread(take_project, w.system()))
        time.sleep(0.3)
        return real()

    monkeypatch.setattr(suspension, "now", now)
    suspend(w)
    thread, done = waiting[0]
    thread.join(10)
    assert [type(fault) for fault in done] == [ProjectNotActive]


def test_many_submissions_and_a_suspension_end_in_one_order(w):
    """Whatever the interleaving: each submission is wholly before the suspension, or refused by it."""
    suspended = threading.Event()
    late: list = []

    def submit():
        after = suspended.is_set()
        view = take_project(w.system())
        if after:
            late.append(view)

    def suspend_now():
        answer = suspend(w)
        suspended.set()
        return answer

    jobs = (
        [in_thread(submit) for _ in range(8)]
        + [in_thread(suspend_now)]
        + [in_thread(submit) for _ in range(8)]
    )
    for thread, _ in jobs:
        thread.join(20)
    faults = [done[0] for _, done in jobs if done and isinstance(done[0], Exception)]
    assert all(isinstance(fault, ProjectNotActive) for fault in faults), faults
    assert late == []
    assert evidence.violations(w.tenant) == []


def test_an_operation_needs_an_open_command(w):
    with pytest.raises(NoCommandOpen):
        lock_project(w.system())

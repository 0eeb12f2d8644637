"""Two at once on one request: whoever is first, the end is one that one after the other could have had."""

import random
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any
from uuid import uuid4

import pytest

from approvals.commands import adopt_platform_policy, expire_approval, publish_policy_revision
from approvals.policy.document import platform_default
from approvals.reconcilers import ApprovalExpiryReconciler
from tests.approvals.test_decisions import decide
from tests.faults.rounds import rounds
from tests.support.evidence import audits, journal, outbox, violations
from tests.support.races import race, refusals
from tests.support.world import world

pytestmark = pytest.mark.slow
ROUNDS = rounds(8)


def closings(asker, view) -> int:
    return sum(1 for before, _, _ in journal(asker.house, view.id) if before == "Pending")


@pytest.mark.requirement("APR-10", "FLR-04")
def test_two_decisions(asker, stage):
    world_ = asker.world
    for _ in range(ROUNDS):
        step = asker.again()
        view = step.ask()
        outcomes = race(
            partial(decide, world_.reviewer, view, "approve"),
            partial(decide, world_.workspace_admin, view, "reject"),
        )
        assert refusals(outcomes) == ["AlreadyDecided"]
        assert closings(step, view) == 1
    told = [payload for topic, payload in outbox(asker.house, asker.run_id) if topic.endswith("decided")]
    assert len(told) == len(stage.moved) == ROUNDS
    refused = [e for e in audits(asker.house, "DecideApproval") if e.outcome == "refused"]
    assert len(refused) == ROUNDS
    assert violations(world_.tenant) == []


def at(moment: float, act: Callable[[], Any]) -> Any:
    time.sleep(max(0.0, moment - time.time()))
    return act()


def test_decision_and_expiry(asker, soon):
    ends = set()
    for _ in range(8):
        step = asker.again()
        view = step.ask()
        until = view.expires_at.timestamp() + random.uniform(-0.02, 0.01)

        expire = partial(expire_approval, asker.house, approval_id=view.id, version=view.version)
        outcomes = race(
            partial(at, until, partial(decide, asker.world.reviewer, view)), partial(at, until, expire)
        )
        end = step.view(view.id)
        ends.add(end.state)
        assert closings(step, view) <= 1
        if end.state == "Approved":
            assert end.decided_at < end.expires_at
            assert refusals(outcomes)[0] in ("NotDueYet", "VersionMismatch")
        elif end.state == "Expired":
            assert end.closed_at >= end.expires_at
            assert "ApprovalExpired" in refusals(outcomes) or "ApprovalOver" in refusals(outcomes)
    assert ends <= {"Approved", "Expired", "Pending"}
    assert violations(asker.world.tenant) == []


def test_decision_and_cancellation(asker):
    for _ in range(ROUNDS):
        step = replace(asker.again(), run_id=uuid4())
        view = step.ask()
        outcomes = race(partial(decide, asker.world.reviewer, view), step.cancel)
        end = step.view(view.id)
        assert closings(step, view) == 1
        if end.state == "Approved":
            assert outcomes[1] == []
        else:
            assert end.state == "Cancelled"
            assert refusals(outcomes) == ["ApprovalOver"]
    assert violations(asker.world.tenant) == []


def test_two_uses(asker):
    for _ in range(ROUNDS):
        step = asker.again()
        view = decide(asker.world.reviewer, step.ask())
        rival = replace(step, attempt_id=uuid4())
        outcomes = race(partial(step.take, view), partial(rival.take, view))
        assert refusals(outcomes) == ["AuthorizationUsed"]
        assert asker.view(view.id).authorization in outcomes
    assert violations(asker.world.tenant) == []


def test_the_same_holder_twice_is_one_use(asker):
    for _ in range(ROUNDS):
        step = asker.again()
        view = decide(asker.world.reviewer, step.ask())
        first, second = race(partial(step.take, view), partial(step.take, view))
        assert first == second
    assert violations(asker.world.tenant) == []


@pytest.mark.requirement("JOB-12")
def test_two_reconcilers(asker, soon, stage):
    views = [asker.again().ask() for _ in range(10)]
    time.sleep(soon)
    tenant = asker.world.tenant
    rounds = race(*[lambda: ApprovalExpiryReconciler().run_once(tenant)] * 3)
    assert sum(counted.repaired for counted in rounds) == 10
    assert [asker.view(v.id).state for v in views] == ["Expired"] * 10
    assert len(stage.moved) == 10
    assert violations(tenant) == []


@pytest.mark.requirement("APR-10")
def test_five_siblings_in_random_order_two_at_once(asker, stage):
    """The run may go on only after the last of its requests is decided."""
    steps = [asker.again() for _ in range(5)]
    views = [step.ask() for step in steps]
    random.shuffle(views)
    one = [partial(decide, asker.world.reviewer, v) for v in views[:3]]
    other = [partial(decide, asker.world.workspace_admin, v) for v in views[3:]]
    race(lambda: [act() for act in one], lambda: [act() for act in other])
    started = [
        cause for v in views for _, _, cause in journal(asker.house, v.id) if cause == "ValidityStarted"
    ]
    assert len(started) == 5
    untils = {asker.view(v.id).valid_until for v in views}
    assert len(untils) == 1, "all of them start when the last was decided"
    assert violations(asker.world.tenant) == []


def test_revisions_published_at_once_have_numbers_without_a_gap(tenant_id):
    home = world(tenant_id)
    publish = partial(publish_policy_revision, home.workspace_admin, document=platform_default())
    adopt = partial(adopt_platform_policy, home.system())
    outcomes = race(publish, publish, publish, publish, adopt, adopt)
    assert sorted(outcomes[:4]) in (["r1", "r2", "r3", "r4"], ["r2", "r3", "r4", "r5"])
    assert violations(tenant_id) == []

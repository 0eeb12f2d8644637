"""What every command of the registry keeps: exact evidence, refused states, the tenant, the key, the role."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest

from factory.kernel.commanding import IdempotencyKey, IdempotentReplay, commands
from factory.kernel.context import Context
from factory.kernel.errors import DomainError, Forbidden, IdempotencyConflict, NotFound
from factory.kernel.hashing import digest
from factory.kernel.tenancy import reading
from registry.commands import deprecate_release, revoke_release
from registry.models import Alias
from registry.publication.resolving import closure_of, due_candidate
from tests.registry.support import Registry, manifest
from tests.support.evidence import audits, counts, journal, outbox, violations
from tests.support.world import ctx as with_scopes

pytestmark = pytest.mark.slow

RELEASES = "agent-registry.releases.v1.asset-release-"
APPROVALS = "run-control.approvals.v1.approval-"
ALIASES = "agent-registry.aliases.v1.alias-"


@dataclass(frozen=True)
class Case:
    """One command: how its release comes to be, what it is called with, and what it leaves behind."""

    state: str
    """The state that it starts from in `values`; the others in `refused` refuse it."""
    values: Callable[[Registry, UUID], dict[str, Any]]
    caller: Callable[[Registry], Context]
    entry: tuple[str, str, str]
    topics: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    resolved: bool = True
    evaluated: bool = False
    system_only: bool = False


def release_in(r: Registry, state: str, *, resolved: bool = True, evaluated: bool = True) -> UUID:
    """A release in a state, with no alias that names it."""
    if state == "Draft":
        release_id = r.resolved("1.0.0") if resolved else r.submit("1.0.0")
        if resolved and evaluated:
            r.evaluate(release_id)
        return release_id
    if state == "InReview":
        return r.in_review("1.0.0")
    release_id = r.published("1.0.0")
    r.published("1.1.0")
    if state == "Deprecated":
        deprecate_release(r.w.operator, release_id=release_id, in_flight="drain", reason="old")
    if state == "Revoked":
        revoke_release(r.w.operator, release_id=release_id, in_flight="drain", reason="leaks")
    return release_id


def evaluation(r: Registry, release_id: UUID) -> dict[str, Any]:
    return {
        "release_id": release_id,
        "release_hash": r.view(release_id).hash,
        "suite": "smoke",
        "suite_version": "1.0.0",
        "scores": {"found": 1},
        "evidence_hash": digest("evidence"),
    }


def submission(r: Registry, _: UUID) -> dict[str, Any]:
    commit = r.repository.commit(manifest(version="2.0.0"))
    return {"asset": "sample", "version": "2.0.0", "repository": r.repository.url, "commit": commit}


def closing(r: Registry, release_id: UUID) -> dict[str, Any]:
    ctx = r.w.system("ClosureResolver")
    candidate = due_candidate(ctx, release_id)
    assert candidate is not None
    return {"release_id": release_id, "resolved": closure_of(ctx, candidate)}


def failing(_: Registry, release_id: UUID) -> dict[str, Any]:
    return {"release_id": release_id, "attempt": 0, "error": "It is away.", "final": False}


def ending(_: Registry, release_id: UUID) -> dict[str, Any]:
    return {"release_id": release_id, "in_flight": "drain", "reason": "It is old."}


def pointing(_: Registry, release_id: UUID) -> dict[str, Any]:
    return {"asset": "sample", "alias": "stable", "release_id": release_id, "version": 0}


CASES = {
    "SubmitRelease": Case(
        "Draft",
        submission,
        lambda r: r.w.requester,
        ("None", "Draft", "Submitted"),
        (RELEASES + "submitted",),
    ),
    "ResolveClosure": Case(
        "Draft",
        closing,
        lambda r: r.w.system("ClosureResolver"),
        ("Draft", "Draft", "ClosureResolved"),
        resolved=False,
        system_only=True,
    ),
    "RecordResolutionFailure": Case(
        "Draft",
        failing,
        lambda r: r.w.system("ClosureResolver"),
        ("Draft", "Draft", "ClosureFailed"),
        resolved=False,
        system_only=True,
    ),
    "RecordEvaluation": Case(
        "Draft",
        evaluation,
        lambda r: r.w.requester,
        ("Draft", "Draft", "EvaluationRecorded"),
        refused=("InReview", "Published", "Deprecated", "Revoked"),
    ),
    "RequestReview": Case(
        "Draft",
        lambda r, release_id: {"release_id": release_id},
        lambda r: r.w.requester,
        ("Draft", "InReview", "ReviewRequested"),
        (APPROVALS + "requested",),
        refused=("InReview", "Published", "Deprecated", "Revoked"),
        evaluated=True,
    ),
    "MoveAlias": Case(
        "Published",
        pointing,
        lambda r: r.w.workspace_admin,
        ("None", "Set", "AliasCreated"),
        (ALIASES + "moved",),
        refused=("Draft", "InReview", "Deprecated", "Revoked"),
    ),
    "DeprecateRelease": Case(
        "Published",
        ending,
        lambda r: r.w.operator,
        ("Published", "Deprecated", "Deprecated"),
        (RELEASES + "deprecated",),
        refused=("Draft", "InReview", "Deprecated", "Revoked"),
    ),
    "RevokeRelease": Case(
        "Published",
        ending,
        lambda r: r.w.operator,
        ("Published", "Revoked", "Revoked"),
        (RELEASES + "revoked",),
        refused=("Draft", "Revoked"),
    ),
}
PEOPLES = [name for name, case in CASES.items() if not case.system_only]


def prepared(r: Registry, name: str) -> tuple[Any, Case, UUID, dict[str, Any]]:
    case = CASES[name]
    release_id = release_in(r, case.state, resolved=case.resolved, evaluated=case.evaluated)
    return commands()[name], case, release_id, case.values(r, release_id)


def entity_of(r: Registry, name: str, release_id: UUID, answer: Any) -> UUID:
    """What the command's journal entry is about."""
    if name == "SubmitRelease":
        return UUID(answer)
    if name == "MoveAlias":
        with reading(r.w.system()):
            return UUID(str(Alias.objects.get(name="stable").id))
    return release_id


def test_every_command_is_tried_here():
    own = {name for name, made in commands().items() if made.body.__module__.startswith("registry.")}
    assert own == set(CASES)


@pytest.mark.parametrize("name", CASES)
def test_leaves_exactly_its_evidence(r, name):
    command, case, release_id, values = prepared(r, name)
    told, noted = len(outbox(r.w.system(), release_id)), len(audits(r.w.system(), name))
    entity = release_id if name not in ("SubmitRelease", "MoveAlias") else None
    before = len(journal(r.w.system(), entity)) if entity else 0
    answer = command(case.caller(r), **values)
    entity = entity_of(r, name, release_id, answer)
    assert journal(r.w.system(), entity)[before:] == [case.entry]
    events = outbox(r.w.system(), entity)
    fresh = events[told:] if entity == release_id else events
    assert tuple(topic for topic, _ in fresh) == case.topics
    assert len(audits(r.w.system(), name)) > noted
    assert violations(r.w.tenant) == []


@pytest.mark.requirement("REG-01")
@pytest.mark.parametrize(("name", "state"), [(name, s) for name, case in CASES.items() for s in case.refused])
def test_refuses_every_other_state_and_changes_nothing(r, name, state):
    case = CASES[name]
    release_id = release_in(r, state)
    values, before = case.values(r, release_id), counts(r.w.system())
    with pytest.raises(DomainError) as refused:
        commands()[name](case.caller(r), **values)
    assert refused.value.http_status in (409, 422)
    assert counts(r.w.system()) == before


@pytest.mark.parametrize("name", [name for name in CASES if name != "SubmitRelease"])
def test_does_not_find_another_tenants(r, tmp_path, name):
    command, case, release_id, values = prepared(r, name)
    other = Registry(f"{r.w.tenant}-b", tmp_path / "b")
    before = journal(r.w.system(), release_id)
    with pytest.raises(NotFound):
        command(case.caller(other), **values)
    assert journal(r.w.system(), release_id) == before


@pytest.mark.parametrize("name", PEOPLES)
def test_happens_once_under_one_key(r, name):
    command, case, _, values = prepared(r, name)
    caller, once = case.caller(r), IdempotencyKey("key-1", digest("the request"))
    first = command.under(once)(caller, **values)
    before = counts(r.w.system())
    with pytest.raises(IdempotentReplay) as again:
        command.under(once)(caller, **values)
    assert again.value.result == first
    with pytest.raises(IdempotencyConflict):
        command.under(IdempotencyKey("key-1", digest("another request")))(caller, **values)
    assert counts(r.w.system()) == before


@pytest.mark.parametrize("name", CASES)
def test_needs_its_scope_and_a_role(r, name):
    command, case, _, values = prepared(r, name)
    before = counts(r.w.system())[:2]
    callers = [r.w.observer, with_scopes(r.w.tenant_admin, {"factory.registry.read"})]
    if case.system_only:
        callers += [r.w.platform_admin, r.w.service]
    for caller in callers:
        with pytest.raises(Forbidden):
            command(caller, **values)
    assert counts(r.w.system())[:2] == before

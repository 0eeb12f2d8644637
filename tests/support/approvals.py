"""Asking and answering in tests, as the apps above do it: by commands that join the operations."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID, uuid4

from django.db import connection, connections, transaction

from approvals import operations, selectors, subjects
from approvals.commands import adopt_platform_policy
from approvals.selectors import ApprovalView, AuthorizationView, PolicyView
from approvals.states import SubjectType
from factory.kernel.commanding import command
from factory.kernel.context import Context
from factory.kernel.errors import DomainError
from factory.kernel.permissions import permit, register_permit
from factory.kernel.tenancy import reading
from tests.support.proposals import DIFF
from tests.support.world import World, world

for name in ("TestAsk", "TestConsume", "TestCancelPending", "TestStartValidity", "TestSupersede"):
    register_permit(permit(name, scope=None, roles=(), kinds=("system",), level="tenant"))


@dataclass
class Stage(subjects.Subject):
    """A subject whose moves a test can see. Its lock is real, its state is a list."""

    moved: list[ApprovalView] = field(default_factory=list)
    asked_again: list[tuple[ApprovalView, ApprovalView]] = field(default_factory=list)
    outdated: DomainError | None = None
    fault: Exception | None = None

    def lock(self, ctx: Context, subject_id: UUID, run_id: UUID | None) -> None:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"test:{run_id or subject_id}"]
            )

    def refusal(self, view: ApprovalView) -> DomainError | None:
        return self.outdated

    def decided(self, ctx: Context, view: ApprovalView) -> None:
        if self.fault is not None:
            raise self.fault
        self.moved.append(view)
        if view.run_id is not None and not selectors.pending_of_run(view.run_id):
            operations.start_validity(ctx, view.run_id)

    def renewed(self, ctx: Context, old: ApprovalView, new: ApprovalView) -> None:
        self.asked_again.append((old, new))


@contextmanager
def staged() -> Iterator[Stage]:
    """Every kind of subject is a `Stage` for the while."""
    held, stage = dict(subjects._subjects), Stage()
    for kind in ("run", "spend", "publication"):
        subjects._subjects[kind] = stage
    try:
        yield stage
    finally:
        subjects._subjects.clear()
        subjects._subjects.update(held)


@dataclass(frozen=True)
class Asking:
    """A run's step that asks, in a world with a policy."""

    world: World
    policy: PolicyView
    run_id: UUID = field(default_factory=uuid4)
    step_id: UUID = field(default_factory=uuid4)
    attempt_id: UUID = field(default_factory=uuid4)
    release_id: UUID = field(default_factory=uuid4)

    @property
    def house(self) -> Context:
        return self.world.system("test")

    def ask(self, **other: Any) -> ApprovalView:
        """Open a request of the step, by the world's requester, with whatever is given otherwise."""
        actor = self.world.requester.actor
        question: dict[str, Any] = {
            "subject_type": "run",
            "subject_id": self.run_id,
            "run_id": self.run_id,
            "step_id": self.step_id,
            "attempt_id": self.attempt_id,
            "release_id": self.release_id,
            "action_class": "shared-write",
            "environment_id": None,
            "proposal": DIFF,
            "summary": "publish wants to commit report.md (+142)",
            "requested_by": actor.subject,
            "requester_person": actor.person,
            "policy": self.policy,
            "project_id": self.house.project_id,
        }
        return ask(self.house, **{**question, **other})

    def ask_publication(self, **other: Any) -> ApprovalView:
        """Open the publication request of a release, asked by the workspace admin, written by `author`."""
        actor = self.world.workspace_admin.actor
        question: dict[str, Any] = {
            "subject_type": "publication",
            "subject_id": self.release_id,
            "run_id": None,
            "step_id": None,
            "attempt_id": None,
            "action_class": "publication",
            "summary": "Publish assessment 1.0.0",
            "requested_by": actor.subject,
            "requester_person": actor.person,
        }
        return self.ask(**{**question, **other})

    def ruled(self, **words: Any) -> PolicyView:
        """The policy with other words in its rule about shared writes."""
        first, *others = self.policy.document["rules"]
        return replace(self.policy, document={**self.policy.document, "rules": [{**first, **words}, *others]})

    def again(self) -> "Asking":
        """Another step of the same run."""
        return replace(self, step_id=uuid4(), attempt_id=uuid4())

    def view(self, approval_id: UUID) -> ApprovalView:
        with reading(self.house):
            return selectors.approval(approval_id)

    def take(self, view: ApprovalView, **other: Any) -> AuthorizationView:
        """Take the authorization as the step's attempt does."""
        wanted: dict[str, Any] = {
            "approval_id": view.id,
            "run_id": self.run_id,
            "step_id": self.step_id,
            "attempt_id": self.attempt_id,
            "lease_id": self.attempt_id,
            "fencing_token": (1 << 40) | 7,
            "proposal_hash": view.proposal_hash,
        }
        return take(self.house, **{**wanted, **other})

    def cancel(self, **about: Any) -> list[ApprovalView]:
        return cancel(self.house, **(about or {"run_id": self.run_id}))

    def start_validity(self) -> list[UUID]:
        return start(self.house, run_id=self.run_id)


def let_expire(approval_id: UUID, hours: float = 71) -> None:
    """The request's end was a moment ago, and it was asked `hours` earlier than it was. As the owner of
    the tables, time passes.
    """
    with transaction.atomic(using="owner"), connections["owner"].cursor() as cursor:
        cursor.execute("ALTER TABLE approvals_approvalrequest NO FORCE ROW LEVEL SECURITY")
        cursor.execute("ALTER TABLE approvals_approvalrequest DISABLE TRIGGER pinned_columns")
        cursor.execute(
            "UPDATE approvals_approvalrequest SET requested_at = requested_at - make_interval(secs => %s), "
            "expires_at = clock_timestamp() WHERE id = %s",
            [hours * 3600, approval_id],
        )
        cursor.execute("ALTER TABLE approvals_approvalrequest ENABLE ALWAYS TRIGGER pinned_columns")
        cursor.execute("ALTER TABLE approvals_approvalrequest FORCE ROW LEVEL SECURITY")


def asking(tenant_id: str) -> Asking:
    """A world with the platform's policy, and a step in it that may ask."""
    home = world(tenant_id)
    house = home.system("test")
    adopt_platform_policy(house)
    with reading(house):
        return Asking(home, selectors.current_policy(house))


@command("TestAsk")
def ask(ctx: Context, /, **question: Any) -> ApprovalView:
    """What RequestApproval and review do about the request."""
    question["subject_type"] = SubjectType(question["subject_type"])
    return operations.open_request(ctx, operations.ApprovalDraft(**question))


@command("TestConsume")
def take(ctx: Context, /, **wanted: Any) -> AuthorizationView:
    """What AuthorizeAction does about the request."""
    return operations.consume(ctx, **wanted)


@command("TestCancelPending")
def cancel(ctx: Context, /, **about: Any) -> list[ApprovalView]:
    """What CancelRun does about the requests."""
    return operations.cancel_pending(ctx, **about)


@command("TestStartValidity")
def start(ctx: Context, *, run_id: UUID) -> list[UUID]:
    """What leaving WaitingForApproval does about the approvals."""
    return operations.start_validity(ctx, run_id)


@command("TestSupersede")
def supersede(ctx: Context, *, approval_id: UUID) -> ApprovalView:
    """What another proposal does about the request."""
    return operations.supersede(ctx, approval_id)

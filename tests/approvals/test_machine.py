"""One request under any sequence of acts: it never does what the model of it says that it cannot."""

from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from approvals.commands import expire_approval
from approvals.errors import (
    AlreadyDecided,
    ApprovalOver,
    AuthorizationUsed,
    NotAuthorized,
    NotDueYet,
    NotEligible,
    ProposalMoved,
    SeparationOfDuties,
)
from factory.kernel.errors import DomainError, VersionMismatch
from tests.approvals.test_decisions import decide
from tests.faults.rounds import rounds
from tests.support.approvals import Asking, asking, staged, supersede
from tests.support.evidence import counts, violations

ANSWERS = {"approve": "Approved", "reject": "Rejected", "request_changes": "Stale"}


class OneRequest(RuleBasedStateMachine):
    """The model is three words: the state, the decision, and who used it."""

    def __init__(self) -> None:
        super().__init__()
        self.scene = staged()
        self.stage = self.scene.__enter__()
        self.asker: Asking

    def teardown(self) -> None:
        self.scene.__exit__(None, None, None)
        if hasattr(self, "asker"):
            assert violations(self.asker.world.tenant) == []

    @initialize()
    def ask(self) -> None:
        self.asker = asking(f"m-{uuid4().hex[:12]}")
        self.id = self.asker.ask().id
        self.state, self.decision = "Pending", ""
        self.used_by: str | None = None

    def attempt(self, act: Callable[[], Any], *expected: type[DomainError]) -> bool:
        """Do it; whether it was done. A refusal must be an expected one, and leave everything as it was."""
        before, told = self.asker.view(self.id), counts(self.asker.house)[:2]
        try:
            act()
        except expected:
            assert self.asker.view(self.id) == before
            assert counts(self.asker.house)[:2] == told
            return False
        return True

    @rule(
        who=st.sampled_from(["reviewer", "workspace_admin", "requester", "operator", "platform_admin"]),
        answer=st.sampled_from(list(ANSWERS)),
        stale_screen=st.booleans(),
    )
    def decide(self, who, answer, stale_screen):
        view = self.asker.view(self.id)
        seen = {"version": view.version + stale_screen, "reason": "because"}
        eligible = who in ("reviewer", "workspace_admin")
        refused = [NotEligible, SeparationOfDuties, AlreadyDecided, ApprovalOver, ProposalMoved]
        done = self.attempt(lambda: decide(getattr(self.asker.world, who), view, answer, **seen), *refused)
        assert done == (eligible and self.state == "Pending" and not stale_screen)
        if done:
            self.state, self.decision = ANSWERS[answer], answer

    @rule()
    def expire_too_early(self):
        view = self.asker.view(self.id)
        act = partial(expire_approval, self.asker.house, approval_id=self.id, version=view.version)
        assert not self.attempt(act, NotDueYet, VersionMismatch)

    @rule()
    def cancel(self):
        cancelled = self.asker.cancel()
        assert bool(cancelled) == (self.state == "Pending")
        if cancelled:
            self.state = "Cancelled"

    @precondition(lambda self: self.state == "Pending")
    @rule()
    def supersede(self):
        supersede(self.asker.house, approval_id=self.id)
        self.state = "Stale"

    @rule(holder=st.sampled_from(["first", "second"]), other_hash=st.booleans())
    def use(self, holder, other_hash):
        view = self.asker.view(self.id)
        lease = self.asker.attempt_id if holder == "first" else self.asker.release_id
        wanted = {"lease_id": lease, **({"proposal_hash": "sha256:0"} if other_hash else {})}
        done = self.attempt(lambda: self.asker.take(view, **wanted), NotAuthorized, AuthorizationUsed)
        may = self.state == "Approved" and not other_hash and self.used_by in (None, holder)
        assert done == may
        if done:
            self.used_by = holder

    @rule()
    def ask_again(self):
        again = self.asker.ask()
        if self.state in ("Cancelled",) or (self.state == "Stale" and not self.decision):
            assert again.id != self.id
            self.asker.cancel()
        else:
            assert again.id == self.id

    @invariant()
    def is_as_the_model_says(self):
        if not hasattr(self, "asker"):
            return
        view = self.asker.view(self.id)
        assert (view.state, view.decision) == (self.state, self.decision)
        assert (view.authorization is not None) == (self.used_by is not None)
        assert (view.closed_at is None) == (self.state == "Pending")
        assert (view.valid_until is not None) == (self.state == "Approved")


OneRequest.TestCase.settings = settings(
    max_examples=rounds(6),
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestOneRequest = pytest.mark.slow(OneRequest.TestCase)

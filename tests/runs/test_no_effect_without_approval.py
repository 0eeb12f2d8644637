"""Whatever is called, in whatever order: no effect without exactly one valid approval by somebody who may.

The model knows who could decide and remembers by itself who said yes to which hash; it asks the product
nothing. Each right to an effect that the product gives is compared with it.
"""

from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from approvals.commands import decide_approval, expire_approval, revoke_waiver
from approvals.selectors import approval
from factory.kernel.context import Context
from factory.kernel.errors import DomainError
from factory.kernel.hashing import digest
from factory.kernel.tenancy import reading
from projects.commands import revoke_delegation
from runs.commands import cancel_run
from tests.faults.rounds import rounds
from tests.support.delegations import lend
from tests.support.evidence import violations
from tests.support.proposals import DIFF, OTHER_DIFF, said
from tests.support.running import House
from tests.support.waivers import run_from, template, waiver
from tests.support.world import context_of

PROPOSALS = [DIFF, OTHER_DIFF, said("a third way")]
ELIGIBLE = {"reviewer", "reviewer2", "workspace_admin", "tenant_admin"}
EVERYBODY = [*sorted(ELIGIBLE), "requester", "service", "observer", "operator", "platform_admin"]


class Effects(RuleBasedStateMachine):
    """A gated run, of a template or of none, its worker, everybody who might decide, and a wrong hand."""

    def __init__(self) -> None:
        super().__init__()
        self.house: House

    @initialize()
    def begin(self) -> None:
        self.house = House(f"e-{uuid4().hex[:12]}")
        self.loan: UUID | None = None
        self.asked: dict[UUID, str] = {}
        self.yes: dict[UUID, str] = {}
        self.effects: dict[UUID, str] = {}
        self.kind = template(self.house)
        self.waiver: UUID | None = None
        self.waived: dict[UUID, UUID] = {}
        self._new_run()

    def _new_run(self, *, templated: bool = False) -> None:
        self.templated = templated
        self.run_id = run_from(self.house, self.kind) if templated else self.house.run("gated")
        self.worker = self.house.hand(f"w{uuid4().hex[:6]}", slots=100)
        [self.work] = [work for work in self.worker.poll() if work.run_id == self.run_id]
        self.worker.acquire(self.work)

    def teardown(self) -> None:
        if hasattr(self, "house"):
            assert violations(self.house.tenant) == []

    def _tried(self, act: Any) -> Any:
        try:
            return act()
        except DomainError as refusal:
            return refusal

    def _who(self, name: str) -> Context:
        """As a fresh token would have it, lent roles included."""
        w = self.house.world
        return context_of(getattr(w, name).actor.subject, w.tenant, w.project)

    @rule(proposal=st.sampled_from(PROPOSALS))
    def ask(self, proposal: Any) -> None:
        answer = self._tried(lambda: self.worker.ask(self.work, proposal=proposal))
        if isinstance(answer, DomainError):
            return
        self.asked.setdefault(answer.approval_id, digest(proposal))
        given = answer.decision.waiver_id if answer.decision else None
        if given is not None and answer.approval_id not in self.waived:
            assert self.templated
            assert given == self.waiver, "a waiver that is in force"
            self.waived[answer.approval_id] = given
            self.yes[answer.approval_id] = digest(proposal)

    @rule(
        data=st.data(),
        name=st.sampled_from(EVERYBODY),
        answer=st.sampled_from(["approve", "approve", "approve", "reject", "request_changes"]),
        glass=st.booleans(),
        seen=st.sampled_from(["as shown", "as shown", "older", "other"]),
    )
    def decide(self, data: Any, name: str, answer: str, glass: bool, seen: str) -> None:
        if not self.asked:
            return
        approval_id = data.draw(st.sampled_from(sorted(self.asked)))
        with reading(self.house.system):
            view = approval(approval_id)
        done = self._tried(
            lambda: decide_approval(
                self._who(name),
                approval_id=approval_id,
                decision=answer,
                version=view.version - (seen == "older"),
                proposal_hash="sha256:0" if seen == "other" else view.proposal_hash,
                reason="because",
                break_glass=glass,
            )
        )
        if isinstance(done, DomainError) or answer != "approve":
            return
        assert seen == "as shown"
        borrowed = name == "observer" and self.loan is not None
        assert name == "platform_admin" if glass else name in ELIGIBLE or borrowed, name
        assert approval_id not in self.yes, "one decision, once"
        self.yes[approval_id] = self.asked[approval_id]

    @rule(data=st.data(), proposal=st.sampled_from(PROPOSALS), stranger=st.booleans())
    def authorize(self, data: Any, proposal: Any, stranger: bool) -> None:
        if not self.asked:
            return
        approval_id = data.draw(st.sampled_from(sorted(self.asked)))
        hand = self.house.hand(f"x{uuid4().hex[:6]}") if stranger else self.worker
        taken = self._tried(lambda: hand.authorize(self.work, approval_id, proposal))
        if isinstance(taken, DomainError):
            return
        assert not stranger
        under = self.waived.get(approval_id)
        assert under in (None, self.waiver) or approval_id in self.effects, "it has ended"
        assert self.yes.get(approval_id) == digest(proposal), "what was signed is what may be done"
        assert self.effects.setdefault(approval_id, str(taken.id)) == str(taken.id), "and once"

    @rule()
    def lend_or_take_back(self) -> None:
        w = self.house.world
        if self.loan is None:
            self.loan = lend(w.reviewer, w.observer)
        else:
            revoke_delegation(w.reviewer, delegation_id=self.loan)
            self.loan = None

    @rule()
    def give_in_advance_or_take_back(self) -> None:
        if self.waiver is None:
            self.waiver = waiver(self.house, self.kind)
        else:
            revoke_waiver(self.house.world.reviewer2, waiver_id=self.waiver, reason="enough")
            self.waiver = None

    @rule(data=st.data())
    def expire(self, data: Any) -> None:
        if self.asked:
            approval_id = data.draw(st.sampled_from(sorted(self.asked)))
            with reading(self.house.system):
                version = approval(approval_id).version
            refused = self._tried(
                lambda: expire_approval(self.house.system, approval_id=approval_id, version=version)
            )
            assert isinstance(refused, DomainError), "its time has not come"

    @rule()
    def let_the_worker_die(self) -> None:
        """A later attempt, or the same one parked, takes over with another lease."""
        self.house.let_lapse(self.work.lease_id)
        self.house.make_due(self.run_id)
        worker = self.house.hand(f"w{uuid4().hex[:6]}")
        found = [work for work in worker.poll() if work.run_id == self.run_id]
        if found:
            worker.acquire(found[0])
            self.worker, self.work = worker, found[0]

    @rule(how=st.sampled_from(["cancel", "report", "begin anew"]), templated=st.booleans())
    def end(self, how: str, templated: bool) -> None:
        if how == "cancel":
            self._tried(lambda: cancel_run(self.house.world.operator, run_id=self.run_id, reason="stop"))
        elif how == "report":
            self._tried(lambda: self.worker.report(self.work))
        self._new_run(templated=templated)


Effects.TestCase.settings = settings(
    max_examples=rounds(4), stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
TestNoEffectWithoutApproval = pytest.mark.slow(
    pytest.mark.requirement("APR-09", "APR-10", "APR-18", "LTR-03")(Effects.TestCase)
)

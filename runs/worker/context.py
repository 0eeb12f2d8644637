"""What a skill sees: its input, its tools, and the doors to people."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from runs.worker import model as models
from runs.worker.client import WorkerClient
from runs.worker.errors import ApiGone, ApiRefused, Interrupted, LeaseLost, Parked, SkillFailed
from runs.worker.receipts import ReceiptBook, flush
from runs.worker.tools import ToolCall
from runs.worker.wire import ApprovalReply, Assignment, DecisionReply, canonical, digest

TOOL_PROVIDER = "factory-tools"
ASK_AGAIN = 3.0


class Interrupt:
    """Says why an attempt must stop. The first reason stands."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self.reason = ""
        self.lease_lost = False

    def set(self, reason: str, *, lease_lost: bool = False) -> None:
        """Ask the skill to stop. A lost lease overrides: then nothing may be reported."""
        self.lease_lost = self.lease_lost or lease_lost
        if not self._event.is_set():
            self.reason = reason
            self._event.set()

    def is_set(self) -> bool:
        """Return whether it must stop."""
        return self._event.is_set()

    def wait(self, seconds: float) -> bool:
        """Sleep, unless there is a reason to wake."""
        return self._event.wait(seconds)


class SkillContext:
    """Handed to `run(context)`. One per lease; a parked attempt gets a new one when it comes back.

    `predecessors` has the output of each by its key: none for a skipped one, a list for one that fanned out.
    `item` and `index` are this step's element of the list that its own node fans out over. `feedback` is what
    a reviewer or a validator said about what the skill did before, oldest first.
    """

    def __init__(
        self,
        work: Assignment,
        client: WorkerClient,
        book: ReceiptBook,
        interrupt: Interrupt,
        workdir: Path,
        files: Mapping[str, bytes],
    ) -> None:
        self.run_id = work.run_id
        self.number = work.number
        self.agent_id = work.agent_id
        self.input: Mapping[str, Any] = work.input.get("run") or {}
        self.predecessors: Mapping[str, Any] = work.input.get("predecessors") or {}
        self.item: Any = work.input.get("item")
        self.index: int | None = work.input.get("index")
        self.correction_limit = int(work.input.get("correctionLimit") or 0)
        self.feedback: tuple[str, ...] = _feedback_in(work.decision)
        self.snapshot = work.snapshot
        self.checkpoint = work.checkpoint
        self.decision = work.decision
        self.workdir = workdir
        self.files = files
        self.model = models.from_environment(work.snapshot, book)
        self.authorized = False
        self.artifacts: list[dict[str, Any]] = []
        self._work = work
        self._client = client
        self._book = book
        self._interrupt = interrupt

    def check(self) -> None:
        """Raises Interrupted when the work is to stop; never between an authorization and its effect."""
        if self._interrupt.is_set() and not self.authorized:
            raise Interrupted(self._interrupt.reason)

    def take_feedback(self, reason: str) -> None:
        """Remember what a validator said about the output: the skill is called again, and reads it."""
        self.feedback = (*self.feedback, reason)

    @contextmanager
    def tool(self, name: str) -> Iterator[ToolCall]:
        """Measure one call of a tool; its receipt is made however the call ends."""
        self.check()
        began = time.time()
        call = ToolCall(name, self.workdir, self.check)
        try:
            yield call
        except BaseException as fault:
            call.details["failed"] = type(fault).__name__
            raise
        finally:
            quantities = {**call.quantities, "seconds": call.seconds}
            self._book.add(
                "tool", TOOL_PROVIDER, name, quantities=quantities, details=call.details, occurred_at=began
            )

    def fail(self, failure_class: str, reason: str) -> SkillFailed:
        """To be raised: ends the attempt as Failed of that class."""
        return SkillFailed(failure_class, reason)

    @staticmethod
    def digest(value: Any) -> str:
        """The hash under which a proposal is decided."""
        return digest(value)

    def propose(
        self,
        action_class: str,
        proposal: Any,
        summary: str,
        *,
        park: bool = True,
        checkpoint: Any = None,
    ) -> DecisionReply | None:
        """Ask a person to decide on exactly this proposal.

        None: autonomous, no decision needed. With `park` the lease is handed back (Parked is raised)
        and the skill starts again with `decision` and `checkpoint`; without, it waits here.
        """
        self.check()
        answer = self._request(action_class, proposal, summary, park, checkpoint)
        while answer.effect != "allow" and answer.decision is None:
            if park:
                raise Parked(answer.approval_id or "")
            self._interrupt.wait(ASK_AGAIN)
            self.check()
            answer = self._request(action_class, proposal, summary, park, checkpoint)
        return answer.decision

    def authorize(self, decision: DecisionReply, proposal: Any) -> bool:
        """The gate at execution. Call it right before acting on exactly this proposal.

        False: the approval's validity is over, propose again. Any other refusal is raised.
        """
        self.check()
        if not decision.approved or decision.proposal_hash != digest(proposal):
            raise SkillFailed("policy-denied", "this proposal is not the one that was approved")
        # From the moment the question is out, the answer may have been yes.
        self.authorized = True
        try:
            self._client.authorize(
                self._work, approval_id=decision.approval_id, proposal_hash=decision.proposal_hash
            )
        except LeaseLost:
            raise
        except ApiGone:
            self.authorized = False
            return False
        except ApiRefused as fault:
            self.authorized = fault.status >= 500
            raise
        return True

    def effect(self, name: str, decision: DecisionReply, details: Mapping[str, Any]) -> None:
        """The receipt of what was done under an authorization."""
        self._book.add(
            "effect",
            TOOL_PROVIDER,
            name,
            quantities=None,
            details=details,
            approvalId=decision.approval_id,
            proposalHash=decision.proposal_hash,
        )

    def artifact(self, uri: str, sha256: str, size: int) -> None:
        """Something that was left in a store; the outcome tells where, its hash and its size in bytes."""
        self.artifacts.append({"uri": str(uri), "hash": str(sha256), "size": int(size)})

    def no_effect(self, name: str, decision: DecisionReply, reason: str) -> None:
        """The receipt of an authorization under which nothing was done, for whatever reason."""
        self.effect(name, decision, {"tookPlace": False, "reason": reason})

    def _request(
        self, action_class: str, proposal: Any, summary: str, park: bool, checkpoint: Any
    ) -> ApprovalReply:
        _check_kept(proposal=proposal, checkpoint=checkpoint)
        if park:  # the token is not this worker's any more once it has parked
            flush(self._client, self._work, self._book)
        environment = self.snapshot.get("environmentId")
        return self._client.request_approval(
            self._work,
            action_class=action_class,
            proposal=proposal,
            summary=summary,
            environment_id=environment,
            checkpoint=checkpoint,
            park=park,
        )


def _check_kept(**values: Any) -> None:
    for name, value in values.items():
        try:
            canonical(value)
        except ValueError as fault:
            raise SkillFailed("validation", f"the {name} is {fault}") from fault


def _feedback_in(decision: DecisionReply | None) -> tuple[str, ...]:
    return (decision.reason,) if decision is not None and decision.changes_requested else ()


Skill = Callable[[SkillContext], Any]

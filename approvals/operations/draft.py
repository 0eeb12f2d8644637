"""An approval request before it is a row: one object from its caller on."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any
from uuid import UUID

from approvals.models import MAX_PROPOSAL_BYTES, MAX_SUMMARY
from approvals.operations import kinds
from approvals.selectors import PolicyView
from approvals.states import SubjectType
from factory.kernel.errors import FieldError, InvalidInput, TooLarge
from factory.kernel.hashing import canonical, digest_bytes
from factory.kernel.text import is_blank


@dataclass(frozen=True, slots=True)
class Spend:
    """Say how much a run may cost in all; `at_the_limit` of one that has used what it was given, and
    `of_unknown_cost` of one that has used something whose cost nobody knows."""

    amount: Decimal
    at_the_limit: bool = False
    of_unknown_cost: bool = False


@dataclass(frozen=True, kw_only=True)
class ApprovalDraft:
    """Ask whether exactly this proposal may be carried out, under this policy revision.

    Whoever is named by `requested_by`, `requester_person` or `author_person` can never decide. `approvers`
    are the words of a workflow's node: fewer roles or a larger quorum than the policy's. `template_id` is
    that of the run, which a waiver may serve; `spend` says how much money it is about.
    """

    subject_type: SubjectType
    subject_id: UUID
    project_id: UUID | None
    action_class: str
    proposal: Any
    summary: str
    policy: PolicyView
    requested_by: str
    requester_person: str
    author_person: str = ""
    run_id: UUID | None = None
    step_id: UUID | None = None
    attempt_id: UUID | None = None
    release_id: UUID | None = None
    environment_id: UUID | None = None
    approvers: Mapping[str, Any] | None = None
    template_id: UUID | None = None
    spend: Spend | None = None

    @cached_property
    def content(self) -> bytes:
        """Return the proposal's canonical bytes. Raises `TooLarge`, `ProposalNotReadable`."""
        content = canonical(self.proposal, "/proposal")
        if len(content) > MAX_PROPOSAL_BYTES:
            raise TooLarge(f"A proposal may have {MAX_PROPOSAL_BYTES} bytes; this one has {len(content)}.")
        kinds.check(self.proposal)
        return content

    @cached_property
    def proposal_hash(self) -> str:
        """Return the hash that is signed."""
        return digest_bytes(self.content)

    @property
    def is_human(self) -> bool:
        """Return whether the step is nothing but a person's answer: it is gated, whatever its class."""
        return self.subject_type is SubjectType.RUN and self.attempt_id is None

    @property
    def about(self) -> dict[str, Any]:
        """Return the columns in which two requests about the same thing agree."""
        if self.subject_type is SubjectType.RUN:
            return {"subject_type": self.subject_type, "step_id": self.step_id}
        return {"subject_type": self.subject_type, "subject_id": self.subject_id}

    def check(self) -> None:
        """Refuse what is no whole request: `TooLarge`, `ProposalNotReadable`, `InvalidInput`."""
        _ = self.proposal_hash
        if is_blank(self.summary) or len(self.summary) > MAX_SUMMARY:
            errors = [FieldError("/summary", f"From 1 to {MAX_SUMMARY} characters.")]
            raise InvalidInput("The summary says in one sentence what will happen.", errors=errors)

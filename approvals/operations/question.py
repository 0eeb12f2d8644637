"""A question to people, before it is asked."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from uuid import UUID

from approvals.states import SubjectType


@dataclass(frozen=True, slots=True)
class Spend:
    """How much a run may cost in all; `at_the_limit` of one that has used what it was given, and
    `of_unknown_cost` of one that has used something whose cost nobody knows."""

    amount: Decimal
    at_the_limit: bool = False
    of_unknown_cost: bool = False


@dataclass(frozen=True, slots=True)
class ApprovalDraft:
    """What is asked, as it will be stored."""

    project_id: UUID | None
    subject_type: SubjectType
    subject_id: UUID
    run_id: UUID | None
    step_id: UUID | None
    attempt_id: UUID | None
    release_id: UUID | None
    environment_id: UUID | None
    action_class: str
    summary: str
    proposal_hash: str
    requested_by: str
    requester_person: str
    author_person: str
    approvers: Mapping[str, Any] | None
    template_id: UUID | None = None
    spend: Spend | None = None

    @property
    def is_human(self) -> bool:
        """A step that is nothing but a person's answer: whatever its class, it is always gated."""
        return self.subject_type is SubjectType.RUN and self.attempt_id is None

    @property
    def about(self) -> dict[str, Any]:
        """What makes two questions be about the same thing."""
        if self.subject_type is SubjectType.RUN:
            return {"subject_type": self.subject_type, "step_id": self.step_id}
        return {"subject_type": self.subject_type, "subject_id": self.subject_id}


@dataclass(frozen=True, slots=True)
class HumanQuestion:
    """What a human step asks, whose own proposal it is. `approvers` are the words of its node."""

    project_id: UUID
    run_id: UUID
    step_id: UUID
    release_id: UUID
    environment_id: UUID | None
    action_class: str
    proposal: Any
    summary: str
    requested_by: str
    requester_person: str
    approvers: Mapping[str, Any] | None

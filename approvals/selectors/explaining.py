"""Explaining the policy: what would happen to an action, and who could decide about it."""

from dataclasses import dataclass
from uuid import UUID

from approvals.policy.evaluation import Verdict
from approvals.selectors.eligibility import Candidate, candidates
from approvals.selectors.policies import evaluate
from approvals.selectors.views import PolicyView
from approvals.states import Effect
from projects import selectors as projects


@dataclass(frozen=True, slots=True)
class Explanation:
    """The verdict on an action that nobody has asked for yet; `candidates` only where somebody decides."""

    policy: PolicyView
    action_class: str
    environment: str | None
    verdict: Verdict
    candidates: tuple[Candidate, ...]


@dataclass(frozen=True, slots=True)
class _Gate:
    approver_rule: str
    approver_roles: tuple[str, ...]
    requested_by: str
    requester_person: str
    author_person: str = ""


def explain(
    policy: PolicyView,
    action_class: str,
    *,
    project_id: UUID | None,
    environment: str | None = None,
    requested_by: str = "",
) -> Explanation:
    """What this revision would answer, if `requested_by` asked for it in that project and environment."""
    verdict = evaluate(policy, action_class, environment)
    gate = _Gate(
        verdict.approver_rule,
        verdict.roles,
        requested_by,
        projects.person_of(requested_by) if requested_by else "",
    )
    asked = verdict.effect is Effect.REQUIRE_APPROVAL
    people = tuple(candidates(gate, project_id)) if asked else ()
    return Explanation(policy, action_class, environment, verdict, people)

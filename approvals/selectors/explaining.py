"""Explaining the policy: what would happen to an action, and who could decide about it."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from approvals.policy.evaluation import Verdict
from approvals.selectors.eligibility import Candidate, candidates
from approvals.selectors.policies import evaluate
from approvals.selectors.views import PolicyView
from approvals.selectors.waivers import waivers_in_force, why_not_serving
from approvals.states import WAIVABLE, Effect
from factory import clock
from factory.errors import FieldError, InvalidInput
from projects import selectors as projects
from projects.selectors import EnvironmentView


@dataclass(frozen=True, slots=True)
class Waived:
    """A waiver that is in force where the action would happen; `why_not` is empty where it would serve."""

    id: UUID
    template_name: str
    workflow_id: str
    release_name: str
    expires_at: datetime
    never_for: tuple[str, ...]
    why_not: str

    @property
    def serves(self) -> bool:
        return not self.why_not


@dataclass(frozen=True, slots=True)
class Explanation:
    """The verdict on an action that nobody has asked for yet; `candidates` only where somebody decides.

    `waived` are the waivers in force there; `advance` says in a sentence what they mean for the action.
    """

    policy: PolicyView
    action_class: str
    environment: str | None
    verdict: Verdict
    candidates: tuple[Candidate, ...]
    waived: tuple[Waived, ...]
    advance: str


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
    """What this revision would answer, if `requested_by` asked for it in that project and environment.

    Raises `InvalidInput` for a class or an environment that does not exist.
    """
    verdict = evaluate(policy, action_class, environment)
    places = _places(project_id, environment)
    person = projects.person_of(requested_by) if requested_by else ""
    gate = _Gate(verdict.approver_rule, verdict.roles, requested_by, person)
    asked = verdict.effect is Effect.REQUIRE_APPROVAL
    people = tuple(candidates(gate, project_id)) if asked else ()
    may_be = asked and action_class == WAIVABLE
    waived = _waived(places, verdict, {requested_by, person}) if may_be else ()
    advance = _advance(action_class, environment, waived) if asked else ""
    return Explanation(policy, action_class, environment, verdict, people, waived, advance)


def _places(project_id: UUID | None, environment: str | None) -> list[EnvironmentView]:
    """The environments of that name; of a whole tenant several projects may have one."""
    if environment is None:
        return []
    known = projects.environments(project_id)
    found = [one for one in known if one.slug == environment]
    if not found:
        names = ", ".join(sorted({one.slug for one in known})) or "none"
        problem = f"There is no environment {environment[:64]!r} here; there is {names}."
        raise InvalidInput(problem, errors=[FieldError("/environment", problem)])
    return found


def _waived(
    places: Collection[EnvironmentView], verdict: Verdict, asking: Collection[str]
) -> tuple[Waived, ...]:
    at = clock.now()
    rows = [row for place in places for row in waivers_in_force(place.project_id, place.id)]
    found = [
        Waived(
            id=row.id,
            template_name=row.template_name,
            workflow_id=row.workflow_id,
            release_name=row.release_name,
            expires_at=row.expires_at,
            never_for=tuple(sorted({row.requested_by, *row.deciders})),
            why_not=why_not_serving(row, verdict, asking, at),
        )
        for row in rows
    ]
    return tuple(sorted(found, key=lambda one: not one.serves))


def _advance(action_class: str, environment: str | None, waived: Collection[Waived]) -> str:
    if action_class != WAIVABLE:
        return f"No waiver serves: {action_class} is never approved in advance."
    if environment is None:
        return "No waiver serves: one names the environments in which it holds."
    if not waived:
        return f"No waiver serves: none is in force for {environment}."
    if not any(one.serves for one in waived):
        return "No waiver serves, although there is one in force."
    return (
        "Runs of these templates would rest on a waiver and ask nobody, each with that release alone, "
        "unless their step asks for more."
    )

"""Explaining the policy: what would happen to an action, and who could decide about it."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from approvals.policy.evaluation import PolicyVerdict
from approvals.policy.messages import UNKNOWN, format_rule
from approvals.selectors.eligibility import EligibilityResult, candidates
from approvals.selectors.policies import (
    evaluate,
    evaluate_at_the_limit,
    evaluate_unknown_usage,
    spend_threshold,
)
from approvals.selectors.views import PolicyView
from approvals.selectors.waivers import waivers_in_force, why_not_serving
from approvals.states import WAIVABLE, ActionClass, Effect, UnknownUsage
from factory.kernel import clock
from factory.kernel.amounts import usd
from factory.kernel.errors import FieldError, InvalidInput
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
    Of `spend`: `amount` is what was asked about, None for more than the threshold, and `at_the_limit` the
    verdict on more money for a run that has used all it may cost, and `unknown_usage` that on going on with
    usage of unknown cost.
    """

    policy: PolicyView
    action_class: str
    environment: str | None
    verdict: PolicyVerdict
    candidates: tuple[EligibilityResult, ...]
    waived: tuple[Waived, ...]
    advance: str
    amount: Decimal | None = None
    at_the_limit: PolicyVerdict | None = None
    unknown_usage: PolicyVerdict | None = None

    @property
    def threshold(self) -> Decimal | None:
        """Above what a run's money is a person's decision; None where it never is, or of another class."""
        return spend_threshold(self.policy) if self.action_class == ActionClass.SPEND else None


@dataclass(frozen=True, slots=True)
class _PossibleRequest:
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
    amount: Decimal | None = None,
) -> Explanation:
    """Return what this revision would answer, if `requested_by` asked for it in that project and environment.

    `amount` is what a run may cost in all, of class `spend` alone. Raises `InvalidInput` for a class or an
    environment that does not exist, and for an amount of another class.
    """
    spends = action_class == ActionClass.SPEND
    if amount is not None and not spends:
        problem = f"Only spend is about an amount, not {action_class}."
        raise InvalidInput(problem, errors=[FieldError("/amountUsd", problem)])
    if environment is not None and action_class == ActionClass.PUBLICATION:
        problem = "A release is published in no environment: a rule that names one is not about publication."
        raise InvalidInput(problem, errors=[FieldError("/environment", problem)])
    verdict = evaluate(policy, action_class, environment, amount=amount)
    environments = _environments(project_id, environment)
    requested_by = projects.spelled(requested_by)
    person = projects.person_of(requested_by) if requested_by else ""
    possible = _PossibleRequest(verdict.approver_rule, verdict.roles, requested_by, person)
    required = verdict.effect is Effect.REQUIRE_APPROVAL
    people = tuple(candidates(possible, project_id)) if required else ()
    may_be = required and action_class == WAIVABLE
    waived = _waived(environments, verdict, {requested_by, person}) if may_be else ()
    advance = _advance(action_class, environment, waived) if required else ""
    common = (policy, action_class, environment, verdict, people, waived, advance, amount)
    if not spends:
        return Explanation(*common)
    at_the_limit = evaluate_at_the_limit(policy, environment)
    return Explanation(*common, at_the_limit, evaluate_unknown_usage(policy, environment))


def about_money(explanation: Explanation) -> list[str]:
    """Return the sentences about the threshold and the limit of a run that an explanation of `spend` adds."""
    if explanation.at_the_limit is None or explanation.unknown_usage is None:
        return []
    sentences = []
    if explanation.verdict.effect is Effect.REQUIRE_APPROVAL and explanation.threshold is not None:
        sentences.append(f"Nobody is asked about {usd(explanation.threshold)} or less.")
    asks = explanation.at_the_limit.effect is Effect.REQUIRE_APPROVAL
    then = "asks a person for more" if asks else f"fails ({format_rule(explanation.at_the_limit.rule)})"
    return [
        *sentences,
        f"A run that has used all that it may cost {then}.",
        f"A run that has used something of unknown cost {after_unknown_usage(explanation.unknown_usage)}.",
    ]


def after_unknown_usage(verdict: PolicyVerdict) -> str:
    """Return what becomes of a run that has used something of unknown cost, in a sentence's part."""
    sentences = {
        Effect.ALLOW: UNKNOWN[UnknownUsage.IGNORE],
        Effect.REQUIRE_APPROVAL: UNKNOWN[UnknownUsage.ASK],
        Effect.DENY: f"{UNKNOWN[UnknownUsage.FAIL]} ({format_rule(verdict.rule)})",
    }
    return sentences[verdict.effect]


def _environments(project_id: UUID | None, environment: str | None) -> list[EnvironmentView]:
    """Return the environments of that name; of a whole tenant several projects may have one."""
    if environment is None:
        return []
    known = projects.environments(project_id)
    named = [row for row in known if row.slug == environment]
    if not named:
        names = ", ".join(sorted({row.slug for row in known})) or "none"
        problem = f"There is no environment {environment[:64]!r} here; there is {names}."
        raise InvalidInput(problem, errors=[FieldError("/environment", problem)])
    return named


def _waived(
    environments: Collection[EnvironmentView], verdict: PolicyVerdict, requesters: Collection[str]
) -> tuple[Waived, ...]:
    at = clock.now()
    rows = [row for place in environments for row in waivers_in_force(place.project_id, place.id)]
    answers = [
        Waived(
            id=row.id,
            template_name=row.template_name,
            workflow_id=row.workflow_id,
            release_name=row.release_name,
            expires_at=row.expires_at,
            never_for=tuple(sorted({row.requested_by, *row.deciders})),
            why_not=why_not_serving(row, verdict, requesters, at),
        )
        for row in rows
    ]
    return tuple(sorted(answers, key=lambda waiver: not waiver.serves))


def _advance(action_class: str, environment: str | None, waived: Collection[Waived]) -> str:
    if action_class != WAIVABLE:
        return f"No waiver serves: {action_class} is never approved in advance."
    if environment is None:
        return "No waiver serves: one names the environments in which it holds."
    if not waived:
        return f"No waiver serves: none is in force for {environment}."
    if not any(waiver.serves for waiver in waived):
        return "No waiver serves, although there is one in force."
    return (
        "Runs of these templates would rest on a waiver and ask nobody, each with that release alone, "
        "unless their step asks for more."
    )

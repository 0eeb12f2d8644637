"""What the policy answers about an action: the strictest of the platform floor and every matching rule."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

from approvals.policy import floor
from approvals.policy.patterns import ANYWHERE, matches
from approvals.states import ActionClass, Effect, OnExpiry, UnknownUsage

FLOOR_RULE = "the platform floor"


@dataclass(frozen=True, slots=True)
class PolicyVerdict:
    """The answer: its effect, who may decide, how long it waits and holds, and which rules said so."""

    effect: Effect
    roles: tuple[str, ...]
    expires_in: timedelta
    valid_for: timedelta
    rule: str
    quorum: int = 1
    on_expiry: OnExpiry = OnExpiry.FAIL

    @property
    def approver_rule(self) -> str:
        """Return the rule as it is frozen into a request; `messages.format_rule` says it to people."""
        who = " or ".join(self.roles) or "nobody: the rules and the node name no role in common,"
        many = "" if self.quorum == 1 else f"{self.quorum} people, each "
        return f"{many}{who} of the project, never whoever asked for it ({self.rule})"

    def narrowed(self, approvers: Mapping[str, Any] | None) -> "PolicyVerdict":
        """Return the verdict narrowed by a workflow's node: fewer roles, a larger quorum, never more."""
        if not approvers:
            return self
        wanted = approvers.get("roles", self.roles)
        return replace(
            self,
            roles=tuple(role for role in self.roles if role in wanted),
            quorum=max(self.quorum, int(approvers.get("quorum", 1))),
            rule=f"{self.rule}; narrowed by the workflow's node",
        )


def evaluate(
    document: Mapping[str, Any],
    action_class: ActionClass,
    environment: str | None,
    *,
    amount: Decimal | None = None,
    longest_expiry: timedelta = floor.LONGEST_EXPIRY,
) -> PolicyVerdict:
    """Return the verdict on one action. `environment` is a slug, or None for an action in no environment.

    Of `spend`, `amount` is all that a run may cost before it begins. Up to the threshold it is nobody's
    decision; above it people are asked, or a rule denies it. Where there is no threshold nobody is asked, and
    a rule that denies, denies any amount. Without an amount the answer is about more than the threshold.
    """
    verdict = evaluate_rules(document, action_class, environment, longest_expiry=longest_expiry)
    if action_class is not ActionClass.SPEND or verdict.effect is Effect.ALLOW:
        return verdict
    threshold = spend_threshold(document)
    if threshold is None and verdict.effect is Effect.DENY:
        return verdict
    if threshold is None:
        return replace(verdict, effect=Effect.ALLOW, roles=(), rule="no spend.thresholdUsd")
    if amount is not None and amount <= threshold:
        return replace(verdict, effect=Effect.ALLOW, roles=(), rule=f"spend.thresholdUsd: {threshold:f}")
    return verdict


def evaluate_at_the_limit(
    document: Mapping[str, Any],
    environment: str | None,
    *,
    longest_expiry: timedelta = floor.LONGEST_EXPIRY,
) -> PolicyVerdict:
    """Return the verdict on more money for a run that has used all it may cost: asked for, or denied."""
    verdict = evaluate_rules(document, ActionClass.SPEND, environment, longest_expiry=longest_expiry)
    if verdict.effect is Effect.DENY or document.get("spend", {}).get("onLimit") == "ask":
        return verdict
    return replace(verdict, effect=Effect.DENY, roles=(), rule="spend.onLimit: fail")


def evaluate_unknown_usage(
    document: Mapping[str, Any],
    environment: str | None,
    *,
    longest_expiry: timedelta = floor.LONGEST_EXPIRY,
) -> PolicyVerdict:
    """Return the verdict on going on with a run that has used something of unknown cost."""
    verdict = evaluate_rules(document, ActionClass.SPEND, environment, longest_expiry=longest_expiry)
    chosen = UnknownUsage(document.get("spend", {}).get("unknownUsage", UnknownUsage.ASK))
    if chosen is UnknownUsage.IGNORE:
        return replace(verdict, effect=Effect.ALLOW, roles=(), rule="spend.unknownUsage: ignore")
    if chosen is UnknownUsage.ASK or verdict.effect is Effect.DENY:
        return verdict
    return replace(verdict, effect=Effect.DENY, roles=(), rule="spend.unknownUsage: fail")


def spend_threshold(document: Mapping[str, Any]) -> Decimal | None:
    """Return above how many USD a run is a person's decision before it begins; None where none ever is."""
    given = document.get("spend", {}).get("thresholdUsd")
    return None if given is None else Decimal(str(given))


def evaluate_rules(
    document: Mapping[str, Any],
    action_class: ActionClass,
    environment: str | None,
    *,
    longest_expiry: timedelta = floor.LONGEST_EXPIRY,
) -> PolicyVerdict:
    """Return what the rules and the floor say of a class, whatever the amount.

    Strictest wins: the strictest effect, the roles that all rules agree on, the shortest times.
    No matching rule leaves the platform floor, which is never `allow` for a gated class.
    """
    matching = [
        (number, rule)
        for number, rule in enumerate(document["rules"], start=1)
        if rule["actionClass"] == action_class and matches(rule.get("environment", ANYWHERE), environment)
    ]
    effects = [floor.effect(action_class), *(Effect(rule["effect"]) for _, rule in matching)]
    effect = max(effects, key=lambda e: e.strictness)
    requiring = [rule for _, rule in matching if rule["effect"] == Effect.REQUIRE_APPROVAL]
    return PolicyVerdict(
        effect=effect,
        roles=_common_roles(action_class, requiring) if effect is Effect.REQUIRE_APPROVAL else (),
        expires_in=_shortest(requiring, "expiryHours", longest_expiry),
        valid_for=_shortest(requiring, "validHours", floor.DEFAULT_VALIDITY, bounded=False),
        rule=_named([(n, rule) for n, rule in matching if rule["effect"] == effect]),
        quorum=max((rule.get("quorum", 1) for rule in requiring), default=1),
        on_expiry=_strictest_end(requiring),
    )


def _common_roles(action_class: ActionClass, rules: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    widest = floor.roles(action_class)
    return tuple(role for role in widest if all(role in rule.get("roles", widest) for rule in rules))


def _shortest(
    rules: Sequence[Mapping[str, Any]], key: str, default: timedelta, *, bounded: bool = True
) -> timedelta:
    given = [timedelta(hours=rule[key]) for rule in rules if key in rule]
    return min([*given, default]) if bounded else min(given, default=default)


def _strictest_end(rules: Sequence[Mapping[str, Any]]) -> OnExpiry:
    """Asked once more only where a rule says so, and none says otherwise."""
    ends = {rule["onExpiry"] for rule in rules if "onExpiry" in rule}
    return OnExpiry.RE_REQUEST if ends == {OnExpiry.RE_REQUEST} else OnExpiry.FAIL


def _named(rules: Sequence[tuple[int, Mapping[str, Any]]]) -> str:
    """Frozen into requests and read by programs; `messages.format_rule` says it to people."""
    names = [f"rule {n}: {rule['actionClass']} in {rule.get('environment', ANYWHERE)}" for n, rule in rules]
    return "; ".join(names) or FLOOR_RULE

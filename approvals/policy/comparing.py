"""What differs between two policy documents, in words that a reviewer reads in a moment."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from approvals.policy.messages import SHORT, THEN, hours
from approvals.policy.patterns import ANYWHERE, where
from approvals.states import Effect, OnExpiry

ABSENT = "not said"


@dataclass(frozen=True, slots=True)
class PolicyDifference:
    """One place that differs: where, what it said before and what it says after."""

    place: str
    before: str
    after: str


def compare(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[PolicyDifference]:
    """Return every difference that can change an answer, and the description's.

    Rules are compared by what they are about, class and environment, not by their number: the strictest
    of all that match wins, so that their order means nothing.
    """
    return [*_texts(before, after), *_rules(before, after)]


def _texts(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[PolicyDifference]:
    for key in sorted((before.keys() | after.keys()) - {"rules"}):
        old, new = before.get(key), after.get(key)
        if isinstance(old, Mapping) or isinstance(new, Mapping):
            for name in sorted((old or {}).keys() | (new or {}).keys()):
                yield from _one(f"{key}.{name}", (old or {}).get(name), (new or {}).get(name))
        else:
            yield from _one(key, old, new)


def _rules(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[PolicyDifference]:
    old, new = _by_subject(before), _by_subject(after)
    for subject in sorted(old.keys() | new.keys()):
        ours, theirs = old.get(subject, []), new.get(subject, [])
        gone = [rule for rule in ours if rule not in theirs]
        come = [rule for rule in theirs if rule not in ours]
        yield from _one(f"{subject[0]} {where(subject[1])}", _terms(gone), _terms(come))


def _by_subject(document: Mapping[str, Any]) -> dict[tuple[str, str], list[Mapping[str, Any]]]:
    by_subject: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for rule in document["rules"]:
        by_subject.setdefault((rule["actionClass"], rule.get("environment", ANYWHERE)), []).append(rule)
    return by_subject


def _terms(rules: list[Mapping[str, Any]]) -> str | None:
    return "; ".join(format_terms(rule) for rule in rules) or None


def format_terms(rule: Mapping[str, Any]) -> str:
    """Return what a rule asks, without what it is about."""
    parts = [SHORT[Effect(rule["effect"])]]
    if "quorum" in rule:
        parts.append(f"{rule['quorum']} people")
    if "roles" in rule:
        parts.append(" or ".join(rule["roles"]))
    if "expiryHours" in rule:
        parts.append(f"waits {hours(rule['expiryHours'])}")
    if "validHours" in rule:
        parts.append(f"valid {hours(rule['validHours'])}")
    if "onExpiry" in rule:
        parts.append(THEN[OnExpiry(rule["onExpiry"])])
    return ", ".join(parts)


def _one(place: str, before: Any, after: Any) -> Iterator[PolicyDifference]:
    if before != after:
        yield PolicyDifference(place, _shown(before), _shown(after))


def _shown(value: Any) -> str:
    if value is None:
        return ABSENT
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)

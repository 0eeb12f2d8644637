"""What a policy revision lets through that the one before it did not, in words."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from string import ascii_lowercase, digits
from typing import Any

from approvals.policy.evaluation import PolicyVerdict, evaluate_rules
from approvals.policy.messages import BEFORE, SHORT, UNKNOWN, UNKNOWN_BEFORE, duration
from approvals.policy.patterns import ANYWHERE, matches
from approvals.states import ActionClass, Effect, OnExpiry, UnknownUsage

ELSEWHERE = "any other environment"
NOWHERE = "no environment"
_UNNAMED = "zz-no-rule-names-this"


@dataclass(frozen=True, slots=True)
class _Place:
    """An environment to ask about, and how it is called in a sentence."""

    slug: str | None
    name: str


def loosened(
    before: Mapping[str, Any], after: Mapping[str, Any], environments: Sequence[str] = ()
) -> list[str]:
    """Return a sentence for each way in which `after` is weaker; none where it is as strict everywhere.

    Rules are judged by what they answer, together, about each class in the environments that there are, in
    one that fits each pattern, and in any other. A model profile that is gone is told too: runs that name
    it are refused from now on.
    """
    scopes = _places(before, after, environments)
    return [
        *_money(before, after),
        *_profiles(before, after),
        *_limits(before, after),
        *_rules(before, after, scopes),
    ]


def _money(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    old, new = before.get("spend", {}), after.get("spend", {})
    least, most = old.get("thresholdUsd"), new.get("thresholdUsd")
    if least is not None and most is None:
        yield f"Nobody decides on a run's money any more; before, a person did above {least} USD."
    elif least is not None and most > least:
        yield f"A person decides on a run's money only above {most} USD; before, above {least} USD."
    if old.get("onLimit", "fail") == "fail" and new.get("onLimit") == "ask":
        yield "A run that has used all it may cost asks for more; before, it failed."
    yield from _unknown_usage(old, new)


def _unknown_usage(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    kinds = list(UnknownUsage)
    before, after = (UnknownUsage(spend.get("unknownUsage", UnknownUsage.ASK)) for spend in (old, new))
    if kinds.index(after) > kinds.index(before):
        yield f"A run with usage of unknown cost {UNKNOWN[after]}; before, {UNKNOWN_BEFORE[before]}."
    days, earlier = new.get("unknownHoldDays"), old.get("unknownHoldDays")
    if days is not None and (earlier is None or days < earlier):
        ended = "only a person ended such a hold" if earlier is None else f"after {earlier} days"
        yield f"Money held for usage of unknown cost is free again after {days} days; before, {ended}."


def _profiles(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    old, new = set(before["modelProfiles"]), set(after["modelProfiles"])
    if new - old:
        yield f"Runs may ask for {_listed(new - old)} as well (model profiles)."
    if old - new:
        yield f"Runs may not ask for {_listed(old - new)} any more (model profiles): they are refused."


def _limits(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    for name, unit in (("maxCostUsd", "USD"), ("maxMinutes", "minutes")):
        old, new = before["defaults"][name], after["defaults"][name]
        if new > old:
            yield f"A run that names no limits gets {new} {unit} ({name}), before {old}."


def _rules(before: Mapping[str, Any], after: Mapping[str, Any], scopes: Sequence[_Place]) -> Iterator[str]:
    for action_class in ActionClass:
        warnings: dict[str, list[str]] = {}
        for scope in scopes:
            old, new = (evaluate_rules(document, action_class, scope.slug) for document in (before, after))
            for warning in _weaker(old, new):
                warnings.setdefault(warning, []).append(scope.name)
        for warning, names in warnings.items():
            where = "everywhere" if len(names) == len(scopes) else f"in {', '.join(names)}"
            yield f"{action_class} {where}: {warning}."


def _weaker(old: PolicyVerdict, new: PolicyVerdict) -> Iterator[str]:
    if new.effect.strictness < old.effect.strictness:
        yield f"{SHORT[new.effect]}; before, {BEFORE[old.effect]}"
    if not old.effect == new.effect == Effect.REQUIRE_APPROVAL:
        return
    if set(new.roles) - set(old.roles):
        yield f"decided by {' or '.join(new.roles)}, before by {' or '.join(old.roles) or 'nobody'}"
    if new.quorum < old.quorum:
        yield f"{_many(new.quorum)} decides, before {_many(old.quorum)}"
    for warning, later, sooner in (
        ("a request waits", new.expires_in, old.expires_in),
        ("an approval is valid for", new.valid_for, old.valid_for),
    ):
        if later > sooner:
            yield f"{warning} {duration(later)}, before {duration(sooner)}"
    if old.on_expiry == OnExpiry.FAIL and new.on_expiry == OnExpiry.RE_REQUEST:
        yield "what nobody answers is asked once more, before it failed"


def _many(quorum: int) -> str:
    return "one person" if quorum == 1 else f"a quorum of {quorum}"


def _places(before: Mapping[str, Any], after: Mapping[str, Any], environments: Sequence[str]) -> list[_Place]:
    """Return where to look: in none, in each there is, in another that a pattern fits, in any other at all.

    That one of those there are fits a pattern says nothing about the next one: a rule may name the one.
    What stands for any other is filled with a character that is in no pattern, so that no narrower one fits.
    """
    real = sorted(set(environments))
    patterns = {
        rule.get("environment", ANYWHERE) for document in (before, after) for rule in document["rules"]
    } - {ANYWHERE}
    filler = _filler([*patterns, *real])
    return [
        _Place(None, NOWHERE),
        *(_Place(slug, slug) for slug in real),
        *(_fitting(pattern, real, filler) for pattern in sorted(patterns - set(real))),
        _Place(filler * 3, ELSEWHERE),
    ]


def _filler(patterns: Iterable[str]) -> str:
    used = set("".join(patterns))
    return next((letter for letter in ascii_lowercase + digits if letter not in used), _UNNAMED)


def _fitting(pattern: str, real: Sequence[str], filler: str) -> _Place:
    """Return one that fits a pattern, and is none of those that there are."""
    met = any(matches(pattern, slug) for slug in real)
    slug = pattern.replace("*", filler * 2).replace("?", filler[0])
    return _Place(slug, f"any other {pattern}" if met else pattern)


def _listed(names: set[str]) -> str:
    return ", ".join(sorted(names))

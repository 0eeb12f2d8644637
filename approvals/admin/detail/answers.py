"""The policy's answers in words that need no knowledge of its document, to one action or in two revisions."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.template.defaultfilters import pluralize

from approvals.policy import floor
from approvals.policy.evaluation import PolicyVerdict, evaluate
from approvals.policy.messages import SHORT, THEN, duration, hours
from approvals.policy.patterns import ANYWHERE, matches
from approvals.selectors import EligibilityResult, Explanation
from approvals.selectors.explaining import about_money
from approvals.states import ActionClass, Effect, OnExpiry
from factory.console.show import tone

MEANS = {
    ActionClass.READ: "looks, and changes nothing",
    ActionClass.SANDBOX: "changes only what is thrown away",
    ActionClass.SHARED_WRITE: "changes what others work with",
    ActionClass.EXTERNAL: "reaches somebody or something outside",
    ActionClass.PRODUCTION: "changes what is in production",
    ActionClass.PUBLICATION: "publishes a release",
    ActionClass.SPEND: "spends money",
}
"""What an action of a class does, for whoever has to choose one."""
MOST_PLACES = 50
"""So many are named beside an answer; all of them are looked at."""
NOWHERE = "no environment"


@dataclass(frozen=True, slots=True)
class PolicyAnswer:
    """Hold what would happen, as a headline, its colour, and the sentences below it."""

    headline: str
    tone: str
    effect: str
    sentences: tuple[str, ...]


def answer(told: Explanation) -> PolicyAnswer:
    """The explanation of one action as a person reads it in ten seconds."""
    verdict = told.verdict
    headline = {
        Effect.ALLOW: "It would happen, and nobody would be asked",
        Effect.REQUIRE_APPROVAL: "It would wait until a person has decided",
        Effect.DENY: "It would be refused",
    }[verdict.effect]
    if verdict.effect is Effect.REQUIRE_APPROVAL and verdict.quorum > 1:
        headline = f"It would wait until {verdict.quorum} different people have approved"
    return PolicyAnswer(headline, tone(verdict.effect), SHORT[verdict.effect], tuple(_sentences(told)))


def _sentences(told: Explanation) -> list[str]:
    return [*_about_the_verdict(told), *about_money(told)]


def _about_the_verdict(told: Explanation) -> list[str]:
    verdict = told.verdict
    if verdict.effect is Effect.ALLOW:
        return ["It stands in the run's journal all the same."]
    if verdict.effect is Effect.DENY:
        return ["No role can allow it under this revision. A workspace admin can publish another one."]
    may = [one for one in told.candidates if one.may_decide]
    people = f"{len(may)} {pluralize(len(may), 'person,people')} could now{_apart(may)}"
    who = " or ".join(verdict.roles) or "Nobody: the rules name no role in common"
    few = ""
    if separate(may) < verdict.quorum:
        few = " Too few: a workspace admin can give somebody the role."
    return [
        f"{who} decides, never whoever asked for it: {people}.{few}",
        f"It waits {duration(verdict.expires_in)}. {_silence(verdict)}",
        f"A yes is good for {duration(verdict.valid_for)}, for exactly what was asked, once.",
    ]


def separate(may: Sequence[EligibilityResult]) -> int:
    """Return how many of them count: who decides by a lent role and who has lent it are one."""
    groups: list[set[str]] = []
    for one in may:
        same = {one.person, one.acting_for} - {""}
        near = [group for group in groups if group & same]
        groups = [group for group in groups if not group & same] + [same.union(*near)]
    return len(groups)


def _apart(may: Sequence[EligibilityResult]) -> str:
    """Say how many of them count, where not all count separately."""
    count = separate(may)
    if count == len(may):
        return ""
    return f", {count} of whom count{pluralize(count, 's,')} separately"


def _silence(verdict: PolicyVerdict) -> str:
    if verdict.on_expiry == OnExpiry.RE_REQUEST:
        return "Then the same is asked once more; a second silence is a no."
    return "Silence is a no: then it fails."


@dataclass(frozen=True, slots=True)
class Changed:
    """One question that two revisions answer differently."""

    action_class: str
    places: tuple[str, ...]
    before: "ShortAnswer"
    after: "ShortAnswer"


@dataclass(frozen=True, slots=True)
class ShortAnswer:
    """One answer in few words."""

    effect: str
    tone: str
    short: str
    words: str


def changed_answers(
    before: Mapping[str, Any], after: Mapping[str, Any], environments: Sequence[str]
) -> tuple[list[Changed], int]:
    """The answers that differ, in the environments that there are and in none; and how many stay as they are.

    Environments of one class with the same two answers are told together.
    """
    found: dict[tuple[str, ShortAnswer, ShortAnswer], list[str]] = {}
    same = 0
    for places in _alike((before, after), environments):
        for action_class in ActionClass:
            old, new = (_told(evaluate(document, action_class, places[0])) for document in (before, after))
            if old == new:
                same += len(places)
            else:
                told = found.setdefault((str(action_class.value), old, new), [])
                told += [place or NOWHERE for place in places]
    return [Changed(name, _few(places), old, new) for (name, old, new), places in found.items()], same


def _alike(
    documents: Sequence[Mapping[str, Any]], environments: Sequence[str]
) -> Iterable[Sequence[str | None]]:
    """The environments, and none, by which rules are about them: the same rules give the same answers."""
    patterns = sorted({rule.get("environment", ANYWHERE) for one in documents for rule in one["rules"]})
    found: dict[tuple[bool, ...], list[str | None]] = {}
    for place in (None, *environments):
        found.setdefault(tuple(matches(pattern, place) for pattern in patterns), []).append(place)
    return found.values()


def _few(places: Sequence[str]) -> tuple[str, ...]:
    left = len(places) - MOST_PLACES
    return (*places[:MOST_PLACES], *([f"{left} more"] if left > 0 else []))


def _told(verdict: PolicyVerdict) -> ShortAnswer:
    words = terms(verdict) if verdict.effect is Effect.REQUIRE_APPROVAL else ""
    return ShortAnswer(str(verdict.effect), tone(verdict.effect), SHORT[verdict.effect], words)


def terms(verdict: PolicyVerdict) -> str:
    """Return who decides, how long it waits, and how long a yes holds."""
    who = " or ".join(verdict.roles) or "nobody"
    people = f"{verdict.quorum} people, each {who}" if verdict.quorum > 1 else who
    waits, holds = duration(verdict.expires_in), duration(verdict.valid_for)
    return f"{people}; waits {waits}, {THEN[verdict.on_expiry]}; a yes holds {holds}"


def rule_in_words(rule: Mapping[str, Any]) -> str:
    """Return what a rule says beside its effect; what it leaves out is the platform's."""
    told = []
    if "roles" in rule or "quorum" in rule:
        who = " or ".join(rule.get("roles") or floor.roles(ActionClass(rule["actionClass"])))
        told.append(f"{rule['quorum']} people, each {who}" if rule.get("quorum", 1) > 1 else f"{who} decides")
    if "expiryHours" in rule:
        told.append(f"a request waits {hours(rule['expiryHours'])}")
    if "onExpiry" in rule:
        told.append(THEN[OnExpiry(rule["onExpiry"])])
    if "validHours" in rule:
        told.append(f"a yes holds {hours(rule['validHours'])}")
    return "; ".join(told) or "as the platform says"

"""What differs between two manifests in words: what it may do, its limits, its workflows. Pure: no query."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.template.defaultfilters import pluralize

from factory.kernel.hashing import digest
from registry.admin.detail.tree import LIMITS, REACHES, gate_in_words, step_in_words

Values = dict[str, Any]
Members = Mapping[str, Mapping[str, Any]]
MAY, LIMIT, WORK, NEEDS, PROOF = "What it may do", "Limits", "How it works", "What it needs", "What proves it"
ORDER = (MAY, LIMIT, NEEDS, PROOF, WORK)
UNSAID = "not said"


@dataclass(frozen=True, slots=True)
class Change:
    """One place: what stood there and what stands there now; `warns` where it lets more happen."""

    about: str
    place: str
    before: str
    after: str
    warns: str = ""


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Change]:
    """Every difference that a person would want to hear of, by what it is about."""
    found = [
        *_skills(before, after),
        *_agents(before, after),
        *_workflows(before, after),
        *_named(before, after),
        *_proof(before, after),
    ]
    return sorted(found, key=lambda one: ORDER.index(one.about))


def same(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Tell whether both say the same, but for their version: by what they are, not by what is told of
    them."""
    return digest({**before, "version": ""}) == digest({**after, "version": ""})


def _by(definition: Mapping[str, Any], member: str, key: str) -> dict[str, Mapping[str, Any]]:
    return {one[key]: one for one in definition.get(member, ())}


def _pairs(
    old: Members, new: Members
) -> Iterator[tuple[str, Mapping[str, Any] | None, Mapping[str, Any] | None]]:
    for name in dict.fromkeys([*new, *old]):
        if old.get(name) != new.get(name):
            yield name, old.get(name), new.get(name)


def _skills(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Change]:
    for name, old, new in _pairs(_by(before, "skills", "skillId"), _by(after, "skills", "skillId")):
        place = f"skill {name}"
        if old is None or new is None:
            yield _come_or_gone(MAY, place, old, new, _skill)
            continue
        yield from _reach(place, old, new)
        tools = (_by(one, "tools", "name") for one in (old, new))
        for tool, was, now in _pairs(*tools):
            yield _come_or_gone(MAY, f"{place}, tool {tool}", was, now, lambda one: one["sideEffectClass"])
        yield from _words(place, old, new, ("description", "entry"))
        yield from _lists(place, old, new)


def _lists(place: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Change]:
    """The files that a part names; what stands in them is compared apart."""
    was, now = (set(one.get("files", ())) for one in (old, new))
    if was != now:
        told = [", ".join(sorted(side)) or "none" for side in (was - now, now - was)]
        yield Change(WORK, f"{place}: files", f"only before: {told[0]}", f"only now: {told[1]}")


def _skill(one: Mapping[str, Any]) -> str:
    tools = ", ".join(f"{tool['name']} ({tool['sideEffectClass']})" for tool in one.get("tools", ()))
    return f"{one['sideEffectClass']}; {f'tools {tools}' if tools else 'no tool'}"


def _reach(place: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Change]:
    was, now = old["sideEffectClass"], new["sideEffectClass"]
    if was != now:
        further = REACHES.index(now) > REACHES.index(was)
        yield Change(MAY, f"{place}: how far it reaches", was, now, "reaches further" if further else "")


def _come_or_gone(
    about: str,
    place: str,
    old: Mapping[str, Any] | None,
    new: Mapping[str, Any] | None,
    told: Callable[[Mapping[str, Any]], str],
) -> Change:
    """Something that only one of the two has, or that both have otherwise."""
    before = "not there" if old is None else told(old)
    after = "not there" if new is None else told(new)
    more = old is None or (new is not None and _further(old, new))
    return Change(about, place, before, after, ("new" if old is None else "reaches further") if more else "")


def _further(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    was, now = old.get("sideEffectClass"), new.get("sideEffectClass")
    return was in REACHES and now in REACHES and REACHES.index(str(now)) > REACHES.index(str(was))


def _agents(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Change]:
    for name, old, new in _pairs(_by(before, "agents", "agentId"), _by(after, "agents", "agentId")):
        if old is None or new is None:
            yield _come_or_gone(MAY, f"agent {name}", old, new, _may_use)
            continue
        was, now = _may_use(old), _may_use(new)
        if was != now:
            more = set(new.get("skills", ())) - set(old.get("skills", ()))
            yield Change(MAY, f"agent {name}", was, now, "uses more" if more else "")
        yield from _words(f"agent {name}", old, new, ("description", "entry"))
        yield from _lists(f"agent {name}", old, new)


def _may_use(one: Mapping[str, Any]) -> str:
    return f"uses {', '.join(one['skills'])}" if one.get("skills") else "uses no skill"


def _workflows(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Change]:
    furthest = (_Reaches(before), _Reaches(after))
    for name, old, new in _pairs(
        _by(before, "workflows", "workflowId"), _by(after, "workflows", "workflowId")
    ):
        place = f"workflow {name}"
        if old is None or new is None:
            yield _come_or_gone(WORK, place, old, new, _flow)
            continue
        yield from _words(place, old, new, ("version", "title", "output"))
        if old["inputSchema"] != new["inputSchema"]:
            told = [f"schema …{digest(one['inputSchema'])[-8:]}" for one in (old, new)]
            yield Change(WORK, f"{place}: what its input may be", *told)
        for key, was, now in _pairs(_by(old, "nodes", "key"), _by(new, "nodes", "key")):
            yield from _step(f"{place}, step {key}", was, now, furthest)


class _Reaches:
    """Hold how far the agents and skills of a manifest reach, as places in `REACHES`."""

    def __init__(self, definition: Mapping[str, Any]) -> None:
        self.skills = {
            name: max(REACHES.index(each["sideEffectClass"]) for each in (one, *one.get("tools", ())))
            for name, one in _by(definition, "skills", "skillId").items()
        }
        self.agents = {
            name: max((self.skills.get(skill, len(REACHES)) for skill in one.get("skills", ())), default=-1)
            for name, one in _by(definition, "agents", "agentId").items()
        }

    def of(self, member: str, name: str | None) -> int:
        """Of nobody it is -1; what is not known counts as reaching furthest."""
        known = self.agents if member == "agentId" else self.skills
        return -1 if name is None else known.get(name, len(REACHES))


def _flow(one: Mapping[str, Any]) -> str:
    reach = max((node["sideEffectClass"] for node in one["nodes"]), key=REACHES.index)
    count = len(one["nodes"])
    return f"{count} step{pluralize(count)}, as far as {reach}"


def _step(
    place: str,
    old: Mapping[str, Any] | None,
    new: Mapping[str, Any] | None,
    furthest: tuple[_Reaches, _Reaches],
) -> Iterator[Change]:
    if old is None or new is None:
        told = _come_or_gone(
            WORK, place, old, new, lambda one: f"{one['sideEffectClass']}; {step_in_words(one)}"
        )
        asked = old is not None and (old["kind"] == "human" or "gate" in old)
        yield replace(told, warns="nobody is asked there now") if asked else told
        return
    yield from _reach(place, old, new)
    if old.get("gate") != new.get("gate"):
        was, now = (gate_in_words(one.get("gate", {})) for one in (old, new))
        yield Change(MAY, f"{place}: who decides", was, now, _opened(old.get("gate"), new.get("gate")))
    for name, words in LIMITS.items():
        if old.get(name) != new.get(name):
            yield _limit(f"{place}: {words}", old.get(name), new.get(name))
    if any(old.get(name) != new.get(name) for name in WORKING):
        rest = [_without_limits(one) for one in (old, new)]
        if rest[0] == rest[1]:  # a step of a person has an agent beside it
            rest = [
                f"{told}; agent {one.get('agentId', UNSAID)}"
                for told, one in zip(rest, (old, new), strict=True)
            ]
        yield Change(WORK, place, rest[0], rest[1], _freer(old, new, furthest))
    yield from _words(place, old, new, ("question",))


WORKING = ("kind", "agentId", "skillId", "dependsOn", "when", "forEach")
"""What a step says of who works, after what and on what condition."""


def _opened(old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> str:
    """Return why a gate keeps back less than it did: without one, only the policy says who decides."""
    if new is None:
        return "asks fewer"
    was, now = old or {}, new
    fewer = now.get("quorum", 1) < was.get("quorum", 1)
    wider = "roles" in was and not set(now.get("roles", ("everybody",))) <= set(was["roles"])
    return " and ".join(word for told, word in ((fewer, "asks fewer"), (wider, "more may decide")) if told)


def _freer(old: Mapping[str, Any], new: Mapping[str, Any], furthest: tuple[_Reaches, _Reaches]) -> str:
    """Return why a step may do more than it did, apart from its limits and its gate."""
    swapped = any(
        old.get(member) != new.get(member)
        and furthest[1].of(member, new.get(member)) > furthest[0].of(member, old.get(member))
        for member in ("agentId", "skillId")
    )
    told = (
        (old["kind"] == "human" and new["kind"] != "human", "nobody is asked there now"),
        (swapped and new["kind"] != "human", "reaches further"),
        (
            "when" in old and old["when"] != new.get("when"),
            "another condition" if "when" in new else "no condition",
        ),
        ("forEach" in new and old.get("forEach") != new["forEach"], "for others"),
        (not set(old.get("dependsOn", ())) <= set(new.get("dependsOn", ())), "waits for fewer"),
    )
    return ", ".join(words for more, words in told if more)


def _without_limits(node: Mapping[str, Any]) -> str:
    return step_in_words({name: value for name, value in node.items() if name not in (*LIMITS, "gate")})


def _limit(place: str, old: Any, new: Any) -> Change:
    """Without a limit of its own the platform's holds, which may be more."""
    more = isinstance(old, int) and isinstance(new, int) and new > old
    return Change(
        LIMIT,
        place,
        _plain(old),
        _plain(new),
        "no limit of its own" if new is None else "more" if more else "",
    )


def _words(
    place: str, old: Mapping[str, Any], new: Mapping[str, Any], names: tuple[str, ...]
) -> Iterator[Change]:
    for name in names:
        if old.get(name) != new.get(name):
            yield Change(WORK, f"{place}: {name}", _plain(old.get(name)), _plain(new.get(name)))


def _named(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Change]:
    old, new = (set(one.get("dependencies", ())) for one in (before, after))
    yield from (Change(NEEDS, name, "not needed", "needed", "new") for name in sorted(new - old))
    yield from (Change(NEEDS, name, "needed", "not needed any more") for name in sorted(old - new))
    profiles = (_by(one, "modelProfiles", "modelProfileId") for one in (before, after))
    for name, was, now in _pairs(*profiles):
        yield _come_or_gone(WORK, f"model profile {name}", was, now, lambda one: one["description"])


def _proof(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Change]:
    old, new = before["evaluation"], after["evaluation"]
    was, now = (f"{one['suite']} {one['version']}" for one in (old, new))
    if was != now:
        yield Change(PROOF, "suite", was, now)
    for one in (*_words("suite", old, new, ("entry",)), *_lists("suite", old, new)):
        yield replace(one, about=PROOF)
    for name in sorted(old["thresholds"].keys() | new["thresholds"].keys()):
        least, most = old["thresholds"].get(name), new["thresholds"].get(name)
        if least != most:
            easier = least is not None and (most is None or most < least)
            yield Change(
                PROOF, f"lowest {name} that passes", _plain(least), _plain(most), "easier" if easier else ""
            )


def _plain(value: Any) -> str:
    return UNSAID if value is None or value == "" else str(value)

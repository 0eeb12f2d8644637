"""What differs between two manifests in words: what it may do, its limits, its workflows. Pure: no query."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from factory.hashing import digest
from registry.admin.tree import LIMITS, REACHES, gate_in_words, step_in_words

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


def _may_use(one: Mapping[str, Any]) -> str:
    return f"uses {', '.join(one['skills'])}" if one.get("skills") else "uses no skill"


def _workflows(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Change]:
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
            yield from _step(f"{place}, step {key}", was, now)


def _flow(one: Mapping[str, Any]) -> str:
    reach = max((node["sideEffectClass"] for node in one["nodes"]), key=REACHES.index)
    count = len(one["nodes"])
    return f"{count} step{'' if count == 1 else 's'}, as far as {reach}"


def _step(place: str, old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> Iterator[Change]:
    if old is None or new is None:
        yield _come_or_gone(
            WORK, place, old, new, lambda one: f"{one['sideEffectClass']}; {step_in_words(one)}"
        )
        return
    yield from _reach(place, old, new)
    if old.get("gate") != new.get("gate"):
        was, now = (gate_in_words(one.get("gate", {})) for one in (old, new))
        yield Change(MAY, f"{place}: who decides", was, now, "" if new.get("gate") else "asks fewer")
    for name, words in LIMITS.items():
        if old.get(name) != new.get(name):
            yield _limit(f"{place}: {words}", old.get(name), new.get(name))
    rest = [_without_limits(one) for one in (old, new)]
    if rest[0] != rest[1]:
        yield Change(WORK, place, *rest)
    yield from _words(place, old, new, ("question",))


def _without_limits(node: Mapping[str, Any]) -> str:
    return step_in_words({name: value for name, value in node.items() if name not in (*LIMITS, "gate")})


def _limit(place: str, old: Any, new: Any) -> Change:
    more = isinstance(old, int) and isinstance(new, int) and new > old
    return Change(LIMIT, place, _plain(old), _plain(new), "more" if more else "")


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
    for name in sorted(old["thresholds"].keys() | new["thresholds"].keys()):
        least, most = old["thresholds"].get(name), new["thresholds"].get(name)
        if least != most:
            easier = least is not None and (most is None or most < least)
            yield Change(
                PROOF, f"lowest {name} that passes", _plain(least), _plain(most), "easier" if easier else ""
            )


def _plain(value: Any) -> str:
    return UNSAID if value is None or value == "" else str(value)

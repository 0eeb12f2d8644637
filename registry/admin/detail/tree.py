"""What a release is made of, as a tree in words: each part with what it is, and what is wrong with it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Case, When
from django.template.defaultfilters import pluralize
from django.urls import reverse

from registry.manifest.closure import ClosureFile
from registry.models import ClosureDependency, ClosureEntry, Release, ReleaseBlob
from registry.selectors import entries, format_needs
from registry.states import LOADABLE, PieceState, ReleaseState

MOST = 60
"""So many parts of one thing stand on the page; the rest is counted."""
MOST_IN_ALL = 400
OPENED = 12
"""A part with more parts than that is closed until somebody opens it."""
MISSING = str(PieceState.MISSING)
REACHES = ("read", "sandbox", "shared-write", "external", "production", "publication")


@dataclass(frozen=True, slots=True)
class Piece:
    """One part: what it is, its name, other people's words about it, ours, and how it stands."""

    kind: str
    name: str
    quote: str = ""
    note: str = ""
    reach: str = ""
    state: str = ""
    hash: str = ""
    size: int | None = None
    url: str = ""
    parts: tuple["Piece", ...] = ()
    left_out: int = 0

    @property
    def opened(self) -> bool:
        return len(self.parts) <= OPENED

    @property
    def is_broken(self) -> bool:
        """Tell whether it, or something in it, keeps the release from being loaded."""
        return self.state in (MISSING, ReleaseState.REVOKED) or any(one.is_broken for one in self.parts)


@dataclass(frozen=True, slots=True)
class Tree:
    """The whole of it; `broken` says in sentences why it does not load, `revoked` what it needs and was
    taken back: with that it cannot be published either."""

    groups: tuple[Piece, ...]
    summary: str
    reach: str
    broken: tuple[str, ...] = ()
    revoked: tuple[str, ...] = ()


@dataclass
class Material:
    """Hold what the tree is drawn from, read once, and how much of it still fits on the page."""

    definition: Mapping[str, Any]
    entries: Sequence[ClosureFile]
    kept: frozenset[str]
    needed: Mapping[str, Release] = field(default_factory=dict)
    needs: Mapping[Any, Sequence[str]] = field(default_factory=dict)
    complete: bool = True
    left: int = MOST_IN_ALL

    def few(self, items: Iterable[Any], draw: Callable[[Any], Piece]) -> tuple[tuple[Piece, ...], int]:
        """The first of some things as pieces, and how many of them do not stand here."""
        all_of_them = list(items)
        fitting = all_of_them[: max(0, min(MOST, self.left))]
        self.left -= len(fitting)
        return tuple(draw(one) for one in fitting), len(all_of_them) - len(fitting)


def material_of(row: Release) -> Material:
    """Read with four queries, whatever the release holds."""
    assert row.closure is not None
    pieces = entries(row.closure.id)
    hashes = {piece.sha256 for piece in pieces if piece.path or piece.kind == "manifest"}
    kept = ReleaseBlob.objects.filter(sha256__in=hashes).values_list("sha256", flat=True)
    rows = ClosureDependency.objects.filter(closure_id=row.closure.id).select_related("release__asset")
    revoked_first = Case(When(release__state=ReleaseState.REVOKED, then=0), default=1)
    found = list(rows.order_by(revoked_first, "release_id")[: MOST_IN_ALL + 1])
    releases = [one.release for one in found[:MOST_IN_ALL]]
    direct = ClosureEntry.objects.filter(
        closure_id__in=[one.closure_id for one in releases], kind="dependency"
    )
    needs: dict[Any, list[str]] = {}
    for closure_id, name in (
        direct.order_by("item_id").values_list("closure_id", "item_id") if releases else ()
    ):
        needs.setdefault(closure_id, []).append(name)
    named = {f"{one.asset.name}@{one.semver}": one for one in releases}
    complete = len(found) <= MOST_IN_ALL
    return Material(row.closure.definition, pieces, frozenset(kept), named, needs, complete)


def tree_of(row: Release) -> Tree:
    """The tree of a release whose commit has been read."""
    return drawn(material_of(row))


def drawn(of: Material) -> Tree:
    """Return the same from what was read. Pure but for addresses."""
    groups = tuple(
        _group(of, name, items, draw)
        for name, items, draw in (
            ("Needs", _direct(of), lambda one: _needed(of, one, ())),
            ("Agents", of.definition["agents"], lambda one: _agent(of, one)),
            ("Skills", of.definition["skills"], lambda one: _skill(of, one)),
            ("Workflows", of.definition["workflows"], lambda one: _workflow(of, one)),
            ("Model profiles", of.definition["modelProfiles"], _profile),
            ("Evaluation suite", [of.definition["evaluation"]], lambda one: _suite(of, one)),
        )
        if items
    )
    revoked = sorted(name for name, one in of.needed.items() if one.state == ReleaseState.REVOKED)
    broken = tuple(_broken(of, revoked))
    return Tree(groups, _summary(of.definition), furthest(of.definition), broken, tuple(revoked))


def _group(of: Material, name: str, items: Sequence[Any], draw: Callable[[Any], Piece]) -> Piece:
    parts, left_out = of.few(items, draw)
    return Piece("", name, note=str(len(items)), parts=parts, left_out=left_out)


def furthest(definition: Mapping[str, Any]) -> str:
    """Return how far the steps of its workflows reach at most; empty where it has none."""
    reached = [node["sideEffectClass"] for flow in definition["workflows"] for node in flow["nodes"]]
    return max(reached, key=REACHES.index, default="")


def _summary(definition: Mapping[str, Any]) -> str:
    counts = (
        (len(definition["agents"]), "agent"),
        (len(definition["skills"]), "skill"),
        (len(definition["workflows"]), "workflow"),
    )
    told = [f"{count} {word}{pluralize(count)}" for count, word in counts if count]
    return f"{', '.join(told[:-1])} and {told[-1]}" if len(told) > 1 else told[0]


def _broken(of: Material, revoked: Sequence[str]) -> Iterable[str]:
    if revoked:
        yield format_needs(revoked)
    lost = sorted({piece.path or "its manifest" for piece in of.entries if _is_lost(of, piece)})
    if lost:
        more = f" and {len(lost) - 5} more" if len(lost) > 5 else ""
        yield f"The content of {', '.join(lost[:5])}{more} is not in the store."


def _is_lost(of: Material, piece: ClosureFile) -> bool:
    return bool(piece.path or piece.kind == "manifest") and piece.sha256 not in of.kept


def _direct(of: Material) -> list[ClosureFile]:
    return [piece for piece in of.entries if piece.kind == "dependency"]


def _needed(of: Material, piece: ClosureFile, above: tuple[str, ...]) -> Piece:
    """Another release, and what that one needs in its turn."""
    row, hash_ = of.needed.get(piece.item_id), piece.sha256
    if row is None and not of.complete:
        return Piece("release", piece.item_id, note="not looked at: it needs too many", hash=hash_)
    if row is None:
        return Piece(
            "release", piece.item_id, state=MISSING, note="no such release is known here", hash=hash_
        )
    notes = {
        ReleaseState.REVOKED: "taken back: what needs it loads no more",
        ReleaseState.DEPRECATED: "takes no new submissions of its own, and still loads",
    }
    path = (*above, piece.item_id)
    deeper = [name for name in of.needs.get(row.closure_id, ()) if name not in path]
    parts, left_out = of.few(
        deeper, lambda name: _needed(of, ClosureFile("dependency", name, "", "", 0), path)
    )
    return Piece(
        "release",
        piece.item_id,
        note=notes.get(ReleaseState(row.state), ""),
        state=str(row.state),
        hash=hash_,
        url=reverse("admin:registry_release_change", args=[row.id]),
        parts=parts,
        left_out=left_out,
    )


def _files(of: Material, kind: str, item_id: str) -> list[ClosureFile]:
    return [one for one in of.entries if (one.kind, one.item_id) == (kind, item_id) and one.path]


def _file(of: Material, piece: ClosureFile) -> Piece:
    lost = _is_lost(of, piece)
    return Piece(
        "file",
        piece.path,
        state=MISSING if lost else "",
        note="its content is not in the store" if lost else "",
        hash=piece.sha256,
        size=piece.size,
    )


def _agent(of: Material, one: Mapping[str, Any]) -> Piece:
    skills = one.get("skills", ())
    note = f"begins with {one['entry']}; " + (f"uses {', '.join(skills)}" if skills else "uses no skill")
    files = _files(of, "agent", one["agentId"])
    parts, left_out = of.few(files, lambda piece: _file(of, piece))
    return Piece("agent", one["agentId"], one["description"], note, parts=parts, left_out=left_out)


def _skill(of: Material, one: Mapping[str, Any]) -> Piece:
    tools = [Piece("tool", each["name"], reach=each["sideEffectClass"]) for each in one.get("tools", ())]
    files = _files(of, "skill", one["skillId"])
    parts, left_out = of.few(
        [*tools, *files], lambda each: each if isinstance(each, Piece) else _file(of, each)
    )
    reach = one["sideEffectClass"]
    return Piece("skill", one["skillId"], one["description"], reach=reach, parts=parts, left_out=left_out)


def _workflow(of: Material, one: Mapping[str, Any]) -> Piece:
    reach = max((node["sideEffectClass"] for node in one["nodes"]), key=REACHES.index)
    parts, left_out = of.few(one["nodes"], _step)
    title = one["title"] if one["title"] != one["workflowId"] else ""
    steps = f"{len(one['nodes'])} step{pluralize(len(one['nodes']))}"
    note = f"version {one['version']}, {steps}, its output is that of {one['output']}"
    return Piece("workflow", one["workflowId"], title, note, reach, parts=parts, left_out=left_out)


def _step(node: Mapping[str, Any]) -> Piece:
    return Piece("step", node["key"], node.get("question", ""), step_in_words(node), node["sideEffectClass"])


def step_in_words(node: Mapping[str, Any]) -> str:
    """Return who works at a step, after what, and within which limits; nothing about how far it reaches."""
    told = ["a person answers" if node["kind"] == "human" else f"agent {node.get('agentId', '')}"]
    if node.get("skillId"):
        told[0] += f" with {node['skillId']}"
    if node.get("dependsOn"):
        told.append(f"after {', '.join(node['dependsOn'])}")
    if "when" in node:
        told.append(f"only when {node['when']}")
    if "forEach" in node:
        told.append(f"for each of {node['forEach']}")
    told += [f"{words} {node[name]}" for name, words in LIMITS.items() if name in node]
    if "gate" in node:
        told.append(f"decided by {gate_in_words(node['gate'])}")
    return "; ".join(told)


LIMITS = {
    "maxAttempts": "attempts at most",
    "timeoutMinutes": "minutes at most",
    "correctionLimit": "corrections at most",
}


def gate_in_words(gate: Mapping[str, Any]) -> str:
    """Return what a gate asks beside the policy."""
    people = f"{gate['quorum']} people" if gate.get("quorum", 1) > 1 else ""
    roles = " or ".join(gate.get("roles", ()))
    return ", ".join(one for one in (people, roles) if one) or "who the policy names"


def _profile(one: Mapping[str, Any]) -> Piece:
    return Piece("model profile", one["modelProfileId"], one["description"])


def _suite(of: Material, one: Mapping[str, Any]) -> Piece:
    files = _files(of, "evaluation", one["suite"])
    parts, left_out = of.few(files, lambda piece: _file(of, piece))
    least = ", ".join(f"{name} {value}" for name, value in sorted(one["thresholds"].items()))
    note = f"version {one['version']}; passes from {least}"
    return Piece("suite", one["suite"], note=note, parts=parts, left_out=left_out)


def loads(row: Release, tree: Tree | None) -> bool:
    """Tell whether a worker may load it now."""
    return row.state in LOADABLE and tree is not None and not tree.broken

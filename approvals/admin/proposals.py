"""A proposal for reading, by its kind, and what has changed since the one before. Others' words are data."""

import difflib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from approvals import kinds
from approvals.selectors import ProposalView
from factory.admin.diffs import File, files_of
from factory.admin.show import seen

SHOWN = 1_048_576
SHORT = 300
MOST_CHANGES = 200

BEFORE = "predecessors"
"""What a question shows of the steps that were done before it; empty where there is none."""
NAMED = {
    kinds.TOOL_CALL: ("arguments", "The arguments of the call", "Argument", "Value"),
    kinds.QUESTION: (BEFORE, "What was done before", "Step", "What it said"),
}
"""Members that are shown as a table: which, and what stands above it."""

SAYS = {
    kinds.UNIFIED_DIFF: "A change of files",
    kinds.TOOL_CALL: "A call of a tool",
    kinds.MANIFEST: "A manifest",
    kinds.SPEND_ESTIMATE: "Money",
    kinds.TEXT: "Plain text",
    kinds.QUESTION: "A question",
}
OWN_PARTS = {
    kinds.UNIFIED_DIFF: {"kind", "diff", "files", "message"},
    kinds.TOOL_CALL: {"kind", "tool", "arguments", "description"},
    kinds.TEXT: {"kind", "text"},
    kinds.QUESTION: {"kind", "question", BEFORE},
    kinds.SPEND_ESTIMATE: {"kind", "amount", "threshold"},
}


@dataclass(frozen=True, slots=True)
class Shown:
    """A proposal as it is shown: its parts by kind, and the rest as the JSON that was hashed."""

    kind: str
    says: str
    facts: tuple[tuple[str, str], ...]
    message: str
    files: list[File] | None
    plain: str
    table: tuple[tuple[str, str], ...]
    heads: tuple[str, ...]
    tool: str
    text: str
    size: int


@dataclass(frozen=True, slots=True)
class Change:
    """One place that differs from the proposal before: where, how, and its two texts if they are short."""

    place: str
    how: str
    before: str = ""
    after: str = ""


def shown(stored: ProposalView) -> Shown:
    """A proposal for the page; what is no known kind, from before there were kinds, as indented JSON."""
    content = stored.content if isinstance(stored.content, dict) else {"value": stored.content}
    kind = str(content.get("kind", ""))
    files = _files(content) if kind == kinds.UNIFIED_DIFF else None
    own = OWN_PARTS.get(kind, {"kind"}) if files is not None or kind != kinds.UNIFIED_DIFF else {"kind"}
    rest = {name: value for name, value in content.items() if name not in own}
    large = {name: value for name, value in rest.items() if not _is_plain(value)}
    return Shown(
        kind=kind,
        says=SAYS.get(kind, ""),
        facts=(*_money(content, kind), *((_label(k), str(v)) for k, v in rest.items() if k not in large)),
        message=_words(content, {kinds.UNIFIED_DIFF: "message", kinds.TOOL_CALL: "description"}.get(kind)),
        files=files,
        plain=_words(content, {kinds.TEXT: "text", kinds.QUESTION: "question"}.get(kind)),
        table=tuple(_table(content, kind)),
        heads=NAMED.get(kind, ("",))[1:],
        tool=str(content.get("tool", "")) if kind == kinds.TOOL_CALL else "",
        text=_json(large)[:SHOWN] if large else "",
        size=stored.size,
    )


def changes(old: ProposalView, new: ProposalView) -> list[Change]:
    """What a returning reviewer looks at first: each place that is not as it was."""
    was, now = _parts(old.content), _parts(new.content)
    told = [_change(place, was.get(place), now.get(place)) for place in dict.fromkeys([*now, *was])]
    return [change for change in told if change is not None][:MOST_CHANGES]


def _parts(content: Any) -> dict[str, str]:
    """A proposal taken apart: a diff by its files, anything else by its members."""
    if not isinstance(content, Mapping):
        return {"": _json(content)}
    parts: dict[str, str] = {}
    files = _files(content) if content.get("kind") == kinds.UNIFIED_DIFF else None
    for file in files or []:
        parts[file.path] = "\n".join(f"{line.mark or ' '}{line.text}" for line in file.lines)
    for name, value in content.items():
        if name != "diff" or files is None:
            parts |= _members(str(name), value)
    return parts


def _members(name: str, value: Any) -> dict[str, str]:
    if isinstance(value, Mapping):
        return {f"{name}.{key}": _text(inner) for key, inner in value.items()} or {name: "{}"}
    return {name: _text(value)}


def _change(place: str, was: str | None, now: str | None) -> Change | None:
    if was == now:
        return None
    if was is None:
        return Change(seen(place), "not in the proposal before", after=_brief(now))
    if now is None:
        return Change(seen(place), "no longer there", before=_brief(was))
    return Change(seen(place), "differs from the proposal before", *_apart(was, now))


def _apart(was: str, now: str) -> tuple[str, str]:
    """Only the lines that differ, on either side."""
    lines = list(difflib.unified_diff(was.splitlines(), now.splitlines(), n=0, lineterm=""))[2:]
    gone = "\n".join(line[1:] for line in lines if line.startswith("-"))
    come = "\n".join(line[1:] for line in lines if line.startswith("+"))
    return _brief(gone), _brief(come)


def _brief(text: str | None) -> str:
    short = (text or "")[: 4 * SHORT]
    return seen(short + " …" if len(text or "") > len(short) else short)


def _files(content: Mapping[str, Any]) -> list[File] | None:
    diff = content.get("diff")
    return files_of(diff) if isinstance(diff, str) and len(diff) <= SHOWN else None


def _money(content: Mapping[str, Any], kind: str) -> Iterator[tuple[str, str]]:
    for name in ("amount", "threshold") if kind == kinds.SPEND_ESTIMATE else ():
        value = content.get(name)
        if isinstance(value, Mapping):
            yield _label(name), f"{value.get('amount')} {value.get('currency')}"


def _table(content: Mapping[str, Any], kind: str) -> Iterator[tuple[str, str]]:
    members = content.get(NAMED[kind][0]) if kind in NAMED else None
    if isinstance(members, Mapping):
        yield from ((str(name), _text(value)[:SHOWN]) for name, value in members.items())


def _words(content: Mapping[str, Any], name: str | None) -> str:
    value = content.get(name) if name else None
    return value if isinstance(value, str) else ""


def _text(value: Any) -> str:
    return value if isinstance(value, str) else _json(value)


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def _is_plain(value: Any) -> bool:
    return isinstance(value, int | float | bool) or (isinstance(value, str) and len(value) <= SHORT)


def _label(name: str) -> str:
    words = "".join(f" {c.lower()}" if c.isupper() else c for c in name)
    return words[:1].upper() + words[1:]

"""A proposal for reading, by its kind. Others' words are data, and what would hide in them is written out."""

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.utils.safestring import SafeString

from approvals.admin.detail.sheets import Sheet, facts_of, label, sheet_of
from approvals.operations import kinds
from approvals.selectors import ProposalView
from factory.console import diffs
from factory.console.colours import Palette
from factory.console.diffs import Diff
from factory.console.folding import FoldedText, text_of
from factory.console.spans import Hidden, hidden_in
from factory.kernel.hashing import canonical

SHOWN = 1_048_576
SHORT = 300

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
class ProposalMember:
    """A member of its own as it was hashed, in JSON; to be read first, a table or pairs, where it is one."""

    name: str
    sheet: Sheet | None
    facts: tuple[tuple[str, SafeString], ...]
    json: FoldedText


@dataclass(frozen=True, slots=True)
class Shown:
    """A proposal as it is shown: its parts by kind, and the rest as the JSON that was hashed."""

    kind: str
    says: str
    facts: tuple[tuple[str, str], ...]
    message: str
    diff: Diff | None
    plain: str
    table: tuple[tuple[str, FoldedText], ...]
    heads: tuple[str, ...]
    tool: str
    members: tuple["ProposalMember", ...]
    hidden: Hidden
    size: int

    @property
    def cut(self) -> bool:
        """Tell whether some of it is in the download alone."""
        unread = self.diff is not None and (self.diff.cut or any(file.binary for file in self.diff.files))
        return bool(unread) or any(one.cut for one in self._texts())

    @property
    def folded(self) -> bool:
        """Tell whether some of it has to be opened to be read."""
        files = self.diff.files if self.diff else []
        closed = any((one.parts and not one.opened) or len(one.parts) > 1 for one in files)
        read_first = any(one.sheet or one.facts for one in self.members)
        return closed or read_first or any(len(one.parts) > 1 for one in self._texts())

    def _texts(self) -> Iterator[FoldedText]:
        yield from (value for _, value in self.table)
        yield from (one.json for one in self.members)

    @property
    def repository(self) -> str:
        """Return where a change of files goes, where the proposal says it."""
        return next((value for name, value in self.facts if name == "Repository"), "")


def shown(stored: ProposalView, tags: Mapping[str, tuple[str, bool]] | None = None) -> Shown:
    """A proposal for the page; what is no known kind, from before there were kinds, as indented JSON.

    `tags` say of a file how it stands to the proposal before, and whether it differs from it.
    """
    content = stored.content if isinstance(stored.content, dict) else {"value": stored.content}
    kind, palette = str(content.get("kind", "")), Palette()
    diff = _diff(content, tags or {}) if kind == kinds.UNIFIED_DIFF else None
    own = OWN_PARTS.get(kind, {"kind"}) if diff is not None or kind != kinds.UNIFIED_DIFF else {"kind"}
    rest = {name: value for name, value in content.items() if name not in own}
    plain = {name: value for name, value in rest.items() if is_plain(value)}
    return Shown(
        kind=kind,
        says=SAYS.get(kind, ""),
        facts=(*_money(content, kind), *((label(k), str(v)) for k, v in plain.items())),
        message=_words(content, {kinds.UNIFIED_DIFF: "message", kinds.TOOL_CALL: "description"}.get(kind)),
        diff=diff,
        plain=_words(content, {kinds.TEXT: "text", kinds.QUESTION: "question"}.get(kind)),
        table=tuple((name, _value(value, palette)) for name, value in _table(content, kind)),
        heads=NAMED.get(kind, ("",))[1:],
        tool=str(content.get("tool", "")) if kind == kinds.TOOL_CALL else "",
        members=tuple(_member(kind, k, v, palette) for k, v in rest.items() if k not in plain),
        hidden=hidden_in(canonical(stored.content).decode()),
        size=stored.size,
    )


def _diff(content: Mapping[str, Any], tags: Mapping[str, tuple[str, bool]]) -> Diff | None:
    text = content.get("diff")
    found = diffs.read(text) if isinstance(text, str) and len(text) <= SHOWN else None
    return None if found is None else diffs.for_page(found.tagged(tags))


def _money(content: Mapping[str, Any], kind: str) -> Iterator[tuple[str, str]]:
    for name in ("amount", "threshold") if kind == kinds.SPEND_ESTIMATE else ():
        value = content.get(name)
        if isinstance(value, Mapping):
            yield MONEY[name], f"{_rounded(value.get('amount'))} {value.get('currency')}"


MONEY = {"amount": "May cost in all", "threshold": "Needs a decision above"}


def _rounded(amount: object) -> str:
    """An amount without the zeros that say nothing; two places at least."""
    text = str(amount)
    whole, point, places = text.partition(".")
    return f"{whole}.{places.rstrip('0'):0<2}" if point and places.isdecimal() else text


def _table(content: Mapping[str, Any], kind: str) -> Iterator[tuple[str, Any]]:
    members = content.get(NAMED[kind][0]) if kind in NAMED else None
    if isinstance(members, Mapping):
        yield from ((str(name), value) for name, value in members.items())


def _member(kind: str, name: str, value: Any, palette: Palette) -> ProposalMember:
    is_read = kind in (kinds.MANIFEST, kinds.SPEND_ESTIMATE)
    sheet, facts = (sheet_of(value), facts_of(value)) if is_read else (None, ())
    return ProposalMember(label(name), sheet, facts, _value(value, palette))


def _value(value: Any, palette: Palette) -> FoldedText:
    told = text(value)
    found = text_of(told[:SHOWN], "" if isinstance(value, str) else "value.json", palette)
    return replace(found, cut=found.cut + len(told[SHOWN:].splitlines()))


def _words(content: Mapping[str, Any], name: str | None) -> str:
    value = content.get(name) if name else None
    return value if isinstance(value, str) else ""


def text(value: Any) -> str:
    """A member as a person reads it: words as they are, anything else as indented JSON."""
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)


def is_plain(value: Any) -> bool:
    """Tell whether a member fits beside its name."""
    return isinstance(value, int | float | bool) or (isinstance(value, str) and len(value) <= SHORT)


def members_of(content: Any, without: Collection[str] = ()) -> dict[str, str]:
    """A proposal's members as texts, one level deep: what two proposals are compared by."""
    if not isinstance(content, Mapping):
        return {"": text(content)}
    parts: dict[str, str] = {}
    for name, value in content.items():
        if name in without:
            continue
        if isinstance(value, Mapping) and value:
            parts |= {f"{name}.{key}": text(inner) for key, inner in value.items()}
        else:
            parts[str(name)] = text(value)
    return parts

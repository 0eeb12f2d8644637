"""One release beside another of its asset: what it may do otherwise, and its texts line by line."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any
from uuid import UUID

import yaml
from django.template.defaultfilters import pluralize

from factory.console.diffs import Diff, File, for_page
from factory.console.show import commit_in_short
from factory.console.textdiff import ComparisonBudget, between
from factory.kernel.context import Context
from factory.kernel.permissions import may
from projects.states import Role
from registry.admin.detail.changes import Change, changes, same
from registry.manifest.closure import ClosureFile
from registry.models import Release, ReleaseBlob
from registry.selectors import entries, releases
from registry.states import HOLDS_VERSION, LOADABLE, ReleaseState

CHOICES = 100
"""So many of the asset's newest releases can be chosen from."""
MOST_CHANGES = 150
MOST_FILES = 100
MOST_BYTES = 1_048_576
"""Of all contents together; the rest is told by its hash."""


@dataclass(frozen=True, slots=True)
class ComparableRelease:
    """A release that this one can be held against."""

    id: UUID
    words: str


@dataclass(frozen=True, slots=True)
class ReleaseDifference:
    """From `before` to the release of the page; `diff` is None where the two are the same text."""

    before: Release
    sentence: str
    groups: tuple[tuple[str, tuple[Change, ...]], ...]
    left_out: int
    diff: Diff | None
    by_hash: tuple[tuple[str, str, str, str], ...]
    hashes_left_out: int
    unread: str


def choices(row: Release) -> tuple[list[ComparableRelease], UUID | None]:
    """Return what it can be compared with, newest first, and which of them is the one before, if one is."""
    rows = releases().defer("closure__definition").filter(asset_id=row.asset_id, closure__isnull=False)
    others = list(rows.exclude(pk=row.id).order_by("-created_at", "-id")[:CHOICES])
    older = [one for one in others if (one.created_at, one.id) < (row.created_at, row.id)]
    held = next((one for one in older if one.state in HOLDS_VERSION), None)
    default = held or next(iter(older), None)
    return [ComparableRelease(one.id, _words(one)) for one in others], default.id if default else None


def _words(row: Release) -> str:
    return f"{row.semver}, {row.state}, {row.created_at:%d %b %Y}, {commit_in_short(row.commit)}"


def difference(ctx: Context, row: Release, other: Release) -> ReleaseDifference:
    """Within bounds of rows, files, bytes and work; both releases have their closures."""
    assert row.closure is not None
    assert other.closure is not None
    old, new = _files(entries(other.closure.id)), _files(entries(row.closure.id))
    told = changes(other.closure.definition, row.closure.definition)
    paths = sorted(path for path in old.keys() | new.keys() if _sha(old, path) != _sha(new, path))
    why = unread(ctx, other, row)
    shown = [] if why else _within_bounds(paths, old, new)
    contents = _contents({_sha(side, path) for path in shown for side in (old, new)} - {""})
    work = ComparisonBudget()
    manifest = [] if why else _manifest(other, row, work)
    files = [*manifest, *(_file(path, old, new, contents, work) for path in shown)]
    rest = [path for path in paths if path not in set(shown)]
    return ReleaseDifference(
        before=other,
        sentence=_sentence(other, row, told, paths, old, new),
        groups=tuple(
            (about, tuple(group)) for about, group in groupby(told[:MOST_CHANGES], key=lambda one: one.about)
        ),
        left_out=max(0, len(told) - MOST_CHANGES),
        diff=for_page(Diff(files)) if files else None,
        by_hash=tuple(_hashes(rest[:MOST_FILES], old, new)),
        hashes_left_out=max(0, len(rest) - MOST_FILES),
        unread=why,
    )


READS_CANDIDATES = frozenset({Role.REVIEWER, Role.WORKSPACE_ADMIN, Role.PLATFORM_ADMIN})
"""Who reads what was not published yet, beside its author: those who may decide about it, and admins."""


def unread(ctx: Context, *rows: Release) -> str:
    """Return why this person does not read the manifests and contents of these releases; empty where they
    may."""
    if not may(ctx, "LoadRelease"):
        return "Your roles do not read the contents of releases."
    gone = [one.semver for one in rows if one.state == ReleaseState.REVOKED]
    if gone:
        verb = "is" if len(gone) == 1 else "are"
        return f"{' and '.join(gone)} {verb} Revoked: neither manifests nor contents are shown."
    own = ctx.actor.person or ctx.actor.subject
    closed = [one.semver for one in rows if one.state not in LOADABLE and one.author_person != own]
    if closed and not ctx.actor.roles & READS_CANDIDATES:
        verb = "is" if len(closed) == 1 else "are"
        return (
            f"{' and '.join(closed)} {verb} not published: until then the lines of its files are read by its "
            "author, Reviewers and administrators."
        )
    return ""


def _files(pieces: Sequence[ClosureFile]) -> dict[str, ClosureFile]:
    """By path; a file that several parts name is one."""
    return {piece.path: piece for piece in pieces if piece.path}


def _sha(side: dict[str, ClosureFile], path: str) -> str:
    return side[path].sha256 if path in side else ""


def _within_bounds(
    paths: Sequence[str], old: dict[str, ClosureFile], new: dict[str, ClosureFile]
) -> list[str]:
    found, left = [], MOST_BYTES
    for path in paths[:MOST_FILES]:
        size = sum(side[path].size for side in (old, new) if path in side)
        if size <= left:
            left -= size
            found.append(path)
    return found


def _contents(hashes: Collection[str]) -> dict[str, bytes]:
    rows = ReleaseBlob.objects.filter(sha256__in=hashes).values_list("sha256", "content")
    return {sha256: bytes(content) for sha256, content in rows} if hashes else {}


def _manifest(other: Release, row: Release, work: ComparisonBudget) -> Iterator[File]:
    before, after = (_yaml(one.resolved.definition) for one in (other, row))
    if before != after:
        note = "The manifest as it was read, without its comments."
        yield between("factory.yaml", before, after, note, work=work)


NAMES = ("schemaVersion", "asset", "agentId", "skillId", "workflowId", "modelProfileId", "key", "name",
         "suite", "version", "kind", "title", "description")  # fmt: skip
"""What a part is called comes before what is said of it; the store does not keep the order of the commit."""


def _yaml(definition: Any) -> str:
    return yaml.safe_dump(_ordered(definition), sort_keys=False, allow_unicode=True, width=100)


def _ordered(value: Any) -> Any:
    if isinstance(value, dict):
        first = [name for name in NAMES if name in value]
        return {name: _ordered(value[name]) for name in dict.fromkeys([*first, *value])}
    return [_ordered(one) for one in value] if isinstance(value, list) else value


def _file(
    path: str,
    old: dict[str, ClosureFile],
    new: dict[str, ClosureFile],
    contents: dict[str, bytes],
    work: ComparisonBudget,
) -> File:
    was, now = _sha(old, path), _sha(new, path)
    notes = [f"sha256 {_end(was)} → {_end(now)}"]
    texts: list[str | None] = []
    for sha in (was, now):
        content = contents.get(sha)
        try:
            texts.append(None if content is None else content.decode())
        except UnicodeDecodeError:
            return File(path, "binary", 0, 0, (*notes, "It is binary: nothing of it can be read here."), [])
        if sha and content is None:
            return File(path, "missing", 0, 0, (*notes, "A content of it is not in the store."), [])
    return between(path, texts[0], texts[1], *notes, work=work)


def _end(sha256: str) -> str:
    return f"…{sha256[-8:]}" if sha256 else "not there"


def _hashes(
    paths: Sequence[str], old: dict[str, ClosureFile], new: dict[str, ClosureFile]
) -> Iterator[tuple[str, str, str, str]]:
    for path in paths:
        was, now = _sha(old, path), _sha(new, path)
        yield path, "new" if not was else "gone" if not now else "changed", was, now


def same_but_for(other: Release, row: Release) -> str:
    """Of two releases of one content, what sets them apart."""
    named = {"version": other.semver != row.semver, "commit": other.commit != row.commit}
    apart = " and ".join(name for name, differs in named.items() if differs)
    return f"They say and hold the same{f', but for their {apart}' if apart else ''}."


def _sentence(
    other: Release,
    row: Release,
    told: Sequence[Change],
    paths: Sequence[str],
    old: dict[str, ClosureFile],
    new: dict[str, ClosureFile],
) -> str:
    assert row.closure is not None
    assert other.closure is not None
    more = sum(bool(one.warns) for one in told)
    fresh, gone = (sum(path not in side for path in paths) for side in (old, new))
    kinds = ((len(paths) - fresh - gone, "changed"), (fresh, "new"), (gone, "gone"))
    files = ", ".join(f"{count} {word}" for count, word in kinds if count)
    if not told and not paths and same(other.closure.definition, row.closure.definition):
        return same_but_for(other, row)
    if not told and not paths:
        return "They hold the same files, and say the same in another order."
    words = f"{len(told)} difference{pluralize(len(told))} in what the manifest says"
    warned = f", {more} of which let{pluralize(more, 's,')} more happen" if more else ""
    return f"{words}{warned}; {f'other files: {files}' if files else 'no other file differs'}."

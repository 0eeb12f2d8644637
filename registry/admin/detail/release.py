"""What the page of a release says: read once, in one transaction, as plain values for its template."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.urls import reverse
from django.utils.safestring import SafeString

from approvals.selectors import ApprovalView, approval_view, visible
from factory.console.show import link
from factory.kernel.context import Context
from registry.admin.detail.alias_history import history_of_release
from registry.admin.detail.comparison import ReleaseDifference, choices, difference
from registry.admin.detail.tree import Tree, loads, tree_of
from registry.commands.closing import RETRIES
from registry.models import EvaluationRecord, Release
from registry.selectors import aliases_of, evaluations, releases
from registry.selectors.timeline import MOST_MOMENTS, journal_of, timeline_entry
from registry.states import EvaluationVerdict, ReleaseState

MOST_REVIEWS = 10
OLDER = 20
"""So many older evaluations are listed."""


@dataclass(frozen=True, slots=True)
class Score:
    """One measure of the suite: what was found and the least that passes, where the manifest names one."""

    name: str
    found: object
    least: object

    @property
    def reached(self) -> bool | None:
        """None where nothing is asked of it."""
        if self.least is None:
            return None
        return isinstance(self.found, int | float) and self.found >= self.least  # type: ignore[operator]  # numbers, by the manifest's schema


@dataclass(frozen=True, slots=True)
class Measured:
    """An evaluation for reading; `counts` is that of the newest, by which the release is judged."""

    record: EvaluationRecord
    scores: tuple[Score, ...]

    @property
    def passed(self) -> bool:
        return self.record.verdict == EvaluationVerdict.PASS

    @property
    def missed(self) -> int:
        return sum(one.reached is False for one in self.scores)


def release_page(ctx: Context, row: Release, against: UUID | None) -> dict[str, Any]:
    """The values of the release's page for this person, held against another release of its asset."""
    tree = tree_of(row) if row.closure else None
    history, measured = history_of_release(row), [_measured(one) for one in evaluations(row)[: OLDER + 1]]
    reviews, named = _reviews(ctx, row), aliases_of(row.id)
    options, default = choices(row) if row.closure else ([], None)
    return {
        "row": row,
        "name": f"{row.asset.name}@{row.semver}",
        "tree": tree,
        "loads": loads(row, tree),
        "loads_why": _loads_why(row, tree),
        "sentence": sentence(row, tree, named),
        "next": what_next(row, measured, tree),
        "history": history,
        "named": named,
        "newest": measured[0] if measured else None,
        "older": measured[1:],
        "reviews": reviews,
        "review": next((one for one in reviews if one.id == row.approval_id), None),
        "options": options,
        "wanted": against,
        "difference": _against(ctx, row, against, default, {one.id for one in options}),
        **_story(row),
    }


def _measured(record: EvaluationRecord) -> Measured:
    names = sorted(record.thresholds.keys() | record.scores.keys())
    told = (Score(name, record.scores.get(name), record.thresholds.get(name)) for name in names)
    return Measured(record, tuple(sorted(told, key=lambda one: (one.reached is None, one.reached is True))))


def _reviews(ctx: Context, row: Release) -> list[ApprovalView]:
    """Return what was asked about its publication, newest first, as far as the reader sees requests."""
    rows = visible(ctx).filter(subject_id=row.id).order_by("-requested_at", "-id")[:MOST_REVIEWS]
    return [approval_view(one) for one in rows]


def _against(
    ctx: Context, row: Release, wanted: UUID | None, default: UUID | None, known: set[UUID]
) -> ReleaseDifference | None:
    """The wanted one, or the one before; what is no release of this asset is compared with nothing."""
    chosen = wanted if wanted is not None else default
    if chosen is None or (chosen not in known and not _same_asset(row, chosen)):
        return None
    other = releases().filter(pk=chosen).first()
    return difference(ctx, row, other) if other is not None and other.closure is not None else None


def _same_asset(row: Release, other: UUID) -> bool:
    """Of releases that are too old to be offered, by a link."""
    rows = Release.objects.filter(pk=other, asset_id=row.asset_id, closure__isnull=False)
    return bool(rows.exclude(pk=row.id).exists())


def sentence(row: Release, tree: Tree | None, named: Sequence[str]) -> str:
    """Return what this release is, and what it is good for now, in one or two short sentences."""
    if tree is None:
        return f"A candidate for version {row.semver} of {row.asset.name}; its commit has not been read."
    far = f"; its workflows reach as far as {tree.reach}" if tree.reach else ""
    what = f"{tree.summary}{far}."
    return f"{what[:1].upper()}{what[1:]} {_standing(row, tree, named)}"


def _standing(row: Release, tree: Tree, named: Sequence[str]) -> str:
    if row.state == ReleaseState.REVOKED:
        return "It was taken back: nothing loads it."
    if tree.broken:
        return "Nothing can load it as it stands."
    if row.state == ReleaseState.DEPRECATED:
        return "It takes no new submissions; runs that pinned it still load it."
    if row.state == ReleaseState.PUBLISHED:
        names = " and ".join(named)
        verb = "names" if len(named) == 1 else "name"
        return f"New runs can pin it; {f'{names} {verb} it' if names else 'no alias names it'}."
    return "It is a candidate: no run can pin it."


def _loads_why(row: Release, tree: Tree | None) -> str:
    """For whom it loads, or what keeps it from being loaded."""
    if row.state == ReleaseState.REVOKED:
        return "it was taken back"
    if tree is not None and tree.broken:
        return " ".join(tree.broken)
    return {
        ReleaseState.PUBLISHED: "for new runs, and for those that pinned it",
        ReleaseState.DEPRECATED: "for runs that pinned it",
    }.get(ReleaseState(row.state), "not before it is Published")


def what_next(row: Release, measured: Sequence[Measured], tree: Tree | None) -> str:
    """Return what has to happen next and who does it; empty where nothing is waited for."""
    if row.state == ReleaseState.IN_REVIEW and tree is not None and tree.revoked:
        return (
            "No answer to its review would be taken: what it needs was revoked. It goes back to Draft when "
            "the time for an answer is over."
        )
    if row.state == ReleaseState.IN_REVIEW and tree is not None and tree.broken:
        return "It would not load once it is published: a Reviewer rejects it, or sends it back."
    if row.state == ReleaseState.IN_REVIEW:
        return "A Reviewer who neither wrote it nor asked for it decides. Silence publishes nothing."
    if row.state != ReleaseState.DRAFT:
        return ""
    if row.closure is None:
        return _reading(row)
    suite = row.closure.definition["evaluation"]
    if not measured:
        return (
            f"Its suite {suite['suite']} {suite['version']} is run, and what it measured is recorded over "
            "the API. Without a passing evaluation it cannot be reviewed."
        )
    if not measured[0].passed:
        return "Its newest evaluation failed: it takes a better one of the same hash, or a new commit."
    return "It has passed. Somebody who may submit releases asks for its review, over the API."


def _reading(row: Release) -> str:
    if row.next_resolution_at is not None:
        tries = row.resolution_attempts
        told = f" Try {tries} of {RETRIES + 1} failed; the next is at " if tries else ""
        told += f"{row.next_resolution_at:%H:%M:%S} UTC." if tries else ""
        return f"Its commit is being fetched and read.{told}"
    return (
        "Its commit could not be read, and is not tried again. What is wrong in the manifest takes a new "
        "commit; after a fault elsewhere, submitting the same commit again starts over."
    )


def _story(row: Release) -> dict[str, Any]:
    """Return what has happened to it, newest first, and who did what of it last."""
    entries = journal_of(row.id)
    deeds = {entry.cause: entry for entry in reversed(entries)}
    return {
        "moments": [timeline_entry(row, entry) for entry in entries[:MOST_MOMENTS]],
        "more_moments": len(entries) > MOST_MOMENTS,
        "asked": deeds.get("ReviewRequested"),
        "approved": deeds.get("ApprovalGranted"),
        "ended": deeds.get("Revoked") or deeds.get("Deprecated"),
    }


def url_of(release_id: UUID) -> str:
    return reverse("admin:registry_release_change", args=[release_id])


def url_of_asset(asset_id: UUID) -> str:
    return reverse("admin:registry_asset_change", args=[asset_id])


def linked(row: Release) -> SafeString:
    """Return a release by its name, with the way to its page."""
    return link(url_of(row.pk), row)

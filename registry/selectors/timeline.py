"""The timeline of a release: for its own page, and for who decides about its publication."""

from dataclasses import replace
from uuid import UUID

from approvals.selectors import ApprovalView
from approvals.states import ApprovalState
from approvals.subjects import Timeline, TimelineEntry
from factory.kernel.models import JournalEntry
from registry.models import Release
from registry.states import HOLDS_VERSION, EvaluationVerdict, ReleaseState

MOST_MOMENTS = 40
WORDS = {
    "Submitted": ("Submitted", "", "busy"),
    "Resubmitted": ("Submitted again", "", "busy"),
    "ClosureResolved": ("Its commit was read", "and hashed", "good"),
    "ClosureFailed": ("Its commit could not be read", "", "bad"),
    "EvaluationRecorded": ("An evaluation was recorded", "", "busy"),
    "ReviewRequested": ("Its review was asked for", "", "wait"),
    "ApprovalGranted": ("Approved", "and published", "good"),
    "ApprovalRejected": ("Its publication was rejected", "", "bad"),
    "ApprovalExpired": ("Nobody answered its review in time", "", "bad"),
    "ChangesRequested": ("Changes were asked for", "", "wait"),
    "Deprecated": ("Deprecated", "", "wait"),
    "Revoked": ("Revoked", "", "bad"),
}
ENDS_A_REVIEW = ("ApprovalRejected", "ApprovalExpired", "ChangesRequested")
"""The entries beside `ApprovalGranted` that a request writes by its end; each names the request."""


def journal_of(release_id: UUID) -> list[JournalEntry]:
    """Return the newest entries of its journal, newest first, and one more where there is more."""
    rows = JournalEntry.objects.filter(entity_id=release_id).order_by("-occurred_at", "-sequence")
    return list(rows[: MOST_MOMENTS + 1])


def timeline_entry(row: Release, entry: JournalEntry) -> TimelineEntry:
    """Return an entry in words, with who did it; its end with the reason that was given."""
    what, became, tone = WORDS.get(entry.cause, (entry.cause, "", "plain"))
    verdict = str(entry.detail.get("verdict", ""))
    if verdict:
        became, tone = f"with the verdict {verdict}", "good" if verdict == EvaluationVerdict.PASS else "bad"
    quote = row.ending_reason if entry.cause == str(row.state) else ""
    return TimelineEntry(entry.occurred_at, what, became, tone, f"by {entry.actor}", quote)


def _of_request(row: Release, entry: JournalEntry, view: ApprovalView) -> TimelineEntry:
    """Return an entry beside the request that ended in it: a decision and what it did have one time."""
    shown = timeline_entry(row, entry)
    approved = entry.cause == "ApprovalGranted" and view.state == ApprovalState.APPROVED
    ended = entry.cause in ENDS_A_REVIEW and entry.detail.get("approvalId") == str(view.id)
    return replace(shown, at=view.closed_at) if (approved or ended) and view.closed_at else shown


def timeline_of_release(row: Release, view: ApprovalView) -> Timeline:
    """Return what a reviewer should know beside the proposal, and the way to what is different in it."""
    rows = Release.objects.filter(asset_id=row.asset_id, state__in=HOLDS_VERSION - {ReleaseState.IN_REVIEW})
    before = rows.exclude(pk=row.pk).order_by("-created_at", "-id").first()
    return Timeline(
        title=f"The release so far: {row.asset.name}@{row.semver}",
        page="registry_release_change",
        key=row.pk,
        opens="See its parts, and what is different",
        helps="A release never changes: what is mended takes another version.",
        facts=(
            ("State", str(row.state)),
            ("The one before", f"{before.semver}, {before.state}" if before else "none: it is the first"),
            ("Commit", row.commit),
        ),
        moments=tuple(_of_request(row, entry, view) for entry in reversed(journal_of(row.pk)[:MOST_MOMENTS])),
    )

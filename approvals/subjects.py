"""What a decision is about moves in the decision's own transaction: the one call that goes upwards.

`approvals` knows no run and no release. The app that owns a subject registers how to lock it, how to
tell whether the question still stands, and what an answer does to it.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Protocol
from uuid import UUID

from django.db.models import Q

from factory.kernel.context import Context
from factory.kernel.errors import DomainError

if TYPE_CHECKING:
    from approvals.selectors import ApprovalView


@dataclass(frozen=True, slots=True)
class ShareBar:
    """A share of a whole, in percent, with the words that say what both are."""

    label: str
    percent: int
    words: str


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """Something that happened to a subject: to what of it, what became of that, and what is remarkable."""

    at: datetime
    what: str
    became: str
    tone: str = "plain"
    note: str = ""
    quote: str = ""
    aside: str = ""


@dataclass(frozen=True, slots=True)
class Timeline:
    """What a reviewer should know about a subject: where it is, its figures, and what happened so far.

    `asker` is the part of the subject that asks; `bars` belong to the proposal, `meters` to the subject;
    `opens` is what the link to its page is called; `helps` says what to do where no answer would be taken.
    """

    title: str
    url: str
    facts: tuple[tuple[str, str], ...] = ()
    moments: tuple[TimelineEntry, ...] = ()
    bars: tuple[ShareBar, ...] = ()
    meters: tuple[ShareBar, ...] = ()
    asker: str = ""
    cancel_url: str = ""
    opens: str = "Open the run"
    helps: str = ""


class Subject(Protocol):
    """One kind of thing that is decided about."""

    def lock(self, ctx: Context, subject_id: UUID, run_id: UUID | None) -> None:
        """Lock all that an answer may move, from the top: release, project, run, step, attempt, lease.

        Called before the request itself is locked, with ids read unlocked.
        """

    def still_current(self, ctx: Context, view: "ApprovalView") -> DomainError | None:
        """Under the locks: None, or why nobody needs an answer any more, such as a revoked release."""

    def decided(self, ctx: Context, view: "ApprovalView") -> None:
        """Move the subject: the request is Approved, Rejected, sent back (Stale) or Expired now."""

    def renewed(self, ctx: Context, old: "ApprovalView", new: "ApprovalView") -> None:
        """Nobody answered `old`, and the same is asked once more by `new`: go on waiting, for that one."""


_subjects: dict[str, Subject] = {}


def register(subject_type: str, implementation: Subject) -> None:
    """Called once for each kind, when the app that owns it is ready."""
    _subjects[subject_type] = implementation


def subject_of(subject_type: str) -> Subject:
    """The registered implementation; without one nothing of the kind can be decided."""
    if subject_type not in _subjects:
        raise RuntimeError(f"No app has registered the subject {subject_type}.")
    return _subjects[subject_type]


def story_of(ctx: Context, view: "ApprovalView") -> Timeline | None:
    """The subject's story for the decision page, if its app tells one (a method `story` like `decided`)."""
    tell = getattr(_subjects.get(view.subject_type), "story", None)
    told: Timeline | None = tell(ctx, view) if tell else None
    return told


def stops_of(ctx: Context, view: "ApprovalView") -> str:
    """Why no answer would be taken as things stand, of one that is open: what `still_current` would refuse
    with, read without locks, if its app tells it (a method `stops` like `still_current`)."""
    tell = getattr(_subjects.get(view.subject_type), "stops", None)
    refusal: DomainError | None = tell(ctx, view) if tell and view.is_pending else None
    return refusal.detail if refusal else ""


def unanswerable() -> Q:
    """The open requests of which `stops_of` says that no answer would be taken, for a list that would else
    ask about each of them; an app that has a method `stops` tells it by one called `stopped`."""
    told = Q(pk__in=[])
    for kind, subject in _subjects.items():
        tell = getattr(subject, "stopped", None)
        if tell is not None:
            told |= Q(subject_type=kind) & tell()
    return told

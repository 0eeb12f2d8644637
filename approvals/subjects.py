"""What a decision is about moves in the decision's own transaction: the one call that goes upwards.

`approvals` knows no run and no release. The app that owns a subject registers how to lock it, what stands
against an answer, and what an answer does to it.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import UUID

from django.db.models import Case, IntegerField, Q, QuerySet, Value, When

from approvals.models import ApprovalRequest
from approvals.states import SubjectType
from factory.kernel.context import Context
from factory.kernel.errors import DomainError

if TYPE_CHECKING:
    from approvals.selectors import ApprovalView


@dataclass(frozen=True, slots=True)
class ShareBar:
    """Show a share of a whole, in percent, with the words that say what both are."""

    label: str
    percent: int
    words: str


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """Tell something that happened to a subject: to what of it, what became of that, what is remarkable."""

    at: datetime
    what: str
    became: str
    tone: str = "plain"
    note: str = ""
    quote: str = ""
    aside: str = ""


@dataclass(frozen=True, slots=True)
class Timeline:
    """Tell what a reviewer should know about a subject: where it is, its figures, and what happened so far.

    `asker` is the part of the subject that asks; `bars` belong to the proposal, `meters` to the subject;
    `page` and `cancel_page` name pages of the console for the subject's `key`, `opens` is the link's text;
    `helps` says what to do where no answer would be taken.
    """

    title: str
    page: str
    key: UUID
    facts: tuple[tuple[str, str], ...] = ()
    moments: tuple[TimelineEntry, ...] = ()
    bars: tuple[ShareBar, ...] = ()
    meters: tuple[ShareBar, ...] = ()
    asker: str = ""
    cancel_page: str = ""
    opens: str = "Open the run"
    helps: str = ""


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Name why no answer to an open request is taken: a condition on its row, and the refusal."""

    stands: Q
    refusal: Callable[["ApprovalView"], DomainError]


class Subject(ABC):
    """Own one kind of thing that is decided about: lock it, judge the request about it, and move it."""

    kind: ClassVar[SubjectType]

    @abstractmethod
    def lock(self, ctx: Context, subject_id: UUID, run_id: UUID | None) -> None:
        """Lock all that an answer may move, from the top: release, project, run, step, attempt, lease.

        Called before the request itself is locked, with ids read unlocked.
        """

    @abstractmethod
    def decided(self, ctx: Context, view: "ApprovalView") -> None:
        """Move the subject: the request is Approved, Rejected, sent back (Stale) or Expired now."""

    @abstractmethod
    def renewed(self, ctx: Context, old: "ApprovalView", new: "ApprovalView") -> None:
        """Go on waiting, for `new`: nobody answered `old`, and the same is asked once more."""

    def obstacles(self) -> Sequence[Obstacle]:
        """Return all that may stand against an answer, such as a revoked release; the first one tells why."""
        return ()

    def refusal(self, view: "ApprovalView") -> DomainError | None:
        """Return why no answer to an open request would be taken; under the locks that is final."""
        obstacles = self.obstacles()
        request = ApprovalRequest.objects.filter(pk=view.id)
        number = first_that_holds(request, [obstacle.stands for obstacle in obstacles])
        return None if number is None else obstacles[number].refusal(view)

    def timeline(self, ctx: Context, view: "ApprovalView") -> Timeline | None:
        """Return what who decides should know beside the proposal; None where that says all that there is."""
        return None


def first_that_holds(row: QuerySet[Any], conditions: Sequence[Q]) -> int | None:
    """Return the number of the first condition that holds for the one row of a query; None if none does."""
    if not conditions:
        return None
    cases = [When(condition, then=Value(number)) for number, condition in enumerate(conditions)]
    number = Case(*cases, default=None, output_field=IntegerField())
    return row.order_by().values_list(number, flat=True).first()


_subjects: dict[str, Subject] = {}


def register(subject: Subject) -> None:
    """Take in the owner of a kind; called by its app's `ready`."""
    _subjects[subject.kind] = subject


def subject_of(subject_type: str) -> Subject:
    """Return the owner of a kind; without one nothing of the kind can be decided."""
    if subject_type not in _subjects:
        raise RuntimeError(f"No app has registered the subject {subject_type}.")
    return _subjects[subject_type]


def why_unanswerable(view: "ApprovalView") -> str:
    """Return why no answer would be taken as things are, of a request that is open; else empty."""
    refusal = subject_of(view.subject_type).refusal(view) if view.is_pending else None
    return refusal.detail if refusal else ""


def unanswerable() -> Q:
    """Return the condition of the requests to which no answer would be taken, for a list of many."""
    conditions = Q(pk__in=[])
    for kind, subject in _subjects.items():
        for obstacle in subject.obstacles():
            conditions |= Q(subject_type=kind) & obstacle.stands
    return conditions

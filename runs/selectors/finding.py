"""Runs by what people remember of them: bounded looks, each by an index or among the newest."""

from uuid import UUID

from django.db.models import Q, QuerySet, TextField
from django.db.models.functions import Cast

from factory.context import Context
from projects.selectors import people_like
from registry.selectors import releases_of_commit
from runs.models import Run
from runs.selectors.figures import runs_in

NEWEST = 20_000
"""Among so many of the newest runs of a place an ending of an id, a workflow or a release is looked for."""
INPUTS = 2_000
"""Among so many a commit is looked for in what was submitted, which is read from the snapshots."""


def by_id(ctx: Context, run_id: UUID) -> Run | None:
    """The run of a whole id."""
    return runs_in(ctx).filter(pk=run_id).first()


def by_key(ctx: Context, key: str) -> QuerySet[Run]:
    """The run that was submitted under a key."""
    return runs_in(ctx).filter(idempotency_key=key)


def of_people(ctx: Context, words: str) -> QuerySet[Run]:
    """The runs that somebody asked for, or a service of theirs, with these words in the name or address."""
    asked = Q(pk__in=[])
    for member in people_like(ctx.project_id, words):
        asked |= Q(requester_person=member.person) & (
            Q() if member.subject == member.person else Q(requested_by=member.subject)
        )
    return runs_in(ctx).filter(asked)


def among_newest(ctx: Context, *, ending: str, words: str, commit: str) -> QuerySet[Run]:
    """Runs whose id ends so, whose workflow begins so, or that ran a release of this commit."""
    named = Q(workflow_id__istartswith=words)
    if commit:
        named |= Q(release_id__in=releases_of_commit(commit))
    rows = runs_in(ctx).filter(pk__in=_newest(ctx, NEWEST))
    if ending:
        rows = rows.annotate(text=Cast("id", TextField()))
        named |= Q(text__endswith=ending)
    return rows.filter(named)


def of_input(ctx: Context, commit: str) -> QuerySet[Run]:
    """Runs that were given this commit, or its beginning, as the revision to work on."""
    rows = runs_in(ctx).filter(pk__in=_newest(ctx, INPUTS))
    return rows.filter(snapshot__content__input__revision__istartswith=commit)


def _newest(ctx: Context, many: int) -> QuerySet[Run, UUID]:
    return runs_in(ctx).order_by("-created_at", "-id").values_list("pk", flat=True)[:many]

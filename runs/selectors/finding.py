"""Runs by what people remember of them: bounded looks, each by an index or among the newest."""

from collections.abc import Iterable
from uuid import UUID

from django.db.models import Q, QuerySet

from factory.kernel.context import Context
from factory.kernel.newest import beginning, ids_among
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


_NAMED = """
workflow_id ILIKE %(words)s OR release_id = ANY(%(releases)s::uuid[])
OR (%(ending)s <> '' AND pk::text LIKE '%%' || %(ending)s)
"""


def among_newest(ctx: Context, *, ending: str, words: str, commit: str, most: int) -> list[UUID]:
    """The newest runs whose id ends so, whose workflow begins so, or that ran a release of this commit."""
    params = {
        "words": beginning(words),
        "releases": releases_of_commit(commit) if commit else [],
        "ending": ending,
    }
    return ids_among(_newest(ctx), NEWEST, ["workflow_id", "release_id"], _NAMED, params, most)


_GIVEN = """
(SELECT s.content #>> '{input,revision}' FROM runs_snapshot s WHERE s.id = snapshot_id) LIKE %(commit)s
"""
"""Not EXISTS: that may be answered by reading all snapshots there are, for so few runs."""


def of_input(ctx: Context, commit: str, most: int) -> list[UUID]:
    """The newest runs that were given this commit, or its beginning, as the revision to work on."""
    params = {"commit": beginning(commit)}
    return ids_among(_newest(ctx), INPUTS, ["snapshot_id"], _GIVEN, params, most)


def by_ids(ctx: Context, ids: Iterable[UUID]) -> QuerySet[Run]:
    """The runs of the place with these ids."""
    return runs_in(ctx).filter(pk__in=list(ids))


def _newest(ctx: Context) -> QuerySet[Run]:
    return runs_in(ctx).order_by("-created_at", "-id")

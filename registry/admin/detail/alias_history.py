"""Aliases through time: which name led where, from when to when, by whom and why."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from django.db.models import QuerySet

from factory.console.links import names
from factory.kernel.models import JournalEntry
from registry.models import AliasMove, Release
from registry.states import ReleaseState

MOST = 50


@names("ended-release")
def ended_releases(keys: Sequence[UUID]) -> dict[UUID, str]:
    """Of these releases those that take no new runs any more, by the state that says why."""
    over = (ReleaseState.DEPRECATED, ReleaseState.REVOKED)
    return dict(Release.objects.filter(pk__in=keys, state__in=over).values_list("pk", "state"))


@dataclass(frozen=True, slots=True)
class Named:
    """One time in which an alias named a release; `until` is None while it does."""

    alias_id: UUID
    alias: str
    release_id: UUID
    version: str
    state: str
    since: datetime
    by: str
    why: str
    until: datetime | None = None
    next_id: UUID | None = None
    next_version: str = ""
    next_by: str = ""


@dataclass(frozen=True, slots=True)
class History:
    """The newest such times, and whether older ones are left out."""

    times: tuple[Named, ...]
    more: bool = False


def history_of_release(row: Release) -> History:
    """Return when which alias named a release: moves are looked for by the aliases of its asset."""
    return _history(AliasMove.objects.filter(alias__asset_id=row.asset_id, release_id=row.id))


def history_of_asset(asset_id: UUID) -> History:
    """Return what each alias of an asset named, and when."""
    return _history(AliasMove.objects.filter(alias__asset_id=asset_id))


def _history(rows: QuerySet[AliasMove]) -> History:
    moves = list(rows.select_related("alias", "release").order_by("-moved_at", "-id")[: MOST + 1])
    after, why = _followers(moves[:MOST]), _causes(moves[:MOST])
    return History(tuple(_named(move, after, why) for move in moves[:MOST]), len(moves) > MOST)


def _named(
    move: AliasMove, after: dict[tuple[UUID, int], AliasMove], why: dict[tuple[UUID, int], str]
) -> Named:
    follower = after.get((move.alias_id, move.version + 1))
    told = Named(
        move.alias_id,
        move.alias.name,
        move.release_id,
        move.release.semver,
        str(move.release.state),
        move.moved_at,
        move.moved_by,
        why.get((move.alias_id, move.version), "why is not on record"),
    )
    if follower is None:
        return told
    return replace(
        told,
        until=follower.moved_at,
        next_id=follower.release_id,
        next_version=follower.release.semver,
        next_by=follower.moved_by,
    )


def _followers(moves: Sequence[AliasMove]) -> dict[tuple[UUID, int], AliasMove]:
    """The move after each of these, by alias and version."""
    known = {(move.alias_id, move.version): move for move in moves}
    wanted = {(move.alias_id, move.version + 1) for move in moves} - known.keys()
    rows = AliasMove.objects.filter(
        alias_id__in={alias for alias, _ in wanted}, version__in={version for _, version in wanted}
    ).select_related("release")
    return known | {(row.alias_id, row.version): row for row in (rows if wanted else ())}


def _causes(moves: Sequence[AliasMove]) -> dict[tuple[UUID, int], str]:
    """Return why each happened: the journal of an alias has one entry a version, with the operation that
    made it."""
    rows = JournalEntry.objects.filter(
        stream_id__in={move.alias_id for move in moves}, sequence__in={move.version for move in moves}
    ).values_list("stream_id", "sequence", "operation")
    by_hand = "somebody moved it by hand"
    published = "the release was published just then"
    return {
        (stream, sequence): by_hand if operation == "MoveAlias" else published
        for stream, sequence, operation in (rows if moves else ())
    }

"""Say what stands in the way of an act on a release, for the refusal and for the page before it."""

from collections.abc import Collection, Sequence

from registry.models import Release
from registry.selectors import releases
from registry.states import ReleaseState

DEPRECATED_FROM = frozenset({ReleaseState.PUBLISHED})
REVOKED_FROM = frozenset({ReleaseState.IN_REVIEW, ReleaseState.PUBLISHED, ReleaseState.DEPRECATED})


def name_of(row: Release) -> str:
    return f"{row.asset.name}@{row.semver}"


def stops_naming(row: Release) -> str:
    """Return why no alias may name it; like all of these empty where nothing stands in its way."""
    if row.state == ReleaseState.PUBLISHED:
        return ""
    return f"{name_of(row)} is {row.state}. Aliases name only what is Published."


def stops_ending(row: Release, word: str, states: Collection[str]) -> str:
    """Return why it may not be deprecated or revoked, as `word` says, from the state that it is in."""
    if row.state in states:
        return ""
    allowed = " or ".join(sorted(str(ReleaseState(state).value) for state in states))
    return f"{name_of(row)} is {row.state}. Only what is {allowed} can be {word}d."


def other_of(row: Release) -> Release | None:
    """Return the newest other Published release of its asset, which its aliases could name."""
    others = releases().filter(asset_id=row.asset_id, state=ReleaseState.PUBLISHED).exclude(pk=row.pk)
    return others.order_by("-published_at", "-id").first()


def stops_leading(names: Sequence[str], other: Release | None) -> str:
    """Return why it may not be deprecated while these aliases name it; `other` is one they could name."""
    if not names:
        return ""
    named = f"{' and '.join(names)} name{'s' if len(names) == 1 else ''} it. An alias never leads to a "
    if other is not None:
        return f"{named}Deprecated release: let it name another Published one first."
    return (
        f"{named}Deprecated release, and no other one of this asset is Published. Publish another one first; "
        f"or revoke this one: then {'the alias leads' if len(names) == 1 else 'they lead'} nowhere."
    )

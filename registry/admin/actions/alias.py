"""The page on which an alias is let name a release."""

from collections.abc import Mapping
from uuid import UUID

from factory.console.confirming import ChoiceField, Confirmation
from factory.kernel.context import Context
from registry.admin.detail.release import url_of
from registry.commands import move_alias
from registry.models import Alias, Release
from registry.selectors.obstacles import name_of, stops_naming

MOST = 100
"""Of an asset's aliases so many are named on the page; any of them may be written."""


def pointing(row: Release, written: str = "") -> Confirmation:
    """Return what the aliases of its asset name now, and where one of them, or a new one, would lead.

    `written` is the alias that was sent: what it names now stands there even where there are too many.
    """
    name = name_of(row)
    every = Alias.objects.filter(asset_id=row.asset_id).select_related("release").order_by("name")
    rows = {one.name: one for one in (*every.filter(name=written)[: bool(written)], *every[:MOST])}
    known = [(one.name, one.release.semver, one.version) for one in rows.values()]
    return Confirmation(
        title=f"Let an alias name {name}",
        lead="Who submits a run may name an alias instead of a release: the run pins what it names then.",
        button="Let it name this release",
        back=url_of(row.id),
        facts=[(alias, f"names {semver} now") for alias, semver, _ in known],
        consequences=(
            "Submissions by this alias pin this release from now on.",
            "Runs that were accepted before keep the release that they pinned.",
            "What the alias named before stays on record, and it can be moved back.",
        ),
        fields=[
            ChoiceField(
                "alias", "Alias", help="One of those above, or a new one: small letters, digits and -."
            )
        ],
        reason="",
        danger=False,
        hidden=[(f"version-{alias}", str(version)) for alias, _, version in known],
        heading="Releases",
        stops=stops_naming(row),
    )


def point(ctx: Context, row: Release, sent: Mapping[str, str]) -> int:
    """Move the alias that was written, if nobody has moved it since the page was shown."""
    alias = sent.get("alias", "").strip()
    seen = sent.get(f"version-{alias}", "")
    version = int(seen) if seen.isascii() and seen.isdecimal() and len(seen) < 10 else 0
    return move_alias(ctx, asset=row.asset.name, alias=alias, release_id=UUID(str(row.id)), version=version)

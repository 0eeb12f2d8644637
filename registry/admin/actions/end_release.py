"""The page before a release is taken out of use: what that touches, and what it does and does not do."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.urls import reverse

from approvals.selectors import open_waivers_of_release
from factory.console.confirming import ChoiceField, Confirmation
from factory.console.impact import MOST, SHOWN, ImpactRow, Touched, counted, touched
from factory.console.show import seen
from factory.kernel.commanding import Command
from factory.kernel.context import Context
from factory.kernel.permissions import may
from registry.admin.detail.release import url_of, url_of_asset
from registry.commands import deprecate_release, revoke_release
from registry.models import Release
from registry.selectors import aliases_of, releases, resting_on
from registry.selectors.obstacles import (
    DEPRECATED_FROM,
    REVOKED_FROM,
    name_of,
    other_of,
    stops_ending,
    stops_leading,
)
from registry.states import ReleaseState


@dataclass(frozen=True, slots=True)
class End:
    """A way out of use: in which states it is offered, what it does, and what it leaves alone."""

    word: str
    label: str
    command: Command[Any, Any]
    states: frozenset[str]
    lead: str
    does: tuple[str, ...]
    leaves: tuple[str, ...]
    done: str


DEPRECATE = End(
    "deprecate",
    "Deprecate",
    deprecate_release,
    DEPRECATED_FROM,
    "It takes no new submissions. Runs that pinned it still load it.",
    (
        "No run can be submitted with it any more, by its id or by an alias.",
        "Its open runs go on, fail or are cancelled, as you choose. Unless they go on, waivers for it end.",
    ),
    (
        "Releases that need it, and their runs, go on: a Deprecated release still loads.",
        "Runs that have ended stay as they are, and so do its files and its evidence.",
        "It does not become Published again. It can still be revoked.",
    ),
    "The release is deprecated.",
)
REVOKE = End(
    "revoke",
    "Revoke",
    revoke_release,
    REVOKED_FROM,
    "It is taken back for good: nothing loads it any more, nor any release that needs it.",
    (
        "No run can be submitted with it, and nothing that needs it can be loaded.",
        "Open runs that rest on it go on, fail or are cancelled, as you choose. Those that go on get no "
        "authorization, and nothing that they have not loaded yet.",
        "Waivers for it end, and a review of it that is under way is withdrawn.",
        "An alias that names it leads nowhere until it is moved.",
    ),
    (
        "What its runs have done already is not undone.",
        "Its files and its evidence stay. Runs of other releases are not touched.",
        "It cannot be taken back: the same content needs another version.",
    ),
    "The release is revoked.",
)
ENDS = {end.word: end for end in (DEPRECATE, REVOKE)}
DRAINED = {
    "deprecate": "drain: they finish",
    "revoke": "drain: they go on with what they have loaded, and get no authorization",
}
IN_FLIGHT = (
    ("block", "block: they fail at once (policy-denied)"),
    ("cancel", "cancel: they are cancelled, and their workers told to stop"),
)


WITH_DEPRECATION = "They end with block and with cancel. With drain they go on."


def question(ctx: Context, end: End, row: Release) -> Confirmation:
    """The page before the end of a release, with what it would touch; read in the reader's transaction."""
    name, named = name_of(row), aliases_of(row.id) if end is DEPRECATE else []
    other = other_of(row) if named else None
    reached = resting_on(row.id) if end is REVOKE else [row.id]
    return Confirmation(
        title=f"{end.label} {name}",
        lead=end.lead,
        button=f"{end.label} it",
        back=url_of(row.id),
        heading="Releases",
        stops=stops_ending(row, end.word, end.states) or stops_leading(named, other),
        instead=_elsewhere(row, other) if named else None,
        fields=[
            ChoiceField(
                "in_flight", "What becomes of the open runs", (("drain", DRAINED[end.word]), *IN_FLIGHT)
            )
        ],
        template="registry/end.html",
        more={
            "does": end.does,
            "leaves": end.leaves,
            "touched": [
                *touched("release", ctx, row.id, reached),
                *(part(ctx, row) for part in PARTS[end.word]),
            ],
        },
    )


def _elsewhere(row: Release, other: Release | None) -> tuple[str, str]:
    """Return where its aliases are moved: to that one, or its asset if there is none."""
    if other is None:
        return url_of_asset(row.asset_id), f"To the releases of {row.asset.name}"
    return reverse("admin:registry_point_alias", args=[other.id]), f"Let an alias name {name_of(other)}"


def _needing(ctx: Context, row: Release) -> Touched:
    others = [one for one in resting_on(row.id) if one != row.id]
    rows = releases().filter(pk__in=others[: MOST + 1]).order_by("-created_at", "-id")[:SHOWN]
    shown = [
        ImpactRow(
            str(one.state),
            name_of(one),
            url_of(one.id),
            "it loads no more" if one.state in (ReleaseState.PUBLISHED, ReleaseState.DEPRECATED) else "",
        )
        for one in rows
    ]
    return Touched("Releases that need it", min(len(others), MOST + 1), "", shown)


def _waived(ctx: Context, row: Release, says: str = "They end.") -> Touched:
    """Waivers for it that are open; each is listed where the reader may open it."""
    rows = open_waivers_of_release(row.id)
    found, elsewhere = counted(ctx, rows)
    total = len(found) + elsewhere
    here = rows if ctx.project_id is None else rows.filter(project_id=ctx.project_id)
    listed = here[:SHOWN] if may(ctx, "ListWaivers") else ()
    shown = [
        ImpactRow(
            str(one.state),
            f"{seen(one.template_name)} with {seen(one.release_name)}",
            reverse("admin:approvals_waiver_change", args=[one.id]),
            f"until {one.expires_at:%d %b %Y %H:%M} UTC",
        )
        for one in listed
    ]
    return Touched("Waivers for it", total, says if total else "", shown, elsewhere)


def _aliased(ctx: Context, row: Release) -> Touched:
    named = aliases_of(row.id)
    shown = [ImpactRow("", name, note="leads nowhere until it is moved") for name in named[:SHOWN]]
    return Touched("Aliases that name it", min(len(named), MOST + 1), "", shown)


Part = Callable[[Context, Release], Touched]
PARTS: dict[str, tuple[Part, ...]] = {
    "deprecate": (partial(_waived, says=WITH_DEPRECATION),),
    "revoke": (_needing, _aliased, _waived),
}

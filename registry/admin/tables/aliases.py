"""Lists beside the releases: what was measured of them, and which name leads to which."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from factory.console.base import BaseAdmin
from factory.console.lists.columns import Column, column
from factory.console.lists.pages import BaseList
from factory.console.show import badge, link, short, when
from factory.console.site import site
from registry.admin.detail.release import url_of
from registry.models import Alias, AliasMove, EvaluationRecord, Release
from registry.selectors import releases
from registry.states import EvaluationVerdict, ReleaseState


def linked(row: Release) -> SafeString:
    """A release by its name, with the way to its page."""
    return format_html('<a class="fc-link" href="{}">{}</a>', url_of(row.pk), str(row))


class MeasuredList(BaseList):
    """A page of evaluations, each with the release that was measured: the newest with that closure."""

    @staticmethod
    def carry(request: HttpRequest, rows: list[Any]) -> None:
        every = releases().filter(closure_id__in={row.closure_id for row in rows})
        newest = every.order_by("closure_id", "-created_at", "-id").distinct("closure_id")
        named = (
            newest.select_related(None).select_related("asset").only("closure_id", "semver", "asset__name")
        )
        known = {one.closure_id: one for one in named}
        for row in rows:
            row.measured = known.get(row.closure_id)


@admin.register(EvaluationRecord, site=site)
class EvaluationAdmin(BaseAdmin[EvaluationRecord]):
    """What a suite measured of a release. A record counts only for the hash that it was made for."""

    view_operation = "ListReleases"
    list_display = ("what", "suite_version", "said", "scored", "release", "of", "producer", "at")
    file_columns = ("suite", "suite_version", "said", "scored", "of", "producer", "at", "release")
    heading = "Evaluations"
    nothing_yet = "Before a release is reviewed, its suite is run and what it measured is recorded here."
    list_filter = ("verdict", "suite")
    search_fields = ("suite", "producer", "release_hash")
    search_help_text = "Words of a suite or a producer, or a release's hash"
    ordering = ("-recorded_at", "-id")

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[BaseList]:
        return MeasuredList

    def headline(self, row: EvaluationRecord) -> str:
        return f"Evaluation: {self.what(row)}"

    what = Column("evaluation", lambda row: f"{row.suite} on {row.measured}" if row.measured else row.suite)

    @column("verdict", "verdict")
    def said(self, row: EvaluationRecord) -> SafeString:
        tone, mark = ("good", "✓") if row.verdict == EvaluationVerdict.PASS else ("bad", "✕")
        return format_html(
            '<span class="fc-badge {}"><span aria-hidden="true">{}</span>{}</span>', tone, mark, row.verdict
        )

    release = Column("release", "measured", linked)
    scored = Column(
        "scores", lambda row: ", ".join(f"{name} {score}" for name, score in sorted(row.scores.items()))
    )

    of = Column("release hash", "release_hash", short)
    at = Column("recorded", "recorded_at", when)


@admin.register(Alias, site=site)
class AliasAdmin(BaseAdmin[Alias]):
    """Names that lead to releases. Moving one affects later submissions only."""

    view_operation = "ReadAlias"
    heading = "Aliases"
    nothing_yet = "The alias latest comes with the first published release of an asset."
    list_display = ("of", "names", "moves")
    order_words = ("Newest alias first", "Oldest alias first")
    file_columns = ("asset_name", "name", *list_display[1:])
    search_fields = ("asset__name", "name", "release__semver")
    search_help_text = "Words of an asset, an alias or a version"
    list_select_related = ("asset", "release__asset")

    def headline(self, row: Alias) -> str:
        return f"Alias: {self.of(row)}"

    of = Column("asset and alias", lambda row: f"{row.asset.name} {row.name}")
    asset_name = Column("asset", "asset.name")

    @column("moves", lambda row: f"{row.version} so far")
    def moves(self, row: Alias) -> SafeString:
        where = reverse("admin:registry_aliasmove_changelist")
        return link(f"{where}?alias__id__exact={row.id}", f"{row.version} so far")

    @column("leads to", "release")
    def names(self, row: Alias) -> SafeString:
        if row.release.state == ReleaseState.PUBLISHED:
            return linked(row.release)
        nowhere = '{} {} <small class="fc-soft">leads nowhere until moved</small>'
        return format_html(nowhere, linked(row.release), badge(row.release.state))


@admin.register(AliasMove, site=site)
class AliasMoveAdmin(BaseAdmin[AliasMove]):
    """Which alias named which release, from when, and who moved it."""

    view_operation = "ReadAlias"
    heading = "Moves of aliases"
    nothing_yet = "Each time that an alias comes to name another release, a row here says so."
    search_fields = ("alias__asset__name", "alias__name", "release__semver", "moved_by")
    search_help_text = "Words of an asset, an alias, a version, or who moved it"
    list_display = ("at", "of", "names", "moved_by")
    list_select_related = ("alias__asset", "release")
    ordering = ("-moved_at", "-id")

    def headline(self, row: AliasMove) -> str:
        return f"{self.of(row)} came to name {self.names(row)}"

    def lookup_allowed(self, lookup: str, value: Any, request: Any = None) -> bool:
        return lookup == "alias__id__exact" or super().lookup_allowed(lookup, value, request)

    at = Column("time", "moved_at", when)
    of = Column("alias", lambda row: f"{row.alias.asset.name} {row.alias.name}")
    names = Column("names from then on", "release.semver")

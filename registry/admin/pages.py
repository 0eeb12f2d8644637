"""Lists beside the releases: what was measured of them, and which name leads to which."""

from typing import Any

from django.contrib import admin
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from factory.admin.base import HouseAdmin
from factory.admin.show import short, when
from factory.admin.site import site
from registry.models import Alias, AliasMove, EvaluationRecord


@admin.register(EvaluationRecord, site=site)
class EvaluationAdmin(HouseAdmin[EvaluationRecord]):
    """What a suite measured of a release. A record counts only for the hash that it was made for."""

    view_operation = "ListReleases"
    list_display = ("suite", "suite_version", "verdict", "scored", "of", "producer", "at")
    heading = "Evaluations"
    nothing_yet = "Before a release is reviewed, its suite is run and what it measured is recorded here."
    list_filter = ("verdict", "suite")
    search_fields = ("suite", "producer", "release_hash")
    search_help_text = "Words of a suite or a producer, or a release's hash"
    ordering = ("-recorded_at", "-id")

    @admin.display(description="scores")
    def scored(self, row: EvaluationRecord) -> str:
        return ", ".join(f"{name} {score}" for name, score in sorted(row.scores.items()))

    @admin.display(description="release hash")
    def of(self, row: EvaluationRecord) -> SafeString:
        return short(row.release_hash)

    @admin.display(description="recorded")
    def at(self, row: EvaluationRecord) -> SafeString:
        return when(row.recorded_at)


@admin.register(Alias, site=site)
class AliasAdmin(HouseAdmin[Alias]):
    """Names that lead to releases. Moving one affects later submissions only."""

    view_operation = "ReadAlias"
    heading = "Aliases"
    nothing_yet = "The alias latest comes with the first published release of an asset."
    list_display = ("of", "name", "names", "moves")
    search_fields = ("asset__name", "name", "release__semver")
    search_help_text = "Words of an asset, an alias or a version"
    list_select_related = ("asset", "release")

    @admin.display(description="asset")
    def of(self, row: Alias) -> str:
        return row.asset.name

    @admin.display(description="moves")
    def moves(self, row: Alias) -> SafeString:
        where = reverse("admin:registry_aliasmove_changelist")
        return format_html(
            '<a class="fc-link" href="{}?alias__id__exact={}">{} so far</a>', where, row.id, row.version
        )

    @admin.display(description="leads to")
    def names(self, row: Alias) -> str:
        return f"{row.asset.name}@{row.release.semver}"


@admin.register(AliasMove, site=site)
class AliasMoveAdmin(HouseAdmin[AliasMove]):
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

    @admin.display(description="time")
    def at(self, row: AliasMove) -> SafeString:
        return when(row.moved_at)

    @admin.display(description="alias")
    def of(self, row: AliasMove) -> str:
        return f"{row.alias.asset.name} {row.alias.name}"

    @admin.display(description="names from then on")
    def names(self, row: AliasMove) -> str:
        return row.release.semver

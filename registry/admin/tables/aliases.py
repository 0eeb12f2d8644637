"""Lists of aliases, and of how they moved: which name leads to which release."""

from typing import Any

from django.contrib import admin
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from factory.console.base import BaseAdmin
from factory.console.lists.columns import Column, column
from factory.console.show import badge, link, when
from factory.console.site import site
from registry.admin.detail.release import linked
from registry.models import Alias, AliasMove
from registry.states import ReleaseState


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
    lead = "Which alias named which release, from when, and who moved it."

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

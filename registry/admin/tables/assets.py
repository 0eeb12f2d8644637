"""Assets: what all versions of a thing share, with its releases in order and its aliases through time."""

from typing import Any
from uuid import UUID

from django.contrib import admin
from django.http import HttpRequest
from django.utils.safestring import SafeString

from factory.console.base import OwnPageAdmin
from factory.console.lists.columns import Column, column
from factory.console.lists.pages import BaseList
from factory.console.show import badge, link, when
from factory.console.site import site
from registry.admin.detail.alias_history import history_of_asset
from registry.admin.detail.release import url_of_asset
from registry.models import Alias, Asset, AssetWorkflow
from registry.selectors import releases

MOST = 100


class NamedList(BaseList):
    """A page of assets, each with what its alias `latest` names."""

    @staticmethod
    def carry(request: HttpRequest, rows: list[Any]) -> None:
        latest = Alias.objects.filter(asset_id__in=[row.pk for row in rows], name="latest")
        found = {one.asset_id: one.release for one in latest.select_related("release")}
        for row in rows:
            row.latest = found.get(row.pk)


@admin.register(Asset, site=site)
class AssetAdmin(OwnPageAdmin[Asset]):
    """The names that versions share: an asset's releases, and which alias led to which of them when."""

    view_operation = "ListReleases"
    own_page = "registry/asset.html"
    list_display = ("what", "newest", "state_of_it", "made")
    list_display_links = None
    nothing_yet = "An asset comes with the first release that is submitted under its name."
    search_fields = ("name",)
    search_help_text = "Words of a name"
    order_words = ("By name", "Names backwards")
    ordering = ("name", "id")

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[BaseList]:
        return NamedList

    def told_of(self, request: HttpRequest, row: Asset) -> dict[str, Any]:
        history = history_of_asset(row.pk)
        rows = releases().defer("closure__definition").filter(asset_id=row.pk)
        found = list(rows.order_by("-created_at", "-id")[: MOST + 1])
        workflows = AssetWorkflow.objects.filter(asset_id=row.pk).order_by("workflow_id")
        names = names_now(row.pk)
        return {
            "title": row.name,
            "releases": [(one, names.get(one.pk, [])) for one in found[:MOST]],
            "more": len(found) > MOST,
            "published": sum(one.state == "Published" for one in found[:MOST]),
            "history": history,
            "workflows": list(workflows.values_list("workflow_id", flat=True)[: MOST + 1]),
        }

    @column("asset", "name")
    def what(self, row: Asset) -> SafeString:
        return link(url_of_asset(row.pk), row.name)

    newest = Column("latest names", lambda row: row.latest.semver if row.latest else "nothing yet")
    state_of_it = Column("which is", lambda row: row.latest and row.latest.state, badge)
    made = Column("asset made", "created_at", when, in_files="since")


def names_now(asset_id: UUID) -> dict[UUID, list[str]]:
    """By release, the aliases of an asset that name it now."""
    found: dict[UUID, list[str]] = {}
    rows = Alias.objects.filter(asset_id=asset_id).order_by("name")
    for release_id, name in rows.values_list("release_id", "name")[: 2 * MOST]:
        found.setdefault(release_id, []).append(name)
    return found

"""Releases: their list, the page of one, and the way out of use."""

from functools import partial
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import URLPattern, path, reverse
from django.utils.safestring import SafeString

from factory.console.asking import not_understood
from factory.console.base import OwnPageAdmin
from factory.console.confirming import Act, Confirmation, act_on
from factory.console.lists.columns import Column, column
from factory.console.lists.pages import BaseList
from factory.console.scope import as_uuid, context_of
from factory.console.show import cut, link, opening, seen, short, when
from factory.console.site import site
from factory.kernel.permissions import may
from factory.kernel.tenancy import reading
from registry.admin.actions.alias import point, pointing
from registry.admin.actions.end_release import ENDS, question
from registry.admin.detail.release import release_page, url_of
from registry.models import Release
from registry.selectors import format_needs, revoked_needs
from registry.states import ReleaseState


class LoadedList(BaseList):
    """A page of releases, each with what it needs and was taken back: it does not load for that."""

    @staticmethod
    def carry(request: HttpRequest, rows: list[Any]) -> None:
        gone = revoked_needs({row.closure_id for row in rows if row.state != ReleaseState.REVOKED})
        for row in rows:
            needs = gone.get(row.closure_id, ()) if row.state != ReleaseState.REVOKED else ()
            row.lacks = f"It does not load. {format_needs(needs)}" if needs else ""


@admin.register(Release, site=site)
class ReleaseAdmin(OwnPageAdmin[Release]):
    """Immutable versions of agents, skills and workflows, each fetched from one commit and hashed."""

    view_operation = "ListReleases"
    own_page = "registry/release.html"
    list_display = ("what", "status", "hash", "from_commit", "submitter", "made", "problem")
    list_display_links = None
    list_select_related = ("asset", "closure")
    nothing_yet = "A release is submitted from one commit, over the API or with manage.py publish_release."
    list_filter = ("state",)
    search_help_text = "Words of a name or a version; a commit, who submitted it, a hash"
    search_fields = ("asset__name", "semver", "commit", "author", "closure__hash")
    ordering = ("-created_at", "-id")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).select_related("asset", "closure", "evaluation")

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[BaseList]:
        return LoadedList

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        own = [
            path(
                f"<uuid:release_id>/{word}/",
                view(partial(self.end_view, word=word)),
                name=f"registry_{word}",
            )
            for word in ENDS
        ]
        own.append(path("<uuid:release_id>/alias/", view(self.alias_view), name="registry_point_alias"))
        return [*own, *super().get_urls()]

    def acts(self, request: HttpRequest, row: Any) -> list[Act]:
        if row is None:
            return []
        where = reverse("admin:registry_point_alias", args=[row.pk])
        named = row.state == ReleaseState.PUBLISHED and may(context_of(request), "MoveAlias")
        return ([Act("Let an alias name it…", where)] if named else []) + [
            Act(f"{end.label} it…", reverse(f"admin:registry_{word}", args=[row.pk]), danger=True)
            for word, end in ENDS.items()
            if row.state in end.states and may(context_of(request), end.command.name)
        ]

    def told_of(self, request: HttpRequest, row: Release) -> dict[str, Any]:
        asked = request.GET.get("against", "")
        against = as_uuid(asked)
        if asked and against is None:
            not_understood(
                request,
                f"“{asked[:60]}” is no id of a release to hold this one against.",
                "It is held against the one before it, if there is one.",
            )
        told = release_page(context_of(request), row, against)
        return {**told, "title": told["name"]}

    def alias_view(self, request: HttpRequest, release_id: UUID) -> HttpResponse:
        ctx = context_of(request)
        row = self._row(request, release_id)
        if not may(ctx, "MoveAlias"):
            raise PermissionDenied("An Operator or an administrator moves aliases, in a project.")

        def asked() -> Confirmation:
            with reading(ctx):
                return pointing(row, request.POST.get("alias", "").strip()[:255])

        return act_on(
            self.admin_site,
            request,
            asked,
            lambda reason: point(ctx, row, request.POST.dict()),
            done="The alias names this release from now on.",
            then=url_of(release_id),
        )

    def _row(self, request: HttpRequest, release_id: UUID) -> Release:
        with reading(context_of(request)):
            row: Release | None = self.get_queryset(request).filter(pk=release_id).first()
        if row is None:
            raise Http404
        return row

    def end_view(self, request: HttpRequest, release_id: UUID, word: str) -> HttpResponse:
        ctx, end = context_of(request), ENDS[word]
        row = self._row(request, release_id)
        if not may(ctx, end.command.name):
            raise PermissionDenied("An Operator or an administrator takes releases out of use, in a project.")

        def asked() -> Confirmation:
            with reading(ctx):
                return question(ctx, end, row)

        in_flight = request.POST.get("in_flight", "")
        return act_on(
            self.admin_site,
            request,
            asked,
            lambda reason: end.command(ctx, release_id=release_id, in_flight=in_flight, reason=reason),
            done=end.done,
            then=url_of(release_id),
        )

    @column("release", lambda row: f"{row.asset.name}@{row.semver}")
    def what(self, row: Release) -> SafeString:
        return link(url_of(row.pk), f"{row.asset.name}@{row.semver}")

    @column("hash", lambda row: row.closure.hash if row.closure else "not read yet")
    def hash(self, row: Release) -> SafeString | str:
        return short(row.closure.hash) if row.closure else "not read yet"

    from_commit = Column("commit", "commit", opening)
    submitter = Column("submitted by", "author", seen, in_files="author")
    made = Column("submitted", "created_at", when)
    problem = Column(
        "what is wrong",
        lambda row: row.resolution_error or row.ending_reason or row.lacks,
        lambda words: cut(words, 120),
    )

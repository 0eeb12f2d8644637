"""Pages of waivers: what was approved in advance, for what, until when, and the way to end it."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import URLPattern, path, reverse
from django.utils.safestring import SafeString

from approvals.commands import revoke_waiver
from approvals.models import Waiver
from approvals.selectors import WaiverView, others_in_force, requests, view_of_waiver, waivers, with_uses
from approvals.states import WaiverState
from factory.console.base import OwnPageAdmin
from factory.console.confirming import Act, Confirmation, act_on
from factory.console.links import names_of
from factory.console.lists.columns import Column, column
from factory.console.lists.pages import BaseList
from factory.console.scope import context_of
from factory.console.show import badge, link, seen, span, timed, when
from factory.console.site import site
from factory.kernel import clock
from factory.kernel.context import Context
from factory.kernel.permissions import may
from factory.kernel.tenancy import reading
from projects.selectors import environments

SHOWN_USES = 50


class WaiverList(BaseList):
    """A page of waivers, each with the names of its environments, and how its release left use if it did."""

    @staticmethod
    def carry(request: HttpRequest, rows: list[Any]) -> None:
        known = {one.id: one.slug for one in environments(context_of(request).project_id)} if rows else {}
        ended = names_of("ended-release", [row.release_id for row in rows])
        for row in rows:
            row.release_ended = ended.get(row.release_id, "")
            row.places = [known[key] for key in row.environment_ids if key in known]


BEFORE_THE_END = (WaiverState.REQUESTED, WaiverState.ACTIVE)


@admin.register(Waiver, site=site)
class WaiverAdmin(OwnPageAdmin[Waiver]):
    """Shared writes approved in advance, or asked to be: of one template, with one release, for a time."""

    view_operation = "ListWaivers"
    own_page = "approvals/waiver.html"
    list_display = ("what", "with_release", "status", "ends", "uses", "asked_by", "decided_by")
    file_columns = ("template", *list_display[1:], "environments")
    list_display_links = None
    list_filter = ("state",)
    nothing_yet = "A waiver is asked for on the page of a run template, and decided in the inbox."
    search_fields = ("template_name", "release_name", "workflow_id", "requested_by", "reason")
    search_help_text = "Words of a template, release, workflow, reason, or who asked"
    ordering = ("-requested_at", "-id")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Waiver]:
        return with_uses(waivers(context_of(request)))

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[BaseList]:
        return WaiverList

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.revoke_view)
        own = [path("<uuid:waiver_id>/revoke/", view, name="approvals_revoke_waiver")]
        return [*own, *super().get_urls()]

    def told_of(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        ctx, view = context_of(request), view_of_waiver(row)
        rows = requests().filter(waiver_id=row.pk).order_by("-requested_at", "-id")
        return {
            "title": f"Waiver: {seen(view.template_name)} with {seen(view.release_name)}",
            "waiver": view,
            "release_ended": names_of("ended-release", [view.release_id]).get(view.release_id, ""),
            "now": clock.now(),
            "used": list(rows[:SHOWN_USES]),
            "may_revoke": may_revoke(ctx, view),
            "others": others_in_force(view),
        }

    def _found(self, request: HttpRequest, key: UUID) -> WaiverView:
        row = self.get_queryset(request).filter(pk=key).first()
        if row is None:
            raise Http404
        return view_of_waiver(row)

    def revoke_view(self, request: HttpRequest, waiver_id: UUID) -> HttpResponse:
        ctx = context_of(request)
        if not may(ctx, "RevokeWaiver"):
            raise PermissionDenied("A Reviewer, an Operator or an administrator ends a waiver.")
        with reading(ctx):
            view = self._found(request, waiver_id)
            others = others_in_force(view)
        back = reverse("admin:approvals_waiver_change", args=[waiver_id])
        return act_on(
            self.admin_site,
            request,
            lambda: _question(view, others, back),
            lambda reason: revoke_waiver(ctx, waiver_id=waiver_id, reason=reason),
            done=f"It has ended. {_still(others)}",
            then=back,
        )

    def acts(self, request: HttpRequest, row: Any) -> list[Act]:
        if row is not None or not may(context_of(request), "RequestWaiver"):
            return []
        return [Act("Ask for one, from a run template", reverse("admin:runs_runtemplate_changelist"))]

    @column("template and environments", lambda row: f"{row.template_name} on {', '.join(row.places)}")
    def what(self, row: Any) -> SafeString:
        words = f"{seen(row.template_name)} on {', '.join(row.places)}"
        return link(reverse("admin:approvals_waiver_change", args=[row.id]), words)

    template = Column("template", "template_name")
    environments = Column("environments", "places")

    @column("release", "release_name")
    def with_release(self, row: Any) -> str:
        name = seen(row.release_name)
        return f"{name}, {row.release_ended}" if row.release_ended else name

    status = Column("state", lambda row: _state_now(row), badge)

    @column("ends", lambda row: row.expires_at if row.state in BEFORE_THE_END else None)
    def ends(self, row: Waiver) -> SafeString | str:
        left = (row.expires_at - clock.now()).total_seconds()
        if row.state not in BEFORE_THE_END:
            return "–"
        return timed(row.expires_at, f"in {span(left)}" if left > 0 else "its time is over")

    asked_by = Column("asked by", "requested_by")
    uses = Column("writes", "uses")


def _state_now(row: Waiver) -> str:
    over = row.state == WaiverState.ACTIVE and not row.in_force(clock.now())
    return WaiverState.EXPIRED if over else row.state


def may_revoke(ctx: Context, view: WaiverView) -> bool:
    """Tell whether the button is offered; the command judges again."""
    return view.may_be_revoked and may(ctx, "RevokeWaiver")


def _still(others: Sequence[WaiverView]) -> str:
    """Return what its end leaves."""
    if not others:
        return "People are asked again."
    each = "; ".join(
        f"given by {', '.join(one.deciders)} for {', '.join(one.environments)} "
        f"until {one.expires_at:%d %b %Y %H:%M:%S} UTC"
        for one in others
    )
    if len(others) == 1:
        return f"Another waiver stays in force, {each}: what it covers is still approved without asking."
    return f"Other waivers stay in force: {each}. What they cover is still approved without asking."


def _question(view: WaiverView, others: Sequence[WaiverView], back: str) -> Confirmation:
    waiting = view.state == WaiverState.REQUESTED
    return Confirmation(
        title=f"{'Withdraw' if waiting else 'Revoke'} the waiver for {view.template_name}",
        lead=_still(others) if others else "From now on people are asked about each write.",
        button="Withdraw it" if waiting else "Revoke it",
        back=back,
        facts=[
            ("Release", view.release_name),
            ("Environments", ", ".join(view.environments)),
            ("Until", when(view.expires_at)),
            ("Writes so far", view.uses),
        ],
        consequences=["Its request leaves the inbox."]
        if waiting
        else [
            "What was written under it is not undone.",
            "A write that it has allowed and that was not begun yet is asked about again.",
        ],
    )

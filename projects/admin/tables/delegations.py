"""The page of lent roles: who has lent what to whom, lending one's own, and taking it back."""

from functools import partial
from typing import Any
from uuid import UUID

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.views.decorators.http import require_POST

from factory.console.base import BaseAdmin
from factory.console.confirming import Act
from factory.console.lists.columns import Column, column
from factory.console.lists.pages import BaseList
from factory.console.scope import as_moment, context_of
from factory.console.show import badge, link, seen, span, timed, when
from factory.console.site import site
from factory.kernel.clock import now
from factory.kernel.errors import DomainError, InvalidInput
from factory.kernel.permissions import may
from factory.kernel.tenancy import reading
from projects.commands import lend_role, revoke_delegation
from projects.commands.inputs import ordered
from projects.models import Delegation
from projects.selectors import may_end, memberships_of, people_beside
from projects.states import LENDABLE, DelegationState

MOST = 100
"""Among so many members one is chosen; where there are more, the address is written."""


class DelegationTable(BaseList):
    """Delegations with whether their reader could end them, and any of the page."""

    @staticmethod
    def carry(request: HttpRequest, rows: list[Any]) -> None:
        ctx = context_of(request)
        for row in rows:
            row.may_end = row.state == DelegationState.ACTIVE and may_end(ctx, row)
        some = any(row.may_end for row in rows)
        for row in rows:
            row.beside_others = some


@admin.register(Delegation, site=site)
class DelegationAdmin(BaseAdmin[Any]):
    """Roles that members have lent to others. A lent role counts until its end, and not at it."""

    view_operation = "ListDelegations"
    list_display = ("role", "lender", "borrower", "place", "status", "ends", "why", "end_it")
    file_columns = ("role", "delegator", "delegate", *list_display[3:])
    list_select_related = ("project",)
    list_filter = ("state", "role")
    nothing_yet = "Nobody has lent a role. Whoever holds one lends it with the form above, for an absence."
    search_fields = ("delegator", "delegate", "reason")
    search_help_text = "Who lent, who borrowed, or words of the reason"
    fields = ("role", "lender", "borrower", "place", "status", "ends", "until", "lent", "why")
    readonly_fields = fields
    ordering = ("-lent_at", "-id")
    list_before_template = "projects/lend.html"

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[BaseList]:
        return DelegationTable

    def get_urls(self) -> list[URLPattern]:
        wrap = self.admin_site.admin_view
        own = [
            path("lend/", wrap(require_POST(self.lend_view)), name="projects_lend"),
            path("<uuid:delegation_id>/revoke/", wrap(self.revoke_view), name="projects_revoke_delegation"),
        ]
        return [*own, *super().get_urls()]

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        ctx = context_of(request)
        with reading(ctx):
            own = [r for one in memberships_of(ctx.actor.subject, ctx.project_id) for r in one.roles]
            may_lend = ctx.project_id is not None and may(ctx, "LendRole")
            lendable = ordered(own, LENDABLE) if may_lend else []
            others = people_beside(ctx.project_id, ctx.actor.subject, MOST + 1) if lendable else []
        extra = {"lendable": lendable, "borrowers": others, "too_many": len(others) > MOST}
        return super().changelist_view(request, {**(extra_context or {}), **extra})

    def lend_view(self, request: HttpRequest) -> HttpResponseBase:
        """Lend it, or show the list again with what was refused, and everything that was written kept."""
        ctx, sent = context_of(request), request.POST
        until = as_moment(sent.get("until", ""))
        try:
            if ctx.project_id is None or until is None:
                raise InvalidInput("Choose a project above, and a time that is one.")
            lend_role(
                ctx,
                project_id=ctx.project_id,
                role=sent.get("role", ""),
                delegate=sent.get("delegate", ""),
                expires_at=until,
                reason=sent.get("reason", ""),
            )
        except DomainError as refusal:
            page: HttpResponseBase = self.changelist_view(request, {"refusal": refusal, "sent": sent})
            page.status_code = refusal.http_status
            return page
        messages.success(request, "Lent. Both names will stand on every decision.")
        return HttpResponseRedirect(reverse("admin:projects_delegation_changelist"))

    def revoke_view(self, request: HttpRequest, delegation_id: UUID) -> HttpResponse:
        ctx, then = context_of(request), reverse("admin:projects_delegation_changelist")
        if request.method == "POST":
            command = partial(revoke_delegation, ctx, delegation_id=delegation_id)
            return self.act(request, command, done="Ended. It gives nothing any more.", then=then)
        with reading(ctx):
            row = self.get_queryset(request).filter(pk=delegation_id).first()
            if row is None or not may(ctx, "ListDelegations"):
                raise Http404
            if not may_end(ctx, row):
                raise PermissionDenied("One of the two ends a delegation, or an admin of the project.")
            told = {**self.admin_site.each_context(request), "title": "End a delegation", "row": row}
            response = TemplateResponse(request, "projects/revoke.html", {**told, "opts": self.opts})
            response.render()
        return response

    def acts(self, request: HttpRequest, row: Any) -> list[Act]:
        if row is None or row.state != DelegationState.ACTIVE or not may_end(context_of(request), row):
            return []
        return [Act("End it", reverse("admin:projects_revoke_delegation", args=[row.pk]), danger=True)]

    def headline(self, row: Delegation) -> str:
        return f"Delegation: {row.role}, lent by {row.delegator} to {row.delegate}"

    lender = Column("lent by", "delegator", seen)
    borrower = Column("lent to", "delegate", seen)
    status = Column("state", lambda row: row.state_at(now()), badge)
    place = Column("project", "project.name")

    @column("ends", lambda row: row.expires_at if row.state == DelegationState.ACTIVE else None)
    def ends(self, row: Delegation) -> SafeString | str:
        if row.state != DelegationState.ACTIVE:
            return "–"
        left = (row.expires_at - now()).total_seconds()
        return timed(row.expires_at, f"in {span(left)}" if left > 0 else "its time is over")

    until = Column("until", "expires_at", when)
    lent = Column("lent", "lent_at", when)
    why = Column("reason", "reason", seen)

    @admin.display(description="")
    def end_it(self, row: Any) -> SafeString:
        """The way to its end, or beside others that can be ended why there is none."""
        if not row.beside_others:
            return SafeString("")
        if not row.may_end:
            told = "one of the two, or an admin, ends it" if row.state == DelegationState.ACTIVE else "over"
            return format_html('<span class="fc-soft">{}</span>', told)
        url = reverse("admin:projects_revoke_delegation", args=[row.id])
        return link(url, "End it…")

"""The pages of members: who is what here, what that lets them do, and what hangs on it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.contrib.admin import AdminSite
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import URLPattern, path, reverse

from factory.console.base import OwnPageAdmin
from factory.console.confirming import Act
from factory.console.lists.columns import Column
from factory.console.scope import context_of
from factory.console.show import seen, when
from factory.console.site import site
from factory.evidence.journal_replay import audited_reason
from factory.kernel import clock
from factory.kernel.context import Context
from factory.kernel.models import JournalEntry
from factory.kernel.permissions import may
from factory.kernel.tenancy import reading
from projects.admin.actions.add import adds_members, way_to
from projects.admin.actions.end_membership import accounts_of, first, place_of, shown
from projects.admin.actions.membership import add_view, change_view, may_decide_about, over, remove_view
from projects.admin.actions.sign_in import acts_of, end_view, join_view, joined_to, joins, send_view, signs_in
from projects.admin.detail.labels import grant_lets, role_lets
from projects.commands.reach import roles_in_reach
from projects.models import Delegation, Membership
from projects.selectors import delegations_of
from projects.states import Grant, MembershipState

HISTORY = 50
Viewed = Callable[[AdminSite, HttpRequest, Membership], HttpResponse]


@admin.register(Membership, site=site)
class MembershipAdmin(OwnPageAdmin[Any]):
    lead = "Who is what here. A membership without a project holds in the whole tenant; history stays."

    view_operation = "ListMembers"
    own_page = "projects/member.html"
    list_display = ("who", "known_as", "what", "may_also", "place", "status", "since")
    list_select_related = ("project",)
    list_filter = ("state", "kind")
    heading = "Members"
    nothing_yet = "Members are added when a project is onboarded, and later by an administrator on this page."
    search_fields = ("subject", "display_name", "email")
    search_help_text = "Words of a name or an address"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = Membership.objects.select_related("project")
        return rows.filter(shown(context_of(request)))

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        own = [
            path("new/", view(self.new_view), name="projects_add_wide_member"),
            path("<uuid:member_id>/change-roles/", view(self.change_view_of), name="projects_change_member"),
            path("<uuid:member_id>/remove/", view(self.remove_view_of), name="projects_remove_member"),
            path("<uuid:member_id>/sign-in/", view(self.send_view_of), name="projects_send_sign_in_link"),
            path("<uuid:member_id>/join/", view(self.join_view_of), name="projects_join_identity"),
            path(
                "<uuid:member_id>/sign-ins/<uuid:identity_id>/end/",
                view(self.end_view_of),
                name="projects_end_identity",
            ),
        ]
        return [*own, *super().get_urls()]

    def acts(self, request: HttpRequest, row: Membership | None) -> list[Act]:
        ctx = context_of(request)
        if row is None:
            return _adding(ctx)
        if row.state != MembershipState.ACTIVE or not may_decide_about(ctx, row):
            return []
        return [
            *acts_of(ctx, row),
            Act("Change roles and grants", reverse("admin:projects_change_member", args=[row.pk])),
            Act("Remove", reverse("admin:projects_remove_member", args=[row.pk]), danger=True),
        ]

    def told_of(self, request: HttpRequest, row: Membership) -> dict[str, Any]:
        return {"title": seen(row), **member_page(context_of(request), row)}

    def new_view(self, request: HttpRequest) -> HttpResponse:
        """A member of the whole tenant."""
        ctx = context_of(request)
        with reading(ctx):
            if not adds_members(ctx, None):
                raise PermissionDenied("An administrator of the whole tenant does this, in the whole tenant.")
        return add_view(self.admin_site, request, None, reverse("admin:projects_membership_changelist"))

    def change_view_of(self, request: HttpRequest, member_id: UUID) -> HttpResponse:
        return self._about(request, member_id, change_view)

    def remove_view_of(self, request: HttpRequest, member_id: UUID) -> HttpResponse:
        return self._about(request, member_id, remove_view)

    def send_view_of(self, request: HttpRequest, member_id: UUID) -> HttpResponse:
        return self._about(request, member_id, send_view)

    def join_view_of(self, request: HttpRequest, member_id: UUID) -> HttpResponse:
        return self._about(request, member_id, join_view)

    def end_view_of(self, request: HttpRequest, member_id: UUID, identity_id: UUID) -> HttpResponse:
        return self._about(request, member_id, partial(end_view, identity_id=identity_id))

    def _about(self, request: HttpRequest, member_id: UUID, view: Viewed) -> HttpResponse:
        """A page about one membership, for who may decide about it."""
        ctx = context_of(request)
        with reading(ctx):
            row = self.get_queryset(request).filter(pk=member_id).first()
            if row is None:
                raise Http404
            if not may_decide_about(ctx, row):
                raise PermissionDenied(why_not(ctx, row))
        return view(self.admin_site, request, row)

    who = Column("member", lambda row: row.display_name or row.subject, seen)
    known_as = Column("known as", "subject")
    what = Column("roles", "roles")
    may_also = Column("grants", "grants")
    place = Column("where", place_of)
    since = Column("since", "created_at", when)


def _adding(ctx: Context) -> list[Act]:
    """The way to a new member of the place that is looked at, for who may make one."""
    if ctx.project_id is not None:
        return way_to("projects_add_member", ctx)
    wide = [Act("Add a member of the whole tenant", reverse("admin:projects_add_wide_member"))]
    return wide if adds_members(ctx, None) else []


def why_not(ctx: Context, row: Membership) -> str:
    """Return why its reader does not change it, and who does."""
    if not may(ctx, "ChangeMember"):
        return "An administrator of the project changes and removes its members."
    if row.project_id is None and ctx.project_id is not None:
        return (
            "It holds in the whole tenant, and is changed there: by an administrator of the whole tenant who "
            "chooses that in the header."
        )
    if not roles_in_reach(ctx, row.project_id):
        return "By a lent role nobody decides who is a member; an administrator of their own does."
    return "Only a PlatformAdmin decides who is one."


@dataclass(frozen=True, slots=True)
class Happened:
    """One entry of a membership's journal, in words."""

    at: datetime
    what: str
    by: str
    why: str


def member_page(ctx: Context, row: Membership) -> dict[str, Any]:
    """The values of a membership's page for this reader, in the open transaction."""
    active = row.state == MembershipState.ACTIVE
    tells = may(ctx, "ChangeMember") or Grant.AUDIT in ctx.actor.grants
    loans, more_loans = first(delegations_of(row.subject).filter(shown(ctx))) if active else ([], 0)
    others, more_others = first(_others(ctx, row)) if active else ([], 0)
    sees_accounts = active and may(ctx, "ListServiceAccounts")
    accounts, more_accounts = first(accounts_of(ctx, row)) if sees_accounts else ([], 0)
    return {
        "member": row,
        "where": place_of(row),
        "signs_in": signs_in(row) if active else None,
        "sign_ins": joined_to(row) if active else [],
        "joins": joins(ctx),
        "roles": [(role, role_lets(role, wide=row.project_id is None)) for role in row.roles],
        "grants": [(grant, grant_lets(grant, wide=row.project_id is None)) for grant in row.grants],
        "others": others,
        "more_others": more_others,
        "accounts": accounts,
        "more_accounts": more_accounts,
        "loans": [(one, _left(one)) for one in loans],
        "more_loans": more_loans,
        "over": over(row),
        "why_not": "" if may_decide_about(ctx, row) else why_not(ctx, row),
        "history": list(_history(row)) if tells else None,
    }


def _left(row: Delegation) -> int:
    return max(0, round((row.expires_at - clock.now()).total_seconds()))


def _others(ctx: Context, row: Membership) -> QuerySet[Membership]:
    """Return what else the subject is, as far as the reader's place shows it."""
    rows = Membership.objects.filter(shown(ctx), subject=row.subject, state=MembershipState.ACTIVE)
    return rows.exclude(pk=row.pk).select_related("project").order_by("project_id", "id")


CAUSES = {
    "MemberAdded": "Became a member",
    "MemberChanged": "Was given other roles or grants",
    "MemberRemoved": "Was removed",
    "SignInLinkRequested": "Was sent a sign-in link",
    "SignInLinkPrinted": "Was given a sign-in link, printed on the host",
    "OwnerRemoved": "Ended, because who answers for it left",
    "AccountRevoked": "Ended, because the account was revoked",
}


def _history(row: Membership) -> Iterator[Happened]:
    """Return what became of it, newest first."""
    for entry in JournalEntry.objects.filter(stream_id=row.pk).order_by("-sequence")[:HISTORY]:
        now, before = (_words(entry.detail, tail) for tail in ("", "Before"))
        told = CAUSES.get(entry.cause, entry.cause)
        what = f"{told}: {now}" if now else told
        why = seen(audited_reason(row, "RemoveMember")) if entry.cause == "MemberRemoved" else ""
        told = f"{what}; before: {before}" if before else what
        yield Happened(entry.occurred_at, told, seen(entry.actor), why)


def _words(detail: dict[str, Any], tail: str) -> str:
    return ", ".join(
        [*detail.get(f"roles{tail}", ()), *(f"grant {one}" for one in detail.get(f"grants{tail}", ()))]
    )

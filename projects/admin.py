"""Pages of projects and of who is what in them."""

from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString

from factory.admin.base import HouseAdmin
from factory.admin.scope import context_of
from factory.admin.show import badge, when
from factory.admin.site import site
from projects.models import Environment, Membership, Project, ServiceAccount


class _Stated(HouseAdmin[Any]):
    @admin.display(description="state")
    def status(self, row: Any) -> SafeString:
        return badge(row.state)

    @admin.display(description="since")
    def since(self, row: Any) -> SafeString:
        return when(row.created_at)


@admin.register(Project, site=site)
class ProjectAdmin(_Stated):
    """Where work is submitted. A suspended project accepts no runs and dispatches nothing new."""

    view_operation = "ListProjects"
    list_display = ("name", "slug", "status", "since", "suspension_reason")
    search_fields = ("name", "slug")
    fields = ("name", "slug", "status", "since", "suspension_reason", "version")
    readonly_fields = fields

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows = super().get_queryset(request)
        project_id = context_of(request).project_id
        return rows if project_id is None else rows.filter(pk=project_id)


@admin.register(Environment, site=site)
class EnvironmentAdmin(HouseAdmin[Any]):
    """What runs may target; the policy speaks of environments by these names."""

    view_operation = "ListEnvironments"
    list_display = ("slug", "name", "project")
    list_select_related = ("project",)
    search_fields = ("slug", "name")


@admin.register(Membership, site=site)
class MembershipAdmin(_Stated):
    """Who is what here. A membership without a project holds in the whole tenant; history stays."""

    view_operation = "ListMembers"
    list_display = ("who", "email", "what", "may_also", "place", "status", "since")
    list_select_related = ("project",)
    list_filter = ("state", "kind")
    search_fields = ("subject", "display_name", "email")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = Membership.objects.all()
        project_id = context_of(request).project_id
        return rows if project_id is None else rows.filter(Q(project_id=project_id) | Q(project=None))

    @admin.display(description="member")
    def who(self, row: Membership) -> str:
        return row.display_name or row.subject

    @admin.display(description="roles")
    def what(self, row: Membership) -> str:
        return ", ".join(row.roles)

    @admin.display(description="grants")
    def may_also(self, row: Membership) -> str:
        return ", ".join(row.grants) or "–"

    @admin.display(description="where")
    def place(self, row: Membership) -> str:
        return row.project.name if row.project else "whole tenant"


@admin.register(ServiceAccount, site=site)
class ServiceAccountAdmin(_Stated):
    """Accounts of machines. What one asks for counts as asked for by its owner."""

    view_operation = "ListServiceAccounts"
    list_display = ("name", "subject", "owner", "status", "since")
    search_fields = ("name", "subject", "owner")

"""Workers that serve this tenant: alive or not, what they can do, how busy they are."""

from typing import Any

from django.contrib import admin
from django.db.models import DateTimeField, Func, QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString

from factory.admin.base import HouseAdmin
from factory.admin.scope import context_of
from factory.admin.show import badge, span
from factory.admin.site import site
from runs.models import Worker
from runs.selectors.waiting import open_leases

ONLINE_SECONDS = 60


@admin.register(Worker, site=site)
class WorkerAdmin(HouseAdmin[Worker]):
    """Workers of the pools that serve this tenant, and how many of their slots are in use."""

    view_operation = "ListRuns"
    list_display = ("name", "pool", "online", "seen", "slots", "abilities", "version")
    list_select_related = ("pool",)
    search_fields = ("name",)
    ordering = ("-last_seen_at", "-id")
    fields = ("name", "pool", "online", "seen", "slots", "abilities", "version")
    readonly_fields = fields

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        at = Func(function="clock_timestamp", output_field=DateTimeField())
        tenant_id = context_of(request).tenant_id
        return (
            Worker.objects.filter(pool__tenants__contains=[tenant_id]).annotate(at=at).select_related("pool")
        )

    @admin.display(description="state")
    def online(self, row: Any) -> SafeString:
        if (row.at - row.last_seen_at).total_seconds() > ONLINE_SECONDS:
            return badge("Offline")
        return badge("Draining" if row.draining_at else "Active")

    @admin.display(description="last seen")
    def seen(self, row: Any) -> str:
        return f"{span((row.at - row.last_seen_at).total_seconds())} ago"

    @admin.display(description="slots in use")
    def slots(self, row: Worker) -> str:
        return f"{open_leases(row.id)} of {row.max_concurrency}"

    @admin.display(description="can do")
    def abilities(self, row: Worker) -> str:
        return ", ".join(row.capabilities)

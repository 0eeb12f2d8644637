"""The first page's cards about runs, and the list of what needs an Operator."""

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from factory.admin.base import HouseAdmin
from factory.admin.show import outline, when
from factory.admin.site import site
from runs.models import Step
from runs.states import Attention


@admin.register(Step, site=site)
class AttentionAdmin(HouseAdmin[Step]):
    """Steps that a person has to look at: uncertain effects, violations, effects that came too late."""

    view_operation = "ListUncertainAttempts"
    list_display = ("what", "kind", "klass", "since", "reason")
    list_display_links = None
    list_filter = ("attention",)
    search_fields = ("run__id", "node_key")
    ordering = ("-updated_at", "-id")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Step]:
        rows = super().get_queryset(request).exclude(attention=Attention.NONE)
        project_id = request.context.project_id  # type: ignore[attr-defined]  # set by ConsoleScope
        return rows if project_id is None else rows.filter(run__project_id=project_id)

    @admin.display(description="step")
    def what(self, row: Step) -> SafeString:
        url = reverse("admin:runs_run_change", args=[row.run_id])
        return format_html(
            '<a class="fc-link" href="{}#settle">{} of run …{}</a>', url, row.node_key, str(row.run_id)[-8:]
        )

    @admin.display(description="what happened")
    def kind(self, row: Step) -> str:
        return {
            Attention.UNCERTAIN: "the effect may have happened",
            Attention.VIOLATION: "it acted without an authorization",
            Attention.LATE_EFFECT: "an effect was reported by a holder that had lost its lease",
        }.get(Attention(row.attention), row.attention)

    @admin.display(description="class")
    def klass(self, row: Step) -> SafeString:
        return outline(row.side_effect_class)

    @admin.display(description="since")
    def since(self, row: Step) -> SafeString:
        return when(row.updated_at)

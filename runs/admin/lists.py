"""The first page's cards about runs, and the list of what needs an Operator."""

from django.contrib import admin
from django.db.models import Count, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from factory import clock
from factory.admin.base import HouseAdmin
from factory.admin.show import outline, span, tone, when
from factory.admin.site import Card, Item, card, site
from factory.context import Context
from factory.identity.permissions import may
from runs.models import Run, Step
from runs.states import RUN_ACTIVE, Attention


def runs_in(ctx: Context) -> QuerySet[Run]:
    """The runs of the place."""
    rows = Run.objects.all()
    return rows if ctx.project_id is None else rows.filter(project_id=ctx.project_id)


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


@card(20)
def uncertain_attempts(ctx: Context) -> Card | None:
    """What an Operator has to settle."""
    if not may(ctx, "ResolveUncertainStep"):
        return None
    rows = Step.objects.exclude(attention=Attention.NONE).order_by("updated_at")
    if ctx.project_id is not None:
        rows = rows.filter(run__project_id=ctx.project_id)
    at = clock.now()
    return Card(
        title="Uncertain attempts",
        items=tuple(
            Item(
                title=f"{row.node_key} of run …{str(row.run_id)[-8:]}",
                url=reverse("admin:runs_run_change", args=[row.run_id]) + "#settle",
                state=row.attention.capitalize(),
                tone="wait",
                note=f"for {span((at - row.updated_at).total_seconds())}",
            )
            for row in rows[:5]
        ),
        empty="None. A step whose effect may have happened, but nobody knows, would stand here.",
        more_url=reverse("admin:runs_step_changelist"),
        more_label="All of them",
        needs_you=True,
    )


@card(30)
def runs_of_mine(ctx: Context) -> Card | None:
    """What this person asked for, newest first."""
    if not may(ctx, "ListRuns"):
        return None
    rows = runs_in(ctx).filter(requester_person=ctx.actor.person).order_by("-created_at")[:5]
    return Card(
        title="Runs that you started",
        items=tuple(_item(run) for run in rows),
        empty="You have started none yet. A run is submitted over the API, or with manage.py submit.",
    )


@card(40)
def state_of_the_house(ctx: Context) -> Card | None:
    """Runs by state, and the latest."""
    if not may(ctx, "ListRuns"):
        return None
    counted = dict(runs_in(ctx).filter(state__in=RUN_ACTIVE).values_list("state").annotate(n=Count("pk")))
    rows = runs_in(ctx).order_by("-created_at")[:5]
    return Card(
        title="Runs",
        figures=tuple((state, str(counted.get(state, 0))) for state in sorted(RUN_ACTIVE)),
        items=tuple(_item(run) for run in rows),
        empty="No run yet in this project.",
        more_url=reverse("admin:runs_run_changelist"),
        more_label="All runs",
    )


def _item(run: Run) -> Item:
    return Item(
        title=f"{run.workflow_id} …{str(run.id)[-8:]}",
        url=reverse("admin:runs_run_change", args=[run.id]),
        state=run.state,
        tone=tone(run.state),  # type: ignore[arg-type]  # one of the five tones
        note=f"asked by {run.requested_by}, {run.created_at:%d %b %H:%M} UTC",
    )

"""Reads of run templates."""

from uuid import UUID

from django.db.models import QuerySet

from factory.kernel.context import Context
from runs.errors import TemplateNotFound
from runs.models import Run, RunTemplate


def templates(ctx: Context) -> QuerySet[RunTemplate]:
    """The run templates within the caller's scope."""
    rows: QuerySet[RunTemplate] = RunTemplate.objects.all()
    return rows if ctx.project_id is None else rows.filter(project_id=ctx.project_id)


def template(ctx: Context, template_id: UUID) -> RunTemplate:
    """The row, for this app's own rooms. Raises `TemplateNotFound`."""
    row = templates(ctx).filter(pk=template_id).first()
    if row is None:
        raise TemplateNotFound("There is no such run template here.")
    return row


def newest_of_template(template_id: UUID) -> QuerySet[Run]:
    """The runs of a template, newest first; for a page of them, which `run_newest_of_template` answers."""
    rows: QuerySet[Run] = Run.objects.filter(template_id=template_id)
    return rows.order_by("-created_at", "-id")

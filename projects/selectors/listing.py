"""Reads of the projects of a place."""

from uuid import UUID

from django.db.models import QuerySet

from projects.models import Project


def projects_of(project_id: UUID | None) -> QuerySet[Project]:
    """Return the project of a place, or all of the tenant's, by their names."""
    rows: QuerySet[Project] = Project.objects.order_by("name", "id")
    return rows if project_id is None else rows.filter(pk=project_id)


def has_project(project_id: UUID | None) -> bool:
    return bool(Project.objects.filter(pk=project_id).exists())

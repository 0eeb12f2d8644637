"""Which project a thing belongs to that the evidence tells of: the kernel knows no apps, so they say it.

Whoever stands in a project reads the evidence of that project alone, as all else there. What belongs to no
project, and what nobody has said the project of, is read where the whole tenant is chosen.
"""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.db.models import Case, OuterRef, QuerySet, Subquery, UUIDField, When
from django.db.models.functions import Cast, Coalesce, Right

from factory.models import WebhookSubscription

Find = Callable[[Any], QuerySet[Any]]
_kinds: dict[Find, tuple[str, ...]] = {}

ENDS_IN_AN_ID = r"^([a-z-]+:)?[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"
"""What a finding is about, where that is one thing: `kind:id`, or the id of a chain alone."""


def project_of(*kinds: str) -> Callable[[Find], Find]:
    """Declare how the project of things of some kinds is found: a query by their primary key, so that it is
    one look into an index for each entry, however many things there are."""

    def declare(find: Find) -> Find:
        _kinds[find] = kinds
        return find

    return declare


def kinds_of_projects() -> frozenset[str]:
    """The kinds of things that may belong to a project."""
    return frozenset(kind for kinds in _kinds.values() for kind in kinds)


def entries_in(rows: QuerySet[Any], project_id: UUID) -> QuerySet[Any]:
    """Those journal entries that are about things of a project."""
    ways = [
        When(entity__in=kinds, then=Subquery(find(OuterRef("entity_id")))) for find, kinds in _kinds.items()
    ]
    return rows.alias(belongs_to=Case(*ways, output_field=UUIDField())).filter(belongs_to=project_id)


def findings_in(rows: QuerySet[Any], project_id: UUID) -> QuerySet[Any]:
    """Those findings that are about one thing of a project."""
    key = Cast(Right(OuterRef("subject"), 36), UUIDField())
    belongs_to = Coalesce(*(Subquery(find(key)) for find in _kinds), output_field=UUIDField())
    only_ids = Case(When(subject__regex=ENDS_IN_AN_ID, then=belongs_to), output_field=UUIDField())
    return rows.alias(belongs_to=only_ids).filter(belongs_to=project_id)


@project_of("webhook")
def of_a_webhook(key: Any) -> QuerySet[Any]:
    return WebhookSubscription.objects.filter(pk=key).values("project_id")

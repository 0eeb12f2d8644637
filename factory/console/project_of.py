"""Which project a thing belongs to that the evidence tells of: the kernel knows no apps, so they say it.

Whoever stands in a project reads the evidence of that project alone, as all else there. What belongs to no
project, and what nobody has said the project of, is read where the whole tenant is chosen.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import UUID

from django.db.models import (
    Case,
    Func,
    Manager,
    Model,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    TextField,
    UUIDField,
    Value,
    When,
)
from django.db.models.functions import Cast, Coalesce, Substr

from factory.kernel.chain import audit_stream, scope_stream
from factory.kernel.context import Context
from factory.kernel.ids import IN_WORDS
from factory.kernel.models import AuditEntry, OutboxEvent, WebhookDelivery, WebhookSubscription

Find = Callable[[Any], QuerySet[Any]]
_kinds: dict[Find, tuple[str, ...]] = {}
_called: dict[Find, str] = {}


def project_of(*kinds: str) -> Callable[[Find], Find]:
    """Declare how the project of things of some kinds is found: a query by their primary key, so that it is
    one look into an index for each entry, however many things there are. Without a kind it is of things
    that the journal has no entries about, only findings."""

    def declare(find: Find) -> Find:
        _kinds[find] = kinds
        return find

    return declare


def belongs(model: type[Model], *kinds: str, to: str = "project_id") -> None:
    """Return the same for things that say it themselves, or by what they are part of, in the column `to`."""
    rows: Manager[Any] = model._default_manager

    @project_of(*kinds)
    def find(key: Any) -> QuerySet[Any]:
        return rows.filter(pk=key).values(to)


def project_of_called(prefix: str) -> Callable[[Find], Find]:
    """Return the same for things of findings whose ids are words that others chose, behind this prefix."""

    def declare(find: Find) -> Find:
        _called[find] = prefix
        return find

    return declare


def kinds_of_projects() -> frozenset[str]:
    """The kinds of things that may belong to a project."""
    return frozenset(kind for kinds in _kinds.values() for kind in kinds)


def entries_in(rows: QuerySet[Any], project_id: UUID) -> QuerySet[Any]:
    """Those journal entries that are about things of a project."""
    ways = [
        When(entity__in=kinds, then=Subquery(find(OuterRef("entity_id"))))
        for find, kinds in _kinds.items()
        if kinds
    ]
    return rows.alias(belongs_to=Case(*ways, output_field=UUIDField())).filter(belongs_to=project_id)


def findings_in(rows: QuerySet[Any], ctx: Context) -> QuerySet[Any]:
    """Those findings that are about a thing of the project in which somebody stands, about its chain of
    changes or of the audit log, or about the chain of what was done there and concerns no thing."""
    called = [
        When(subject__startswith=prefix, then=Subquery(find(Substr(OuterRef("subject"), len(prefix) + 1))))
        for find, prefix in _called.items()
    ]
    scopes = [
        When(names__in=[stream, audit_stream(stream)], then=Value(project_id, UUIDField()))
        for project_id in (ctx.project_id, None)
        for stream in [scope_stream(replace(ctx, project_id=project_id))]
    ]
    told = Coalesce(_project_named(), Subquery(_of_an_audit_chain(_first_id(OuterRef("subject")), ctx)))
    belongs_to = Case(*called, *scopes, default=told, output_field=UUIDField())
    rows = rows.alias(names=_first_id("subject"))
    return rows.alias(belongs_to=belongs_to).filter(belongs_to=ctx.project_id)


def _first_id(subject: Any) -> Cast:
    """The first id among the words of a subject; none where there is none."""
    found = Func(subject, Value(IN_WORDS), function="SUBSTRING", output_field=TextField())
    return Cast(found, UUIDField())


def _project_named() -> Coalesce:
    """The project of the thing that a row's subject names, whatever its kind."""
    key = _first_id(OuterRef("subject"))
    return Coalesce(*(Subquery(find(key)) for find in _kinds), output_field=UUIDField())


def _of_an_audit_chain(key: Any, ctx: Context) -> QuerySet[Any]:
    """An audit chain is called by a hash, which leads to nothing: what it is about its first entry says. What
    was done from another project is not asked, because that project's own chain may name any thing."""
    entries = AuditEntry.objects.filter(stream_id=key).order_by("sequence")
    own = entries.filter(Q(project_id=None) | Q(project_id=ctx.project_id))
    return own.annotate(belongs_to=_project_named()).values("belongs_to")[:1]


belongs(WebhookSubscription, "webhook")
belongs(WebhookDelivery)
belongs(OutboxEvent)

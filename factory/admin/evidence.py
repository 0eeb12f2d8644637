"""Pages of the evidence: journal, audit log and events."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.safestring import SafeString

from factory.admin.base import HouseAdmin
from factory.admin.scope import context_of
from factory.admin.show import badge, short, when
from factory.admin.site import site
from factory.models import AuditEntry, JournalEntry, OutboxEvent


class EvidenceAdmin(HouseAdmin[Any]):
    """Whoever holds the audit grant reads all of it; nobody changes any."""

    view_operation = "ReadAudit"

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        if not super().has_view_permission(request, obj):
            return False
        actor = context_of(request).actor
        return "audit" in actor.grants or bool(actor.roles & {"WorkspaceAdmin", "PlatformAdmin", "Operator"})


@admin.register(JournalEntry, site=site)
class JournalAdmin(EvidenceAdmin):
    """Every transition, as it was recorded and chained."""

    list_display = ("at", "entity", "which", "from_state", "to", "cause", "actor", "sequence", "chain")
    list_filter = ("entity", "to_state")
    search_fields = ("entity_id", "stream_id", "cause", "actor")
    ordering = ("-occurred_at", "-sequence")

    @admin.display(description="time")
    def at(self, row: JournalEntry) -> SafeString:
        return when(row.occurred_at)

    @admin.display(description="id")
    def which(self, row: JournalEntry) -> SafeString:
        return short(row.entity_id)

    @admin.display(description="to")
    def to(self, row: JournalEntry) -> SafeString:
        return badge(row.to_state)

    @admin.display(description="hash")
    def chain(self, row: JournalEntry) -> SafeString:
        return short(row.hash)


@admin.register(AuditEntry, site=site)
class AuditAdmin(EvidenceAdmin):
    """Who did or tried what, and what came of it."""

    list_display = ("at", "actor", "action", "subject", "result", "reason", "channel")
    list_filter = ("outcome", "action", "channel")
    search_fields = ("actor", "subject", "action")
    ordering = ("-occurred_at", "-sequence")

    @admin.display(description="time")
    def at(self, row: AuditEntry) -> SafeString:
        return when(row.occurred_at)

    @admin.display(description="outcome")
    def result(self, row: AuditEntry) -> SafeString:
        return badge(row.outcome)


@admin.register(OutboxEvent, site=site)
class EventAdmin(EvidenceAdmin):
    """Every event, and how far it has come on its way to handlers and streams."""

    list_display = ("at", "topic", "stream", "sequence", "to_handlers", "to_streams")
    list_filter = ("topic",)
    search_fields = ("id", "stream_id", "run_id")
    ordering = ("-occurred_at", "-sequence")

    @admin.display(description="time")
    def at(self, row: OutboxEvent) -> SafeString:
        return when(row.occurred_at)

    @admin.display(description="stream")
    def stream(self, row: OutboxEvent) -> SafeString:
        return short(row.stream_id)

    @admin.display(description="handlers")
    def to_handlers(self, row: OutboxEvent) -> str:
        return _way(row.handled_at, row.handle_set_aside_at, row.handle_attempts)

    @admin.display(description="streams")
    def to_streams(self, row: OutboxEvent) -> str:
        return _way(row.streamed_at, row.stream_set_aside_at, row.stream_attempts)


def _way(done: Any, aside: Any, attempts: int) -> str:
    if done:
        return "delivered"
    if aside:
        return f"set aside after {attempts} tries"
    return f"retrying, {attempts} tries so far" if attempts else "waiting"

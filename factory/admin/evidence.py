"""Pages of the evidence: journal and audit log."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.safestring import SafeString

from factory.admin.base import HouseAdmin
from factory.admin.scope import context_of
from factory.admin.show import badge, short, when
from factory.admin.site import site
from factory.models import AuditEntry, Finding, JournalEntry, Verification


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


def way(done: Any, aside: Any, attempts: int) -> str:
    """How far an event has come, in words."""
    if done:
        return f"skipped after {attempts} tries" if aside else "delivered"
    if aside:
        return f"set aside after {attempts} tries"
    return f"retrying, {attempts} tries so far" if attempts else "waiting"


@admin.register(Verification, site=site)
class VerificationAdmin(EvidenceAdmin):
    """When the auditor looked at everything, and what came of it; Findings has what it found here."""

    list_display = ("at", "result", "rules", "here", "walls_", "unchecked_", "anchored", "took")
    list_display_links = None
    fields = ("started_at", "seconds", "rules", "anchors")
    ordering = ("-started_at", "-id")

    @admin.display(description="time")
    def at(self, row: Verification) -> SafeString:
        return when(row.started_at)

    @admin.display(description="result")
    def result(self, row: Verification) -> str:
        """Of this tenant and of the walls: what was found elsewhere is nobody's business here."""
        if row.walls or self.here(row):
            return "violated"
        return "not all checked" if row.unchecked else "holds"

    @admin.display(description="found here")
    def here(self, row: Verification) -> int:
        return int(Finding.objects.filter(verification_id=row.id).count())

    @admin.display(description="walls")
    def walls_(self, row: Verification) -> str:
        return "; ".join(f"{code} {subject}: {told}" for code, subject, told in row.walls[:3]) or "stand"

    @admin.display(description="not checked")
    def unchecked_(self, row: Verification) -> str:
        return ", ".join(code for code, _ in row.unchecked) or "none"

    @admin.display(description="last anchor")
    def anchored(self, row: Verification) -> str:
        return row.anchors.partition(" by ")[0] or "none yet"

    @admin.display(description="took")
    def took(self, row: Verification) -> str:
        return f"{row.seconds:.1f} s"


@admin.register(Finding, site=site)
class FindingAdmin(EvidenceAdmin):
    """What verifications found wrong here. A run concerned is frozen until a PlatformAdmin looked at it."""

    list_display = ("at", "code", "subject", "detail")
    list_display_links = None
    list_filter = ("code",)
    search_fields = ("subject", "detail")
    ordering = ("-found_at", "-id")

    @admin.display(description="time")
    def at(self, row: Finding) -> SafeString:
        return when(row.found_at)

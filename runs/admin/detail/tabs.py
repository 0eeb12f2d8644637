"""What lies behind a run's page: journal, events, usage and audit, each read only when it is asked for."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from factory.evidence.chain_checks import check_chain
from factory.kernel.chain import audit_stream
from factory.kernel.context import Context
from factory.kernel.models import AuditEntry, JournalEntry, OutboxEvent, WebhookDelivery, WebhookSubscription
from factory.kernel.permissions import may
from runs.admin.detail.facts import Facts
from usage.selectors import records_of_run

MOST = 200
"""So many rows of a kind stand on the page, the newest; the lists of the console have all of them."""


@dataclass(frozen=True, slots=True)
class Tab:
    """One of the parts, and whether it is the one that is shown."""

    key: str
    title: str
    note: str
    shown: bool


def _steps(ctx: Context, facts: Facts) -> dict[str, Any]:
    return {}


def _journal(ctx: Context, facts: Facts) -> dict[str, Any]:
    rows = JournalEntry.objects.filter(stream_id=facts.run.id).order_by("-sequence")
    return {"entries": _newest(rows), "checked": check_chain("journal", facts.run.id)}


def _events(ctx: Context, facts: Facts) -> dict[str, Any]:
    """To which receivers events went is for who may see the receivers: their addresses hold secrets."""
    rows = OutboxEvent.objects.filter(run_id=facts.run.id).order_by("-sequence", "-position")
    events = _newest(rows)
    sees_receivers = may(ctx, "ListWebhooks")
    deliveries = _deliveries([event.id for event in events]) if sees_receivers else {}
    told = [(event, deliveries.get(event.id, [])) for event in events]
    return {"events": told, "sees_receivers": sees_receivers}


def _deliveries(event_ids: Sequence[UUID]) -> dict[UUID, list[WebhookDelivery]]:
    """By event; asked for by subscription too, because that is what they are indexed by."""
    receivers = list(WebhookSubscription.objects.values_list("id", flat=True))
    rows = WebhookDelivery.objects.filter(subscription_id__in=receivers, event_id__in=event_ids)
    found: dict[UUID, list[WebhookDelivery]] = {}
    for each in rows.select_related("subscription").order_by("created_at"):
        found.setdefault(each.event_id, []).append(each)
    return found


def _usage(ctx: Context, facts: Facts) -> dict[str, Any]:
    steps = {step.id: step.node_key for step in facts.steps}
    records = records_of_run(facts.run.id, MOST)
    return {"records": [(steps.get(record.step_id, ""), record) for record in records]}


def _audit(ctx: Context, facts: Facts) -> dict[str, Any]:
    stream = audit_stream(facts.run.id)
    rows = AuditEntry.objects.filter(stream_id=stream).order_by("-sequence")
    return {"audits": _newest(rows), "checked": check_chain("audit", stream)}


def _newest(rows: QuerySet[Any]) -> list[Any]:
    return list(rows[:MOST])


Read = Callable[[Context, Facts], dict[str, Any]]
PARTS: dict[str, tuple[str, Read]] = {
    "steps": ("Steps and attempts", _steps),
    "journal": ("Journal", _journal),
    "events": ("Events", _events),
    "usage": ("Usage", _usage),
    "audit": ("Audit", _audit),
}


def tabs(ctx: Context, facts: Facts, wanted: str) -> dict[str, Any]:
    """The row of tabs, and the rows of the one that is wanted: the steps, where it is none of them."""
    shown = wanted if wanted in PARTS else "steps"
    notes = _notes(facts)
    found = [Tab(key, title, notes[key], key == shown) for key, (title, _) in PARTS.items()]
    return {"tabs": found, "tab": shown, "most": MOST, **PARTS[shown][1](ctx, facts)}


def _notes(facts: Facts) -> dict[str, str]:
    """Return how much stands there, in words; counted by indices, within one run."""
    refused = AuditEntry.objects.filter(stream_id=audit_stream(facts.run.id), outcome="refused")
    waiting = OutboxEvent.objects.filter(run_id=facts.run.id, handled_at__isnull=True)
    return {
        "steps": str(sum(max(1, len(facts.tries(step))) for step in facts.steps)),
        "journal": str(_last(JournalEntry.objects.filter(stream_id=facts.run.id))),
        "events": _some(waiting.count(), "under way"),
        "usage": str(facts.usage.records),
        "audit": _some(refused.count(), "refused"),
    }


def _last(rows: QuerySet[JournalEntry]) -> int:
    return rows.order_by("-sequence").values_list("sequence", flat=True).first() or 0


def _some(count: int, word: str) -> str:
    return f"{count} {word}" if count else ""

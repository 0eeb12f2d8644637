"""Receipts become usage, each one once."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from factory.kernel import clock
from factory.kernel.commanding import operation
from factory.kernel.context import Context
from factory.kernel.recording import record
from usage.events import UsageRecorded
from usage.models import PricingRevision, UsageRecord
from usage.operations.adding_up import add_up
from usage.operations.closing import adjust, locked_reservation
from usage.pricing import money
from usage.pricing.quotes import quote
from usage.pricing.receipts import ParsedReceipt, RefusedCall
from usage.selectors import revisions_between
from usage.states import FUNDED, ReservationState, UsageState


@operation
def record_receipts(
    ctx: Context,
    *,
    run_id: UUID,
    project_id: UUID,
    step_id: UUID,
    attempt_id: UUID,
    agent_id: str | None,
    workflow_id: str,
    release_id: UUID,
    receipts: Sequence[ParsedReceipt],
    refused: Sequence[RefusedCall] = (),
    dispatched_at: datetime,
    settled_at: datetime | None,
) -> int:
    """Record the usage of these receipts of one run, and return how many of them were new.

    A receipt is known by its run, its provider and its id: one whose usage stands is not recorded again.
    Each is priced by the revision in force when the call happened, believed only within the attempt's
    dispatch and settlement; the run's sums move with it. What comes after the run's settlement is booked as
    an adjustment in the budget period of its reservation. A call whose receipt was refused is Uncertain: who
    spends is not the one who decides what counts. The caller holds the run's lock, has compared what receipts
    of one identity say, and brings each refused one once. Emits UsageRecorded for each.
    """
    wanted = [receipt for receipt in receipts if receipt.is_usage]
    if not wanted and not refused:
        return 0
    reservation = locked_reservation(run_id)
    new = _unseen(run_id, wanted)
    now = clock.now()
    scope = {"run_id": run_id, "project_id": project_id, "step_id": step_id, "attempt_id": attempt_id}
    facts = scope | {"agent_id": agent_id or "", "recorded_at": now}
    prices = _Prices(dispatched_at, settled_at or now)
    records = [_record(ctx, receipt, facts, prices) for receipt in new]
    records += [_record_refused(ctx, call, facts, prices.believed(now)) for call in refused]
    add_up(records, workflow_id=workflow_id, release_id=release_id)
    late = reservation is not None and reservation.state in FUNDED - {ReservationState.RESERVED}
    if records and late and reservation is not None:
        adjust(ctx, reservation)
    return len(records)


def _unseen(run_id: UUID, receipts: Sequence[ParsedReceipt]) -> list[ParsedReceipt]:
    """Return the first of each identity whose usage is not recorded yet."""
    first = {receipt.identity: receipt for receipt in reversed(receipts)}
    ids = {receipt_id for _, receipt_id in first}
    rows = UsageRecord.objects.filter(run_id=run_id, receipt_id__in=ids)
    seen = set(rows.values_list("provider", "receipt_id"))
    return [r for r in receipts if r.identity not in seen and first[r.identity] is r]


class _Prices:
    """The revision in force at a call's time, as far as the attempt's own times bear it out."""

    def __init__(self, earliest: datetime, latest: datetime) -> None:
        self._earliest, self._latest = earliest, max(earliest, latest)
        self._revisions = revisions_between(self._earliest, self._latest)

    def believed(self, occurred_at: datetime) -> datetime:
        return min(max(occurred_at, self._earliest), self._latest)

    def at(self, when: datetime) -> PricingRevision | None:
        begun = [revision for revision in self._revisions if revision.valid_from <= when]
        return begun[-1] if begun else None


def _record(ctx: Context, receipt: ParsedReceipt, facts: dict[str, Any], prices: _Prices) -> UsageRecord:
    priced_at = prices.believed(receipt.occurred_at)
    revision = prices.at(priced_at)
    price_list = revision.prices if revision else None
    quoted = quote(price_list, receipt.provider, receipt.name, receipt.quantities, receipt.cost)
    usage = UsageRecord(
        state=quoted.state,
        receipt_id=receipt.receipt_id,
        kind=receipt.kind,
        provider=receipt.provider,
        name=receipt.name,
        quantities=_texts(receipt),
        prices=dict(quoted.prices),
        cost=quoted.cost,
        pricing_revision=revision,
        reason=quoted.reason,
        occurred_at=receipt.occurred_at,
        priced_at=priced_at,
        **facts,
    )
    record(ctx, usage, "ReceiptRecorded", _recorded(ctx, usage))
    return usage


def _record_refused(ctx: Context, call: RefusedCall, facts: dict[str, Any], at: datetime) -> UsageRecord:
    usage = UsageRecord(
        state=UsageState.UNCERTAIN,
        receipt_id=call.receipt_id,
        kind=call.kind,
        provider=call.provider,
        name=call.name,
        reason=f"Its receipt was refused ({call.reason})",
        occurred_at=at,
        priced_at=at,
        **facts,
    )
    record(ctx, usage, "ReceiptRecorded", _recorded(ctx, usage))
    return usage


def _texts(receipt: ParsedReceipt) -> dict[str, str] | None:
    if receipt.quantities is None:
        return None
    return {unit: money.text_of(number) for unit, number in receipt.quantities.items()}


def _recorded(ctx: Context, usage: UsageRecord) -> UsageRecorded:
    revision = usage.pricing_revision
    return UsageRecorded(
        usage_id=usage.id,
        run_id=usage.run_id,
        tenant_id=ctx.tenant_id,
        project_id=usage.project_id,
        step_id=usage.step_id,
        attempt_id=usage.attempt_id,
        receipt_id=usage.receipt_id,
        kind=usage.kind,
        provider=usage.provider,
        name=usage.name,
        state=usage.state,
        amount_usd=usage.cost,
        pricing_revision=revision.label if revision else None,
        occurred_at=usage.occurred_at,
    )

"""Receipts: the evidence of what a skill used and did, kept until the control plane has them."""

import threading
from collections.abc import Mapping
from typing import Any

from uuid_utils.compat import uuid7

from runs.worker.client import WorkerClient
from runs.worker.wire import Assignment, utc_text

MOST_AT_ONCE = 200


class ReceiptBook:
    """The receipts of one attempt that are not yet sent. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: list[dict[str, Any]] = []

    def add(
        self,
        kind: str,
        provider: str,
        name: str,
        *,
        quantities: Mapping[str, Any] | None,
        details: Mapping[str, Any],
        receipt_id: str | None = None,
        occurred_at: float | None = None,
        **more: Any,
    ) -> dict[str, Any]:
        """Note one call or effect. Its id makes it safe to send twice."""
        receipt = {
            "receiptId": receipt_id or str(uuid7()),
            "kind": kind,
            "provider": provider,
            "name": name,
            "quantities": dict(quantities) if quantities is not None else None,
            "occurredAt": utc_text(occurred_at),
            "details": dict(details),
            **more,
        }
        with self._lock:
            self._open.append(receipt)
        return receipt

    def pending(self) -> list[dict[str, Any]]:
        """The oldest that are not yet sent."""
        with self._lock:
            return list(self._open[:MOST_AT_ONCE])

    def sent(self, receipts: list[dict[str, Any]]) -> None:
        """The control plane has these."""
        known = {receipt["receiptId"] for receipt in receipts}
        with self._lock:
            self._open = [receipt for receipt in self._open if receipt["receiptId"] not in known]


def flush(
    client: WorkerClient, work: Assignment, book: ReceiptBook, *, patience: float | None = None
) -> None:
    """Send what is pending. A receipt that was already taken is a no-op there."""
    while receipts := book.pending():
        client.send_receipts(work, receipts, patience=patience)
        book.sent(receipts)

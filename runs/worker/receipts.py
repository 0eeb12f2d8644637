"""Receipts: the evidence of what a skill used and did, kept until the control plane has them."""

import threading
from collections.abc import Mapping
from typing import Any

from uuid_utils.compat import uuid7

from runs.worker.client import WorkerClient
from runs.worker.wire import Assignment, digest, utc_text

MOST_AT_ONCE = 200


class ReceiptBook:
    """The receipts of one attempt that are not yet sent. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: list[dict[str, Any]] = []
        self._known: set[tuple[str, str]] = set()

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
        """Note one call or effect. Its id makes it safe to send twice; `receipt_id` is the provider's own,
        and is not taken where the provider has given it to another call."""
        receipt = {
            "receiptId": self._new_id(provider, receipt_id),
            "kind": kind,
            "provider": provider,
            "name": name,
            "quantities": dict(quantities) if quantities is not None else None,
            "occurredAt": utc_text(occurred_at),
            "details": _kept(details),
            **more,
        }
        with self._lock:
            self._open.append(receipt)
        return receipt

    def _new_id(self, provider: str, given: str | None) -> str:
        with self._lock:
            if given is None or (provider, given) in self._known:
                return str(uuid7())
            self._known.add((provider, given))
            return given

    def pending(self) -> list[dict[str, Any]]:
        """The oldest that are not yet sent."""
        with self._lock:
            return list(self._open[:MOST_AT_ONCE])

    def sent(self, receipts: list[dict[str, Any]]) -> None:
        """The control plane has these."""
        known = {(receipt["provider"], receipt["receiptId"]) for receipt in receipts}
        with self._lock:
            self._open = [each for each in self._open if (each["provider"], each["receiptId"]) not in known]


def _kept(details: Mapping[str, Any]) -> dict[str, Any]:
    """Return details as JSON can carry them: what it cannot stands there as text, and costs no receipt."""
    try:
        digest(dict(details))
    except ValueError as fault:
        text = repr(dict(details))[:2000].encode("ascii", "backslashreplace").decode()
        return {"unreadable": str(fault)[:200], "text": text}
    return dict(details)


def flush(
    client: WorkerClient, work: Assignment, book: ReceiptBook, *, patience: float | None = None
) -> None:
    """Send what is pending. A receipt that was already taken is a repeat there, and costs nothing."""
    while receipts := book.pending():
        client.send_receipts(work, receipts, patience=patience)
        book.sent(receipts)

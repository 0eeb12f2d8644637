"""Receipts: the evidence of what a skill used and did, kept until the control plane has them."""

import json
import threading
from collections.abc import Mapping
from typing import Any

from uuid_utils.compat import uuid7

from runs.worker.client import WorkerClient
from runs.worker.wire import Assignment, canonical, utc_text

MOST_AT_ONCE = 200
MOST_DESCRIBED = 1000


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
        and is not taken where the provider has given it to another call.

        Of details that cannot be sent their description is; a call that was made is on record all the same.
        """
        told, counted = _kept(details), None if quantities is None else _kept(quantities)
        if counted is not None and counted != quantities:  # what is not a number is not known
            told["quantities"], counted = counted, None
        receipt = {
            "receiptId": self._new_id(provider, receipt_id),
            "kind": kind,
            "provider": provider,
            "name": str(name),
            "quantities": counted,
            "occurredAt": utc_text(occurred_at),
            "details": told,
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


def _kept(given: Any) -> dict[str, Any]:
    """Return a copy that can be sent, whatever becomes of the first. What is no JSON is described."""
    try:
        return {str(name): _value(value) for name, value in dict(given).items()}
    except (TypeError, ValueError):
        return {"described": _described(given)}


def _value(value: Any) -> Any:
    try:
        return json.loads(canonical(value))
    except (ValueError, TypeError, RecursionError, RuntimeError):
        return _described(value)


def _described(value: Any) -> str:
    """Return words for what is no JSON: its text as ASCII, or, if it has none, its type."""
    try:
        text = str(value)
    except Exception:
        return f"a {type(value).__name__}"
    return text[:MOST_DESCRIBED].encode("ascii", "backslashreplace").decode().replace("\0", "\\0")


def flush(
    client: WorkerClient, work: Assignment, book: ReceiptBook, *, patience: float | None = None
) -> None:
    """Send what is pending. A receipt that was already taken is a repeat there, and costs nothing."""
    while receipts := book.pending():
        client.send_receipts(work, receipts, patience=patience)
        book.sent(receipts)

"""Receipts that are not taken: kept for a person, because a call may have been paid all the same."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from factory.kernel.clock import now
from factory.kernel.context import Context
from factory.kernel.hashing import digest_bytes, storable
from factory.kernel.recording import audit
from runs.models import Lease, RefusedReceipt
from runs.operations.holding import LockedAttempt

CONFLICT = "receipt-conflict"
FAULTY = "invalid-receipt"
MOST_DETAIL = 2000


@dataclass(frozen=True, slots=True)
class Refusal:
    """A receipt that is not taken, as it came, with the reason; `recorded` is the one that stands instead."""

    value: Any
    code: str
    detail: str
    recorded: UUID | None = None

    @property
    def receipt_id(self) -> str:
        return self._text("receiptId", 255)

    @property
    def provider(self) -> str:
        return self._text("provider", 200)

    @property
    def text(self) -> str:
        """Return the JSON text of what came; in ASCII, so that it can be stored whatever it holds."""
        return json.dumps(self.value, sort_keys=True, default=str)

    @property
    def is_effect(self) -> bool:
        """Return whether it claims that something was done; one that says that nothing was, does not."""
        if not isinstance(self.value, Mapping) or self.value.get("kind") != "effect":
            return False
        details = self.value.get("details")
        return not (isinstance(details, Mapping) and details.get("tookPlace") is False)

    @property
    def is_usage(self) -> bool:
        """Return whether it may be about a call that was paid: all but an effect that states no price."""
        if not isinstance(self.value, Mapping) or self.value.get("kind") != "effect":
            return True
        return self.value.get("quantities") is not None or self.value.get("cost") is not None

    def _text(self, member: str, most: int) -> str:
        text = self.value.get(member) if isinstance(self.value, Mapping) else None
        return storable(text, most) if isinstance(text, str) else ""

    def row(self, ctx: Context, locked: LockedAttempt, lease: Lease) -> RefusedReceipt:
        """Return it as it is kept."""
        return RefusedReceipt(
            tenant_id=ctx.tenant_id,
            run_id=locked.run.id,
            step_id=locked.step.id,
            attempt_id=locked.attempt.id,
            lease_id=lease.id,
            recorded_id=self.recorded,
            receipt_id=self.receipt_id,
            kind=self._text("kind", 16),
            provider=self.provider,
            name=self._text("name", 200),
            code=self.code,
            detail=self.detail,
            content=self.text,
            content_hash=digest_bytes(self.text.encode()),
            refused_at=now(),
        )


def keep_refused(
    ctx: Context, locked: LockedAttempt, lease: Lease, refused: Sequence[Refusal]
) -> list[tuple[Refusal, RefusedReceipt]]:
    """Keep and audit what was refused of a locked run, each once; return what was not kept before, with its
    row."""
    if not refused:
        return []
    rows = {(each.code, digest_bytes(each.text.encode())): each for each in refused}
    hashes = [content_hash for _, content_hash in rows]
    kept = RefusedReceipt.objects.filter(run_id=locked.run.id, content_hash__in=hashes)
    for key in kept.values_list("code", "content_hash"):
        rows.pop(key, None)
    new = [(each, each.row(ctx, locked, lease)) for each in rows.values()]
    RefusedReceipt.objects.bulk_create([row for _, row in new])
    for each, _ in new:
        audit(
            ctx,
            "RefuseReceipt",
            subject=f"attempt:{locked.attempt.id}",
            outcome="refused",
            reason=each.detail,
            detail={"code": each.code, "receiptId": each.receipt_id, "provider": each.provider},
            stream=locked.run.id,
        )
    return new

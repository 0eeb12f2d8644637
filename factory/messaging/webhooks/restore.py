"""How webhooks come back after a restore: on or off, as the journal says."""

from collections.abc import Mapping
from typing import Any

from factory.evidence.journal_replay import Recorded, audited_reason, repairs
from factory.kernel.models import WebhookSubscription
from factory.kernel.models.webhook import WebhookState


def _webhook(row: WebhookSubscription, said: Recorded) -> Mapping[str, Any]:
    off = said.state == WebhookState.DISABLED
    return {"disabled_reason": audited_reason(row, "DisableWebhook") if off else "", "updated_at": said.at}


def register() -> None:
    """Register what a restore of this app needs: how its rows come back."""
    repairs("journal", WebhookSubscription, _webhook)

"""The kernel's tables."""

from factory.kernel.models.evidence import Finding, Purge, Verification
from factory.kernel.models.journal import AuditEntry, ChainHead, IdempotencyRecord, JournalEntry, OutboxEvent
from factory.kernel.models.revoked_token import RevokedToken
from factory.kernel.models.setting import Setting
from factory.kernel.models.user import User
from factory.kernel.models.webhook import WebhookDelivery, WebhookSubscription

__all__ = [
    "AuditEntry",
    "ChainHead",
    "Finding",
    "IdempotencyRecord",
    "JournalEntry",
    "OutboxEvent",
    "Purge",
    "RevokedToken",
    "Setting",
    "User",
    "Verification",
    "WebhookDelivery",
    "WebhookSubscription",
]

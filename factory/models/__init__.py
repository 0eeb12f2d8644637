"""The kernel's tables."""

from factory.models.keeping import Finding, Purge, Verification
from factory.models.ledger import AuditEntry, ChainHead, IdempotencyRecord, JournalEntry, OutboxEvent
from factory.models.revoked_token import RevokedToken
from factory.models.setting import Setting
from factory.models.user import User
from factory.models.webhook import WebhookDelivery, WebhookSubscription

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

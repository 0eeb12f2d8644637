"""The kernel's tables."""

from factory.models.ledger import AuditEntry, ChainHead, IdempotencyRecord, JournalEntry, OutboxEvent
from factory.models.revoked_token import RevokedToken
from factory.models.setting import Setting
from factory.models.user import User

__all__ = [
    "AuditEntry",
    "ChainHead",
    "IdempotencyRecord",
    "JournalEntry",
    "OutboxEvent",
    "RevokedToken",
    "Setting",
    "User",
]

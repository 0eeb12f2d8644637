"""Pages of notifications."""

from notifications.admin import belonging, cards, messages

__all__ = ["belonging", "cards", "messages"]

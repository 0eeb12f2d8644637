"""Pages of notifications."""

from notifications.admin import cards, messages

__all__ = ["cards", "messages"]

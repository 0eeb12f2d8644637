"""The kernel's tables."""

from factory.models.user import User

__all__ = ["User"]

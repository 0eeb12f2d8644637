"""The kernel's tables."""

from factory.models.revoked_token import RevokedToken
from factory.models.user import User

__all__ = ["RevokedToken", "User"]

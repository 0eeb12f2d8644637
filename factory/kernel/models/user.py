"""Who may sign in: one row per person, known by one subject on every path."""

from typing import Any, ClassVar

from django.contrib.auth.models import AbstractUser, BaseUserManager
from django.db import models

from factory.kernel.addresses import addresses_in, normal_address
from factory.kernel.ids import uuid7


class UserManager(BaseUserManager["User"]):
    """Creates people by their e-mail address."""

    def create_user(self, email: str, password: str | None = None, **fields: Any) -> "User":
        user = self.model(email=normal_address(email), **fields)
        user.subject = user.subject or user.email
        user.set_password(password)
        user.save(using=self._db)
        return user

    def get_by_natural_key(self, username: str | None) -> "User":
        """Find who signs in by the address that they write, however they spell it."""
        written = username or ""
        return self.get(email=next(iter(addresses_in(written)), written.strip().lower()))

    def create_superuser(self, email: str, password: str | None = None, **fields: Any) -> "User":
        return self.create_user(email, password, is_staff=True, is_superuser=True, **fields)


class User(AbstractUser):
    """A person. What they may do comes from memberships, never from this row.

    `subject` is the `sub` of their tokens: session and token are the same person by it. `opened_by` is
    the tenant whose administrator had the account made, `link_asked_at` when any tenant's last had a sign-in
    link mailed to it.
    """

    username = None  # type: ignore[assignment]  # people sign in by e-mail address
    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    email = models.EmailField(unique=True)
    subject = models.CharField(max_length=255, unique=True)
    opened_by = models.CharField(max_length=64, default="", db_default="", editable=False)
    link_asked_at = models.DateTimeField(null=True, editable=False)

    USERNAME_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []
    objects: ClassVar[UserManager] = UserManager()  # type: ignore[assignment]

    def __str__(self) -> str:
        return self.email

from typing import Any, ClassVar

from django.db import models
from django.db.models import Q

from factory.kernel.models.base import uuid_key


class RevokedToken(models.Model):
    """Hold what is refused although its signature is good: one token (`jti`), or a subject's credential,
    which is every token of theirs from before (`jti` empty).

    A table of the platform, because a worker's token has no tenant. `scope` is the tenant whose tokens are
    meant, so that nobody can revoke another's; empty means everywhere, which only the control plane may say.
    """

    id = uuid_key()
    scope = models.CharField(max_length=64, blank=True, default="")
    jti = models.CharField(max_length=255, blank=True, default="")
    subject = models.CharField(max_length=255, blank=True, default="")
    pool = models.CharField(max_length=100, blank=True, default="")
    reason = models.CharField(max_length=1000)
    revoked_by = models.CharField(max_length=255)
    revoked_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "factory_revoked_token"
        ordering = ("-revoked_at",)
        constraints: ClassVar[list[Any]] = [
            models.UniqueConstraint("scope", "jti", condition=~Q(jti=""), name="revoked_token_once"),
            models.CheckConstraint(condition=~Q(jti="") | ~Q(subject=""), name="revoked_token_names_one"),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["jti"], condition=~Q(jti=""), name="revoked_token_by_jti"),
            models.Index(fields=["subject", "pool"], condition=Q(jti=""), name="revoked_token_by_subject"),
        ]

    def __str__(self) -> str:
        return self.jti or f"every token of {self.subject}"

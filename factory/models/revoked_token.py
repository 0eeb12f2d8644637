from django.db import models


class RevokedToken(models.Model):
    """A token that is refused although its signature is good. A table of the platform: a worker's token has
    no tenant, and what is revoked must be refused everywhere."""

    jti = models.CharField(primary_key=True, max_length=255)
    subject = models.CharField(max_length=255, blank=True)
    reason = models.CharField(max_length=1000)
    revoked_by = models.CharField(max_length=255)
    revoked_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "factory_revoked_token"
        ordering = ("-revoked_at",)

    def __str__(self) -> str:
        return self.jti

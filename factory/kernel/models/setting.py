from django.db import models


class Setting(models.Model):
    """A setting that was changed while processes run: it overrides the variable of the same name. A table of
    the platform, because leases of every tenant are judged by one rule."""

    name = models.CharField(primary_key=True, max_length=64)
    value = models.IntegerField()
    reason = models.CharField(max_length=1000)
    changed_by = models.CharField(max_length=255)
    changed_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.name} = {self.value}"

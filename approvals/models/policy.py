"""Revisions of a tenant's policy."""

from typing import ClassVar
from uuid import NAMESPACE_URL, UUID, uuid5

from django.db import models
from django.db.models import Q
from django_fsm import FSMField

from approvals.states import POLICY
from factory.kernel.lifecycle import Lifecycle
from factory.kernel.models.base import Journaled

HASH_LENGTH = 71  # "sha256:" and 64 hex digits


class PolicyRevision(Journaled):
    """One immutable revision of a tenant's policy. Numbers start at 1 and have no gap."""

    lifecycle: ClassVar[Lifecycle] = POLICY

    policy_id = models.CharField(max_length=64, default="default")
    number = models.PositiveIntegerField()
    document = models.JSONField()
    document_hash = models.CharField(max_length=HASH_LENGTH)
    note = models.CharField(max_length=500, blank=True)
    warnings = models.JSONField(default=list)
    published_by = models.CharField(max_length=255)
    published_at = models.DateTimeField()
    state = FSMField(default="Published", protected=True, editable=False)

    class Meta:
        ordering: ClassVar = ["-number"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant_id", "policy_id", "number"], name="policy_number_once"),
            models.CheckConstraint(condition=Q(number__gte=1), name="policy_number_from_1"),
            models.CheckConstraint(condition=Q(state="Published"), name="policy_is_published"),
        ]

    def __str__(self) -> str:
        return self.revision

    @property
    def revision(self) -> str:
        """Return the word that runs pin."""
        return f"r{self.number}"

    @property
    def stream(self) -> UUID:
        """Return the policy's id: all its revisions are one chain."""
        return uuid5(NAMESPACE_URL, f"factory:policy:{self.tenant_id}:{self.policy_id}")

"""A run template: what all runs of a kind have in common, fixed once."""

from datetime import datetime
from typing import Any, ClassVar

from django.db import models
from django.db.models import Q
from django_fsm import FSMField, transition

from factory.kernel.events import wire
from factory.kernel.hashing import digest
from factory.kernel.lifecycle import Lifecycle
from factory.kernel.models.base import Journaled, TenantForeignKey, in_check
from runs.states import RUN_TEMPLATE, TemplateState

S = TemplateState


class RunTemplate(Journaled):
    """A kind of run: its workflow, model profile, limits, and the schema of its input.

    Nothing of it changes. Who wants another retires it and makes a new one, under the same name if they like.
    """

    lifecycle: ClassVar[Lifecycle] = RUN_TEMPLATE

    project = TenantForeignKey("projects.Project", related_name="+")
    name = models.CharField(max_length=63)
    description = models.CharField(max_length=500, blank=True)
    workflow_id = models.CharField(max_length=63)
    model_profile_id = models.CharField(max_length=64)
    limits = models.JSONField()
    input_schema = models.JSONField(null=True)
    content_hash = models.CharField(max_length=71)
    created_by = models.CharField(max_length=255)
    creator_person = models.CharField(max_length=255)
    created_at = models.DateTimeField()
    state = FSMField(default=S.ACTIVE, choices=S.choices, protected=True, editable=False)
    version = models.BigIntegerField(default=0)
    retired_at = models.DateTimeField(null=True)
    retired_by = models.CharField(max_length=255, blank=True)
    retire_reason = models.CharField(max_length=1000, blank=True)

    class Meta:
        constraints: ClassVar[list[Any]] = [
            models.UniqueConstraint(
                fields=["tenant_id", "project", "name"],
                condition=Q(state=S.ACTIVE),
                name="run_template_name_once",
            ),
            models.CheckConstraint(condition=in_check("state", S.values), name="run_template_state_known"),
            models.CheckConstraint(
                condition=Q(state=S.ACTIVE, retired_at__isnull=True, retired_by="", retire_reason="")
                | (Q(state=S.RETIRED, retired_at__isnull=False) & ~Q(retired_by="") & ~Q(retire_reason="")),
                name="run_template_retired_since_by_and_why",
            ),
        ]
        indexes: ClassVar[list[Any]] = [
            models.Index(fields=["tenant_id", "project", "-created_at", "-id"], name="run_template_newest")
        ]

    def __str__(self) -> str:
        return self.name

    def content(self) -> dict[str, Any]:
        """Return what it fixes, as its hash is taken over."""
        fixed: dict[str, Any] = wire(
            {
                "workflowId": self.workflow_id,
                "modelProfileId": self.model_profile_id,
                "limits": self.limits,
                "inputSchema": self.input_schema,
            }
        )
        return fixed

    def seal(self) -> None:
        """Take the hash of what it fixes, before it is recorded for the first time."""
        self.content_hash = digest(self.content())

    @transition(field=state, source=S.ACTIVE, target=S.RETIRED)
    def retire(self, *, at: datetime, by: str, reason: str) -> None:
        self.retired_at, self.retired_by, self.retire_reason = at, by, reason

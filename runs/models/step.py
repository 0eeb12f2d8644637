"""A step: a node of the run's workflow, or one instance of a node that fans out."""

from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from django.db import models
from django.db.models import Q
from django_fsm import FSMField, transition

from approvals.states import GATED, ActionClass
from factory.kernel.lifecycle import Lifecycle
from factory.kernel.models.base import Journaled, TenantForeignKey, in_check
from runs.engine import AGENT, HUMAN
from runs.states import STEP, STEP_ACTIVE, STEP_TERMINAL, Attention, FailureClass, StepState

S = StepState


class Step(Journaled):
    """One node, made once (`step_run_id`) when all that it depends on is done.

    A human step has no attempt: it asks a person, and is done by the answer. A skipped one never began.
    """

    lifecycle: ClassVar[Lifecycle] = STEP

    run = TenantForeignKey("runs.Run", related_name="steps")
    node_key = models.CharField(max_length=72)
    step_run_id = models.CharField(max_length=128)
    ordinal = models.PositiveIntegerField()
    kind = models.CharField(max_length=8, default=AGENT)
    agent_id = models.CharField(max_length=63, blank=True)
    skill_id = models.CharField(max_length=63, blank=True)
    side_effect_class = models.CharField(max_length=16)
    max_attempts = models.PositiveSmallIntegerField()
    timeout_minutes = models.PositiveIntegerField(null=True)
    created_at = models.DateTimeField()

    state = FSMField(default=StepState.PENDING, choices=StepState.choices, protected=True, editable=False)
    version = models.BigIntegerField(default=0)
    next_dispatch_at = models.DateTimeField(null=True)
    attention = models.CharField(max_length=16, blank=True, choices=Attention.choices)
    failure_class = models.CharField(max_length=16, blank=True)
    reason = models.TextField(blank=True)
    output = models.JSONField(null=True)
    updated_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)

    class Meta:
        ordering: ClassVar[list[str]] = ["ordinal"]
        constraints: ClassVar[list[Any]] = [
            models.UniqueConstraint("tenant_id", "step_run_id", name="step_run_id_once"),
            models.UniqueConstraint("tenant_id", "run", "ordinal", name="step_ordinal_once"),
            models.CheckConstraint(condition=in_check("state", StepState.values), name="step_state_known"),
            models.CheckConstraint(
                condition=in_check("side_effect_class", ActionClass.values), name="step_class_known"
            ),
            models.CheckConstraint(
                condition=(Q(kind=AGENT) & ~Q(agent_id=""))
                | Q(kind=HUMAN, agent_id="", side_effect_class__in=sorted(GATED)),
                name="step_of_an_agent_or_a_person",
            ),
            models.CheckConstraint(condition=Q(max_attempts__gte=1), name="step_may_be_tried"),
            models.CheckConstraint(
                condition=Q(state__in=sorted(STEP_TERMINAL), finished_at__isnull=False)
                | Q(state__in=sorted(STEP_ACTIVE), finished_at__isnull=True),
                name="step_finished_at_its_end",
            ),
            models.CheckConstraint(
                condition=Q(state=S.PENDING, next_dispatch_at__isnull=False)
                | (~Q(state=S.PENDING) & Q(next_dispatch_at__isnull=True)),
                name="step_pending_is_due",
            ),
            models.CheckConstraint(
                condition=Q(state=S.FAILED, failure_class__in=FailureClass.values)
                | (~Q(state=S.FAILED) & Q(failure_class="")),
                name="step_failed_of_a_class",
            ),
            models.CheckConstraint(
                condition=in_check("attention", Attention.values), name="step_attention_known"
            ),
        ]
        indexes: ClassVar[list[Any]] = [
            models.Index(
                fields=["tenant_id", "next_dispatch_at", "id"],
                condition=Q(state=S.PENDING),
                name="step_waiting",
            ),
            models.Index(
                fields=["tenant_id", "updated_at"], condition=~Q(attention=""), name="step_attention"
            ),
        ]

    def __str__(self) -> str:
        return self.node_key

    @property
    def stream(self) -> UUID:
        """The chain of its run."""
        return self.run_id

    @property
    def step_id(self) -> UUID:
        """Itself: for the references of its events."""
        return self.id

    @property
    def project_id(self) -> UUID:
        """For the references of its events."""
        return self.run.project_id

    @property
    def journal_snapshot(self) -> dict[str, Any]:
        snapshot = {
            "dueAt": self.next_dispatch_at,
            "attention": self.attention,
            "failureClass": self.failure_class,
        }
        return {name: value for name, value in snapshot.items() if value}

    @property
    def is_human(self) -> bool:
        """Return whether a person does it, by an answer."""
        return self.kind == HUMAN

    @property
    def node(self) -> str:
        """The key of its node: without the index of one of many."""
        return self.node_key.partition("[")[0]

    @property
    def gated(self) -> bool:
        """Its class decides: from shared-write up, a person is asked before anything happens."""
        return self.side_effect_class in GATED

    @transition(field=state, source=S.PENDING, target=S.DISPATCHED)
    def dispatch(self, *, at: datetime) -> None:
        self.next_dispatch_at = None
        self.updated_at = at

    @transition(field=state, source=S.DISPATCHED, target=S.RUNNING)
    def begin(self, *, at: datetime) -> None:
        self.updated_at = at

    @transition(field=state, source="", target=S.SKIPPED)
    def skip(self, *, at: datetime, reason: str) -> None:
        self.reason = reason
        self.finished_at = self.updated_at = at

    @transition(field=state, source="", target=S.SUCCEEDED)
    def succeed_at_once(self, *, at: datetime, output: Any) -> None:
        self.output = output
        self.finished_at = self.updated_at = at

    @transition(field=state, source=S.PENDING, target=S.RUNNING)
    def ask(self, *, at: datetime) -> None:
        """A person is asked: from here on it waits for the answer."""
        self.next_dispatch_at = None
        self.updated_at = at

    @transition(field=state, source=[S.DISPATCHED, S.RUNNING], target=S.PENDING)
    def retry(self, *, at: datetime, due_at: datetime) -> None:
        self.next_dispatch_at, self.updated_at = due_at, at
        self._uncertainty_is_settled()

    @transition(field=state, source=S.RUNNING, target=S.SUCCEEDED)
    def succeed(self, *, at: datetime, output: Any) -> None:
        self.output = output
        self._uncertainty_is_settled()
        self.finished_at = self.updated_at = at

    @transition(field=state, source=[S.PENDING, S.RUNNING], target=S.FAILED)
    def fail(self, *, at: datetime, failure_class: str, reason: str, attention: str = "") -> None:
        """End it as Failed. An Operator's other questions about it stay to be looked at."""
        self._uncertainty_is_settled()
        self.failure_class, self.reason = failure_class, reason
        self.attention = attention or self.attention
        self.next_dispatch_at = None
        self.finished_at = self.updated_at = at

    @transition(field=state, source=S.RUNNING, target=S.RUNNING)
    def raise_attention(self, *, at: datetime, attention: str, reason: str) -> None:
        self.attention, self.reason, self.updated_at = attention, reason, at

    @transition(field=state, source=[S.PENDING, S.DISPATCHED, S.RUNNING], target=S.CANCELLED)
    def cancel(self, *, at: datetime, attention: str = "") -> None:
        """End it as Cancelled. An Operator's other questions about it stay to be looked at."""
        self.next_dispatch_at = None
        self.attention = attention or self.attention
        self.finished_at = self.updated_at = at

    @transition(field=state, source=S.CANCELLED, target=S.CANCELLED)
    def close_attention(self, *, at: datetime) -> None:
        self._uncertainty_is_settled()
        self.updated_at = at

    def ask_for_attention(self, attention: str) -> None:
        """No transition. A doubt that is still to be settled stays one: settling it is how somebody looks."""
        self.attention = self.attention or attention
        self.version += 1  # who closes it has seen everything that was reported

    def acknowledge(self, *, at: datetime) -> None:
        """Somebody has looked. No transition: what happened, happened."""
        self.attention = ""
        self.version += 1
        self.updated_at = at

    def _uncertainty_is_settled(self) -> None:
        if self.attention == Attention.UNCERTAIN:
            self.attention = ""

"""Money set aside for a run before anything of it starts."""

from datetime import datetime
from decimal import Decimal
from typing import ClassVar
from uuid import UUID

from django.db import models
from django.db.models import F, Q
from django_fsm import FSMField, transition

from factory.kernel.models.base import Journaled, TenantForeignKey, TenantModel, in_check, uuid_key
from usage.models.budget import Budget
from usage.models.fields import money_field
from usage.pricing.money import ZERO
from usage.states import RESERVATION, ReservationState

_RESERVED = ReservationState.RESERVED
_DENIED = ReservationState.DENIED
_CLOSED = ["Settled", "Released", "Expired"]


class Reservation(Journaled):
    """One per run: the same amount in every budget of its scope, or the reason why there is none.

    `extended` is what was set aside on top of it later, in the same budgets.

    `due_at` is when it expires, and is empty once it cannot expire any more: the run has dispatched, or the
    reservation is over. `hold_due_at` is when what is held is free again by its age, if the policy says so.
    They are all that a reconciler may see of it. `hold_ended_at` says that nothing is held any more for usage
    of unknown cost that was recorded until then, and the columns beside it who ended that, and why.
    """

    lifecycle = RESERVATION

    state = FSMField(protected=True, editable=False)
    run_id = models.UUIDField()
    project = TenantForeignKey("projects.Project", related_name="+")
    amount = money_field(null=True, blank=True)
    extended = money_field(default=ZERO)
    reason = models.TextField(blank=True, default="")
    spent = money_field(default=ZERO)
    held = money_field(default=ZERO)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True, blank=True)
    due_at = models.DateTimeField(null=True, blank=True)
    dispatched_at = models.DateTimeField(null=True, blank=True)
    closed_at = models.DateTimeField(null=True, blank=True)
    hold_due_at = models.DateTimeField(null=True, blank=True)
    hold_ended_at = models.DateTimeField(null=True, blank=True)
    hold_ended_by = models.CharField(max_length=255, blank=True, default="", db_default="")
    hold_ended_reason = models.TextField(blank=True, default="", db_default="")
    hold_ended_evidence = models.TextField(blank=True, default="", db_default="")

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant_id", "run_id"], name="usage_reservation_one_a_run"),
            models.CheckConstraint(
                condition=in_check("state", list(ReservationState)), name="usage_reservation_state"
            ),
            models.CheckConstraint(
                condition=(
                    Q(state=_DENIED, expires_at=None, dispatched_at=None, closed_at__isnull=False)
                    & Q(spent=0, held=0)
                    & ~Q(reason="")
                )
                | Q(state=_RESERVED, amount__gte=0, expires_at__isnull=False, closed_at=None, spent=0, held=0)
                | Q(state__in=_CLOSED, amount__gte=0, expires_at__isnull=False, closed_at__isnull=False),
                name="usage_reservation_state_fields",
            ),
            models.CheckConstraint(
                condition=Q(state=_RESERVED, dispatched_at=None, due_at=F("expires_at"))
                | (Q(due_at=None) & ~Q(state=_RESERVED, dispatched_at=None)),
                name="usage_reservation_due_while_waiting",
            ),
            models.CheckConstraint(
                condition=Q(spent__gte=0, held__gte=0, extended__gte=0), name="usage_reservation_figures"
            ),
            models.CheckConstraint(
                condition=~Q(state__in=["Released", "Expired"]) | Q(dispatched_at=None),
                name="usage_reservation_released_unused",
            ),
            models.CheckConstraint(
                condition=Q(hold_due_at=None) | Q(held__gt=0), name="usage_reservation_hold_due"
            ),
            models.CheckConstraint(
                condition=Q(hold_ended_at=None, hold_ended_by="")
                | (Q(hold_ended_at__gte=F("closed_at")) & ~Q(hold_ended_by="")),
                name="usage_reservation_hold_ended",
            ),
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["hold_due_at", "id"],
                condition=Q(hold_due_at__isnull=False),
                name="usage_reservation_hold_ends",
            ),
            models.Index(
                fields=["tenant_id", "closed_at", "id"],
                condition=Q(held__gt=0),
                name="usage_reservation_held",
            ),
            models.Index(
                fields=["due_at", "id"], condition=Q(due_at__isnull=False), name="usage_reservation_due"
            ),
            models.Index(fields=["tenant_id", "created_at", "id"], name="usage_reservation_newest"),
            models.Index(
                fields=["tenant_id", "project", "created_at", "id"], name="usage_reservation_by_project"
            ),
            models.Index(
                fields=["tenant_id", "state", "created_at", "id"],
                condition=~Q(state=ReservationState.SETTLED),  # most of them end so
                name="usage_reservation_by_state",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.amount} for run {self.run_id}"

    @property
    def stream(self) -> UUID:
        return self.run_id

    @property
    def total(self) -> Decimal:
        """Return all that is, or was, set aside: at first, and with whatever was added since."""
        whole: Decimal = (self.amount or ZERO) + self.extended
        return whole

    def confirm(self, *, at: datetime) -> None:
        """Note that the run dispatches on this money: from here on it is settled, and never expires."""
        self.dispatched_at = at
        self.due_at = None

    @transition(field=state, source=_RESERVED, target=_RESERVED)
    def extend(self, *, by: Decimal) -> None:
        """Set more aside: the run may cost more than was thought."""
        self.extended += by

    @transition(field=state, source=_RESERVED, target=ReservationState.SETTLED)
    def settle(self, *, at: datetime, spent: Decimal, held: Decimal) -> None:
        """End it with its run: what was used is spent, and what is unknown stays held."""
        self._close(at, spent, held)

    @transition(field=state, source=_RESERVED, target=ReservationState.RELEASED)
    def release(self, *, at: datetime, spent: Decimal, held: Decimal) -> None:
        """Give the money back: the run ended before it began."""
        self._close(at, spent, held)

    @transition(field=state, source=_RESERVED, target=ReservationState.EXPIRED)
    def expire(self, *, at: datetime, spent: Decimal, held: Decimal) -> None:
        """Give the money back: the run did not begin in time."""
        self._close(at, spent, held)

    def _close(self, at: datetime, spent: Decimal, held: Decimal) -> None:
        self.spent, self.held = spent, held
        self.closed_at, self.due_at = at, None

    @transition(field=state, source=_CLOSED, target=None)
    def adjust(self, *, spent: Decimal, held: Decimal) -> None:
        """Usage arrived, or became known, after the end."""
        self.spent, self.held = spent, held

    @transition(field=state, source=_CLOSED, target=None)
    def end_hold(self, *, at: datetime, by: str, reason: str = "", evidence: str = "") -> None:
        """Free what was held; the usage that it was held for stays of unknown cost."""
        self.held, self.hold_due_at = ZERO, None
        self.hold_ended_at, self.hold_ended_by = at, by
        self.hold_ended_reason, self.hold_ended_evidence = reason, evidence


class ReservationHold(TenantModel):
    """A budget that a reservation draws on: whatever it later costs is booked there, whenever it comes."""

    id = uuid_key()
    reservation = TenantForeignKey(Reservation, related_name="holds")
    budget = TenantForeignKey(Budget, related_name="holds")

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["reservation", "budget"], name="usage_hold_once"),
        ]
        indexes: ClassVar = [models.Index(fields=["budget"], name="usage_hold_by_budget")]

    def __str__(self) -> str:
        return f"{self.reservation_id} in {self.budget_id}"

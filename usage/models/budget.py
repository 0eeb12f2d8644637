"""Budgets and the ledger that their figures come from."""

from datetime import datetime
from typing import ClassVar

from django.db import models
from django.db.models import F, Q
from django_fsm import FSMField, transition

from factory.kernel.models.base import Journaled, TenantForeignKey, TenantModel, in_check, uuid_key
from usage.models.fields import money_field
from usage.pricing.money import CURRENCY, ZERO
from usage.states import BUDGET, Account, BudgetState, Movement


class Budget(Journaled):
    """Money for one calendar month: of a project, or of the whole tenant when it names none.

    The figures are the sums of its ledger entries, kept on the row so that one conditional statement can
    take from them. Only `usage.operations.ledger` writes them, together with the entries; the CHECK holds
    them together and the auditor compares them with the ledger.

    One that `recurs` opens the next month by itself, with its amount. `next_due_at` is when the month after
    it is seen to, and is empty once that was done: it is all that a reconciler may see of it.
    """

    lifecycle = BUDGET

    state = FSMField(default=BudgetState.OPEN.value, protected=True, editable=False)
    project = TenantForeignKey("projects.Project", null=True, blank=True, related_name="+")
    period_start = models.DateField()
    period_end = models.DateField()
    currency = models.CharField(max_length=3, default=CURRENCY)
    amount = money_field(default=ZERO)
    available = money_field(default=ZERO)
    committed = money_field(default=ZERO)
    spent = money_field(default=ZERO)
    held = money_field(default=ZERO)
    entries = models.BigIntegerField(default=0)
    version = models.BigIntegerField(default=0)
    recurs = models.BooleanField(default=False, db_default=False)
    next_due_at = models.DateTimeField(null=True, blank=True)
    created_by = models.CharField(max_length=255)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["tenant_id", "project", "period_start"],
                nulls_distinct=False,
                name="usage_budget_one_a_month",
            ),
            models.CheckConstraint(
                condition=Q(amount=F("available") + F("committed") + F("spent") + F("held")),
                name="usage_budget_adds_up",
            ),
            models.CheckConstraint(
                condition=Q(amount__gte=0, committed__gte=0, spent__gte=0, held__gte=0),
                name="usage_budget_not_negative",
            ),
            models.CheckConstraint(condition=Q(period_start__day=1), name="usage_budget_from_the_first"),
            models.CheckConstraint(condition=in_check("state", list(BudgetState)), name="usage_budget_state"),
            models.CheckConstraint(condition=Q(currency=CURRENCY), name="usage_budget_currency"),
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["next_due_at", "id"],
                condition=Q(next_due_at__isnull=False),
                name="usage_budget_next_due",
            )
        ]

    def __str__(self) -> str:
        return f"{self.period_start:%Y-%m} {self.project_id or 'tenant'}"

    @transition(field=state, source=BudgetState.OPEN, target=BudgetState.OPEN)
    def change_amount(self, *, at: datetime) -> None:
        """Note that its amount was changed; the figures themselves are the ledger's to write."""
        self.updated_at = at

    @transition(field=state, source=BudgetState.OPEN, target=BudgetState.OPEN)
    def change_recurrence(self, *, at: datetime, recurs: bool, due_at: datetime) -> None:
        """Open the next month by itself from now on, or not any more."""
        self.recurs, self.next_due_at, self.updated_at = recurs, due_at, at

    @transition(field=state, source=BudgetState.OPEN, target=BudgetState.OPEN)
    def see_to_next_month(self) -> None:
        """Note that the month after it has its budget, or that it was told that it has none."""
        self.next_due_at = None


class LedgerEntry(TenantModel):
    """One side of one movement of money; append-only. The entries of a transaction sum to 0 in each budget.

    `balance` is the account's after this entry and `sequence` counts the entries of the budget, so that a
    missing or invented entry shows.
    """

    id = uuid_key()
    transaction_id = models.UUIDField()
    budget = TenantForeignKey(Budget, related_name="ledger")
    sequence = models.BigIntegerField()
    account = models.CharField(max_length=16)
    amount = money_field()
    balance = money_field()
    movement = models.CharField(max_length=16)
    reservation = TenantForeignKey("usage.Reservation", null=True, blank=True, related_name="+")
    posted_at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "ledger entries"
        constraints: ClassVar = [
            models.UniqueConstraint("budget", "sequence", name="usage_ledger_sequence_once"),
            models.CheckConstraint(condition=Q(sequence__gte=1), name="usage_ledger_sequence_from_1"),
            models.CheckConstraint(condition=~Q(amount=0), name="usage_ledger_moves_something"),
            models.CheckConstraint(condition=in_check("account", list(Account)), name="usage_ledger_account"),
            models.CheckConstraint(
                condition=in_check("movement", list(Movement)), name="usage_ledger_movement"
            ),
            models.CheckConstraint(
                condition=~Q(
                    movement__in=[Movement.RESERVED, Movement.EXTENDED],
                    account=Account.AVAILABLE,
                    balance__lt=0,
                ),
                name="usage_ledger_no_overdraft",
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["transaction_id"], name="usage_ledger_transaction"),
            models.Index(fields=["reservation"], name="usage_ledger_reservation"),
            models.Index(fields=["tenant_id", "posted_at", "id"], name="usage_ledger_by_time"),
            models.Index(
                fields=["tenant_id", "movement", "account", "posted_at", "id"], name="usage_ledger_by_pair"
            ),
            models.Index(
                fields=["tenant_id", "movement", "posted_at", "id"],
                condition=~Q(movement__in=[Movement.RESERVED, Movement.SETTLED]),  # those of every run
                name="usage_ledger_by_movement",
            ),
            models.Index(
                fields=["tenant_id", "account", "posted_at", "id"],
                condition=Q(account__in=[Account.GRANTED, Account.HELD]),  # runs move the others
                name="usage_ledger_by_account",
            ),
            models.Index(
                fields=["tenant_id", "budget", "account", "posted_at", "sequence"],
                include=["balance"],
                name="usage_ledger_by_day",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.sequence} {self.account} {self.amount:+}"

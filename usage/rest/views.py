"""Money over HTTP: parse, call one command, translate."""

from contextlib import nullcontext
from datetime import UTC, datetime, time
from typing import Any
from uuid import UUID

from django.core import signing
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from factory.api.etags import with_etag
from factory.api.pages import limit_of, page
from factory.api.views import BaseView
from factory.kernel import clock
from factory.kernel.errors import FieldError, InvalidInput, NotFound, Unprocessable
from factory.kernel.hashing import digest
from usage import selectors
from usage.commands import (
    change_budget_amount,
    change_recurrence,
    create_budget,
    publish_pricing_revision,
    settle_hold,
)
from usage.models import Budget, PricingRevision
from usage.permissions import require_sight
from usage.pricing.periods import month_of, next_month
from usage.rest.serializers import (
    BudgetAmountBody,
    BudgetBody,
    HoldBody,
    LedgerEntryBody,
    NewBudgetBody,
    NewPricingBody,
    PricingBody,
    RecurrenceBody,
    ReservationBody,
    ReservationFilter,
    UsageFilter,
    UsageGroupBody,
)


class MoneyView(BaseView):
    """Base: a reader sees their project's figures; the whole tenant's only who decides over them."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        with self.reading() if self.ctx.project_id is None else nullcontext():
            require_sight(self.ctx)  # what a project's token says of its bearer needs no look at the tables

    def own(self, budget_id: UUID) -> Budget:
        """Return the budget, or `NotFound` where it is outside the caller's scope."""
        row = selectors.visible_budgets(self.ctx.project_id).filter(pk=budget_id).first()
        if row is None:
            raise NotFound("There is no such budget here.")
        return row


class BudgetList(MoneyView):
    operation = {"GET": "ListBudgets", "POST": "CreateBudget"}

    @extend_schema(summary="List budgets", responses=BudgetBody(many=True))
    def get(self, request: Request) -> Response:
        """The project's budgets and the tenant's, with where their money is; newest first."""
        with self.reading():
            rows = selectors.visible_budgets(self.ctx.project_id)
            return Response(page(rows, request, render=lambda row: BudgetBody(row).data))

    @extend_schema(summary="Create a budget", request=NewBudgetBody, responses={201: BudgetBody})
    def post(self, request: Request) -> Response:
        """Open a budget for one calendar month of the token's own project, or of the whole tenant."""
        body = NewBudgetBody.parse(request.data)
        project = self.ctx.project_id if body["scope"] == "project" else None
        if body["scope"] == "project" and project is None:
            raise Unprocessable("This token names no project. Use a project's token, or the scope tenant.")
        made, headers = self.do(
            request,
            create_budget,
            project_id=project,
            month=body["period"],
            amount=body["amount"],
            recurs=body.get("recurs"),
        )
        with self.reading():
            row = self.own(UUID(made))
        return Response(
            BudgetBody(row).data, 201, headers={"Location": f"{request.path}/{row.id}", **headers}
        )


class BudgetDetail(MoneyView):
    operation = {"GET": "ReadBudget"}

    @extend_schema(summary="Read a budget", responses=BudgetBody)
    def get(self, request: Request, budget_id: UUID) -> Response:
        """One budget, with an ETag of its figures."""
        with self.reading():
            row = self.own(budget_id)
        return with_etag(request, BudgetBody(row).data, row.id, row.version, row.entries)


class BudgetAmount(MoneyView):
    operation = {"POST": "ChangeBudgetAmount"}

    @extend_schema(summary="Change a budget's amount", request=BudgetAmountBody, responses=BudgetBody)
    def post(self, request: Request, budget_id: UUID) -> Response:
        """Raise or lower a budget; never below what it has already spent or promised."""
        body = BudgetAmountBody.parse(request.data)
        _, headers = self.do(request, change_budget_amount, budget_id=budget_id, **body)
        with self.reading():
            return Response(BudgetBody(self.own(budget_id)).data, headers=headers)


class BudgetRecurrence(MoneyView):
    operation = {"POST": "ChangeRecurrence"}

    @extend_schema(summary="Let a budget recur, or not", request=RecurrenceBody, responses=BudgetBody)
    def post(self, request: Request, budget_id: UUID) -> Response:
        """Open the next month by itself a week before it begins, with this amount, or not any more."""
        body = RecurrenceBody.parse(request.data)
        _, headers = self.do(request, change_recurrence, budget_id=budget_id, **body)
        with self.reading():
            return Response(BudgetBody(self.own(budget_id)).data, headers=headers)


class BudgetLedger(MoneyView):
    operation = {"GET": "ReadLedger"}

    @extend_schema(summary="Read a budget's ledger", responses=LedgerEntryBody(many=True))
    def get(self, request: Request, budget_id: UUID) -> Response:
        """Every movement of the budget's money, newest first."""
        with self.reading():
            rows = selectors.ledger_of(self.own(budget_id).id)
            return Response(
                page(rows, request, key=("sequence",), render=lambda row: LedgerEntryBody(row).data)
            )


class ReservationList(MoneyView):
    operation = {"GET": "ListReservations"}

    @extend_schema(
        summary="List reservations", parameters=[ReservationFilter], responses=ReservationBody(many=True)
    )
    def get(self, request: Request) -> Response:
        """List what is or was set aside for runs, newest first."""
        wanted = ReservationFilter.parse_query(request)
        with self.reading():
            rows = selectors.reservations(self.ctx.project_id).filter(**wanted)
            return Response(page(rows, request, render=lambda row: ReservationBody(row).data))


class HoldEnd(MoneyView):
    operation = {"POST": "SettleHold"}

    @extend_schema(summary="End what is held for a run", request=HoldBody, responses=ReservationBody)
    def post(self, request: Request, reservation_id: UUID) -> Response:
        """Settle a run's usage of unknown cost at a figure, or free its money; with a reason and evidence."""
        body = HoldBody.parse(request.data)
        _, headers = self.do(request, settle_hold, reservation_id=reservation_id, **body)
        with self.reading():
            row = selectors.reservations(self.ctx.project_id).get(pk=reservation_id)
            return Response(ReservationBody(row).data, headers=headers)


class PricingList(MoneyView):
    operation = {"GET": "ListPricingRevisions", "POST": "PublishPricingRevision"}

    @extend_schema(summary="List pricing revisions", responses=PricingBody(many=True))
    def get(self, request: Request) -> Response:
        """The tenant's prices, the latest number first."""
        with self.reading():
            rows = selectors.pricing_revisions()
            return Response(page(rows, request, key=("number",), render=lambda row: PricingBody(row).data))

    @extend_schema(summary="Publish prices", request=NewPricingBody, responses={201: PricingBody})
    def post(self, request: Request) -> Response:
        """Publish prices under the tenant's next number; what was already priced stays as it is."""
        body = NewPricingBody.parse(request.data)
        made, headers = self.do(request, publish_pricing_revision, **body)
        with self.reading():
            row = PricingRevision.objects.get(pk=made)
        return Response(PricingBody(row).data, 201, headers=headers)


class UsageReport(MoneyView):
    operation = {"GET": "ReadUsage"}
    page_members = {
        "from": {"type": "string", "format": "date-time"},
        "to": {"type": "string", "format": "date-time"},
        "groupBy": {"enum": list(selectors.GROUPS)},
    }

    @extend_schema(summary="Read usage", parameters=[UsageFilter], responses=UsageGroupBody(many=True))
    def get(self, request: Request) -> Response:
        """Sum what calls in `[from, to)` cost, by project, run, agent, model or day of the call in UTC."""
        wanted, limit = UsageFilter.parse_query(request), limit_of(request)
        with self.reading():
            as_of = clock.now()
            start, end = _period(wanted["start"], wanted["end"], as_of)
            salt = self._salt(wanted["group_by"], start, end)
            groups = selectors.usage_by(
                wanted["group_by"],
                self.ctx.project_id,
                start,
                end,
                after=_after(request, salt),
                limit=limit + 1,
            )
        items, more = groups[:limit], len(groups) > limit
        answer = {"from": start, "to": end, "groupBy": wanted["group_by"]}
        answer |= {"items": [UsageGroupBody(group).data for group in items]}
        answer |= {"next": signing.dumps(items[-1].key or "", salt=salt) if more else None, "asOf": as_of}
        return Response(answer)

    def _salt(self, group_by: str, start: datetime, end: datetime) -> str:
        """Return the words that bind a cursor to this report in this scope: another's is refused."""
        scope = [self.ctx.tenant_id, str(self.ctx.project_id)]
        return digest(["usage", group_by, start.isoformat(), end.isoformat(), scope])


def _period(start: datetime | None, end: datetime | None, now: datetime) -> tuple[datetime, datetime]:
    first = month_of(now)
    begins = start or datetime.combine(first, time(), UTC)
    ends = end or datetime.combine(next_month(first), time(), UTC)
    if begins >= ends:
        fault = FieldError("/to", "This is after from.")
        raise InvalidInput("The time asked for is empty or runs backwards.", errors=[fault])
    return begins, ends


def _after(request: Request, salt: str) -> str | None:
    sealed = request.query_params.get("cursor")
    if not sealed:
        return None
    try:
        return str(signing.loads(sealed, salt=salt))
    except signing.BadSignature as fault:
        error = FieldError("/cursor", "Not a cursor of this list.")
        raise InvalidInput("The cursor is not good for this list.", errors=[error]) from fault

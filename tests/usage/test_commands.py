"""The commands of money: their effect with the exact evidence, and everything that they refuse."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from threading import Barrier
from typing import Any
from uuid import UUID

import pytest
from django.db import connections

from factory.kernel.clock import now
from factory.kernel.commanding import IdempotencyKey, IdempotentReplay, commands
from factory.kernel.context import Context
from factory.kernel.errors import (
    Conflict,
    DomainError,
    Forbidden,
    IdempotencyConflict,
    InvalidInput,
    NotFound,
    VersionMismatch,
)
from factory.kernel.ids import uuid7
from factory.kernel.tenancy import reading
from factory.messaging.relay import handlers
from factory.messaging.relay.delivery import drain
from factory.messaging.relay.destinations import Handlers
from projects.states import STATE_CHANGED
from tests.support import evidence
from tests.support.world import second_world, world
from tests.usage.money_world import Money, receipt, this_month
from usage import selectors
from usage.commands import (
    change_budget_amount,
    change_recurrence,
    create_budget,
    date_holds,
    establish_pricing,
    expire_hold,
    expire_reservation,
    publish_pricing_revision,
    see_to_next_month,
    settle_hold,
)
from usage.errors import BudgetBelowCommitments, BudgetExists, NotOverMoney, PriceInThePast
from usage.pricing.quotes import checked, default_document

pytestmark = pytest.mark.slow

TEN = Decimal(10)
BY_PEOPLE = {"CreateBudget", "ChangeBudgetAmount", "PublishPricingRevision", "SettleHold", "ChangeRecurrence"}
BY_THE_HOUSE = {"EstablishPricing", "ExpireReservation", "ExpireHold", "DateHolds", "SeeToNextMonth"}


def call(m: Money, name: str, ctx: Context) -> Any:
    """A call of each command that would succeed for who may make it."""
    builders: dict[str, Callable[[], Any]] = {
        "CreateBudget": lambda: create_budget(ctx, project_id=m.project, month=this_month(), amount=TEN),
        "ChangeBudgetAmount": lambda: change_budget_amount(
            ctx, budget_id=m.budget("5"), amount=TEN, version=1
        ),
        "PublishPricingRevision": lambda: publish_pricing_revision(ctx, document=default_document()),
        "EstablishPricing": lambda: establish_pricing(ctx),
        "ExpireReservation": lambda: expire_reservation(ctx, **reserved(m)),
        "SettleHold": lambda: settle_hold(
            ctx, reservation_id=held(m), reason="The bill came", evidence="INV-1"
        ),
        "ExpireHold": lambda: expire_hold(ctx, reservation_id=held(m), due_at=datetime.now(UTC)),
        "DateHolds": lambda: date_holds(ctx),
        "ChangeRecurrence": lambda: change_recurrence(ctx, budget_id=m.budget("5"), recurs=True, version=1),
        "SeeToNextMonth": lambda: see_to_next_month(ctx, budget_id=m.budget("5"), due_at=datetime.now(UTC)),
    }
    return builders[name]()


def held(m: Money) -> UUID:
    """The reservation of a run that is over, of which some usage is of unknown cost."""
    with reading(m.ctx):
        funded = selectors.visible_budgets(m.project).exists()
    if not funded:
        m.budget("10")
    run_id = m.dispatched("1")
    m.receive(run_id, [receipt(quantities=None)])
    view = m.settle(run_id)
    assert view is not None
    return view.id


def reserved(m: Money) -> dict[str, Any]:
    m.budget("10")
    reservation = m.reserve("1")
    return {"reservation_id": reservation.id, "expires_at": reservation.expires_at}


def test_every_command_of_money_is_called_here() -> None:
    declared = {name for name, one in commands().items() if one.body.__module__.startswith("usage.")}
    assert declared == BY_PEOPLE | BY_THE_HOUSE


@pytest.mark.parametrize("name", sorted(BY_PEOPLE))
def test_who_decides_over_money_may(m: Money, name: str) -> None:
    who = m.world.platform_admin if name == "PublishPricingRevision" else m.world.finance
    assert call(m, name, who)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(BY_PEOPLE))
@pytest.mark.parametrize("who", ["requester", "reviewer", "operator", "observer", "auditor", "service"])
def test_others_may_not_and_the_refusal_is_audited(m: Money, name: str, who: str) -> None:
    before = evidence.journal(m.ctx, m.project)
    with pytest.raises(NotOverMoney):
        call(m, name, getattr(m.world, who))
    assert evidence.audits(m.ctx, name)[-1].outcome == "refused"
    assert evidence.journal(m.ctx, m.project) == before


@pytest.mark.parametrize("name", sorted(BY_PEOPLE))
def test_a_token_without_the_scope_may_not(m: Money, name: str) -> None:
    reads = m.world.ctx("platform_admin", scopes=["factory.usage.read"])
    with pytest.raises(Forbidden):
        call(m, name, reads)


@pytest.mark.parametrize("name", sorted(BY_THE_HOUSE))
def test_what_the_house_does_nobody_else_may(m: Money, name: str) -> None:
    with pytest.raises(Forbidden):
        call(m, name, m.world.platform_admin)


def test_creating_a_budget_leaves_its_evidence(m: Money) -> None:
    made = UUID(create_budget(m.world.finance, project_id=m.project, month=this_month(), amount=TEN))
    assert evidence.journal(m.ctx, made) == [("None", "Open", "BudgetCreated")]
    assert evidence.details(m.ctx, made) == [{"amount": "10", "recurs": False}]
    assert evidence.outbox(m.ctx, made) == []
    assert m.ledger(made) == [("Granted", "granted", "-10"), ("Granted", "available", "+10")]
    (audit,) = evidence.audits(m.ctx, "CreateBudget")
    assert (audit.subject, audit.actor) == (f"budget:{made}", m.world.finance.actor.subject)


def test_a_second_budget_for_the_same_month_is_refused_even_at_once(m: Money) -> None:
    barrier = Barrier(8)

    def one(_: int) -> str | None:
        try:
            barrier.wait(30)
            return create_budget(m.ctx, project_id=None, month=this_month(), amount=TEN)
        except BudgetExists:
            return None
        finally:
            connections.close_all()

    with ThreadPoolExecutor(8) as pool:
        made = [budget for budget in pool.map(one, range(8)) if budget]
    assert len(made) == 1


def test_changing_a_budget_moves_the_difference(m: Money) -> None:
    own = m.budget("10")
    m.reserve("4")
    change_budget_amount(m.world.finance, budget_id=own, amount=Decimal("4"), version=1)
    assert m.figures(own) == ("0", "4", "0", "0")
    change_budget_amount(m.world.finance, budget_id=own, amount=TEN, version=2)
    assert m.figures(own) == ("6", "4", "0", "0")
    assert m.ledger(own)[-2:] == [("AmountChanged", "granted", "-6"), ("AmountChanged", "available", "+6")]
    assert evidence.journal(m.ctx, own)[1:] == [("Open", "Open", "BudgetAmountChanged")] * 2


@pytest.mark.parametrize(
    ("amount", "version", "refusal"), [("3.99", 1, BudgetBelowCommitments), ("20", 2, VersionMismatch)]
)
def test_refuses_a_wrong_change(m: Money, amount: str, version: int, refusal: type[DomainError]) -> None:
    own = m.budget("10")
    m.reserve("4")
    with pytest.raises(refusal):
        change_budget_amount(m.world.finance, budget_id=own, amount=Decimal(amount), version=version)
    assert m.figures(own) == ("6", "4", "0", "0")


def test_raising_a_budget_while_reservations_race_loses_no_cent(m: Money) -> None:
    own, barrier = m.budget("5"), Barrier(11)

    def one(index: int) -> str:
        try:
            barrier.wait(30)
            if index == 0:
                change_budget_amount(m.ctx, budget_id=own, amount=Decimal("8"), version=1)
                return "changed"
            return str(m.reserve("1").state)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(11) as pool:
        states = list(pool.map(one, range(11)))
    taken = states.count("Reserved")
    assert 5 <= taken <= 8
    assert m.figures(own) == (str(8 - taken), str(taken), "0", "0")


def test_another_tenants_or_projects_budget_is_not_there(m: Money) -> None:
    own = m.budget("10")
    stranger = second_world(m.world.tenant)
    with pytest.raises(NotFound):
        change_budget_amount(stranger.finance, budget_id=own, amount=TEN, version=1)
    with pytest.raises(NotFound):
        create_budget(stranger.finance, project_id=m.project, month=this_month(), amount=TEN)
    elsewhere = replace(m.world.finance, project_id=uuid7())
    with pytest.raises(NotFound):
        change_budget_amount(elsewhere, budget_id=own, amount=TEN, version=1)
    house = stranger.system("test")
    reservation = m.reserve("1")
    with pytest.raises(NotFound):
        expire_reservation(house, reservation_id=reservation.id, expires_at=reservation.created_at)
    with pytest.raises(NotFound):
        create_budget(house, project_id=uuid7(), month=this_month(), amount=TEN)


@pytest.mark.parametrize("name", sorted(BY_PEOPLE))
def test_a_replay_answers_the_same_and_another_body_is_a_conflict(m: Money, name: str) -> None:
    own = m.budget("5", tenant_wide=True)
    values: dict[str, dict[str, Any]] = {
        "CreateBudget": {"project_id": m.project, "month": this_month(), "amount": TEN},
        "ChangeBudgetAmount": {"budget_id": own, "amount": TEN, "version": 1},
        "PublishPricingRevision": {"document": default_document()},
        "ChangeRecurrence": {"budget_id": own, "recurs": True, "version": 1},
        "SettleHold": {"reservation_id": held(m), "reason": "The bill came", "evidence": "INV-1"},
    }
    who = m.world.finance if name == "SettleHold" else m.world.platform_admin
    run = commands()[name].under(IdempotencyKey("k1", "sha256:a"))
    made = run(who, **values[name])
    counted = evidence.counts(m.ctx)
    with pytest.raises(IdempotentReplay) as done:
        run(who, **values[name])
    assert done.value.result == made
    with pytest.raises(IdempotencyConflict):
        commands()[name].under(IdempotencyKey("k1", "sha256:b"))(who, **values[name])
    assert evidence.counts(m.ctx) == counted


def test_prices_are_numbered_without_gaps_even_at_once(m: Money) -> None:
    barrier = Barrier(6)

    def one(_: int) -> None:
        try:
            barrier.wait(30)
            publish_pricing_revision(m.ctx, document=default_document())
        finally:
            connections.close_all()

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(one, range(6)))
    with reading(m.ctx):
        assert [row.number for row in selectors.pricing_revisions().order_by("number")] == [*range(1, 8)]
        current = selectors.current_pricing()
    assert current is not None
    assert current.revision == "p7"


def test_prices_begin_now_or_later(m: Money) -> None:
    with reading(m.ctx):
        at = now()
    with pytest.raises(PriceInThePast):
        publish_pricing_revision(m.ctx, document=default_document(), valid_from=at - timedelta(seconds=1))
    publish_pricing_revision(m.ctx, document=default_document(), valid_from=at + timedelta(days=1))
    with reading(m.ctx):
        current = selectors.current_pricing()
    assert current is not None
    assert current.revision == "p1"


UNIT = {"p": {"prices": {"*": {"calls": "1"}}}}


@pytest.mark.parametrize(
    ("document", "pointer"),
    [
        ([], ""),
        ({"currency": "USD"}, ""),
        ({"currency": "EUR", "providers": UNIT}, "/currency"),
        ({"currency": "USD", "providers": {}}, "/providers"),
        ({"currency": "USD", "providers": {"p": {}}}, "/providers/p"),
        ({"currency": "USD", "providers": {"p": UNIT["p"] | {"note": ""}}}, "/providers/p"),
        ({"currency": "USD", "providers": {"p": UNIT["p"] | {"confirming": 1}}}, "/providers/p/confirming"),
        ({"currency": "USD", "providers": {"p": {"prices": {"a/b~": {}}}}}, "/providers/p/prices/a~1b~0"),
        ({"currency": "USD", "providers": {"p": {"prices": {"n": {"u": "NaN"}}}}}, "/providers/p/prices/n/u"),
        ({"currency": "USD", "providers": {"p": {"prices": {"n": {"u": -1}}}}}, "/providers/p/prices/n/u"),
        ({"currency": "USD", "providers": {"p": {"prices": {"n": {"u": None}}}}}, "/providers/p/prices/n/u"),
        ({"currency": "USD", "providers": {"p": {"prices": {"": {"u": 1}}}}}, "/providers/p/prices"),
    ],
)
def test_refuses_what_is_no_price_document(document: Any, pointer: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        checked(document)
    assert [fault.pointer for fault in refusal.value.errors] == [pointer]


def test_onboarding_brings_the_prices_of_the_products_own_tools(tenant_id: str) -> None:
    w = world(tenant_id)
    assert "usage.establish_pricing" in {handler.name for handler in handlers(STATE_CHANGED)}
    drain(Handlers(), tenant_id)
    with reading(w.system()):
        (revision,) = selectors.pricing_revisions()
    assert revision.prices.prices_of("factory-tools", "whatever") == {
        "calls": Decimal("0.000100"),
        "seconds": Decimal("0.000020"),
    }
    assert establish_pricing(w.system()) is None


def test_conflicts_are_conflicts() -> None:
    assert issubclass(BudgetExists, Conflict)

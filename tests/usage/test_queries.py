"""Reads of money cost the same however much there is of it, and each operation has its ceiling."""

import pytest

from factory.kernel.ids import uuid7
from tests.support.api import Api
from tests.support.queries import within_budget
from tests.usage.money_world import Money, confirm_live, receipt, this_month
from usage.pricing.periods import next_month

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("GET /budgets", "/factory/budgets"),
        ("GET /budgets/{id}", "/factory/budgets/{budget}"),
        ("GET /budgets/{id}/ledger", "/factory/budgets/{budget}/ledger"),
        ("GET /usage", "/factory/usage?groupBy=run"),
        ("GET /reservations", "/factory/reservations"),
        ("GET /pricing-revisions", "/factory/pricing-revisions"),
    ],
)
def test_reads_stay_within_their_budgets(m: Money, name: str, path: str) -> None:
    budget = m.budget("100")
    m.budget("100", month=next_month(this_month()))
    m.budget("100", tenant_wide=True)
    for _ in range(6):
        m.receive(m.dispatched("1"), [receipt()])
    api = Api.as_(m.world.observer)
    api.get("/factory/budgets")  # what is read once in a process
    with within_budget(name):
        assert api.get(path.format(budget=budget)).status_code == 200


def test_operations_stay_within_their_budgets(m: Money) -> None:
    m.budget("100")
    m.budget("100", tenant_wide=True)
    run_id = uuid7()
    with within_budget("reserve, 2 budgets"):
        m.reserve("4", run_id)
    with within_budget("confirm_live"):
        confirm_live(m.ctx, run_id=run_id)
    with within_budget("record_receipts, 10 receipts"):
        m.receive(run_id, [receipt() for _ in range(10)])
    with within_budget("settle, 2 budgets"):
        m.settle(run_id)

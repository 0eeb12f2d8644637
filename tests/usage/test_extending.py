"""More money for a run that has begun: in every budget that it draws on, or in none."""

from decimal import Decimal

import pytest

from factory.kernel.errors import DomainError
from factory.kernel.tenancy import reading
from tests.support.evidence import violations
from tests.support.races import race
from tests.usage.money_world import Money, costing
from usage.selectors import set_aside_for


def wrong_with_the_money(m: Money) -> list[str]:
    """Without E2e, E4f and E4g, which are about runs: here there are none, and they say so."""
    return [one.code for one in violations(m.world.tenant) if one.code not in ("E2e", "E4f", "E4g")]


@pytest.mark.requirement("USG-01")
def test_adds_in_every_budget_and_settles_the_whole_once(m: Money) -> None:
    own, everybody = m.budget("10"), m.budget("20", tenant_wide=True)
    run_id = m.dispatched("4")
    assert m.extend(run_id, "7") == ""
    assert m.extend(run_id, "7") == "", "what is there is not added twice"
    assert m.extend(run_id, "2") == "", "and never lowered"
    assert m.figures(own) == ("3", "7", "0", "0")
    assert m.figures(everybody) == ("13", "7", "0", "0")
    with reading(m.ctx):
        assert set_aside_for(run_id) == Decimal(7)
    m.receive(run_id, [costing("6")])
    m.settle(run_id)
    assert m.figures(own) == ("4", "0", "6", "0")
    assert m.figures(everybody) == ("14", "0", "6", "0")
    assert wrong_with_the_money(m) == []


def test_one_budget_that_does_not_cover_it_denies_it_in_all(m: Money) -> None:
    own, everybody = m.budget("10"), m.budget("5", tenant_wide=True)
    run_id = m.dispatched("4")
    assert "tenant's budget" in m.extend(run_id, "6")
    assert m.figures(own) == ("6", "4", "0", "0")
    assert m.figures(everybody) == ("1", "4", "0", "0")
    assert wrong_with_the_money(m) == []


def test_only_what_lives_is_added_to(m: Money) -> None:
    m.budget("10")
    run_id = m.dispatched("4")
    m.settle(run_id)
    with pytest.raises(DomainError, match="no money set aside"):
        m.extend(run_id, "5")


def test_two_runs_that_want_the_last_money_do_not_both_get_it(m: Money) -> None:
    own = m.budget("10")
    one, other = m.dispatched("3"), m.dispatched("3")
    answers = race(lambda: m.extend(one, "6"), lambda: m.extend(other, "6"))
    assert sorted(str(answer) == "" for answer in answers) == [False, True]
    assert m.figures(own) == ("1", "9", "0", "0")
    assert wrong_with_the_money(m) == []

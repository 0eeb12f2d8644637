"""Rows of a list are chosen: one by one, all of a page, a stretch of them; and it is told how many are."""

from uuid import uuid4

import pytest

from tests.browser.conftest import Visit
from tests.browser.visitor import Visitor
from tests.support.running import House

RUNS = "/admin/runs/run/"


@pytest.fixture(scope="module")
def house() -> House:
    made = House(f"t-{uuid4().hex[:16]}")
    for _ in range(5):
        made.accept("single")
    return made


def boxes(visitor: Visitor) -> list[bool]:
    found: list[bool] = visitor.part("input.action-select").evaluate_all(
        "all => all.map(each => each.checked)"
    )
    return found


@pytest.mark.parametrize("width", [390, 1440])
def test_all_rows_of_a_page_are_chosen_at_once_and_none_again(house: House, visit: Visit, width: int) -> None:
    operator = visit(width=width).sign_in(house.world.operator)
    operator.open(RUNS)
    operator.reads("0 of 5 chosen")
    operator.press("Choose all of this page")
    operator.reads("5 of 5 chosen")
    assert boxes(operator) == [True] * 5
    operator.press("Choose none")
    operator.reads("0 of 5 chosen")
    assert boxes(operator) == [False] * 5


def test_a_stretch_of_rows_is_chosen_with_shift_and_taken_back(house: House, visit: Visit) -> None:
    operator = visit().sign_in(house.world.operator)
    operator.open(RUNS)
    each = operator.part("input.action-select")
    each.nth(1).click()
    each.nth(3).click(modifiers=["Shift"])
    assert boxes(operator) == [False, True, True, True, False]
    operator.reads("3 of 5 chosen")
    each.nth(2).click()
    assert boxes(operator) == [False, True, False, True, False]
    operator.reads("2 of 5 chosen")


def test_nothing_that_needs_a_script_is_offered_without_one(house: House, visit: Visit) -> None:
    operator = visit(scripts=False).sign_in(house.world.operator)
    operator.open(RUNS)
    operator.reads("Rows are chosen by their boxes.")
    assert not operator.part("[data-choose-all]").is_visible()

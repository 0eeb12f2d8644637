"""A few lives of runs, by chance, beside the reference: the short form of tests/faults/test_state_machine."""

import pytest
from hypothesis.stateful import run_state_machine_as_test

from tests.faults.test_state_machine import Lives, profile
from tests.support.running import House


@pytest.mark.requirement("RUN-11", "STP-03")
def test_the_house_does_what_the_reference_says(house: House) -> None:
    lives = type("Lives", (Lives,), {"house": house})
    run_state_machine_as_test(lives, settings=profile(3, 12))

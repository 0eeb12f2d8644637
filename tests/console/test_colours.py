"""The colour of each state stands with it: none is shown in grey because nobody thought of it."""

import config.urls  # noqa: F401 - with it every app declares its states
from factory.kernel.colours import coloured
from factory.kernel.lifecycle import lifecycles


def test_every_state_of_every_lifecycle_says_its_colour() -> None:
    known = {state.value for state in coloured()}
    for lifecycle in lifecycles().values():
        if lifecycle.entity == "door":  # the tests' own
            continue
        assert set(map(str, lifecycle.states)) <= known, lifecycle.entity


def test_a_word_has_one_colour_whatever_it_is_the_state_of() -> None:
    by_word: dict[str, set[str]] = {}
    for state in coloured():
        by_word.setdefault(state.value, set()).add(state.colour.name)
    assert {word: colours for word, colours in by_word.items() if len(colours) > 1} == {}

"""The colours of states: each stands beside its state, where that is declared."""

from collections.abc import Iterator
from enum import Enum
from functools import cache

from django.db.models import TextChoices


class Colour(Enum):
    """Tell what a state is to its reader; pages show its word and a mark beside the colour."""

    GOOD = "good"
    BUSY = "busy"
    WAIT = "wait"
    DOUBT = "doubt"
    BAD = "bad"
    PLAIN = "plain"


class ColouredChoices(TextChoices):
    """Choices that are shown in colours: `RUNNING = "Running", Colour.BUSY`; a label may stand behind it."""

    colour: Colour

    def __new__(cls, value: str, colour: Colour | None = None) -> "ColouredChoices":
        if colour is None:  # a default for readers of types alone: a member is looked up by its value
            raise TypeError(f"{cls.__name__} says no colour for {value}.")
        member = str.__new__(cls, value)
        member._value_ = value
        member.colour = colour
        return member


def coloured() -> Iterator[ColouredChoices]:
    """Yield every state of every kind."""
    for kind in ColouredChoices.__subclasses__():
        yield from kind


@cache
def _by_word() -> dict[str, Colour]:
    return {state.value: state.colour for state in coloured()}


def colour_of(word: str) -> Colour:
    """Return the colour of a state by its word, which is the same in every kind that has the state."""
    return _by_word().get(word, Colour.PLAIN)

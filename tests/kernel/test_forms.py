"""Canonical hashes, event data and lifecycles: the small forms that everything else rests on."""

from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from factory.evidence.descriptions import diagrams, event_schemas
from factory.kernel.errors import InvalidInput
from factory.kernel.events import Event, camel, event, register_event, schema, wire
from factory.kernel.hashing import canonical, digest
from factory.kernel.lifecycle import Edge, Lifecycle, register_lifecycle

from .doors.models import DOOR, DoorBuilt

TEXT = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner),
    max_leaves=8,
)


@pytest.mark.requirement("RUN-31")
@given(st.dictionaries(TEXT, JSON))
def test_the_hash_does_not_depend_on_the_order_of_members(value: dict) -> None:
    assert digest(value) == digest(dict(reversed(value.items())))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 2**60, "\ud800", {1: 2}, {"a": object()}])
def test_refuses_to_hash_what_json_cannot_carry(value: object) -> None:
    with pytest.raises(InvalidInput):
        canonical(value)


def test_hashes_are_written_with_their_algorithm() -> None:
    assert digest({"b": 1, "a": [True, None]}) == (
        "sha256:" + __import__("hashlib").sha256(b'{"a":[true,null],"b":1}').hexdigest()
    )


@pytest.mark.requirement("EVT-44")
def test_event_data_goes_over_the_wire_in_camel_case_and_fits_its_schema() -> None:
    @event(f"tests.forms.v1.{uuid4().hex}")
    class Thing(Event):
        """A thing happened."""

        run_id: UUID
        cost_usd: Decimal
        at: datetime
        step_id: UUID | None = None
        fencing_token: int = 1

    thing = Thing(run_id=uuid4(), cost_usd=Decimal("1.500000"), at=datetime(2026, 1, 2, tzinfo=UTC))
    data = thing.payload()
    assert list(data) == ["runId", "costUsd", "at", "stepId", "fencingToken"]
    assert (data["costUsd"], data["at"]) == ("1.500000", "2026-01-02T00:00:00Z")
    Draft202012Validator(schema(Thing)).validate(data)
    assert schema(Thing)["required"] == ["runId", "costUsd", "at"]


def test_two_events_cannot_share_a_topic() -> None:
    @event(DoorBuilt.topic)
    class Other(Event):
        """Another."""

    with pytest.raises(ValueError, match="already an event"):
        register_event(Other)


@pytest.mark.parametrize(
    ("build", "complaint"),
    [
        (lambda: register_lifecycle(Lifecycle("door", ())), "already a lifecycle"),
        (lambda: Lifecycle("twice", (Edge("", "A", ("x",)), Edge("", "A", ("x",)))), "twice"),
    ],
)
def test_a_lifecycle_says_everything_once(build: Callable[[], Lifecycle], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        build()


def test_a_state_that_nothing_leaves_is_terminal() -> None:
    assert DOOR.terminal == frozenset()
    assert DOOR.states == {"Open", "Shut"}


def test_wire_keeps_plain_values_and_names() -> None:
    assert wire({"a": [1, "x", None, True]}) == {"a": [1, "x", None, True]}
    assert camel("release_hash") == "releaseHash"


def test_the_written_descriptions_are_what_the_code_says() -> None:
    from django.core.management import call_command

    call_command("describe", "--check")
    assert all(name.endswith(".json") for name in event_schemas())
    assert all("stateDiagram-v2" in page for page in diagrams().values())

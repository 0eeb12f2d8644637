"""What is hashed comes back from the database as it went in, or is refused where it comes in."""

import json
from typing import Any

import pytest
from django.db import connection
from hypothesis import given
from hypothesis import strategies as st

from factory.api.strict_json import loads, loads_kept
from factory.kernel.errors import InvalidInput, ValueNotKept
from factory.kernel.hashing import canonical, digest

MOST = 2**53 - 1
numbers = (
    st.integers(-(2**53) - 3, 2**53 + 3)
    | st.integers()
    | st.floats()
    | st.sampled_from([1e15, 1e16, 1e21, 1e22, 1.7e18, 2.0**53, 2.0**53 - 1, -(2.0**53), 5e-324, 1e-7, -0.0])
)
values = st.recursive(
    st.none() | st.booleans() | numbers | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def kept(value: Any) -> Any:
    """The value as jsonb gives it back."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT (%s::jsonb)::text", [json.dumps(value)])
        return json.loads(cursor.fetchone()[0])


@given(values)
def test_whatever_has_a_hash_comes_back_from_the_database_with_it(value: Any) -> None:
    try:
        hash_ = digest(value)
    except InvalidInput:
        return
    assert digest(kept(value)) == hash_


@given(numbers)
def test_every_number_that_comes_back_is_taken(number: Any) -> None:
    refused = isinstance(number, int | float) and not abs(number) <= MOST
    try:
        canonical([number])
    except ValueNotKept:
        assert refused
    else:
        assert not refused


@pytest.mark.parametrize("number", [1e22, -1.7e18, 2.0**53, 2**53, -(2**53), float("nan"), float("inf")])
def test_a_number_that_would_not_come_back_is_refused_with_its_place(number: Any) -> None:
    with pytest.raises(ValueNotKept) as refused:
        canonical({"a": [1, {"b/c~d": number}], "e": number}, at="/input")
    assert refused.value.code == "value-not-kept"
    assert [fault.pointer for fault in refused.value.errors] == ["/input/a/1/b~1c~0d", "/input/e"]


@pytest.mark.parametrize("text", ["a\x00b", "\ud800"])
def test_text_that_would_not_come_back_is_refused_with_its_place(text: str) -> None:
    for value in ({"a": [text]}, {"a": [{text: 1}]}):
        with pytest.raises(ValueNotKept) as refused:
            canonical(value)
        assert [fault.pointer[:4] for fault in refused.value.errors] == ["/a/0"]


def test_what_is_no_json_or_too_deep_is_refused() -> None:
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    for value in ({"a": {1, 2}}, {1: 2}, deep):
        with pytest.raises(InvalidInput):
            canonical(value)


def test_a_body_says_where_the_number_is() -> None:
    body = b'{"input": {"n": [1, 1e22]}, "m": 9007199254740992}'
    assert loads(body)["input"]["n"][1] == 1e22
    with pytest.raises(ValueNotKept) as refused:
        loads_kept(body)
    assert [fault.pointer for fault in refused.value.errors] == ["/input/n/1", "/m"]

"""Conditions of strangers: they pick and compare, and can do nothing else, nor take long."""

import time
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factory.kernel.expressions import DEEPEST, FUNCTIONS, ExpressionFault, NotJudged, parse

DATA = {
    "input": {"depth": "full", "count": 0, "tags": ["a", "b"]},
    "steps": {
        "scan": {"severity": "high", "modules": [{"path": "x", "lines": 12, "huge": [1e308, 1e308]}]},
        "a-b": None,
    },
}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("input.depth == 'full'", True),
        ("input.depth == 'full' && steps.scan.severity != 'high'", False),
        ("input.count", True),  # as JMESPath says: a number is something, also 0
        ("input.count > `0`", False),
        ("input.nothing", False),
        ("!(input.nothing)", True),
        ("input.nothing > `1`", False),
        ('steps."a-b"', False),
        ("length(steps.scan.modules[?lines > `10`]) == `1`", True),
        ("contains(input.tags, 'b')", True),
        ("steps.scan.modules[?lines > `100`]", False),
        ("steps.scan.modules[0].path == 'x'", True),
        ("max(steps.scan.modules[*].lines) >= `12`", True),
        ("steps.scan.modules[*].lines | [0] == `12`", True),
    ],
)
def test_judges_its_data(text, found):
    assert parse(text).holds(DATA) is found


def test_names_the_steps_that_it_reads():
    assert parse('steps.b.x || (steps."a-c"[0] && steps.b.y) || input.z').steps == ("b", "a-c")


@pytest.mark.parametrize(
    "text",
    [
        "length(input.count)",
        "max(input.tags) > abs(input.depth)",
        "input.tags[::0]",
        "contains(input.depth, `1`)",
        "steps.scan.modules[*].sum(huge)",
        "steps.scan.modules[*].ceil(huge[0])",
    ],
)
def test_says_what_it_cannot_judge(text):
    with pytest.raises(NotJudged):
        parse(text).holds(DATA)


@pytest.mark.parametrize(
    "text",
    [
        "[input, input] | [@, @] | [@, @] | length(to_string(@)) > `1`",
        "input[] | @[] | @[]",
        "`[1,1,1,1]`[?`[1,1,1,1]`[?`[1,1,1,1]`]]",
        "map(&@, input)",
        "join(',', input.tags)",
        "(" * 300,
        "!" * 300 + "input",
        "input" + "[?x" * (DEEPEST + 1) + "]" * (DEEPEST + 1),
        "input." + "x" * 600,
        "input.x\x00",
        "",
        "length()",
        "contains(input.tags)",
        "not_null()",
        "ceil(`NaN`)",
        'steps.scan.modules[*].not_null(x, `"\\ud800"`)',
        'input.depth == `"\\u0000"`',
        "input.count < `1e999`",
    ],
)
def test_refuses_what_could_grow(text):
    with pytest.raises(ExpressionFault):
        parse(text)


WORDS = ["input", "steps.a", ".x", ".y", "@", "`1`", "'x'", "length(", "max(", "==", "<", "&&", "!", "|"]
PARTS = st.sampled_from([*WORDS, "[0]", "[*]", "[?", "]", "(", ")", "*", ",", "&", "{", "}", "["])
VALUES = st.sampled_from(
    [
        *("input.x", "input.y", "steps.a[0]", "'x'", "input.x[::0]", "input.y[-1:]", "input.x[*].x"),
        *("`1`", "`NaN`", "`-Infinity`", "`1e999`", "`true`", "`" + "9" * 400 + "`"),
    ]
)
CALLS = st.recursive(
    VALUES,
    lambda inner: st.one_of(
        st.builds("{}({})".format, st.sampled_from(sorted(FUNCTIONS)), inner),
        st.builds("{}({}, {})".format, st.sampled_from(sorted(FUNCTIONS)), inner, inner),
        st.builds("{} {} {}".format, inner, st.sampled_from(["==", "<", "&&", "||"]), inner),
    ),
    max_leaves=4,
)


@given(st.one_of(st.lists(PARTS, max_size=40).map("".join), CALLS))
@settings(max_examples=800, deadline=None)
def test_whatever_is_accepted_is_judged_within_a_second_or_said_not_to_be(text):
    try:
        expression = parse(text)
    except ExpressionFault:
        return
    leaf = {"x": [{"x": 1, "y": "x"}] * 40, "y": "x"}
    data = {"input": {"x": [leaf] * 40, "y": [1] * 1000}, "steps": {"a": [leaf] * 40}}
    began = time.monotonic()
    with suppress(NotJudged):
        expression.holds(data)
    assert time.monotonic() - began < 1

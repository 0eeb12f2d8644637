"""Each requirement is proved by a test that names it, or it is said why not."""

import re

import pytest

from tests.architecture.requirements import ROOT, lines, marked, requirements


def test_every_requirement_has_one_line() -> None:
    ids = [each.id for each in requirements()]
    assert (len(ids), len(set(ids))) == (432, 432)


def test_a_line_without_its_state_or_its_reason_is_refused() -> None:
    for line in (
        "RUN-01 | text",
        "RUN-01 missing | text",
        "RUN-01 proved | text | why",
        "RUN-01 done | text",
    ):
        with pytest.raises(ValueError, match="No requirement"):
            list(lines(line))


def test_what_is_proved_is_marked_and_what_is_marked_is_proved() -> None:
    states = {each.id: each.state for each in requirements()}
    assert [id for id, state in states.items() if state == "proved" and id not in marked()] == []
    assert {id: tests for id, tests in marked().items() if states.get(id) != "proved"} == {}


def test_what_was_dropped_names_its_adr() -> None:
    records = {file.name[:4] for file in (ROOT / "docs" / "adr").glob("*.md")}
    dropped = {each.id: each.why for each in requirements() if each.state == "dropped"}
    assert {id: why for id, why in dropped.items() if why.removeprefix("ADR ") not in records} == {}


def test_marks_are_read_where_pytest_reads_them() -> None:
    """On functions, on parameters, on classes and the tests in them, and on what is called as a decorator."""
    places = {place for tests in marked().values() for place in tests}
    assert any(re.search(r"::Test\w+$", place) for place in places)
    assert any(re.search(r"::Test\w+::test_", place) for place in places)
    assert all((ROOT / place.split("::")[0]).is_file() for place in places)

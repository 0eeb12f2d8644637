"""The table of mutants cannot rot: each entry still breaks what it is meant to break."""

import ast

from tests.architecture.requirements import ROOT, marked
from tests.mutants.table import MUTANTS


def test_each_text_of_the_table_stands_once_in_its_file() -> None:
    counts = {}
    for mutant in MUTANTS:
        file = ROOT / mutant.file
        counts[mutant.id, mutant.file] = file.read_text().count(mutant.text) if file.is_file() else 0
    assert {place: times for place, times in counts.items() if times != 1} == {}


def test_each_entry_changes_a_rule_and_leaves_a_program() -> None:
    for mutant in MUTANTS:
        assert mutant.text != mutant.instead, mutant.id
        ast.parse((ROOT / mutant.file).read_text().replace(mutant.text, mutant.instead, 1))


def test_each_of_them_is_proved_by_a_marked_test_and_there_are_enough() -> None:
    assert [mutant.id for mutant in MUTANTS if mutant.id not in marked()] == []
    assert len({mutant.id for mutant in MUTANTS}) >= 60

"""Small pieces: what one can read at a glance, one can judge."""

from statistics import median, quantiles

from tests.architecture.source import functions, length, sources

LONGEST_FUNCTION = 60
LONGEST_FILE = 500


def test_no_function_is_longer_than_a_screen() -> None:
    long = [
        f"{source.at(function)} {function.name}: {length(function)}"
        for source in sources()
        for function in functions(source)
        if length(function) > LONGEST_FUNCTION
    ]
    assert long == []


def test_most_functions_are_a_few_lines() -> None:
    lengths = [length(function) for source in sources() for function in functions(source)]
    assert median(lengths) <= 10
    assert quantiles(lengths, n=10)[-1] <= 30


def test_no_file_is_long() -> None:
    long = {source.name: n for source in sources() if (n := source.text.count("\n")) > LONGEST_FILE}
    assert long == {}


def test_most_files_are_short() -> None:
    assert quantiles([source.text.count("\n") for source in sources()], n=10)[-1] <= 300

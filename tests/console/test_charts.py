"""The geometry of charts: shapes stay within the plot, and what they stand for can be read from them."""

import pytest

from factory.console.charts import (
    DOT,
    FLOOR,
    RING,
    TOP,
    ChartColumn,
    ColumnPart,
    Series,
    curves,
    pace,
    pairs,
    stacked,
    steps,
)


@pytest.mark.parametrize(
    ("most", "marks"),
    [(0, [0, 1]), (1, [0, 0.5, 1]), (3, [0, 1, 2, 3]), (8, [0, 2, 4, 6, 8]), (900, [0, 500, 1000])],
)
def test_an_axis_has_a_few_round_marks_and_reaches_over_the_most(most: float, marks: list[float]) -> None:
    assert steps(most) == pytest.approx(marks)


def test_parts_of_a_column_stand_upon_one_another() -> None:
    made = stacked(
        [
            ChartColumn(
                "10:00",
                (ColumnPart("good", "Completed", 4), ColumnPart("bad", "Failed", 2, named=True)),
                "10:00",
            ),
            ChartColumn(
                "11:00", (ColumnPart("good", "Completed", 0), ColumnPart("bad", "Failed", 0, named=True))
            ),
        ]
    )
    good, bad = made.bars
    assert bad.y + bad.height == pytest.approx(good.y, abs=1.1)
    assert good.y + good.height == pytest.approx(FLOOR, abs=1.1)
    assert bad.y >= TOP
    assert [label.words for label in made.labels] == ["2"]
    assert good.words == "10:00: 4 Completed"
    assert [mark.words for mark in made.up] == [f"{n}" for n in (0, 2, 4, 6)]
    assert [mark.words for mark in made.across] == ["10:00"]


def test_a_line_breaks_where_nothing_was_measured() -> None:
    made = curves(
        [Series("busy", "half", (1.0, 2.0, None, 4.0))],
        ["a", "b", "c", "d"], ["a", "", "", "d"], [(0, "0"), (4, "4 s")], [["1 s", "2 s", "", "4 s"]],
    )  # fmt: skip
    assert len(made.curves) == 1
    assert len(made.dots) == 3
    assert made.dots[-1].y == TOP
    assert made.dots[0].words == "a: half 1 s"


def test_where_two_lines_are_the_same_both_are_seen() -> None:
    half, most = Series("busy", "half", (1.0, 2.0)), Series("wait", "most", (1.0, 4.0))
    made = curves(
        [half, most], ["a", "b"], ["a", "b"], [(0, "0"), (4, "4 s")], [["1 s", "2 s"], ["1 s", "4 s"]]
    )
    assert [(dot.kind, dot.radius) for dot in made.dots] == [
        ("wait", RING), ("wait", DOT), ("busy", DOT), ("busy", DOT),
    ]  # fmt: skip
    assert [curve.kind for curve in made.curves] == ["wait", "busy"], "what is drawn last lies on top"
    near = Series("wait", "most", (1.02, 4.0))
    made = curves(
        [half, near], ["a", "b"], ["a", "b"], [(0, "0"), (4, "4 s")], [["1 s", "2 s"], ["1 s", "4 s"]]
    )
    assert made.dots[0].radius == RING, "one that is hidden by another is as good as the same"


def test_rows_of_pairs_are_as_long_as_their_numbers() -> None:
    made = pairs(
        [("under", (ColumnPart("good", "decided", 10), ColumnPart("wait", "pending", 5))), ("over", ())]
    )
    assert made.bars[0].width == pytest.approx(2 * made.bars[1].width)
    assert made.bars[0].width < 100
    assert [label.words for label in made.labels] == ["10", "5"]


def test_what_was_spent_ends_today_below_the_budget() -> None:
    made = pace([0.0, 10.0, 25.0], 30, 1.5, 100.0, [(1, "1 Nov"), (15, "15 Nov")])
    assert made.dots[0].x == pytest.approx(5.0)
    even, limit, spent = made.curves
    assert even.dashed
    assert limit.points.split(",")[1].startswith(f"{TOP}")
    assert spent.area.endswith(f"0,{FLOOR}")

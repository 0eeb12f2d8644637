"""What was measured, for people and for programs."""

from collections.abc import Mapping
from typing import Any

from benchmarks.stopwatch import BASELINE, Stopwatch

HEADING = f"{'':32}{'n':>6}{'p50 ms':>10}{'p95 ms':>10}{'a second':>10}{'x':>8}"


def table(watch: Stopwatch) -> str:
    return "\n".join([HEADING, *(_row(watch, name) for name in watch.seconds)])


def _row(watch: Stopwatch, name: str) -> str:
    median = watch.median(name)
    times = f"{median * 1000:10.2f}{watch.p95(name) * 1000:10.2f}{1 / median:10.0f}"
    return f"{name:32}{len(watch.seconds[name]):6}{times}{watch.ratio(name):8.1f}"


def over(watch: Stopwatch, ceilings: Mapping[str, float]) -> list[str]:
    """A line for each path that costs more than it may, and for each without a ceiling."""
    lines = []
    for name in watch.seconds.keys() - {BASELINE}:
        ceiling = ceilings.get(name)
        if ceiling is None:
            lines.append(f"{name}: ratios.json has no ceiling for it")
        elif watch.ratio(name) > ceiling:
            lines.append(f"{name}: {watch.ratio(name):.1f} times the baseline, and {ceiling} is its ceiling")
    return sorted(lines)


def summary(watch: Stopwatch, lines: list[str]) -> dict[str, Any]:
    paths = {
        name: {
            "n": len(watch.seconds[name]),
            "p50Ms": round(watch.median(name) * 1000, 3),
            "p95Ms": round(watch.p95(name) * 1000, 3),
            "ratio": round(watch.ratio(name), 2),
        }
        for name in watch.seconds
    }
    return {"paths": paths, "over": lines}

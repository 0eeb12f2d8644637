"""Which repository a tour is about, and what is said when it is none."""

import subprocess
from pathlib import Path

import pytest

from config.launching.options import LaunchOptions
from config.launching.repository import chosen
from config.launching.tour import report_command
from factory.embedded.system import EmbeddedError

ROOT = Path(__file__).parents[2]


def options(repository: str, revision: str = "") -> LaunchOptions:
    return LaunchOptions(root=ROOT, home=ROOT / "var", repository=repository, revision=revision)


def test_names_the_commit_of_a_repository() -> None:
    folder, label = chosen(options(repository=str(ROOT)))
    assert folder == str(ROOT)
    assert label.startswith("this repository at ")


@pytest.mark.parametrize(
    ("make", "revision", "said"),
    [
        ("nothing", "", "There is no folder"),
        ("folder", "", "is no Git repository"),
        ("empty", "", "has no revision HEAD"),
        ("empty", "nowhere", "has no revision nowhere"),
    ],
)
def test_says_what_is_wrong_with_it(tmp_path: Path, make: str, revision: str, said: str) -> None:
    folder = tmp_path / "über there"
    if make != "nothing":
        folder.mkdir()
    if make == "empty":
        subprocess.run(["git", "init", "-q", str(folder)], check=True)
    with pytest.raises(EmbeddedError, match=said):
        chosen(options(repository=str(folder), revision=revision))


def test_the_report_is_read_by_a_command_that_survives_any_path() -> None:
    told = report_command({"repository": "/home/a b/ö.git", "report": "branch:report.md"})
    assert told == "git -C '/home/a b/ö.git' show branch:report.md"

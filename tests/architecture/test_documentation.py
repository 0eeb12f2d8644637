"""What the documentation names is there, and each kind of page keeps its form."""

import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from runs.states import FailureClass

ROOT = Path(__file__).resolve().parents[2]
TRACKED = subprocess.run(
    ["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True
).stdout.split()
PAGES = [ROOT / name for name in TRACKED if not name.startswith(("assessment/", "tests/"))]
DECISIONS = sorted((ROOT / "docs/adr").glob("*.md"))


def missing_paths(text: str) -> list[str]:
    """Return the paths written in backticks that name no file or folder of the repository."""
    paths = re.findall(r"`((?:[\w*-]+/)+[\w.*-]*)`", text)
    return [path for path in paths if not list(ROOT.glob(path.rstrip("/")))]


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_to_a_page_and_a_heading(page: Path) -> None:
    for address in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if re.match(r"[a-z]+:", address):
            continue
        name, _, heading = address.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), address
        assert not heading or heading in anchors(target), address


def glossary() -> list[tuple[str, str]]:
    """Return each word of the glossary with the cell that says where it lives."""
    rows = re.findall(r"^\| (.+?) \| .+ \| (.+?) \|$", (ROOT / "docs/glossary.md").read_text(), re.MULTILINE)
    return [row for row in rows if row[0] not in ("word", "---")]


def test_each_word_of_the_glossary_lives_where_it_says() -> None:
    lost = []
    for word, where in glossary():
        name, *symbols = re.findall(r"`([^`]+)`", where)
        source = (ROOT / name).read_text() if (ROOT / name).is_file() else ""
        pattern = r"^\s*(class|def) {0}\b|^\s*{0} ="
        lost += [(word, name)] * (not source)
        lost += [(word, symbol) for symbol in symbols if not re.search(pattern.format(symbol), source, re.M)]
    assert lost == []


def test_the_glossary_has_each_word_once() -> None:
    assert len(glossary()) > 70
    assert [word for word, times in Counter(word for word, _ in glossary()).items() if times > 1] == []


@pytest.mark.parametrize("page", ["docs/architecture.md", "CONTRIBUTING.md", "README.md"])
def test_paths_in_the_pages_for_developers_exist(page: str) -> None:
    assert missing_paths((ROOT / page).read_text()) == []


def test_the_recipe_of_a_failure_class_names_each_file_that_has_them_all() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    recipe = text.partition("### Add a failure class\n")[2].partition("\n#")[0]
    named = tuple(re.findall(r"`([^`]+)`", recipe))
    tracked = subprocess.run(["git", "ls-files", "*.py", "*.json", "*.txt"], cwd=ROOT, capture_output=True)
    written = [re.compile(f"[\"']{word}[\"']") for word in FailureClass.values]
    holders = {
        name
        for name in tracked.stdout.decode().split()
        if all(word.search((ROOT / name).read_text()) for word in written)
    }
    assert len(holders) > 6
    assert sorted(name for name in holders if not name.startswith(named)) == []


@pytest.mark.parametrize("page", DECISIONS, ids=lambda page: page.stem)
def test_a_decision_record_has_the_form(page: Path) -> None:
    text = page.read_text()
    number = int(page.name[:4])
    assert re.match(
        rf"# {number}\. .+\n\n- Status: (proposed|accepted|superseded by \[\d{{4}}\]\(\S+\))\n"
        r"- Date: \d{4}-\d\d-\d\d\n\n## Context\n",
        text,
    )
    sections = re.split(r"^## (.+)\n", text, flags=re.MULTILINE)
    assert sections[1::2] == ["Context", "Decision", "Alternatives considered", "Consequences"]
    assert all(body.strip() for body in sections[2::2])
    words = len(re.sub(r"^\|.*$", "", text, flags=re.MULTILINE).split())
    assert words <= 480, f"{words} words: a record is short"


def test_decision_records_are_numbered_without_a_gap() -> None:
    assert [int(page.name[:4]) for page in DECISIONS] == list(range(1, len(DECISIONS) + 1))


KINDS = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]


def test_the_changelog_is_kept_in_its_form() -> None:
    top, *versions = re.split(r"^## ", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)
    assert top.startswith("# Changelog\n")
    assert "keepachangelog.com" in top
    assert versions[0].startswith("[Unreleased]\n")
    for version in versions:
        title, *sections = re.split(r"^### ", version, flags=re.MULTILINE)
        assert re.fullmatch(r"\[(Unreleased|\d+\.\d+\.\d+)\]( - \d{4}-\d\d-\d\d)?\n\n?", title), title
        kinds = [section.partition("\n")[0] for section in sections]
        assert kinds == [kind for kind in KINDS if kind in kinds], "each kind once, in this order"
        for section in sections:
            entries = section.partition("\n")[2].strip().splitlines()
            assert entries
            assert [entry for entry in entries if not re.match(r"- \S", entry)] == []
            assert [entry for entry in entries if len(entry) > 240] == [], "an entry is one line"


def test_the_changelog_says_each_thing_once() -> None:
    entries = re.findall(r"^- (.{40})", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert [entry for entry, times in Counter(entries).items() if times > 1] == []


def test_the_readme_leads_to_every_how_to() -> None:
    linked = re.findall(r"\(docs/how-to/([\w-]+\.md)\)", (ROOT / "README.md").read_text())
    assert sorted(linked) == sorted(page.name for page in (ROOT / "docs/how-to").glob("*.md"))

"""Somebody else's diff for reading: all of it is there, what would hide is shown, and the work is bounded."""

import time

from approvals.admin.detail.changes import compare
from approvals.admin.detail.proposal import shown
from approvals.selectors import ProposalView
from factory.console import diffs
from factory.console.colours import LEXERS, Palette
from factory.console.diffs import Diff, File
from factory.console.folding import LONG
from factory.console.spans import hidden_in
from factory.console.worddiff import WordComparisons
from tests.support.proposals import HOSTILE

CODE = (
    "diff --git a/sum.py b/sum.py\n--- a/sum.py\n+++ b/sum.py\n@@ -1,3 +1,3 @@\n"
    " import csv\n"
    '-def total(rows, currency="USD"):\n'
    '+def total(rows, currency="EUR"):  # <b>\u202eevil\n'
    " \n"
)
WITHOUT_LINES = (
    "diff --git a/run.sh b/run.sh\nold mode 100644\nnew mode 100755\n"
    "diff --git a/old.txt b/new.txt\nsimilarity index 100%\nrename from old.txt\nrename to new.txt\n"
    "diff --git a/x.png b/x.png\nindex 123..456 100644\nBinary files a/x.png and b/x.png differ\n"
    "diff --git a/link b/link\nnew file mode 120000\n--- /dev/null\n+++ b/link\n@@ -0,0 +1 @@\n+/etc/passwd\n"
    "\\ No newline at end of file\n"
    "diff --git a/gone b/gone\ndeleted file mode 100644\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"
)


def page(diff: str) -> Diff:
    read = diffs.read(diff)
    assert read is not None
    return diffs.for_page(read)


def rows(file: File) -> str:
    return "".join(part.rows for part in file.parts)


def added(path: str, lines: list[str]) -> str:
    body = "".join(f"+{line}\n" for line in lines)
    return f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1 +1,{len(lines)} @@\n-old\n{body}"


def view(diff: str, **others: str) -> ProposalView:
    content = {"kind": "unified-diff", "diff": diff, **others}
    return ProposalView(str(hash(str(content))), len(diff), content)


def test_a_changed_line_has_colours_and_its_changed_words_and_nothing_of_it_is_markup() -> None:
    [file] = page(CODE).files
    html = rows(file)
    assert '<span class="tk">def</span>' in html
    assert '<span class="ts w">EUR</span>' in html
    assert '<span class="ts w">USD</span>' in html
    assert "&lt;b&gt;" in html
    assert "<b>" not in html
    assert '<span class="fc-unseen">⟨U+202E⟩</span>' in html
    assert "\u202e" not in html


def test_hostile_words_stay_words_in_every_language() -> None:
    for endings in LEXERS.values():
        name = f"{HOSTILE[2]}.{endings[0]}"
        html = "".join(rows(file) for file in page(added(name, HOSTILE)).files)
        for mark in ("<script", "<img", "<svg", "<a ", "<iframe", "<style", "<form"):
            assert mark not in html


def test_what_is_no_line_is_said_in_words() -> None:
    read = page("From: somebody\n" + WITHOUT_LINES + "and what nobody would apply\n")
    told = {file.path: (file.change, " ".join(file.notes)) for file in read.files}
    assert told["run.sh"] == ("mode only", "It was an ordinary file and becomes an executable file.")
    assert told["new.txt"][0] == "renamed"
    assert "Renamed from old.txt." in told["new.txt"][1]
    assert told["x.png"][0] == "binary"
    assert told["link"] == ("new", "It is a symbolic link.")
    assert told["gone"] == ("deleted", "The whole file is deleted.")
    assert read.stray == "From: somebody\nand what nobody would apply"


def test_line_ends_are_told_once_or_shown_where_they_differ() -> None:
    [windows] = page("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\r\n+b\r\n").files
    assert "U+000D" not in rows(windows)
    assert windows.notes == ("Its lines end as on Windows (CR LF).",)
    [mixed] = page("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+a\r\n").files
    assert "U+000D" in rows(mixed)


def test_long_files_are_folded_with_a_sentence_and_the_first_stands_open() -> None:
    long = added("long.py", [f"value_{n} = {n}" for n in range(2000)])
    read = page(long + added("next.py", ["a"] * 30))
    first, second = read.files
    assert first.opened
    assert not second.opened
    assert [part.says for part in first.parts] == ["", "1932 more lines: 1932 added"]
    assert len(first.parts[0].lines) < LONG
    assert second.folded == "32 lines, closed: open to read"


def test_no_text_makes_its_reader_wait_for_colours() -> None:
    began, text = time.thread_time(), "\n\n" * 4000
    palette = Palette()
    palette.seconds = 0.2
    for endings in LEXERS.values():
        lines = text.split("\n")
        told = palette.colour(f"x.{endings[0]}", lines)
        assert ["".join(part for _, part in line) for line in told] == lines
    assert time.thread_time() - began < 3
    words, near = WordComparisons(work=1000), "a b " * 50
    assert words.changed(near, near[2:]) is None, "past the bound lines are not compared"


def test_what_nobody_would_see_is_counted() -> None:
    found = hidden_in("user\u202e \u2066x\u2069 no\u200bwidth \U0001f469\u200d\U0001f680")
    assert (found.turning, found.unseen) == (3, 1)
    assert not hidden_in("صباح 你好 plain\ttext\n")


def test_the_difference_of_two_proposals_is_that_of_their_outcomes() -> None:
    one = added("a.md", ["Spend was 3,221", "kept"]) + added("b.md", ["x"]) + added("README.md", ["y"])
    two = added("a.md", ["Spend was 3,180", "kept"]) + added("b.md", ["x"]) + added("c.md", ["z"])
    since = compare(view(one, message="same"), view(two, message="same"), 1)
    [place] = since.places
    assert (place.name, place.added, place.removed) == ("a.md", 1, 1)
    assert '<span class="w">221</span>' in "".join(part.rows for part in place.parts)
    assert (since.same, since.dropped, since.fresh) == (("b.md",), ("README.md",), ("c.md",))
    told = shown(view(two), since.tags).diff
    assert told is not None
    assert [(file.tag, file.opened) for file in told.files] == [
        ("differs from proposal 1", True),
        ("as in proposal 1", False),
        ("not in proposal 1", True),
    ]


def test_a_line_that_is_not_removed_any_more_comes_back() -> None:
    hunk = "--- a/x\n+++ b/x\n@@ -1,2 +1,{} @@\n"
    one, two = hunk.format(1) + " a\n-b\n", hunk.format(3) + " a\n b\n+c\n"
    [place] = compare(view(one), view(two), 1).places
    assert [(line.kind, line.text) for line in place.lines if line.kind in ("add", "del")] == [
        ("add", "b"),
        ("add", "c"),
    ]

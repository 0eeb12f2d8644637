"""What two releases say differently, in words and line by line. Pure: no database."""

import copy
from typing import Any

from factory.admin.diffs import Diff, for_page
from factory.admin.textdiff import between
from registry.admin.changes import changes
from tests.registry.support import manifest
from tests.support.proposals import ALL_OF_IT, HOSTILE


def changed() -> dict[str, Any]:
    """The sample manifest with something let through in each of its parts."""
    made = copy.deepcopy(manifest(dependencies=["base@1.0.0"]))
    made["skills"][0] |= {"sideEffectClass": "external"}
    made["skills"][1]["tools"].append({"name": "git.tag", "sideEffectClass": "production"})
    made["agents"][0]["skills"] = ["look"]
    made["workflows"][0]["nodes"][0] |= {"timeoutMinutes": 30, "when": "input.go"}
    made["workflows"].append(made["workflows"][0] | {"workflowId": "second"})
    made["evaluation"]["thresholds"] = {"found": 0.5}
    return made


def test_what_lets_more_happen_is_said_first_and_marked() -> None:
    told = [
        (one.about, one.place, one.before, one.after, one.warns) for one in changes(manifest(), changed())
    ]
    assert told == [
        ("What it may do", "skill look: how far it reaches", "read", "external", "reaches further"),
        ("What it may do", "skill write, tool git.tag", "not there", "production", "new"),
        ("What it may do", "agent analyst", "uses look, write", "uses look", ""),
        ("Limits", "workflow survey, step look: minutes at most", "not said", "30", ""),
        ("What it needs", "base@1.0.0", "not needed", "needed", "new"),
        ("What proves it", "lowest found that passes", "1.0", "0.5", "easier"),
        ("How it works", "workflow survey, step look", "agent analyst with look",
         "agent analyst with look; only when input.go", ""),
        ("How it works", "workflow second", "not there", "1 step, as far as read", "new"),
    ]  # fmt: skip
    assert [one.warns for one in changes(changed(), manifest()) if one.warns] == ["uses more"]
    assert changes(manifest(), manifest()) == []


def test_texts_are_compared_line_by_line_whatever_stands_in_them() -> None:
    before = "\n".join(f"line {number}" for number in range(1500))
    after = before.replace("line 700\n", f"{ALL_OF_IT}\n").replace("line 10\n", "") + "\nlast"
    file = between("a.md", before, after)
    assert (file.added, file.removed) == (len(HOSTILE) + 1, 2)
    assert [line.before for line in file.lines if line.kind == "del"] == [11, 701]
    [shown] = for_page(Diff([file])).files
    drawn = "".join(str(line.html) for part in shown.parts for line in part.lines)
    assert "<script>" not in drawn
    assert "&lt;script&gt;" in drawn
    assert "⟨U+202E⟩" in drawn
    assert between("b", None, "x\ny\n").added == 2
    assert between("b", "x\ny", None).change == "deleted"
    assert "last line ends" in between("b", "x\n", "x").lines[0].text


def test_texts_that_differ_everywhere_cost_no_more_than_a_sentence() -> None:
    before, after = ("\n".join(f"{word} {number}" for number in range(9000)) for word in ("a", "b"))
    [line] = between("big", before, after).lines
    assert line.kind == "note"

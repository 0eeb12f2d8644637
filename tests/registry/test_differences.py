"""What two releases say differently, in words and line by line. Pure: no database."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import registry
from factory.console.diffs import Diff, for_page
from factory.console.textdiff import ComparisonBudget, between
from registry.admin.detail.changes import changes, same
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
    back = [one.warns for one in changes(changed(), manifest()) if one.warns]
    assert back == ["uses more", "no limit of its own", "no condition"]
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


def test_many_files_of_few_different_lines_share_what_a_page_may_cost() -> None:
    random, work = Random(3), ComparisonBudget(50_000)

    def text() -> str:
        return "\n".join(random.choice("ab") for _ in range(400))

    files = [between("low", text(), text(), work=work) for _ in range(20)]
    assert work.left >= 0
    assert [file.lines[-1].kind for file in files[-10:]] == ["note"] * 10
    assert "in part" in files[-1].lines[-1].text
    assert files[-1].added > 0
    assert "in part" not in between("low", "a\nb\na", "b\na\na").lines[-1].text


FULL = {"key": "ask", "kind": "agent", "agentId": "analyst", "skillId": "look", "dependsOn": ["look"],
        "sideEffectClass": "read", "when": "input.go", "forEach": "input.all", "question": "Is it?",
        "maxAttempts": 2, "timeoutMinutes": 5, "correctionLimit": 1,
        "gate": {"roles": ["Reviewer"], "quorum": 2}}  # fmt: skip


def full() -> dict[str, Any]:
    """A manifest in which every member that the schema knows is said."""
    made = copy.deepcopy(manifest(dependencies=["base@1.0.0"]))
    made["agents"][0]["files"] = ["agents/more.md"]
    made["skills"][1]["entry"] = "skills/look.py"
    made["workflows"][0]["nodes"].append(copy.deepcopy(FULL))
    return made


SCHEMA = json.loads((Path(registry.__file__).parent / "manifest" / "manifest_schema.json").read_text())
UNTOLD = {("schemaVersion",), ("asset",), ("version",)}
"""The one schema, the asset by which they are compared, and the version by which they differ."""


def members(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, dict) and "inputSchema" not in path[-1:]:
        for name in value:
            yield from members(value[name], (*path, name))
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        for number, one in enumerate(value):
            yield from members(one, (*path, number))
    elif path not in UNTOLD:
        yield path


OTHERS = {"sideEffectClass": "production", "kind": "human", "inputSchema": {"type": "array"}}


def test_whatever_a_manifest_says_otherwise_is_told() -> None:
    named = {name for path in members(full()) for name in path} | {"agents", "skills"}
    assert named >= known(SCHEMA) - {name for (name,) in UNTOLD}
    for path in members(full()):
        made = otherwise(path)
        assert changes(full(), made), path
        assert changes(made, full()), path
        assert not same(full(), made), path
    assert same(full(), full() | {"version": "9.9.9"})


def known(schema: Any) -> set[str]:
    """Every member that the schema knows, at whatever depth."""
    if not isinstance(schema, dict):
        return set()
    return set(schema.get("properties", {})).union(*(known(one) for one in schema.values()))


def otherwise(path: tuple[Any, ...]) -> dict[str, Any]:
    """The full manifest with something else at one place."""
    made = full()
    place: Any = made
    for name in path[:-1]:
        place = place[name]
    was, last = place[path[-1]], path[-1]
    place[last] = (
        OTHERS[last] if last in OTHERS
        else [*was, "another"] if isinstance(was, list)
        else was + 1 if isinstance(was, int | float)
        else f"{was}x"
    )  # fmt: skip
    return made


def test_what_a_step_is_let_do_beyond_before_is_marked() -> None:
    def step(**said: Any) -> dict[str, Any]:
        made = full()
        node = made["workflows"][0]["nodes"][1]
        node |= said
        for name in [name for name, value in said.items() if value is None]:
            del node[name]
        return made

    def marks(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
        return [one.warns for one in changes(old, new) if one.warns]

    assert marks(step(kind="human"), step()) == ["nobody is asked there now"]
    assert marks(step(), step(when=None)) == ["no condition"]
    assert marks(step(), step(gate={"roles": ["Reviewer"], "quorum": 1})) == ["asks fewer"]
    assert marks(step(), step(gate={"quorum": 2})) == ["more may decide"]
    assert marks(step(), step(gate=None)) == ["asks fewer"]
    assert marks(step(), step(gate={"roles": ["Reviewer"], "quorum": 3})) == []
    assert marks(step(), step(timeoutMinutes=None)) == ["no limit of its own"]
    assert marks(step(), step(skillId="write")) == ["reaches further"]
    assert marks(step(skillId="write"), step()) == []
    assert marks(step(), step(agentId="unknown")) == ["reaches further"]
    gone = full()
    del gone["workflows"][0]["nodes"][1]
    assert marks(step(), gone) == ["nobody is asked there now"]

"""The manifest: every fault is refused, with its place."""

import re
from pathlib import Path

import pytest
import yaml

from registry.errors import ManifestRefused
from registry.manifest.definitions import check, parse, validated
from registry.manifest.input_schemas import input_faults
from registry.manifest.workflows import find_circle
from tests.registry.support import NODE, manifest


def faults(definition):
    return {(fault.pointer, fault.detail) for fault in check(definition)}


def pointers(definition):
    return {fault.pointer for fault in check(definition)}


def workflow(*nodes, output=None, **changes):
    first = manifest()["workflows"][0]
    return manifest(
        workflows=[{**first, "nodes": list(nodes), "output": output or nodes[-1]["key"], **changes}]
    )


def node(key, *needs, **changes):
    return {**NODE, "key": key, "dependsOn": list(needs), **changes}


def test_accepts_the_sample():
    assert check(manifest()) == []


def test_accepts_the_manifest_of_the_documentation():
    text = Path("docs/how-to/manifest.md").read_text()
    example, branches = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    whole = validated(example.encode())
    assert whole["asset"] == "assessment"
    whole["workflows"][0] |= parse(branches.encode())
    assert check(whole) == []


def test_accepts_a_diamond():
    assert check(workflow(node("a"), node("b", "a"), node("c", "a"), node("d", "b", "c"))) == []


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"surprise": 1}, "/surprise"),
        ({"version": "1.0"}, "/version"),
        ({"version": 1}, "/version"),
        ({"asset": "Sample"}, "/asset"),
        ({"agents": []}, "/agents"),
        ({"workflows": []}, "/workflows"),
        ({"modelProfiles": []}, "/modelProfiles"),
        ({"schemaVersion": 2}, "/schemaVersion"),
        ({"dependencies": ["other"]}, "/dependencies/0"),
        ({"dependencies": ["sample@0.9.0"]}, "/dependencies/0"),
        ({"dependencies": ["a@1.0.0", "a@2.0.0"]}, "/dependencies/1"),
    ],
)
def test_refuses_a_fault_at_the_top(change, pointer):
    assert pointers(manifest(**change)) == {pointer}


def test_refuses_a_missing_member_at_its_place():
    definition = manifest()
    del definition["evaluation"]
    assert faults(definition) == {("/evaluation", "This key is missing.")}


@pytest.mark.parametrize(
    "path", ["../x", "/etc/passwd", "a/../b", "./a", "a//b", "a\\b", "-x", "", "a/", "a\nb"]
)
def test_refuses_a_path_that_leads_elsewhere(path):
    definition = manifest()
    definition["agents"][0]["entry"] = path
    assert pointers(definition) == {"/agents/0/entry"}


HUMAN = {"key": "ask", "kind": "human", "question": "Go on?", "sideEffectClass": "shared-write"}


@pytest.mark.parametrize(
    ("faulty", "key"),
    [
        ({**NODE, "kind": "robot"}, "kind"),
        ({**NODE, "gate": {}}, "gate"),
        ({**NODE, "question": "Go on?"}, "question"),
        ({**NODE, "gate": {"quorum": 2}}, "gate"),
        ({**HUMAN, "gate": {"quorum": 0}}, "gate/quorum"),
        ({**HUMAN, "gate": {"roles": ["Operator"]}}, "gate/roles/0"),
        ({**NODE, "correctionLimit": 11}, "correctionLimit"),
        ({key: value for key, value in NODE.items() if key != "agentId"}, "agentId"),
        ({**HUMAN, "agentId": "analyst"}, "agentId"),
        ({**HUMAN, "skillId": "look"}, "skillId"),
        ({**HUMAN, "maxAttempts": 2}, "maxAttempts"),
        ({**HUMAN, "timeoutMinutes": 2}, "timeoutMinutes"),
        ({**HUMAN, "sideEffectClass": "read"}, "sideEffectClass"),
        ({key: value for key, value in HUMAN.items() if key != "question"}, "question"),
    ],
)
def test_refuses_what_a_node_of_its_kind_cannot_have(faulty, key):
    assert pointers(workflow(faulty)) == {f"/workflows/0/nodes/0/{key}"}


def test_accepts_branches_fan_outs_and_people():
    nodes = [
        node("scan"),
        node("module", "scan", forEach="steps.scan.modules[?lines > `10`]", correctionLimit=2),
        node("fix", "scan", when="steps.scan.severity == 'high' && !(input.dry)"),
        {**HUMAN, "dependsOn": ["fix"], "when": "steps.fix.files"},
        node("end", "module", "ask"),
    ]
    assert check(workflow(*nodes)) == []


@pytest.mark.parametrize(
    ("changes", "key", "words"),
    [
        ({"when": "steps.scan.x =="}, "when", "not readable"),
        ({"when": "steps.scan.x = 1"}, "when", "not readable"),
        ({"when": "steps.later.x"}, "when", "later is not among dependsOn"),
        ({"when": "steps.b.x"}, "when", "b is not among dependsOn"),
        ({"when": "scan.x"}, "when", "begins with input or with steps"),
        ({"when": "__import__('os')"}, "when", "There is no function"),
        ({"when": "!input.x"}, "when", "in brackets"),
        ({"forEach": "steps.later.list"}, "forEach", "later is not among dependsOn"),
        ({"forEach": "input.list"}, "forEach", "predecessor's output"),
        ({"forEach": "steps.scan.[a, b]"}, "forEach", "not used here"),
        ({"forEach": "steps.scan[" + "?a[" * 60 + "]" * 60}, "forEach", ""),
    ],
)
def test_refuses_an_expression_at_its_place_and_says_why(changes, key, words):
    definition = workflow(node("scan"), node("b", "scan", **changes), node("later", "b"))
    [(pointer, detail)] = faults(definition)
    assert pointer == f"/workflows/0/nodes/1/{key}"
    assert words in detail


@pytest.mark.requirement("WFE-10")
def test_refuses_a_circle_and_names_it():
    definition = workflow(node("a", "c"), node("b", "a"), node("c", "b"))
    assert faults(definition) == {
        ("/workflows/0/nodes/0/dependsOn", "The nodes form a circle: a → c → b → a.")
    }


@pytest.mark.requirement("WFE-10")
def test_refuses_a_node_that_leads_to_no_output():
    definition = workflow(node("a"), node("lost", "a"), node("b", "a"))
    assert faults(definition) == {("/workflows/0/nodes/1", "The node lost leads to no output.")}


@pytest.mark.parametrize(
    ("nodes", "output", "pointer"),
    [
        ([node("a"), node("a")], "a", "/workflows/0/nodes/1/key"),
        ([node("a", "nothing")], "a", "/workflows/0/nodes/0/dependsOn/0"),
        ([node("a", "a")], "a", "/workflows/0/nodes/0/dependsOn/0"),
        ([node("a")], "b", "/workflows/0/output"),
        ([node("a", agentId="nobody")], "a", "/workflows/0/nodes/0/agentId"),
        ([node("a", skillId="nothing")], "a", "/workflows/0/nodes/0/skillId"),
        ([node("a", skillId="write")], "a", "/workflows/0/nodes/0/sideEffectClass"),
        ([node("a", sideEffectClass="shared-write")], "a", "/workflows/0/nodes/0/skillId"),
        ([node("a", sideEffectClass="spend")], "a", "/workflows/0/nodes/0/sideEffectClass"),
        ([node("a", maxAttempts=0)], "a", "/workflows/0/nodes/0/maxAttempts"),
    ],
)
@pytest.mark.requirement("STP-06")
def test_refuses_a_faulty_node(nodes, output, pointer):
    assert pointers(workflow(*nodes, output=output)) == {pointer}


def test_refuses_a_gated_node_without_a_skill():
    bare = {key: value for key, value in NODE.items() if key != "skillId"}
    assert pointers(workflow({**bare, "sideEffectClass": "production"})) == {"/workflows/0/nodes/0/skillId"}


def test_refuses_a_tool_above_its_skill():
    definition = manifest()
    definition["skills"][0]["tools"][0]["sideEffectClass"] = "external"
    assert pointers(definition) == {"/skills/0/tools/0/sideEffectClass"}


@pytest.mark.parametrize("group", ["agents", "skills", "workflows", "modelProfiles"])
def test_refuses_what_is_defined_twice(group):
    definition = manifest()
    definition[group] = (
        definition[group][:1] * 2 if group != "skills" else [*definition[group], definition[group][0]]
    )
    assert any(detail.endswith("is defined twice.") for _, detail in faults(definition))


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        ({"type": "array"}, "/type"),
        ({"type": "object", "properties": 1}, "/properties"),
        ({"type": "object", "$ref": "https://example.test/x"}, "/$ref"),
        ({"type": "object", "properties": {"a": {"$ref": "file:///etc/passwd"}}}, "/properties/a/$ref"),
    ],
)
def test_refuses_an_input_schema_that_is_none(schema, pointer):
    assert pointers(workflow(NODE, inputSchema=schema)) == {f"/workflows/0/inputSchema{pointer}"}


@pytest.mark.parametrize(
    "text",
    [
        "a: &x [1]\nb: *x",
        "a: &x 1",
        "a: 1\na: 2",
        "1: 2",
        "? [a]\n: 1",
        "[" * 5000,
        "a: !!python/object/apply:os.system ['true']",
        "a: !!binary aGk=",
        "a: .nan",
        "a: .inf",
        "- 1",
        "a: [",
        "a: 1\n---\nb: 2",
        "a: 99999999999999999999",
        "x" * 300_000,
        "",
    ],
)
def test_refuses_yaml_that_is_more_than_json(text):
    with pytest.raises(ManifestRefused):
        parse(text.encode())


def test_a_date_is_text():
    assert parse(b"a: 2020-01-01") == {"a": "2020-01-01"}


def test_says_all_faults_at_once_with_their_places():
    definition = workflow(node("a", "x"), node("b", "y"))
    with pytest.raises(ManifestRefused) as refused:
        validated(yaml.safe_dump(definition).encode())
    assert len(refused.value.errors) == 2


def test_checks_an_input_against_the_schema():
    definition = manifest()["workflows"][0]
    assert input_faults(definition, {"repository": "x"}) == []
    assert [fault.pointer for fault in input_faults(definition, {"repository": 1})] == ["/input/repository"]
    assert [fault.pointer for fault in input_faults(definition, {})] == ["/input/repository"]
    assert [fault.pointer for fault in input_faults(definition, [])] == ["/input"]


def test_no_name_ends_with_a_line():
    """To Python's `$` it would; then a key would not be the word that everybody reads."""
    assert pointers(workflow(node("a\n"))) == {"/workflows/0/nodes/0/key", "/workflows/0/output"}
    assert pointers(manifest(version="1.0.0\n")) == {"/version"}


def test_finds_no_circle_in_a_long_chain():
    chain = {f"n{i}": [f"n{i - 1}"] if i else [] for i in range(2000)}
    assert find_circle(chain) == ()

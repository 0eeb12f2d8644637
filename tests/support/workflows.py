"""Workflows and the manifest that has them, as the tests of runs need them."""

from functools import cache
from typing import Any

from registry.manifest.definitions import check

PROFILE = "code-agent"


def node(key: str, *depends_on: str, side_effect_class: str = "read", **more: Any) -> dict[str, Any]:
    skill = {"read": "look", "sandbox": "build", "shared-write": "write"}[side_effect_class]
    made = {"key": key, "kind": "agent", "agentId": "analyst", "skillId": skill, **more}
    made["sideEffectClass"] = side_effect_class
    return made | {"dependsOn": list(depends_on)} if depends_on else made


def human(key: str, *depends_on: str, **more: Any) -> dict[str, Any]:
    made = {"key": key, "kind": "human", "question": f"{key}?", "sideEffectClass": "shared-write", **more}
    return made | {"dependsOn": list(depends_on)}


def workflow(workflow_id: str, *nodes: dict[str, Any]) -> dict[str, Any]:
    """The last node's output is the run's."""
    schema = {
        "type": "object",
        "additionalProperties": False,
        "required": ["repository"],
        "properties": {"repository": {"type": "string"}, "go": {"type": "boolean"}},
    }
    return {
        "workflowId": workflow_id,
        "version": "1.0.0",
        "title": workflow_id,
        "inputSchema": schema,
        "nodes": list(nodes),
        "output": nodes[-1]["key"],
    }


WORKFLOWS = [
    workflow("single", node("look")),
    workflow("stubborn", node("look", maxAttempts=1)),
    workflow("brief", node("look", timeoutMinutes=1)),
    workflow("diamond", node("a"), node("b", "a"), node("c", "a"), node("d", "b", "c")),
    workflow("gated", node("publish", side_effect_class="shared-write")),
    workflow(
        "narrow",
        node("publish", side_effect_class="shared-write", gate={"roles": ["WorkspaceAdmin"], "quorum": 2}),
    ),
    workflow("hasty", node("publish", side_effect_class="shared-write", timeoutMinutes=1)),
    workflow(
        "gates",
        node("one", side_effect_class="shared-write"),
        node("two", side_effect_class="shared-write"),
        node("end", "one", "two"),
    ),
    workflow(
        "row",
        node("one", side_effect_class="shared-write"),
        node("two", "one", side_effect_class="shared-write"),
    ),
    workflow(
        "five",
        *(node(f"n{i}", side_effect_class="shared-write") for i in range(5)),
        node("end", *(f"n{i}" for i in range(5))),
    ),
    workflow(
        "mixed",
        node("gate", side_effect_class="shared-write"),
        node("side"),
        node("end", "gate", "side"),
    ),
    workflow(
        "branches",
        node("scan"),
        node("fix", "scan", when="steps.scan.severity == 'high' && input.go"),
        node("check", "fix"),
        node("end", "scan", "check"),
    ),
    workflow("idle", node("a", when="input.go"), node("b", "a")),
    workflow(
        "modules",
        node("scan"),
        node("module", "scan", forEach="steps.scan.modules", correctionLimit=2),
        node("end", "module"),
    ),
    workflow("asked", human("ask"), node("end", "ask", when="steps.ask.decision == 'approve'")),
    workflow("twice", node("scan"), human("one", "scan"), human("two", "scan"), node("end", "one", "two")),
    workflow("word", human("first"), human("last", "first") | {"gate": {"roles": ["WorkspaceAdmin"]}}),
]


MANIFEST: dict[str, Any] = {
    "schemaVersion": 1,
    "asset": "sample",
    "version": "1.0.0",
    "agents": [
        {
            "agentId": "analyst",
            "description": "Looks.",
            "entry": "a.md",
            "skills": ["look", "build", "write"],
        }
    ],
    "skills": [
        {
            "skillId": name,
            "description": name,
            "files": ["s.py"],
            "sideEffectClass": reach,
            "tools": [{"name": f"tool.{name}", "sideEffectClass": reach}],
        }
        for name, reach in (("look", "read"), ("build", "sandbox"), ("write", "shared-write"))
    ],
    "workflows": WORKFLOWS,
    "modelProfiles": [{"modelProfileId": PROFILE, "description": "No model."}],
    "evaluation": {
        "suite": "smoke",
        "version": "1.0.0",
        "entry": "e.py",
        "files": ["e.py"],
        "thresholds": {"found": 1.0},
    },
}


@cache
def is_sound() -> bool:
    return check(MANIFEST) == []

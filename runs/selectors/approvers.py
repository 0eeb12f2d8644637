"""Whom a workflow's node leaves of those whom the policy names."""

from collections.abc import Mapping
from typing import Any

from runs.models import Run, Step


def approvers_of(run: Run, step: Step) -> Mapping[str, Any] | None:
    """The `gate` of the step's node, as the release was pinned; None where it narrows nothing."""
    key = step.node_key.partition("[")[0]  # of a fan-out, all steps are one node's
    nodes = run.snapshot.content["workflow"]["nodes"]
    gate: Mapping[str, Any] | None = next((n.get("gate") for n in nodes if n["key"] == key), None)
    return gate

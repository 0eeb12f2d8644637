"""The engine: from a definition and what has happened to what comes next. No database, no clock."""

from runs.engine.definition import AGENT, HUMAN, MOST_INSTANCES, Node, node_of, nodes, step_key
from runs.engine.planning import (
    Completed,
    Due,
    Failed,
    Plan,
    Ready,
    Settled,
    StepFact,
    elements,
    needed_outputs,
    plan,
)

__all__ = [
    "AGENT",
    "HUMAN",
    "MOST_INSTANCES",
    "Completed",
    "Due",
    "Failed",
    "Node",
    "Plan",
    "Ready",
    "Settled",
    "StepFact",
    "elements",
    "needed_outputs",
    "node_of",
    "nodes",
    "plan",
    "step_key",
]

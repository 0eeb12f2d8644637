"""The engine: from a definition and what has happened so far to what comes next. Pure: no database, no clock."""

from runs.engine.planning import Completed, Failed, Node, Plan, Ready, StepFact, nodes, plan

__all__ = ["Completed", "Failed", "Node", "Plan", "Ready", "StepFact", "nodes", "plan"]

"""The engine: from a definition and what has happened to what comes next. No database, no clock."""

from runs.engine.planning import Completed, Failed, Node, Plan, Ready, StepFact, nodes, plan

__all__ = ["Completed", "Failed", "Node", "Plan", "Ready", "StepFact", "nodes", "plan"]

"""Descriptions drawn from the code, so that they cannot say something else than it does."""

import json

from factory.kernel.events import schema, topics
from factory.kernel.lifecycle import Lifecycle, lifecycles

PRODUCT = ("factory", "projects", "approvals", "registry", "usage", "notifications", "runs")


def event_schemas() -> dict[str, str]:
    """The JSON Schema file of every event of the product, by file name."""
    ours = (cls for cls in topics().values() if cls.__module__.split(".")[0] in PRODUCT)
    return {f"{cls.topic}.json": json.dumps(schema(cls), indent=2) + "\n" for cls in ours}


def diagrams() -> dict[str, str]:
    """A page with the state diagram and the table of edges of every lifecycle, by file name."""
    from factory.evidence.invariants import journaled_models

    ours = {m.lifecycle.entity for m in journaled_models() if m.__module__.split(".")[0] in PRODUCT}
    return {f"{name}.md": _page(cycle) for name, cycle in lifecycles().items() if name in ours}


def _page(cycle: Lifecycle) -> str:
    lines = [f"# {cycle.entity}", "", "Drawn from the code by `manage.py describe`.", "", "```mermaid"]
    lines += ["stateDiagram-v2"]
    for edge in cycle.edges:
        lines.append(f"    {edge.source or '[*]'} --> {edge.target}: {', '.join(edge.causes)}")
    lines += [f"    {state} --> [*]" for state in sorted(cycle.terminal)]
    lines += ["```", "", "| from | to | causes | events |", "| --- | --- | --- | --- |"]
    for edge in cycle.edges:
        told = [f"`{t}`" for t in edge.events] + [f"`{t}` (may)" for t in edge.optional]
        lines.append(
            f"| {edge.source or '–'} | {edge.target} | {', '.join(edge.causes)} | {', '.join(told) or '–'} |"
        )
    return "\n".join(lines) + "\n"

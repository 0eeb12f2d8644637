"""The report, from what the others found; with a model's summary where a gateway is configured."""

import json
import re
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from .findings import judge
from .report import markdown

if TYPE_CHECKING:
    from runs.worker.context import SkillContext

PROMPT = "agents/assessor.md"
MOST_OF_A_REPORT = 100_000
_HIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u200e\u200f\ud800-\udfff]")
PREDECESSORS = ("inventory", "history", "code", "dependencies")


def run(context: "SkillContext") -> dict[str, Any]:
    """Return the facts, the judgements and the time; `publish` renders them, with the reviewer's words."""
    facts = {name: context.predecessors[name] for name in PREDECESSORS}
    with context.tool("compose-report") as call:
        findings = judge(**facts)
        call.details["findings"] = len(findings)
    report: dict[str, Any] = {
        "schemaVersion": 1,
        "runId": context.run_id,
        "name": name_of(str(facts["inventory"]["repository"])),
        "generatedAt": datetime.fromtimestamp(int(time.time()), UTC).isoformat().replace("+00:00", "Z"),
        "reviewerNotes": [],
        "summary": None,
        "findings": findings,
        **facts,
    }
    report["summary"] = _summary(context, report)
    render(report)  # a report that cannot be rendered fails here, not at the gate
    counted = {
        severity: sum(item["severity"] == severity for item in findings)
        for severity in ("high", "medium", "low")
    }
    return {"report": report, "findings": counted}


def name_of(repository: str) -> str:
    """Return a name to call it by: the last part of its path."""
    return PurePosixPath(repository.rstrip("/")).name.removesuffix(".git") or repository


def render(report: Mapping[str, Any]) -> dict[str, str]:
    """Return the two files that are published, always the same for the same report."""
    whole = json.dumps(report, ensure_ascii=False, indent=2, sort_keys=True) + "\n"
    files = {"report.md": clean(markdown(report)), "report.json": clean(whole)}
    for path, text in files.items():
        if len(text.encode()) > 4 * MOST_OF_A_REPORT:
            raise ValueError(f"{path} is too large to be decided on: {len(text.encode())} bytes")
    return files


def clean(text: str) -> str:
    """Text that a diff shows as it is: no control characters, nothing that turns the direction of reading."""
    return "".join(char for char in text if char in "\n\t" or not _HIDDEN.match(char))


def _summary(context: "SkillContext", report: Mapping[str, Any]) -> dict[str, str] | None:
    """None without a gateway, and None when it fails: the figures need no summary."""
    if context.model is None:
        return None
    figures = {key: report[key] for key in ("name", "findings")}
    figures["history"] = {
        key: report["history"][key] for key in ("commits", "authors", "busFactor", "ageDays")
    }
    figures["languages"] = [item["language"] for item in report["inventory"]["languages"][:5]]
    figures["complexity"] = report["code"]["complexity"]
    messages = [
        {"role": "system", "content": context.files[PROMPT].decode()},
        {"role": "user", "content": json.dumps(figures, ensure_ascii=False)[:20_000]},
    ]
    try:
        said = context.model.complete(messages, max_tokens=400)
    except Exception as fault:
        with context.tool("model-summary-left-out") as call:
            call.details["reason"] = str(fault)[:200]
        return None
    return {"text": said.text.strip()[:4000], "model": said.model[:100]} if said.text.strip() else None

"""One run as it happens: each transition from its journal, in words."""

import threading
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

from config.launching.api import Api
from config.launching.terminal import Terminal

LOOK_SECONDS = 0.2
WAITING = "WaitingForApproval"
TERMINAL_STATES = ("Completed", "Failed", "Cancelled")
SETTLED = ("Succeeded", "Failed", "Cancelled", "Skipped")


class RunTimeline:
    """Follows a run to its end and tells it on the terminal."""

    def __init__(self, api: Api, terminal: Terminal, run_id: str, release: dict[str, Any]) -> None:
        self.api, self.terminal, self.run_id, self.release = api, terminal, run_id, release
        self.run: dict[str, Any] = api.get(f"/runs/{run_id}")
        self.state = self.run["state"]
        self._told = 0
        self._steps: dict[str, dict[str, Any]] = {}
        self._holder = ""

    def follow(self, stopping: threading.Event, on_waiting: Callable[[dict[str, Any]], None]) -> str:
        """Until the run is over or we are told to stop; `on_waiting` is given each approval it asks for."""
        asked: set[str] = set()
        while not stopping.is_set():
            self.look()
            # The run may have moved on since its journal was read: first what happened, then the question.
            for approval in self.run["approvals"] if self.state == WAITING else ():
                if approval["approvalId"] not in asked:
                    asked.add(approval["approvalId"])
                    on_waiting(approval)
            if self.state in TERMINAL_STATES:
                break
            time.sleep(LOOK_SECONDS)
        return str(self.state)

    def look(self) -> None:
        """Tell what has happened since the last look."""
        fresh = [
            entry
            for entry in self.api.items(f"/runs/{self.run_id}/journal")
            if entry["sequence"] > self._told
        ]
        self.run = self.api.get(f"/runs/{self.run_id}")
        self._steps = {step["stepId"]: step for step in self.run["steps"]}
        for entry in fresh:
            self._told = entry["sequence"]
            if entry["entity"] == "run":
                self.state = entry["toState"]
            if entry["cause"] == "LeaseAcquired" and entry["entity"] == "lease":
                # The step begins in the same command, in the entry after this one.
                epoch, number = divmod(entry["detail"]["fencingToken"], 1 << 40)  # as the pages write it
                self._holder = f"{entry['detail']['holder']} (token {epoch}·{number})"
            words = self._words(entry)
            if words is not None:
                self.terminal.moment(self._since(entry["occurredAt"]), self.state, words)

    def _since(self, moment: str) -> float:
        began = datetime.fromisoformat(self.run["createdAt"])
        return (datetime.fromisoformat(moment) - began).total_seconds()

    def _words(self, entry: dict[str, Any]) -> str | None:
        """A line for what a person would want to know; None for the rest of the book-keeping."""
        if entry["entity"] == "run" and entry["fromState"] != entry["toState"]:
            return self._run_words(entry)
        if entry["entity"] == "step" and entry["fromState"] != entry["toState"]:
            return self._step_words(entry)
        return None

    def _run_words(self, entry: dict[str, Any]) -> str | None:
        state, cause = entry["toState"], entry["cause"]
        if state == "Accepted":
            bundled = self.run["releaseHash"] == self.release["hash"]  # a run that waits may be another's
            name = f"{self.release['asset']}@{self.release['version']}" if bundled else self.run["workflowId"]
            release = f"{name} {self.run['releaseHash'][:19]}…"
            return f"{release}, policy {self.run['policyRevision']}, snapshot {self.run['snapshotId'][:13]}…"
        if state == "Running":
            return None if cause == "FirstAttemptDispatched" else spaced(cause)
        if state == WAITING:
            wanted = [f"{a['summary']}, {a['actionClass']}" for a in self.run["approvals"]]
            return "; ".join(wanted) or spaced(cause)
        if state == "Completed":
            return f"cost {self.run['usage']['cost']['amount']} {self.run['usage']['cost']['currency']}"
        return f"{spaced(cause)}: {self.run['reason']}" if self.run["reason"] else spaced(cause)

    def _step_words(self, entry: dict[str, Any]) -> str | None:
        step = self._steps.get(entry["entityId"])
        if step is None:
            return None
        if entry["toState"] == "Running":
            return f"{step['nodeKey']} → {self._holder}"
        if entry["toState"] in SETTLED:
            reason = f": {step['reason']}" if step["reason"] else ""
            return f"{step['nodeKey']} {entry['toState'].lower()}{reason}"
        return None


def spaced(cause: str) -> str:
    """`ApprovalGranted` as words: approval granted."""
    return "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in cause).strip()

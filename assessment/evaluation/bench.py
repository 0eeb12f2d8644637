"""A bench to run a skill on, without a control plane: real tools, and a reviewer with laid-out answers."""

import hashlib
import json
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


class SkillRefused(Exception):
    """A skill ended itself as Failed."""


class BenchToolFailed(Exception):
    """A program answered with an error."""

    def __init__(self, name: str, exit_code: int, said: str) -> None:
        super().__init__(f"{name}: exit {exit_code}: {said[-300:]}")
        self.exit_code = exit_code


@dataclass(frozen=True)
class Done:
    """Hold what a program left."""

    stdout: bytes
    stderr: bytes
    exit_code: int


@dataclass(frozen=True)
class Decided:
    """A reviewer's word on a proposal."""

    proposal_hash: str
    decision: str = "approve"
    reason: str = ""
    approval_id: str = "bench"

    @property
    def approved(self) -> bool:
        """Only one word means yes."""
        return self.decision == "approve"

    @property
    def changes_requested(self) -> bool:
        """Tell that a change was asked for; `reason` says which."""
        return self.decision == "request_changes"


@dataclass
class Call:
    """One call of a tool."""

    name: str
    workdir: Path
    details: dict[str, Any] = field(default_factory=dict)
    quantities: dict[str, Any] = field(default_factory=lambda: {"calls": 1})

    def run(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        timeout: float = 300.0,
        check: bool = True,
        watch: Callable[[], None] | None = None,
    ) -> Done:
        """Run a program with a bare environment."""
        path = os.environ.get("PATH", os.defpath)
        whole = {"PATH": path, "HOME": str(self.workdir), "LC_ALL": "C.UTF-8", "TZ": "UTC", **(env or {})}
        done = subprocess.run(
            list(argv),
            input=stdin,
            capture_output=True,
            cwd=self.workdir,
            env=whole,
            timeout=timeout,
            check=False,
        )
        if check and done.returncode:
            raise BenchToolFailed(self.name, done.returncode, done.stderr.decode("utf-8", "replace"))
        return Done(done.stdout, done.stderr, done.returncode)


class _Files(dict[str, bytes]):
    """The files of the release, from the folder that it was published from."""

    def __missing__(self, path: str) -> bytes:
        return (ROOT / path).read_bytes()


class Bench:
    """Stands in for the worker's context, in one process and without a network."""

    def __init__(self, workdir: Path, asked: Mapping[str, Any], predecessors: Mapping[str, Any]) -> None:
        workdir.mkdir(parents=True, exist_ok=True)
        self.workdir = workdir
        self.input = asked
        self.predecessors = predecessors
        self.run_id = "00000000-0000-7000-8000-000000000001"
        self.number = 1
        self.snapshot: Mapping[str, Any] = {}
        self.checkpoint: Any = None
        self.decision: Decided | None = None
        self.model = None
        self.files = _Files()
        self.calls: list[str] = []
        self.proposals: list[Any] = []
        self.effects: list[Mapping[str, Any]] = []
        self.answers: list[tuple[str, str]] = []

    def check(self) -> None:
        """Nobody cancels here."""

    @contextmanager
    def tool(self, name: str) -> Iterator[Call]:
        """Count the call."""
        self.calls.append(name)
        yield Call(name, self.workdir)

    def fail(self, failure_class: str, reason: str) -> SkillRefused:
        """To be raised."""
        return SkillRefused(f"{failure_class}: {reason}")

    @staticmethod
    def digest(value: Any) -> str:
        """Good enough to tell proposals apart."""
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return "sha256:" + hashlib.sha256(text.encode()).hexdigest()

    def propose(self, action_class: str, proposal: Any, summary: str, **more: Any) -> Decided:
        """Return the next of the answers that the suite laid out; approval when there is none left."""
        self.proposals.append(proposal)
        word, reason = self.answers.pop(0) if self.answers else ("approve", "")
        return Decided(self.digest(proposal), word, reason)

    def authorize(self, decision: Decided, proposal: Any) -> bool:
        """For exactly the approved proposal."""
        if not decision.approved or decision.proposal_hash != self.digest(proposal):
            raise SkillRefused("policy-denied: not the approved proposal")
        return True

    def effect(self, name: str, decision: Decided, details: Mapping[str, Any]) -> None:
        """Keep what was done."""
        self.effects.append({"name": name, **details})

    def no_effect(self, name: str, decision: Decided, reason: str) -> None:
        """Keep that nothing was done."""
        self.effect(name, decision, {"tookPlace": False, "reason": reason})

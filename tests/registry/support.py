"""A Git repository with a manifest, and releases at each stage of their way, made by the real commands."""

import copy
import os
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import yaml

from approvals.commands.decide import decide_approval
from approvals.commands.policy import adopt_platform_policy
from approvals.selectors import approval
from factory.kernel.context import Context
from factory.kernel.hashing import digest
from factory.kernel.tenancy import reading
from registry.commands import record_evaluation, request_review, submit_release
from registry.publication.resolving import resolve
from registry.selectors import release
from tests.support.world import World, world

SUITE = """import json, pathlib
print(json.dumps({"scores": {"found": 1.0 if pathlib.Path("skills/look.py").exists() else 0}}))
"""
FILES = {
    "agents/analyst.md": "Look closely.\n",
    "skills/look.py": "def run(context):\n    return {}\n",
    "evaluation/suite.py": SUITE,
}
NODE = {"key": "look", "kind": "agent", "agentId": "analyst", "skillId": "look", "sideEffectClass": "read"}
MANIFEST: dict[str, Any] = {
    "schemaVersion": 1,
    "asset": "sample",
    "version": "1.0.0",
    "agents": [
        {
            "agentId": "analyst",
            "description": "Looks.",
            "entry": "agents/analyst.md",
            "skills": ["look", "write"],
        }
    ],
    "skills": [
        {
            "skillId": "look",
            "description": "Looks.",
            "entry": "skills/look.py",
            "files": ["skills/look.py"],
            "sideEffectClass": "read",
            "tools": [{"name": "git.read", "sideEffectClass": "read"}],
        },
        {
            "skillId": "write",
            "description": "Writes.",
            "files": ["skills/look.py"],
            "sideEffectClass": "shared-write",
            "tools": [{"name": "git.push", "sideEffectClass": "shared-write"}],
        },
    ],
    "workflows": [
        {
            "workflowId": "survey",
            "version": "1.0.0",
            "title": "Survey",
            "inputSchema": {
                "type": "object",
                "required": ["repository"],
                "properties": {"repository": {"type": "string"}},
            },
            "nodes": [NODE],
            "output": "look",
        }
    ],
    "modelProfiles": [{"modelProfileId": "none", "description": "No model."}],
    "evaluation": {
        "suite": "smoke",
        "version": "1.0.0",
        "entry": "evaluation/suite.py",
        "files": ["evaluation/suite.py"],
        "thresholds": {"found": 1.0},
    },
}


def manifest(**changes: Any) -> dict[str, Any]:
    """The sample manifest with other top-level members."""
    return {**copy.deepcopy(MANIFEST), **changes}


def git(folder: Path, *arguments: str) -> str:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@example.test",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@example.test",
    }
    done = subprocess.run(
        ["git", *arguments], cwd=folder, env=environment, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


class Repository:
    """A repository below a folder that the settings allow."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        git(folder, "init", "-q", "-b", "main")

    @property
    def url(self) -> str:
        return str(self.folder)

    def write(self, path: str, content: str) -> None:
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content)

    def commit(
        self, definition: dict[str, Any] | str | None = None, files: dict[str, str] | None = None
    ) -> str:
        """A commit with this manifest and these files; its full id."""
        for path, content in (FILES if files is None else files).items():
            self.write(path, content)
        content = definition if isinstance(definition, str) else yaml.safe_dump(definition or MANIFEST)
        self.write("factory.yaml", content)
        git(self.folder, "add", "-A")
        git(self.folder, "commit", "-q", "--allow-empty", "-m", "a change")
        return git(self.folder, "rev-parse", "HEAD")


class Registry:
    """A tenant with a policy and a repository; each method goes one step further."""

    def __init__(self, tenant_id: str, folder: Path) -> None:
        self.w: World = world(tenant_id)
        adopt_platform_policy(self.w.system())
        self.repository = Repository(folder / "repository")

    def submit(self, version: str = "1.0.0", ctx: Context | None = None, **changes: Any) -> UUID:
        definition = manifest(version=version, **changes)
        commit = self.repository.commit(definition)
        made = submit_release(
            ctx or self.w.requester,
            asset=definition["asset"],
            version=version,
            repository=self.repository.url,
            commit=commit,
        )
        return UUID(made)

    def resolved(self, version: str = "1.0.0", **changes: Any) -> UUID:
        release_id = self.submit(version, **changes)
        resolve(self.w.tenant, release_id)
        return release_id

    def evaluate(self, release_id: UUID, score: float = 1.0, **changes: Any) -> dict[str, str]:
        values: dict[str, Any] = {
            "release_hash": self.view(release_id).hash,
            "suite": "smoke",
            "suite_version": "1.0.0",
            "scores": {"found": score},
            "evidence_hash": digest("evidence"),
            **changes,
        }
        return record_evaluation(self.w.requester, release_id=release_id, **values)

    def in_review(self, version: str = "1.0.0", **changes: Any) -> UUID:
        release_id = self.resolved(version, **changes)
        self.evaluate(release_id)
        request_review(self.w.requester, release_id=release_id)
        return release_id

    def decide(self, release_id: UUID, decision: str = "approve", ctx: Context | None = None) -> Any:
        by = ctx or self.w.reviewer
        with reading(by):
            asked = approval(self.view(release_id).approval_id)
        return decide_approval(
            by,
            approval_id=asked.id,
            decision=decision,
            version=asked.version,
            proposal_hash=asked.proposal_hash,
            reason="as reviewed",
        )

    def published(self, version: str = "1.0.0", **changes: Any) -> UUID:
        release_id = self.in_review(version, **changes)
        self.decide(release_id)
        return release_id

    def view(self, release_id: UUID) -> Any:
        with reading(self.w.system()):
            return release(release_id)

    def row(self, release_id: UUID) -> Any:
        """The row's columns, read as the tenant."""
        from registry.models import Release

        with reading(self.w.system()):
            values = Release.objects.filter(pk=release_id).values().get()
        return SimpleNamespace(**values)

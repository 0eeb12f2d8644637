"""Publishes the report, after a person has agreed to exactly the diff that will be made.

It starts again from the first line after each parking: what was decided is in `context.decision`, what it
needs to propose the same again is in `context.checkpoint`.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .artifacts import AUTHOR, ArtifactRepository
from .compose import render

if TYPE_CHECKING:
    from runs.worker.context import SkillContext
    from runs.worker.wire import DecisionReply

ACTION_CLASS = "shared-write"


def run(context: "SkillContext") -> dict[str, Any]:
    """Propose, park, take the authorization, commit, and prove it."""
    repository = ArtifactRepository(context, _destination(context))
    repository.ensure()
    kept = context.checkpoint or {}
    notes = list(kept.get("notes", []))
    base = kept.get("baseCommit")
    decision = context.decision
    while True:
        if decision is not None and decision.changes_requested:
            notes.append(decision.reason)
            decision, base = None, None
        draft = _draft(context, repository, notes, base or repository.head())
        if decision is None or decision.proposal_hash != context.digest(draft.proposal):
            decision = _ask(context, draft.proposal, notes)
        if decision.changes_requested:
            continue
        if not decision.approved:
            raise context.fail("policy-denied", f"the reviewer said {decision.decision}")
        _must_fit(context, repository, draft)
        if context.authorize(decision, draft.proposal):
            return _commit(context, repository, draft, decision)
        decision = None  # approved too long ago: a person has to look again


def _destination(context: "SkillContext") -> Path:
    named = os.environ.get("FACTORY_ARTIFACT_REPOSITORY", "").strip()
    if not named:
        raise context.fail(
            "permanent", "this worker has no artifact repository: set FACTORY_ARTIFACT_REPOSITORY"
        )
    return Path(os.path.abspath(named))  # noqa: PTH100 - a link stays the name that people know


@dataclass(frozen=True)
class ProposalDraft:
    """A proposal with the bytes and the commit id behind it."""

    proposal: dict[str, Any]
    files: Mapping[str, bytes]
    commit: str


def _draft(
    context: "SkillContext", repository: ArtifactRepository, notes: list[str], base: str
) -> ProposalDraft:
    """Everything that the commit will be. The same report and notes always give the same hash."""
    report = {**context.predecessors["compose"]["report"], "reviewerNotes": notes}
    files = {path: text.encode() for path, text in render(report).items()}
    drafted = repository.draft(base, files)
    commit = str(report["inventory"]["commit"])
    message = f"Assessment of {report['name']} at {commit[:12]}\n\nRun: {context.run_id}\n"
    author = {**AUTHOR, "date": str(report["generatedAt"])}
    proposal = {
        "kind": "unified-diff",
        "repository": str(repository.path),
        "branch": f"factory/assessment-{context.run_id}",
        "baseCommit": base,
        "files": drafted.files,
        "diff": drafted.diff.decode("utf-8"),
        "message": message,
        "author": author,
    }
    return ProposalDraft(proposal, files, repository.commit(drafted.tree, base, message, author, keep=False))


def _ask(context: "SkillContext", proposal: Mapping[str, Any], notes: list[str]) -> "DecisionReply":
    """Parks, unless this very proposal was decided already."""
    changed = ", ".join(f"{file['path']} (+{file['additions']})" for file in proposal["files"])
    name = Path(str(proposal["repository"])).name
    checkpoint = {"notes": notes, "baseCommit": proposal["baseCommit"]}
    answer = context.propose(
        ACTION_CLASS,
        proposal,
        f"commit {changed} to {proposal['branch']} of {name}",
        checkpoint=checkpoint,
    )
    if answer is None:  # a policy below the floor: not ours to trust
        raise context.fail(
            "policy-denied", "a shared write needs a person's decision, and none was asked for"
        )
    return answer


def _must_fit(context: "SkillContext", repository: ArtifactRepository, draft: ProposalDraft) -> None:
    """Whatever can be wrong is found before the authorization is taken."""
    branch = str(draft.proposal["branch"])
    if repository.branch(branch) not in (None, draft.commit):
        raise context.fail("permanent", f"branch {branch} exists already and holds something else")


def _commit(
    context: "SkillContext", repository: ArtifactRepository, draft: ProposalDraft, decision: "DecisionReply"
) -> dict[str, Any]:
    """Make the commit that was approved, or nothing."""
    proposal = draft.proposal
    base, branch = str(proposal["baseCommit"]), str(proposal["branch"])
    drafted = repository.draft(base, draft.files, keep=True)
    if drafted.diff != str(proposal["diff"]).encode():
        context.no_effect("git-commit", decision, "the commit would not be what was approved")
        raise context.fail("permanent", "the commit would not be what was approved; nothing was written")
    commit = repository.commit(drafted.tree, base, str(proposal["message"]), proposal["author"])
    there = repository.branch(branch) == commit
    if not there:
        repository.create_branch(f"refs/heads/{branch}", commit)
    result = {"repository": str(repository.path), "branch": branch, "commit": commit, "baseCommit": base}
    context.effect("git-commit", decision, {**result, "alreadyThere": there})
    return {
        **result,
        "report": f"{branch}:report.md",
        "files": proposal["files"],
        "approvalId": decision.approval_id,
        "proposalHash": decision.proposal_hash,
    }

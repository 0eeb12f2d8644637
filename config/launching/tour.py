"""The guided tour: real runs through the API, told on the terminal, decided by a person or for one."""

import shlex
import time
from typing import Any

from config.launching.api import Api, ApiCallRefused
from config.launching.bundled import WORKFLOW
from config.launching.launcher import Installation
from config.launching.repository import chosen
from config.launching.story import RunTimeline
from factory.embedded.system import EmbeddedError

LIMITS = {"maxCostUsd": 5, "maxMinutes": 30}


class Guide:
    """The tour of one installation: the requester's and the reviewer's side of it."""

    def __init__(self, installation: Installation) -> None:
        self.installation = installation
        self.terminal, self.world = installation.terminal, installation.world
        tokens = self.world["tokens"]
        self.requester = Api(installation.plan.web_url, tokens["requester"])
        self.reviewer = Api(installation.plan.web_url, tokens["reviewer"])

    def submit(self) -> RunTimeline:
        """Submit an assessment of the repository that was named, or of this one."""
        options = self.installation.options
        repository, label = chosen(options)
        wanted = {"repository": repository} | ({"revision": options.revision} if options.revision else {})
        accepted = self.requester.post(
            "/runs",
            {
                "workflowId": WORKFLOW,
                "releaseAlias": self.world["release"]["alias"],
                "modelProfileId": "code-agent",
                "environmentId": self.world["environments"]["test"],
                "input": wanted,
                "limits": LIMITS,
            },
        )
        self.terminal.heading(f"run {accepted['runId']}  {WORKFLOW} of {label}")
        return self.story(accepted["runId"])

    def story(self, run_id: str) -> RunTimeline:
        return RunTimeline(self.requester, self.terminal, run_id, self.world["release"])

    def approve(self, approval: dict[str, Any]) -> None:
        """Decide as the reviewer, on exactly the version and hash that the API shows."""
        shown = self.reviewer.get(f"/approvals/{approval['approvalId']}")
        self.reviewer.post(
            f"/approvals/{approval['approvalId']}/decision",
            {
                "decision": "approve",
                "version": shown["version"],
                "proposalHash": shown["proposalHash"],
                "reason": "Read the diff; it is the report and nothing else.",
            },
        )
        self.terminal.detail(f"approved as {self.world['emails']['reviewer']}, through the API")

    def point_to(self, approval: dict[str, Any]) -> None:
        """Say where a person decides, and as whom."""
        page = f"{self.installation.plan.web_url}/admin/approvals/approvalrequest/{approval['approvalId']}/"
        email, password = self.world["emails"]["reviewer"], self.world["passwords"]["reviewer"]
        self.terminal.detail(f"decide: {page}   sign in as {email}, password {password}")

    def tell_ways_in(self) -> None:
        """Print who there is, how a program gets a token, and how it all ends."""
        scope = self.world
        people = ", ".join(email for part, email in scope["emails"].items() if part != "reviewer")
        secrets = self.installation.plan.home / "secrets"
        self.terminal.detail(f"also there: {people}; passwords in {shlex.quote(str(secrets))}/password-*")
        self.terminal.detail(
            ".venv/bin/python manage.py issue_token --tenant demo --project factory "
            f"--subject {scope['emails']['requester']}   a token for the API, described at "
            f"{self.installation.plan.web_url}/factory/docs"
        )
        self.terminal.detail("Ctrl-C stops everything; the data stays")

    def finish(self, story: RunTimeline) -> str:
        """Carry a run to its end, with the reviewer's consent."""
        return story.follow(self.installation.stopping, self.approve)

    def tell_report(self, story: RunTimeline) -> None:
        found = story.run.get("output") or {}
        if story.state == "Completed" and found.get("commit"):
            self.terminal.detail(f"report: {report_command(found)}")


def report_command(output: dict[str, Any]) -> str:
    """Return what to type to read the report, whatever is in the path."""
    return shlex.join(["git", "-C", str(output.get("repository")), "show", str(output.get("report"))])


def show_around(installation: Installation) -> int:
    """`up`: carry a first run to its end, and leave a second one waiting for a person."""
    guide = Guide(installation)
    try:
        waiting = list(guide.requester.items("/runs", state="WaitingForApproval"))
        if waiting and not installation.options.repository:
            stories = [guide.story(run["runId"]) for run in waiting[:1]]
            installation.terminal.heading(f"run {waiting[0]['runId']}  still waits for a decision")
        else:
            if not any(guide.requester.items("/runs", state="Completed")):
                first = guide.submit()
                guide.finish(first)
                guide.tell_report(first)
            stories = [guide.submit()]
        guide.tell_ways_in()
        for story in stories:
            story.follow(installation.stopping, guide.point_to)
            guide.tell_report(story)
    except (ApiCallRefused, EmbeddedError) as refusal:
        if not installation.stopping.is_set():
            installation.terminal.fault(str(refusal))
            return 1
    return 0


def carry_one_to_the_end(installation: Installation) -> int:
    """`demo`: one run from submission to Completed; its last line is for programs."""
    guide, began = Guide(installation), time.monotonic()
    try:
        story = guide.submit()
        state = guide.finish(story)
    except (ApiCallRefused, EmbeddedError) as refusal:
        installation.terminal.fault(str(refusal))
        return 1
    guide.tell_report(story)
    if installation.stopping.is_set() and state != "Completed":
        installation.terminal.fault("Interrupted. The run goes on with the next `make up`.")
        return 1
    if state != "Completed":
        installation.terminal.fault(f"The run ended as {state}: {story.run['reason'] or 'no reason given'}")
        return 1
    installation.result.update(summary(guide, story, time.monotonic() - began))
    return 0


def summary(guide: Guide, story: RunTimeline, seconds: float) -> dict[str, Any]:
    run, output = story.run, story.run.get("output") or {}
    return {
        "runId": run["runId"],
        "state": run["state"],
        "releaseId": run["releaseId"],
        "policyRevision": run["policyRevision"],
        "snapshotId": run["snapshotId"],
        "journalEntries": run["sequence"],
        "approvals": sum(1 for _ in guide.reviewer.items("/approvals", runId=run["runId"])),
        "costUsd": float(run["usage"]["cost"]["amount"]),
        "report": report_command(output),
        "seconds": round(seconds, 2),
    }

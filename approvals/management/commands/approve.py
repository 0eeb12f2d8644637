"""Decide from the command line, as one of the project's members: first read, then answer what was read."""

import json
from argparse import ArgumentParser
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError

from approvals import selectors
from approvals.commands import decide_approval
from approvals.policy.messages import format_rule
from approvals.selectors import ApprovalView
from approvals.states import Decision
from factory.console.show import pretty, seen
from factory.kernel.context import Context
from factory.kernel.errors import DomainError
from factory.kernel.tenancy import reading
from factory.management.acting import acting_as

SCOPES = frozenset({"factory.approvals.read", "factory.approvals.decide"})


class Command(BaseCommand):
    help = (
        "Show an approval request; with --seen-version and --proposal-hash, as shown, decide on it. "
        "The same rules hold as in the console."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("approval", type=UUID, help="the id of the request")
        parser.add_argument("--tenant", required=True)
        parser.add_argument("--project", required=True, help="the project's slug")
        parser.add_argument("--as", dest="subject", required=True, help="the subject who decides")
        parser.add_argument("--decision", choices=Decision.values, default=Decision.APPROVE.value)
        parser.add_argument("--seen-version", type=int, help="the version that was shown")
        parser.add_argument("--proposal-hash", help="the hash that was shown")
        parser.add_argument("--reason", default="")
        parser.add_argument("--break-glass", action="store_true", help="outside the rule; needs a reason")
        parser.add_argument("--json", action="store_true", help="for scripts")

    def handle(self, *args: Any, **options: Any) -> None:
        ctx = acting_as(
            options["subject"], tenant_id=options["tenant"], project=options["project"], scopes=SCOPES
        )
        version, proposal_hash = options["seen_version"], options["proposal_hash"]
        if version is None or proposal_hash is None:
            self._show(ctx, options)
            return
        try:
            view = decide_approval(
                ctx,
                approval_id=options["approval"],
                decision=options["decision"],
                version=version,
                proposal_hash=proposal_hash,
                reason=options["reason"],
                break_glass=options["break_glass"],
            )
        except DomainError as refusal:
            raise CommandError(f"{refusal.title}. {format_rule(refusal.detail)}") from refusal
        self._tell(view, as_json=options["json"])

    def _show(self, ctx: Context, options: dict[str, Any]) -> None:
        """Show what would be decided, and how to say it: nothing is, before it has been read.

        Who may not decide on what waits reads it all the same, and the command fails with the reason.
        """
        with reading(ctx):
            row = selectors.visible(ctx).filter(pk=options["approval"]).first()
            if row is None:
                raise CommandError("There is no such approval here.")
            view = selectors.approval_view(row)
            no = selectors.refusal_for(ctx, view, break_glass=options["break_glass"])
            content = selectors.proposal(view.id).content if selectors.may_see_proposal(ctx, view) else None
        if options["json"]:
            facts = self._facts(view) | {"proposal": content, "whyNot": no.detail if no else ""}
            self.stdout.write(json.dumps(facts))
        else:
            self._read_out(view, content, may_decide=no is None)
        if no is not None and view.is_pending:
            raise CommandError(f"You may not decide: {format_rule(no.detail)}")

    def _read_out(self, view: ApprovalView, content: dict[str, Any] | None, *, may_decide: bool) -> None:
        self.stdout.write(f"{view.action_class}: {seen(view.summary)} ({view.state})")
        self.stdout.write(f"asked by {view.requested_by}, until {view.expires_at:%d %b %Y %H:%M:%S} UTC")
        self.stdout.write(_readable(content) if content is not None else "Its content is not for you.")
        if may_decide and view.is_pending:
            seen_here = f"--seen-version {view.version} --proposal-hash {view.proposal_hash}"
            self.stdout.write(f"To decide on exactly this: {seen_here}")

    def _tell(self, view: ApprovalView, *, as_json: bool) -> None:
        if as_json:
            self.stdout.write(json.dumps(self._facts(view)))
        elif view.is_pending:
            self.stdout.write(f"Kept: {view.votes} of {view.quorum} have approved.")
        else:
            self.stdout.write(f"{view.state} by {view.decided_by}.")

    def _facts(self, view: ApprovalView) -> dict[str, Any]:
        return {
            "approvalId": str(view.id),
            "state": view.state,
            "decision": view.decision,
            "decidedBy": view.decided_by,
            "onBehalfOf": view.decided_for,
            "breakGlass": view.break_glass,
            "votes": view.votes,
            "quorum": view.quorum,
            "version": view.version,
            "proposalHash": view.proposal_hash,
        }


def _readable(content: dict[str, Any]) -> str:
    """Return the proposal as a person reads it: a diff or a message line by line, last."""
    long = {key: text for key, text in content.items() if isinstance(text, str) and "\n" in text.strip()}
    facts = {key: value for key, value in content.items() if key not in long}
    return "\n".join([seen(pretty(facts)), *(_quoted(key, text) for key, text in long.items())])


def _quoted(key: str, text: str) -> str:
    """Return each line behind a bar, so that none of them can pass for a line of this command."""
    lines = "\n".join(f"  | {line}" for line in seen(text).split("\n"))
    return f"{seen(key)}:\n{lines}"

"""Read, compare, explain and publish policy at the terminal, as one of the project's members."""

import json
from argparse import ArgumentParser, ArgumentTypeError
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from approvals import selectors
from approvals.commands import publish_policy_revision
from approvals.policy import document as documents
from approvals.policy.comparing import compare
from approvals.policy.loosening import loosened
from approvals.policy.messages import THEN, duration, format_rule
from approvals.selectors.explaining import about_money
from approvals.states import ActionClass, Effect
from factory.console.show import seen
from factory.kernel.context import Context
from factory.kernel.errors import DomainError
from factory.kernel.permissions import authorize
from factory.kernel.tenancy import reading
from factory.management.acting import acting_as

SCOPES = frozenset({"factory.projects.read", "factory.projects.write"})


def _usd(text: str) -> Decimal:
    try:
        amount = Decimal(text)
    except InvalidOperation as fault:
        raise ArgumentTypeError(f"{text!r} is no amount of USD, such as 12.50") from fault
    if not amount.is_finite() or amount < 0:
        raise ArgumentTypeError(f"{text!r} is no amount of USD, such as 12.50")
    return amount


class Command(BaseCommand):
    help = "Show a policy revision, compare two, explain what would happen to an action, or publish the next."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--tenant", required=True)
        parser.add_argument("--project", required=True, help="the project's slug")
        parser.add_argument("--as", dest="subject", required=True, help="the subject who asks")
        acts = parser.add_subparsers(dest="act", required=True)
        show = acts.add_parser("show", help="the document as YAML")
        show.add_argument("revision", nargs="?", default="", help="such as r1; without it the one in force")
        both = acts.add_parser("compare", help="what two revisions say differently")
        both.add_argument("before")
        both.add_argument("after")
        explain = acts.add_parser("explain", help="what would happen, why, and who could decide right now")
        explain.add_argument("action_class", choices=ActionClass.values)
        explain.add_argument("--environment", default=None, help="an environment's slug; without it in none")
        explain.add_argument("--requester", default="", help="the subject who would ask")
        explain.add_argument("--revision", default="", help="such as r1; without it the one in force")
        explain.add_argument("--amount", type=_usd, help="what a run may cost in USD, of class spend")
        publish = acts.add_parser("publish", help="the next revision, from a file")
        publish.add_argument("file", type=Path)
        publish.add_argument("--note", default="", help="what changes, and why")

    def handle(self, *args: Any, **options: Any) -> None:
        ctx = acting_as(
            options["subject"], tenant_id=options["tenant"], project=options["project"], scopes=SCOPES
        )
        try:
            getattr(self, f"_{options['act']}")(ctx, options)
        except DomainError as refusal:
            faults = "".join(f"\n  {one.pointer or '/'}: {seen(one.detail)}" for one in refusal.errors)
            told = (
                refusal.detail
                if refusal.detail.startswith(refusal.title)
                else f"{refusal.title}. {refusal.detail}"
            )
            raise CommandError(f"{told}{faults}") from refusal

    def _show(self, ctx: Context, options: dict[str, Any]) -> None:
        authorize(ctx, "ReadPolicyRevision")
        with reading(ctx):
            policy = self._named(ctx, options["revision"])
        self.stdout.write(f"# {policy.revision}, {policy.document_hash}")
        self.stdout.write(seen(documents.written(policy.document)))

    def _compare(self, ctx: Context, options: dict[str, Any]) -> None:
        authorize(ctx, "ReadPolicyRevision")
        with reading(ctx):
            before, after = (selectors.policy_named(options[key]) for key in ("before", "after"))
            weaker = loosened(before.document, after.document, selectors.slugs_of_tenant())
        differences = compare(before.document, after.document)
        for difference in differences:
            self.stdout.write(seen(f"{difference.place}\n  - {difference.before}\n  + {difference.after}"))
        if not differences:
            self.stdout.write("They say the same.")
        if weaker:
            lines = ["What is looser, or lost:", *(f"  {text}" for text in weaker)]
            self.stdout.write(seen("\n".join(lines)))

    def _explain(self, ctx: Context, options: dict[str, Any]) -> None:
        authorize(ctx, "EvaluatePolicy")
        with reading(ctx):
            explanation = selectors.explain(
                self._named(ctx, options["revision"]),
                options["action_class"],
                project_id=ctx.project_id,
                environment=options["environment"],
                requested_by=options["requester"],
                amount=options["amount"],
            )
        verdict, where = explanation.verdict, explanation.environment or "no environment"
        self.stdout.write(f"{explanation.action_class} in {where}: {verdict.effect}")
        self.stdout.write(f"because of {format_rule(verdict.rule)}, policy {explanation.policy.revision}")
        for sentence in about_money(explanation):
            self.stdout.write(sentence)
        if verdict.effect != Effect.REQUIRE_APPROVAL:
            return
        waits = duration(verdict.expires_in)
        by = format_rule(verdict.approver_rule)
        self.stdout.write(f"decided by {by}; waits {waits}, {THEN[verdict.on_expiry]}")
        for who in explanation.candidates:
            why = "may decide" if who.may_decide else format_rule(who.why_not)
            self.stdout.write(seen(f"  {who.subject} ({', '.join(who.roles)}): {why}"))
        if not any(who.may_decide for who in explanation.candidates):
            self.stdout.write("Nobody could decide now: the request would wait until it expires.")
        self.stdout.write(explanation.advance)
        for waiver in explanation.waived:
            release = waiver.release_name
            self.stdout.write(seen(f"  waiver {waiver.id} of {waiver.template_name} with {release}"))
            serves = f"serves all but runs of {', '.join(waiver.never_for)}"
            self.stdout.write(
                seen(f"    until {waiver.expires_at:%d %b %Y %H:%M:%S} UTC: {waiver.why_not or serves}")
            )

    def _publish(self, ctx: Context, options: dict[str, Any]) -> None:
        try:
            text = options["file"].read_text("utf-8")
        except (OSError, UnicodeDecodeError) as fault:
            raise CommandError(f"{options['file']} cannot be read: {fault}") from fault
        word = publish_policy_revision(ctx, document=documents.read(text), note=options["note"])
        with reading(ctx):
            policy = selectors.policy_named(word)
        answer = {"revision": word, "documentHash": policy.document_hash, "warnings": list(policy.warnings)}
        self.stdout.write(json.dumps(answer))

    def _named(self, ctx: Context, word: str) -> selectors.PolicyView:
        return selectors.policy_named(word) if word else selectors.current_policy(ctx)

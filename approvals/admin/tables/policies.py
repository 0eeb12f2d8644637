"""Pages of the policy: what holds, what changed, what would happen, and a new revision."""

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import Truncator

from approvals import selectors
from approvals.admin.detail.answers import MEANS, answer, changed_answers, rule_in_words
from approvals.commands import publish_policy_revision
from approvals.commands.policy import may_publish
from approvals.models import PolicyRevision
from approvals.policy import document as documents
from approvals.policy.comparing import compare
from approvals.policy.loosening import loosened
from approvals.policy.messages import SHORT
from approvals.policy.patterns import ANYWHERE
from approvals.states import ActionClass, Effect
from factory.console.asking import not_understood
from factory.console.base import OwnPageAdmin
from factory.console.confirming import Act
from factory.console.diffs import Diff, for_page
from factory.console.links import names
from factory.console.lists.columns import Column, column
from factory.console.lists.pages import BaseList
from factory.console.page_extensions import able
from factory.console.scope import context_of
from factory.console.show import seen, short, tone, when
from factory.console.site import site
from factory.console.textdiff import between
from factory.kernel.errors import DomainError, FieldError, InvalidInput
from factory.kernel.permissions import may
from factory.kernel.tenancy import reading
from projects.selectors import environments
from projects.states import Role

able(
    25, "Decide past the rule, by break-glass", roles=(Role.PLATFORM_ADMIN,), own=True,
    note="With a reason, marked for good, and never on what they asked for.",
)  # fmt: skip
able(
    55, "Publish the tenant's policy", by="PublishPolicyRevision", everywhere=True, own=True,
    note="Whoever is WorkspaceAdmin in the whole tenant, or in each of its projects; never by a lent role.",
)  # fmt: skip


@names("policy-revision")
def revision_names(keys: Sequence[UUID]) -> dict[UUID, str]:
    """Policy revisions by their number: r2."""
    rows = PolicyRevision.objects.filter(pk__in=keys).only("number")
    return {row.id: row.revision for row in rows}


OUT_OF_REACH = (
    "The policy holds in every project: a workspace admin of the whole tenant publishes it, or one of each "
    "of its projects."
)
KNOWN = 200
"""So many of the newest revisions can be chosen from; older ones by a link."""
_USD = re.compile(r"[0-9]{1,12}(\.[0-9]{1,6})?", re.ASCII)


class RevisionList(BaseList):
    """A page of revisions, each with the one that followed it: the newest alone is in force."""

    @staticmethod
    def carry(request: HttpRequest, rows: list[Any]) -> None:
        numbers = [row.number + 1 for row in rows]
        after = selectors.policy_revisions().filter(number__in=numbers).defer("document")
        known = {one.number: one.revision for one in after}
        for row in rows:
            row.followed_by = known.get(row.number + 1, "")


@admin.register(PolicyRevision, site=site)
class PolicyAdmin(OwnPageAdmin[PolicyRevision]):
    lead = "What is allowed, what needs a person, and who that is. A revision never changes."

    view_operation = "ListPolicyRevisions"
    own_page = "approvals/policy.html"
    list_display = ("revision", "standing", "note", "published_by", "at", "hash")
    file_columns = ("revision", "note", "published_by", "at", "hash", "standing")
    heading = "Policy"
    nothing_yet = "Publish a new revision makes the first one. Until then nothing is allowed."
    search_fields = ("note", "published_by")
    search_help_text = "Words of the note, or who published"
    ordering = ("-number",)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[BaseList]:
        return RevisionList

    @column("standing", lambda row: f"followed by {row.followed_by}" if row.followed_by else "in force")
    def standing(self, row: Any) -> SafeString:
        if row.followed_by:
            return format_html('<span class="fc-soft">followed by {}</span>', row.followed_by)
        return SafeString('<span class="fc-badge good"><span aria-hidden="true">✓</span>in force</span>')

    revision = Column("revision", "revision")
    at = Column("published", "published_at", when)
    hash = Column("hash", "document_hash", short)

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        own = [
            path("explain/", view(self.explain_view), name="approvals_policy_explain"),
            path("compare/", view(self.compare_view), name="approvals_policy_compare"),
            path("publish/", view(self.publish_view), name="approvals_policy_publish"),
        ]
        return [*own, *super().get_urls()]

    def acts(self, request: HttpRequest, row: PolicyRevision | None) -> list[Act]:
        found = [Act("What would happen?", reverse("admin:approvals_policy_explain"))]
        if row is not None and row.number > 1:
            pair = f"?before=r{row.number - 1}&after={row.revision}"
            found.append(Act("What it changed", reverse("admin:approvals_policy_compare") + pair))
        if may_publish(context_of(request)):
            found.append(Act("Publish a new revision", reverse("admin:approvals_policy_publish")))
        return found

    def told_of(self, request: HttpRequest, row: PolicyRevision) -> dict[str, Any]:
        return {
            "title": f"Policy revision {row.revision}",
            "rules": [
                (number, rule, rule_in_words(rule), tone(effect), SHORT[effect])
                for number, rule in enumerate(row.document["rules"], start=1)
                for effect in (Effect(rule["effect"]),)
            ],
            "after": selectors.revision_after(row.number),
            "anywhere": ANYWHERE,
            "text": documents.written(row.document),
        }

    def compare_view(self, request: HttpRequest) -> Any:
        """Two revisions, by what they say about each class and environment."""
        self._require(request, "ReadPolicyRevision")
        return self.in_scope(request, lambda: self._compared(request))

    def _compared(self, request: HttpRequest) -> TemplateResponse:
        known = _known()
        words = [word for word, _ in known]
        newest = words[0] if words else ""
        after = _revision(request, "after", newest)
        before = _revision(request, "before", words[1] if len(words) > 1 else newest)
        try:
            pair = selectors.policy_named(before), selectors.policy_named(after)
        except DomainError as missing:
            raise Http404(missing.detail) from missing  # there is none at all
        context = {"known": known, "before": pair[0], "after": pair[1]}
        context |= _differences(pair[0].document, pair[1].document)
        return self._shown(request, "approvals/compare.html", f"Policy: from {before} to {after}", context)

    def explain_view(self, request: HttpRequest) -> Any:
        """Show what would happen to an action, why, and who could decide about it right now."""
        self._require(request, "EvaluatePolicy")
        return self.in_scope(request, lambda: self._explained(request))

    def _explained(self, request: HttpRequest) -> TemplateResponse:
        ctx, sent = context_of(request), request.GET
        places = sorted({one.slug for one in environments(ctx.project_id)})
        context: dict[str, Any] = {"classes": MEANS.items(), "slugs": places, "sent": sent, "known": _known()}
        status, place = 200, sent.get("environment", "")
        if place and place not in places:
            told_so = "The answer is what the rules say about that name."
            not_understood(request, f"There is no environment “{place[:60]}” here.", told_so)
        spends = sent.get("class") == ActionClass.SPEND
        if sent.get("class"):
            try:
                word = sent.get("revision", "").strip()
                policy = selectors.policy_named(word) if word else selectors.current_policy(ctx)
                told = selectors.explain(
                    policy,
                    sent["class"],
                    project_id=ctx.project_id,
                    environment=sent.get("environment") or None,
                    requested_by=sent.get("requester", "").strip(),
                    amount=_amount(sent.get("amount", "").strip()) if spends else None,
                )
                context |= {
                    "may": [one for one in told.candidates if one.may_decide],
                    "may_not": [one for one in told.candidates if not one.may_decide],
                }
                context |= {"told": told, "answer": answer(told), "means": MEANS[ActionClass(sent["class"])]}
            except DomainError as refusal:
                context["refusal"], status = refusal, refusal.http_status
        return self._shown(request, "approvals/explain.html", "Policy: what would happen?", context, status)

    def publish_view(self, request: HttpRequest) -> Any:
        """Write the next revision: checked, compared with the one in force, then published."""
        ctx, sent = context_of(request), request.POST
        with reading(ctx):
            if not may_publish(ctx):
                raise PermissionDenied(OUT_OF_REACH)
        refusal, found = None, None
        differences: dict[str, Any] = {}
        if request.method == "POST":
            try:
                found = documents.read(sent.get("document", ""))
                documents.check(found)
                if sent.get("act") == "publish":
                    word = publish_policy_revision(ctx, document=found, note=sent.get("note", ""))
                    return self._published(request, word)
            except DomainError as fault:
                refusal = fault
        with reading(ctx):
            newest = selectors.policy_revisions().first()
            if found is not None and refusal is None and newest is not None:
                differences = _differences(newest.document, found)
        context = {
            "refusal": refusal,
            **differences,
            "newest": newest,
            "text": sent.get("document") or (documents.written(newest.document) if newest else ""),
            "note": sent.get("note", ""),
        }
        status = refusal.http_status if refusal else 200
        return self._shown(
            request, "approvals/publish.html", "Publish a new policy revision", context, status
        )

    def _published(self, request: HttpRequest, word: str) -> HttpResponse:
        with reading(context_of(request)):
            row = selectors.policy_named(word)
        self.message_user(
            request, f"{word} is in force: runs that are accepted from now on are pinned to it."
        )
        return HttpResponseRedirect(reverse("admin:approvals_policyrevision_change", args=[row.id]))

    def _require(self, request: HttpRequest, operation: str) -> None:
        if not may(context_of(request), operation):
            raise PermissionDenied("Members of the tenant read its policy.")

    def _shown(
        self, request: HttpRequest, template: str, title: str, context: dict[str, Any], status: int = 200
    ) -> TemplateResponse:
        common = {**self.admin_site.each_context(request), "title": title, "opts": self.opts}
        return TemplateResponse(request, template, {**common, **context}, status=status)


def _amount(text: str) -> Decimal | None:
    """Return the amount that the address asks about, if it names one."""
    if not text:
        return None
    if not _USD.fullmatch(text):
        problem = "An amount is digits, perhaps with a point and cents, such as 12.50."
        raise InvalidInput(problem, errors=[FieldError("/amount", problem)])
    return Decimal(text)


def _revision(request: HttpRequest, name: str, default: str) -> str:
    """The revision that the address names, if there is one of that name."""
    wanted = request.GET.get(name, "")
    try:
        return selectors.policy_named(wanted).revision if wanted else default
    except DomainError:
        told = f"There is no policy revision “{wanted[:60]}” here."
        not_understood(request, told, f"{default} stands in its place.")
        return default


def _known() -> list[tuple[str, str]]:
    """The newest revisions, each by its word, with what helps to choose one."""
    rows = list(selectors.policy_revisions().defer("document")[:KNOWN])
    return [(row.revision, _about(row, in_force=row is rows[0])) for row in rows]


def _about(row: PolicyRevision, *, in_force: bool) -> str:
    """In a line that a phone shows whole."""
    since = "in force" if in_force else f"{row.published_at:%d %b %Y}"
    note = f": {seen(row.note)}" if row.note else ""
    return Truncator(f"{row.revision}, {since}{note}").chars(40)


def _differences(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """All that a page says about two documents side by side."""
    slugs = selectors.slugs_of_tenant()
    answers, same = changed_answers(before, after, slugs)
    text = between("policy.yaml", documents.written(before), documents.written(after))
    return {
        "differences": compare(before, after),
        "weaker": loosened(before, after, slugs),
        "answers": answers,
        "same": same,
        "diff": for_page(Diff([text])) if before != after else None,
    }

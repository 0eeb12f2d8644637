"""Pages of releases: what they contain, what was measured, and which name leads to which."""

from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from factory.admin.base import HouseAdmin
from factory.admin.confirming import Act, Choice, Question, act_on
from factory.admin.scope import context_of
from factory.admin.show import short, when
from factory.admin.site import site
from factory.commanding import Command
from factory.concerns import concerns
from factory.identity.permissions import may
from factory.tenancy import reading
from registry.commands import deprecate_release, revoke_release
from registry.models import Alias, AliasMove, EvaluationRecord, Release
from registry.states import ReleaseState


@admin.register(Release, site=site)
class ReleaseAdmin(HouseAdmin[Release]):
    """Immutable versions of agents, skills and workflows, each fetched from one commit and hashed."""

    view_operation = "ListReleases"
    list_display = ("what", "status", "hash", "from_commit", "author", "made", "problem")
    list_select_related = ("asset", "closure")
    nothing_yet = "A release is submitted from one commit, over the API or with manage.py publish_release."
    list_filter = ("state",)
    search_help_text = "Words of a name or a version; a commit, an author, a hash"
    search_fields = ("asset__name", "semver", "commit", "author", "closure__hash")
    ordering = ("-created_at", "-id")
    fields = (
        "what", "status", "full_hash", "repository", "commit", "manifest_path", "author", "made",
        "evaluated", "contents", "problem",
    )  # fmt: skip
    readonly_fields = fields

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).select_related("asset", "closure", "evaluation")

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        own = [
            path(
                f"<uuid:release_id>/{word}/",
                view(partial(self.end_view, word=word)),
                name=f"registry_{word}",
            )
            for word in ENDS
        ]
        return [*own, *super().get_urls()]

    def acts(self, request: HttpRequest, row: Any) -> list[Act]:
        if row is None:
            return []
        return [
            Act(end.label, reverse(f"admin:registry_{word}", args=[row.pk]), danger=word == "revoke")
            for word, end in ENDS.items()
            if row.state in end.states and may(context_of(request), end.command.name)
        ]

    def end_view(self, request: HttpRequest, release_id: UUID, word: str) -> HttpResponse:
        ctx, end = context_of(request), ENDS[word]
        if not may(ctx, end.command.name):
            raise PermissionDenied("An Operator or an administrator takes releases out of use.")
        with reading(ctx):
            row = self.get_queryset(request).filter(pk=release_id).first()
            found = concerns("release", release_id) if row else {}
        if row is None:
            raise Http404
        back = reverse("admin:registry_release_change", args=[release_id])
        in_flight = request.POST.get("in_flight", "")
        return act_on(
            self.admin_site,
            request,
            lambda: question(end, f"{row.asset.name}@{row.semver}", found, back),
            lambda reason: end.command(ctx, release_id=release_id, in_flight=in_flight, reason=reason),
            done=end.done,
            then=back,
        )

    @admin.display(description="release")
    def what(self, row: Release) -> str:
        return f"{row.asset.name}@{row.semver}"

    @admin.display(description="hash")
    def hash(self, row: Release) -> SafeString:
        return short(row.closure.hash) if row.closure else format_html("not resolved yet")

    @admin.display(description="hash")
    def full_hash(self, row: Release) -> str:
        return row.closure.hash if row.closure else "not resolved yet"

    @admin.display(description="commit")
    def from_commit(self, row: Release) -> SafeString:
        return short(row.commit)

    @admin.display(description="submitted")
    def made(self, row: Release) -> SafeString:
        return when(row.created_at)

    @admin.display(description="fault")
    def problem(self, row: Release) -> str:
        return row.resolution_error or row.ending_reason or "–"

    @admin.display(description="evaluation")
    def evaluated(self, row: Release) -> SafeString:
        record = row.evaluation
        if record is None:
            return format_html("none yet; a release needs a passing one before its review")
        scores = format_html_join(", ", "{} {}", sorted(record.scores.items()))
        return format_html("{} {}: {} ({})", record.suite, record.suite_version, record.verdict, scores)

    @admin.display(description="contents")
    def contents(self, row: Release) -> SafeString:
        if row.closure is None:
            return format_html("–")
        lines = (
            (entry.kind, entry.item_id, entry.path, short(entry.sha256))
            for entry in row.closure.entries.order_by("kind", "item_id", "path")
        )
        return format_html(
            '<div class="fc-scroll"><table class="fc-table"><thead><tr><th>kind</th><th>id</th><th>file</th>'
            "<th>hash</th></tr></thead><tbody>{}</tbody></table></div>",
            format_html_join("", "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>", lines),
        )


@dataclass(frozen=True, slots=True)
class End:
    """A way out of use, and what the page before it says."""

    label: str
    command: Command[Any, Any]
    states: frozenset[str]
    lead: str
    done: str


ENDS = {
    "deprecate": End(
        "Deprecate",
        deprecate_release,
        frozenset({ReleaseState.PUBLISHED}),
        "It takes no new submissions. Runs that pinned it still load it.",
        "The release is deprecated.",
    ),
    "revoke": End(
        "Revoke",
        revoke_release,
        frozenset({ReleaseState.IN_REVIEW, ReleaseState.PUBLISHED, ReleaseState.DEPRECATED}),
        "It is taken back for good: nothing loads it any more, and nothing is authorized with it. That holds "
        "for every release that needs it, too. An alias that names it leads nowhere until it moves.",
        "The release is revoked.",
    ),
}
IN_FLIGHT = (
    ("drain", "drain: they finish"),
    ("block", "block: they fail at once (policy-denied)"),
    ("cancel", "cancel: they are cancelled, and their workers told to stop"),
)


def question(end: End, name: str, found: dict[str, int], back: str) -> Question:
    """The page before the end of a release, with the runs that it would touch."""
    return Question(
        title=f"{end.label} {name}",
        lead=end.lead,
        button=f"{end.label} it",
        back=back,
        facts=[
            ("Open runs that rest on it", found.get("openRuns", 0)),
            ("Attempts held by a worker", found.get("heldAttempts", 0)),
        ],
        fields=[Choice("in_flight", "What becomes of the open runs", IN_FLIGHT)],
    )


@admin.register(EvaluationRecord, site=site)
class EvaluationAdmin(HouseAdmin[EvaluationRecord]):
    """What a suite measured of a release. A record counts only for the hash that it was made for."""

    view_operation = "ListReleases"
    list_display = ("suite", "suite_version", "verdict", "scored", "of", "producer", "at")
    heading = "Evaluations"
    nothing_yet = "Before a release is reviewed, its suite is run and what it measured is recorded here."
    list_filter = ("verdict", "suite")
    search_fields = ("suite", "producer", "release_hash")
    search_help_text = "Words of a suite or a producer, or a release's hash"
    ordering = ("-recorded_at", "-id")

    @admin.display(description="scores")
    def scored(self, row: EvaluationRecord) -> str:
        return ", ".join(f"{name} {score}" for name, score in sorted(row.scores.items()))

    @admin.display(description="release hash")
    def of(self, row: EvaluationRecord) -> SafeString:
        return short(row.release_hash)

    @admin.display(description="recorded")
    def at(self, row: EvaluationRecord) -> SafeString:
        return when(row.recorded_at)


@admin.register(Alias, site=site)
class AliasAdmin(HouseAdmin[Alias]):
    """Names that lead to releases. Moving one affects later submissions only."""

    view_operation = "ReadAlias"
    nothing_yet = "The alias latest comes with the first published release of an asset."
    list_display = ("of", "name", "names", "moves")
    search_fields = ("asset__name", "name", "release__semver")
    search_help_text = "Words of an asset, an alias or a version"
    list_select_related = ("asset", "release")

    @admin.display(description="asset")
    def of(self, row: Alias) -> str:
        return row.asset.name

    @admin.display(description="moves")
    def moves(self, row: Alias) -> SafeString:
        where = reverse("admin:registry_aliasmove_changelist")
        return format_html(
            '<a class="fc-link" href="{}?alias__id__exact={}">{} so far</a>', where, row.id, row.version + 1
        )

    @admin.display(description="names")
    def names(self, row: Alias) -> str:
        return f"{row.asset.name}@{row.release.semver}"


@admin.register(AliasMove, site=site)
class AliasMoveAdmin(HouseAdmin[AliasMove]):
    """Which alias named which release, from when, and who moved it."""

    view_operation = "ReadAlias"
    heading = "Moves of aliases"
    nothing_yet = "Each time that an alias comes to name another release, a row here says so."
    search_fields = ("alias__asset__name", "alias__name", "release__semver", "moved_by")
    search_help_text = "Words of an asset, an alias, a version, or who moved it"
    list_display = ("at", "of", "names", "moved_by")
    list_select_related = ("alias__asset", "release")
    ordering = ("-moved_at", "-id")

    def lookup_allowed(self, lookup: str, value: Any, request: Any = None) -> bool:
        return lookup == "alias__id__exact" or super().lookup_allowed(lookup, value, request)

    @admin.display(description="time")
    def at(self, row: AliasMove) -> SafeString:
        return when(row.moved_at)

    @admin.display(description="alias")
    def of(self, row: AliasMove) -> str:
        return f"{row.alias.asset.name} {row.alias.name}"

    @admin.display(description="names from then on")
    def names(self, row: AliasMove) -> str:
        return row.release.semver

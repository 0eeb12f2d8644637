"""Pages of the evidence: journal and audit log."""

import re
from collections.abc import Collection
from typing import Any, cast
from uuid import UUID

from django.contrib import admin
from django.db.models import Count, QuerySet
from django.http import HttpRequest
from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString

from factory.console.base import BaseAdmin
from factory.console.cards import reads_evidence
from factory.console.links import KINDS, Reference, named, names_of
from factory.console.lists.columns import EMPTY, Column, column
from factory.console.lists.filters import one_of
from factory.console.lists.pages import BaseList
from factory.console.project_of import entries_in, findings_in, kinds_of_projects
from factory.console.scope import as_uuid, context_of
from factory.console.show import badge, cut, seen, short, when
from factory.console.site import site
from factory.evidence.chain_checks import check_chain
from factory.kernel.context import CHANNELS
from factory.kernel.lifecycle import CREATION, lifecycles
from factory.kernel.models import AuditEntry, Finding, JournalEntry, Verification
from factory.kernel.models.journal import OFTEN, SELDOM, AuditOutcome
from factory.kernel.permissions import table


class EvidenceAdmin(BaseAdmin[Any]):
    """Whoever holds the audit grant reads all of it; nobody changes any."""

    view_operation = "ReadAudit"

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_view_permission(request, obj) and reads_evidence(context_of(request))


class Became(one_of("to_state", "became", lambda request: sorted(_kinds_by_state(request)))):  # type: ignore[misc]
    """A state is looked for among the kinds that have it: the index has the kind before the state."""

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().queryset(request, queryset)
        chosen = self.value()
        kinds = _kinds_by_state(request).get(chosen or "", ())
        return rows if chosen is None else _seldom(rows.filter(entity__in=kinds), kinds)


class What(one_of("entity", "what", lambda request: _kinds(request))):  # type: ignore[misc]
    """The kind of thing that changed."""

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().queryset(request, queryset)
        chosen = self.value()
        return rows if chosen is None else _seldom(rows, [chosen])


def _seldom(rows: QuerySet[Any], kinds: Collection[str]) -> QuerySet[Any]:
    """Tell the database that rows change seldom, so that their own indexes serve."""
    return rows if set(kinds) & set(OFTEN) else rows.filter(SELDOM)


def _kinds(request: HttpRequest) -> list[str]:
    """Kinds of things that the journal has entries about; in a project those that can be of one."""
    wide = context_of(request).project_id is None
    return sorted(kind for kind in lifecycles() if wide or kind in kinds_of_projects())


def _kinds_by_state(request: HttpRequest) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name in _kinds(request):
        for state in lifecycles()[name].states:
            found.setdefault(state, []).append(name)
    return found


class OfThings(BaseList):
    """Evidence about things of a project: no index knows which it is, so it is found among the tenant's."""

    def walked_in(self, request: HttpRequest) -> QuerySet[Any]:
        return cast("QuerySet[Any]", self.model._default_manager.all())


class NamedJournal(OfThings):
    """Entries with what the things are called that people know by a name, asked for with a query a kind."""

    @staticmethod
    def carry(request: HttpRequest, rows: list[Any]) -> None:
        named: dict[UUID, str] = {}
        for kind in ("alias", "policy-revision"):
            named |= names_of(kind, [row.entity_id for row in rows if row.entity == kind])
        for row in rows:
            row.called = named.get(row.entity_id, "")


class NamedAudit(BaseList):
    """Hold the same for what the audit log speaks of."""

    @staticmethod
    def carry(request: HttpRequest, rows: list[Any]) -> None:
        about = {row.id: row.subject.partition(":") for row in rows}
        keys = [as_uuid(key) for kind, _, key in about.values() if kind == "policy-revision"]
        named = names_of("policy-revision", [key for key in keys if key is not None])
        for row in rows:
            key = as_uuid(about[row.id][2])
            row.called = named.get(key, "") if key else ""


@admin.register(JournalEntry, site=site)
class JournalAdmin(EvidenceAdmin):
    """Every change of state, as it was recorded: who did it, why, and its place in a chain of hashes."""

    heading = "Journal"
    shows_stored = True
    readonly_fields = ("checked",)
    nothing_yet = (
        "Each change of state of a run, an approval, a release or a budget writes an entry here by itself. "
        "The first of them brings the first entry. What happened to things of other projects, or of none, "
        "stands where the whole tenant is chosen."
    )
    large = True
    list_display = ("at", "which", "moved", "why", "actor", "place")
    list_filter = (
        What,
        Became,
    )
    whole_ids = ("entity_id", "id")
    search_fields = ("entity_id", "stream_id")
    search_help_text = "The whole id of a run, a step, an approval …"
    ordering = ("-occurred_at", "-id")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows, project_id = super().get_queryset(request), context_of(request).project_id
        return rows if project_id is None else entries_in(rows, project_id)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[BaseList]:
        return NamedJournal

    def headline(self, row: JournalEntry) -> str:
        kind, why = words_of(row.entity), _because(row).lower()
        if row.from_state == row.to_state:
            return f"{kind}, still {row.to_state}: {why}"
        before = "" if row.from_state == CREATION else f"{row.from_state} → "
        return f"{kind}: {before}{row.to_state} ({why})"

    at = Column("time", "occurred_at", when)

    @admin.display(description="this chain, recomputed now")
    def checked(self, row: JournalEntry) -> str:
        return check_chain("journal", row.stream_id).words

    which = Column(
        "what",
        lambda row: Reference(row.entity, row.entity_id, row.stream_id, called=row.called),
        conditional_escape,
    )

    @column("became", lambda row: " after ".join(_moved(row)))
    def moved(self, row: JournalEntry) -> SafeString | str:
        """Nothing of what was only noted: it has become nothing else."""
        became = _moved(row)
        if len(became) == 2:
            return format_html('{} <small class="fc-soft">after {}</small>', badge(row.to_state), became[1])
        return badge(row.to_state) if became else EMPTY

    why = Column("because", lambda row: _because(row))

    @column("entry", lambda row: f"no. {row.sequence} {row.hash}")
    def place(self, row: JournalEntry) -> SafeString:
        return format_html('<span class="fc-nowrap">no. {} {}</span>', row.sequence, short(row.hash))


@admin.register(AuditEntry, site=site)
class AuditAdmin(EvidenceAdmin):
    lead = "Who did or tried what, by which way, and what came of it: also what was refused."

    heading = "Audit log"
    shows_stored = True
    readonly_fields = ("checked",)
    nothing_yet = "Whatever anybody does here, or tries and may not, is written down by itself."
    large = True
    list_display = ("at", "actor", "what", "about_", "result", "told", "way_in")
    list_filter = (
        one_of("outcome", "outcome", AuditOutcome.values),
        one_of("action", "action", lambda request: sorted(table)),
        one_of("channel", "way in", CHANNELS),
    )
    whole_ids = ("subject", "id")
    search_fields = ("actor", "subject")
    search_help_text = "A whole address of a person, or the whole id of what it was about"
    ordering = ("-occurred_at", "-id")

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[BaseList]:
        return NamedAudit

    def get_search_results(self, request: HttpRequest, queryset: Any, search_term: str) -> tuple[Any, bool]:
        """An id alone is looked for under every kind of thing that the log speaks of."""
        key = as_uuid(search_term.strip())
        if key is None:
            return super().get_search_results(request, queryset, search_term)
        return queryset.filter(subject__in=[str(key), *(f"{kind}:{key}" for kind in KINDS)]), False

    def headline(self, row: AuditEntry) -> str:
        return f"{row.actor}: {words_of(row.action).lower()}, {row.outcome}"

    @admin.display(description="this chain, recomputed now")
    def checked(self, row: AuditEntry) -> str:
        return check_chain("audit", row.stream_id).words

    what = Column("did", lambda row: _did(row))
    about_ = Column(
        "about", lambda row: named(row.subject, called=getattr(row, "called", "")), conditional_escape
    )

    told = Column("reason", "reason", lambda reason: cut(reason, 200))
    at = Column("time", "occurred_at", when)
    result = Column("outcome", "outcome", badge)
    way_in = Column("way in", "channel")


def _moved(row: JournalEntry) -> list[str]:
    """Return the state that an entry led to and the one before, where there are such."""
    if row.from_state == row.to_state:
        return []
    return [row.to_state] if row.from_state == CREATION else [row.to_state, row.from_state]


def _did(row: AuditEntry) -> str:
    """Return what was done; of a decision also which."""
    decision = row.detail.get("decision", "") if row.outcome == "done" else ""
    return f"{words_of(row.action)}: {words_of(decision).lower()}" if decision else words_of(row.action)


def _result(row: Any) -> str:
    """Return what holds of this tenant and of the walls: what was found elsewhere is for others."""
    if row.walls or row.found_here:
        return "violated"
    return "not all checked" if row.unchecked else "holds"


DECIDED = {"Approve": "Decision to approve", "Reject": "Decision to reject"}
"""Causes that are called by what a person presses, not by what has happened."""


def words_of(name: str) -> str:
    """The name of an operation or a cause as words: RevokeWorker is "revoke worker"."""
    found = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[_-]", " ", seen(name))
    return found[:1].upper() + found[1:].lower()


def _because(row: JournalEntry) -> str:
    return DECIDED.get(row.cause, "") or words_of(row.cause)


def way(done: Any, aside: Any, attempts: int) -> str:
    """Return how far an event has come, in words."""
    if done:
        return f"skipped after {attempts} tries" if aside else "delivered"
    if aside:
        return f"set aside after {attempts} tries"
    return f"retrying, {attempts} tries so far" if attempts else "waiting"


class FoundList(BaseList):
    """Verifications with how much each found in the tenant, asked for with one query."""

    @staticmethod
    def carry(request: HttpRequest, rows: list[Any]) -> None:
        found = Finding.objects.filter(verification_id__in=[row.pk for row in rows])
        counts = dict(found.values_list("verification_id").annotate(Count("id")))
        for row in rows:
            row.found_here = counts.get(row.pk, 0)


@admin.register(Verification, site=site)
class VerificationAdmin(EvidenceAdmin):
    lead = "When every rule was checked, and what came of it in this tenant; Findings has what was found."

    nothing_yet = "Every rule is checked once a day, and with manage.py verify. Then it is told here."
    list_display = ("at", "result", "rules", "here", "walls_", "unchecked_", "anchored", "took")
    list_display_links = None
    fields = ("started_at", "seconds", "rules", "anchors")
    ordering = ("-started_at", "-id")

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[BaseList]:
        return FoundList

    at = Column("time", "started_at", when)
    result = Column("result", lambda row: _result(row))
    here = Column("found in the tenant", "found_here")
    walls_ = Column(
        "walls",
        lambda row: "; ".join(f"{code} {subject}: {words}" for code, subject, words in row.walls) or "stand",
        lambda words: cut(words, 300),
    )

    unchecked_ = Column("not checked", lambda row: ", ".join(code for code, _ in row.unchecked) or "none")
    anchored = Column("last anchor", lambda row: row.anchors.partition(" by ")[0] or "none yet")
    took = Column("took", lambda row: f"{row.seconds:.1f} s")


@admin.register(Finding, site=site)
class FindingAdmin(EvidenceAdmin):
    lead = (
        "What verifications found wrong here. A run concerned stays frozen until a PlatformAdmin has looked."
    )

    nothing_yet = (
        "No verification has found anything wrong here, if one has looked: Verifications says when. What was "
        "found of other projects, or of none, stands where the whole tenant is chosen."
    )
    list_display = ("at", "code", "subject", "detail")
    list_display_links = None
    list_filter = ("code",)
    search_fields = ("subject", "detail")
    search_help_text = "Words of what was found"
    ordering = ("-found_at", "-id")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows, ctx = super().get_queryset(request), context_of(request)
        return rows if ctx.project_id is None else findings_in(rows, ctx)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[BaseList]:
        return OfThings

    at = Column("time", "found_at", when)

"""What the inbox shows: by default what waits for whoever looks; each choice is a link that can be kept."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest

from approvals.models import ApprovalRequest
from approvals.selectors import mine
from approvals.states import GATED, ActionClass, ApprovalState
from factory.console.asking import not_understood, one_asked
from factory.console.lists.filters import one_of
from factory.console.lists.pages import OF_A_PAGE
from factory.console.scope import context_of, places_of

Rows = QuerySet[ApprovalRequest]

MINE, PENDING, CLOSED, GLASS, WAIVED, ALL = "mine", "pending", "closed", "break-glass", "waived", "all"
OVER = (CLOSED, GLASS, WAIVED)
"""Views in which nothing waits for anybody."""
WORDS = {
    MINE: ("Waiting for me", "Only what you may decide at this moment."),
    PENDING: ("All pending", "Everything that is open, whoever it waits for."),
    CLOSED: ("Closed", "What is over: decided, replaced, withdrawn, or not answered in time."),
    GLASS: ("Decided by break-glass", "What was decided outside the rule, past those whom it names."),
    WAIVED: ("Approved in advance", "What a waiver has approved, and nobody was asked about."),
    ALL: ("Everything", "All that was ever asked here, whatever became of it."),
}
"""Which views there are, and the line that says what each one shows."""
NARROWED = {
    PENDING: Q(state=ApprovalState.PENDING),
    GLASS: Q(break_glass=True),
    WAIVED: Q(waiver__isnull=False),
}
WIDENING = ("q", "state")
"""Who searches, or asks for a state, does not mean only what waits for them."""


def chosen_view(request: HttpRequest) -> str:
    """The view that is shown: the one in the link, or that of what waits for the reader."""
    wanted = request.GET.get(Whose.parameter_name, "")
    if wanted in WORDS:
        return wanted
    return ALL if any(request.GET.get(name) for name in WIDENING) else MINE


def views_of(request: HttpRequest) -> list[tuple[str, str, bool]]:
    """Each view with its link, which keeps the other choices, and whether it is the one that is shown."""
    links = []
    for name, (title, _) in WORDS.items():
        query = request.GET.copy()
        query[Whose.parameter_name] = name
        for place in (*OF_A_PAGE, "p", "e"):
            query.pop(place, None)
        links.append((title, f"{request.path}?{query.urlencode()}", name == chosen_view(request)))
    return links


class Whose(admin.SimpleListFilter):
    """Offer what to show first: what I may decide."""

    title = "whose"
    parameter_name = "whose"
    as_links = True

    def __init__(self, request: HttpRequest, *args: Any) -> None:
        self.view = chosen_view(request)
        one_asked(request, self.parameter_name, WORDS, "", f"What is shown is: {WORDS[self.view][0]}.")
        super().__init__(request, *args)

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(name, title) for name, (title, _) in WORDS.items()]

    def choices(self, changelist: Any) -> Iterator[Any]:
        """No choice without a name: a link says which view it leads to."""
        for name, title in self.lookup_choices:
            query = changelist.get_query_string({self.parameter_name: name})
            yield {"selected": name == self.view, "query_string": query, "display": title}

    def queryset(self, request: HttpRequest, queryset: Rows) -> Rows:
        if self.view == MINE:
            return queryset.filter(pk__in=mine(context_of(request)).values("pk"))
        if self.view == CLOSED:
            return queryset.exclude(state=ApprovalState.PENDING)
        return queryset.filter(NARROWED.get(self.view, Q()))


by_class = one_of("action_class", "class", [one.value for one in ActionClass if one in GATED])
by_state = one_of("state", "state", ApprovalState.values)


class ByProject(admin.SimpleListFilter):
    """One of the reader's own projects; only where they look at the whole tenant."""

    title, parameter_name = "project", "project"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        ctx = context_of(request)
        if ctx.project_id is not None:
            return []
        here = [place for place in places_of(request) if place.tenant_id == ctx.tenant_id]
        return [(str(place.project_id), place.project_name) for place in here if place.project_id]

    def queryset(self, request: HttpRequest, queryset: Rows) -> Rows:
        wanted = self.value()
        if not wanted:
            return queryset
        if wanted not in {value for value, _ in self.lookup_choices}:
            not_understood(request, f"“{wanted[:60]}” is no project of yours here.", "All of them are shown.")
            return queryset
        return queryset.filter(project_id=UUID(wanted))

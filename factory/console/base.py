"""The base of every page of the console: read-only, in its tenant's scope, acting through commands."""

from collections.abc import Callable
from typing import Any, ClassVar, Generic, TypeVar
from uuid import UUID

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db import models
from django.forms import Media
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse
from unfold.admin import ModelAdmin

from factory.console.asking import CSV, FORMAT, not_all, not_understood, one_asked, wants_file
from factory.console.confirming import Act
from factory.console.detail import told
from factory.console.drafts import forget_words, keep_words
from factory.console.lists.columns import Column
from factory.console.lists.files import file_of
from factory.console.lists.pages import LOOK, LOOKS, OLDEST, ORDER, BaseList
from factory.console.lists.searching import MOST_CHARACTERS, NEWEST, search
from factory.console.scope import as_uuid, context_of
from factory.console.show import badge, seen
from factory.kernel.commanding import IdempotentReplay
from factory.kernel.errors import DomainError, NotFound
from factory.kernel.permissions import may
from factory.kernel.tenancy import reading

M = TypeVar("M", bound=models.Model)


class BaseAdmin(ModelAdmin, Generic[M]):
    """A list and a page of one kind of thing.

    `view_operation` is the operation of the permission table that opens it. Nothing is added,
    changed or deleted here: what moves a state is a command, called by `act`. Lists never count
    all rows, because a count of millions is slower than the page; a `large` one searches only for what
    an index answers, and in `recent_words` of its newest rows. `nothing_yet` says what would stand in the
    list, and how it gets there, below `nothing_title`; `everything` is the query that narrows nothing. A
    row's page tells `fields`, or what its list tells; `shows_stored` adds every column, for evidence alone.
    `whole_ids` stand there besides, all of each, because searches ask for them and lists shorten them.
    A list's file has the columns of the list, or `file_columns`, so that what programs read keeps its shape
    where a page joins columns; `file_headings` are theirs where they are called otherwise than on the page.
    A list's key stays as it is; one whose rows are few, and move in it, says in `moving` what that does to
    its pages, and its file is read as all of it is at one moment.
    """

    view_operation: ClassVar[str]
    nothing_yet: ClassVar[str]
    heading: ClassVar[str] = ""
    file_columns: ClassVar[tuple[str, ...]] = ()
    large: ClassVar[bool] = False
    recent_words: ClassVar[tuple[str, ...]] = ()
    everything: ClassVar[str] = "?"
    lead: ClassVar[str] = ""
    nothing_title: ClassVar[str] = "Nothing here yet"
    shows_stored: ClassVar[bool] = False
    whole_ids: ClassVar[tuple[str, ...]] = ()
    show_full_result_count = False
    list_per_page = 50
    show_facets = admin.ShowFacets.NEVER  # they count all rows
    sortable_by: ClassVar[tuple[str, ...]] = ()
    actions: ClassVar[Any] = None
    ordering: ClassVar[tuple[str, ...]] = ("-id",)
    moving: ClassVar[str] = ""
    order_words: ClassVar[tuple[str, str]] = ("Newest first", "Oldest first")
    change_list_template = "factory/list.html"
    list_before_template = "factory/about.html"

    @property
    def name(self) -> str:
        """Return what the list is called: its heading, or its kind in the plural."""
        words = self.heading or str(self.opts.verbose_name_plural)
        return words[:1].upper() + words[1:]

    @property
    def about(self) -> str:
        """Return what stands on this page: its lead, else the one line that its class is described by."""
        return self.lead or " ".join((type(self).__doc__ or "").split("\n\n")[0].split())

    def acts(self, request: HttpRequest, row: M | None) -> list[Act]:
        """Return what is offered on a row's page, or without a row on the list; each leads to a page of its
        own."""
        return []

    status: Any = Column("state", "state", badge)
    """The column of a row's state; a kind that says more about it says so itself."""

    @property
    def media(self) -> Media:
        """None of the scripts that forms edited in place would need: there are none here."""
        return Media()

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def has_view_permission(self, request: HttpRequest, obj: M | None = None) -> bool:
        ctx = getattr(request, "context", None)
        return ctx is not None and may(ctx, self.view_operation)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: M | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: M | None = None) -> bool:
        return False

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[M]:
        """The place's rows: those of the chosen project, or all of the tenant's."""
        rows = super().get_queryset(request)
        project_id = context_of(request).project_id
        if project_id is not None and any(f.name in ("project", "project_id") for f in self.opts.fields):
            rows = rows.filter(project_id=project_id)
        return rows

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[BaseList]:
        return BaseList

    def get_search_results(
        self, request: HttpRequest, queryset: models.QuerySet[Any], search_term: str
    ) -> tuple[models.QuerySet[Any], bool]:
        if len(search_term.strip()) > MOST_CHARACTERS:
            instead = f"Its first {MOST_CHARACTERS} are looked for."
            not_understood(request, f"The search has more than {MOST_CHARACTERS} characters.", instead)
        fields = tuple(self.get_search_fields(request))
        recent = tuple(self.recent_words)

        def say() -> None:
            told = f"Words were looked for among the newest {NEWEST:,} of the whole list alone."
            not_all(request, told, "Among those that were chosen it takes too long.")

        newest = [rows.order_by(*self.ordering) for rows in (queryset, self.get_queryset(request))]
        return search(
            queryset, fields, search_term, large=self.large, recent=recent, newest=newest, otherwise=say
        ), False

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        asked = {name: values for name, values in request.GET.lists() if any(values)}
        if len(asked) != len(request.GET):
            chosen = QueryDict(mutable=True)  # without what the form sends empty
            for name, values in asked.items():
                chosen.setlist(name, values)
            request.GET = chosen  # type: ignore[assignment]  # nobody changes it from here on
        if lacks := self._lacks(request):
            messages.warning(request, lacks)
            return HttpResponseRedirect(request.get_full_path())
        one_asked(request, FORMAT, (CSV,), "", "The list is shown as a page; csv makes it a file.")
        one_asked(request, ORDER, (OLDEST,), "", f"{self.order_words[0]} is shown.")
        one_asked(request, LOOK, LOOKS, "", "The list is shown as always.")
        if wants_file(request):
            return self._file(request)
        extra = {"title": self.name, **(extra_context or {})}
        return self.in_scope(request, lambda: super(BaseAdmin, self).changelist_view(request, extra))

    def _lacks(self, request: HttpRequest) -> str:
        """Return what is missing in a form that acts on several rows, in words."""
        if request.method != "POST" or "index" not in request.POST or not self.has_view_permission(request):
            return ""
        if request.POST.get("select_across") == "1":
            return "Rows are chosen by their boxes, those of one page at once."
        if not request.POST.getlist(ACTION_CHECKBOX_NAME):
            return "No row was chosen. Choose some by their boxes, then go on."
        return "" if any(request.POST.getlist("action")) else "It was not chosen what to do with the rows."

    def _file(self, request: HttpRequest) -> HttpResponseBase:
        """Return what the list shows, as a file, for whoever may open it. Raises `InvalidInput`."""
        ctx = context_of(request)
        if not self.has_view_permission(request):
            raise PermissionDenied
        with reading(ctx):
            cl = self.get_changelist_instance(request)
        return file_of(request, cl)

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        """The list that the address asks for. What it asks for wrongly is said, and all of the list shown."""
        try:
            return super().get_changelist_instance(request)
        except IncorrectLookupParameters as fault:
            named = isinstance(fault.args[0] if fault.args else None, str)
            told = str(fault) if named else "The address holds a filter that this list does not have."
            not_understood(request, told, "The list is shown from its beginning, without filters.")
            raise

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> Any:
        if request.method not in ("GET", "HEAD"):
            raise Http404  # nothing is saved here; acts have pages of their own
        return self.in_scope(request, lambda: self._row_page(request, unquote(object_id or "")))

    def _row_page(self, request: HttpRequest, key: str) -> TemplateResponse:
        """Return what the list says about a row, and then the row as it is stored. Nothing in it is a
        form."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        row = self.get_object(request, key)
        if row is None:
            raise Http404
        self.get_changelist(request).carry(request, [row])
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "page": self,
            "original": row,
            "headline": seen(self.headline(row)),
            "facts": told(
                self, row, [*self._said(), *(name for name in self.whole_ids if getattr(row, name))]
            ),
            "stored": told(self, row, self._stored()) if self.shows_stored else [],
        }
        return TemplateResponse(request, "factory/row.html", context)

    def _said(self) -> list[str]:
        return list(self.fields or [*self.readonly_fields, *self.list_display])

    def _stored(self) -> list[str]:
        """Every column but what says `editable=False`."""
        return [field.name for field in self.opts.concrete_fields if field.editable or field.primary_key]

    def headline(self, row: M) -> str:
        """Return what a row is called above its page."""
        return f"{str(self.opts.verbose_name).capitalize()}: {row}"

    def add_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        raise PermissionDenied("Nothing is added here by hand.")

    def delete_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        raise PermissionDenied("Nothing is deleted here.")

    def history_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        raise Http404  # the audit log is the history

    def in_scope(self, request: HttpRequest, view: Callable[[], HttpResponseBase]) -> HttpResponseBase:
        """Run and render a page inside one read-only transaction of the place."""
        with reading(context_of(request)):
            response = view()
            if isinstance(response, TemplateResponse) and not response.is_rendered:
                response.render()
        return response

    def act(
        self, request: HttpRequest, command: Callable[[], object], *, done: str, then: str
    ) -> HttpResponse:
        """Call one command for a POST, tell what came of it, and lead on to `then`.

        After a refusal the tag `kept` of that page has what was written.
        """
        try:
            command()
        except IdempotentReplay:
            messages.info(request, "This was already done; nothing was done twice.")
        except NotFound as missing:
            raise Http404(missing.detail) from missing
        except DomainError as refusal:
            keep_words(request, request.path, request.POST.dict())
            messages.error(request, seen(refusal.in_words()))
        else:
            forget_words(request)
            messages.success(request, done)
        return HttpResponseRedirect(then)


class OwnPageAdmin(BaseAdmin[M]):
    """A kind of thing whose page is drawn by a template of its own, `own_page`, for who may see the list.

    `told_of` is what the template is given besides the row and the acts that are offered on it.
    """

    own_page: ClassVar[str] = ""

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> Any:
        key = as_uuid(object_id)
        if key is None or request.method not in ("GET", "HEAD") or not self.has_view_permission(request):
            raise Http404
        return self.page_of(request, key)

    def page_of(self, request: HttpRequest, key: UUID) -> HttpResponseBase:
        """The page of one row. Raises `Http404` where it is not within the caller's scope."""
        return self.in_scope(request, lambda: self._own_page(request, key))

    def _own_page(self, request: HttpRequest, key: UUID) -> TemplateResponse:
        row = self.get_queryset(request).filter(pk=key).first()
        if row is None:
            raise Http404
        common = {**self.admin_site.each_context(request), "opts": self.opts, "row": row}
        told = {"acts": self.acts(request, row), **self.told_of(request, row)}
        return TemplateResponse(request, self.own_page, {**common, **told})

    def told_of(self, request: HttpRequest, row: M) -> dict[str, Any]:
        """Return what the page tells of a row, and its `title`; read in the transaction that it is drawn
        in."""
        raise NotImplementedError

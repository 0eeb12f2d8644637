"""The base of every page of the console: read-only, in its tenant's scope, acting through commands."""

from collections.abc import Callable
from typing import Any, ClassVar, Generic, TypeVar
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import models
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse
from unfold.admin import ModelAdmin
from unfold.paginator import InfinitePaginator

from factory.admin.confirming import Act
from factory.admin.scope import as_uuid, context_of
from factory.commanding import AlreadyDone
from factory.errors import DomainError, NotFound
from factory.identity.permissions import may
from factory.tenancy import reading

M = TypeVar("M", bound=models.Model)


class HouseAdmin(ModelAdmin, Generic[M]):
    """A list and a page of one kind of thing.

    `view_operation` is the operation of the permission table that opens it. Nothing is added,
    changed or deleted here: what moves a state is a command, called by `act`. Lists never count
    all rows, because a count of millions is slower than the page.
    """

    view_operation: ClassVar[str]
    paginator = InfinitePaginator
    show_full_result_count = False
    list_per_page = 50
    actions: ClassVar[Any] = None
    ordering: ClassVar[tuple[str, ...]] = ("-id",)
    list_before_template = "factory/about.html"
    change_form_outer_before_template = "factory/acts.html"

    @property
    def about(self) -> str:
        """What stands on this page, in the one line that its class is described by."""
        return " ".join((type(self).__doc__ or "").split("\n\n")[0].split())

    def acts(self, request: HttpRequest, row: M | None) -> list[Act]:
        """What is offered on a row's page, or without a row on the list; each leads to a page of its own."""
        return []

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

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        return self.in_scope(request, lambda: super(HouseAdmin, self).changelist_view(request, extra_context))

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> Any:
        if request.method not in ("GET", "HEAD"):
            raise Http404  # nothing is saved here; acts have pages of their own
        return self.in_scope(
            request,
            lambda: super(HouseAdmin, self).changeform_view(request, object_id, form_url, extra_context),
        )

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
        """Call one command for a POST, tell what came of it, and lead on to `then`."""
        try:
            command()
        except AlreadyDone:
            messages.info(request, "This was already done; nothing was done twice.")
        except NotFound as missing:
            raise Http404(missing.detail) from missing
        except DomainError as refusal:
            messages.error(request, f"{refusal.title}. {refusal.detail}")
        else:
            messages.success(request, done)
        return HttpResponseRedirect(then)


class OwnPageAdmin(HouseAdmin[M]):
    """A kind of thing whose page is drawn by a template of its own: `page_of`, for who may see the list."""

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
        raise NotImplementedError

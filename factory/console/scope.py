"""In whose scope a page of the console is read: the place that the person chose among their own."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast
from uuid import UUID

from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.dateparse import parse_datetime
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from factory.api.correlation import correlation_of
from factory.identity.directory import EffectiveGrants, Scope, directory
from factory.kernel.context import Actor, Context
from factory.kernel.models import User
from factory.kernel.permissions import SCOPES
from factory.kernel.tenancy import bound

PREFIX = "/admin/"
CHOSEN = "factory_place"

SESSION_SCOPES = frozenset(SCOPES) - {"factory.worker", "factory.payloads.read"}
"""A session has no token to narrow it: roles decide. Content needs the grant of its own."""


class ConsoleScope:
    """Gives each request of the console `places`, `place` and `context`, from the session's person alone."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.path.startswith(PREFIX) and request.user.is_authenticated:
            enter(request)
        return self.get_response(request)


def enter(request: HttpRequest) -> None:
    """Find the person's places and take the chosen one, or the first."""
    user = cast(User, request.user)
    request.places = directory().places_of(user.subject)  # type: ignore[attr-defined]
    chosen = request.session.get(CHOSEN)
    place = next((p for p in request.places if p.key == chosen), None)  # type: ignore[attr-defined]
    request.place = place or next(iter(request.places), None)  # type: ignore[attr-defined]
    request.context = _context(request, user, request.place)  # type: ignore[attr-defined]


def _context(request: HttpRequest, user: User, place: Scope | None) -> Context | None:
    if place is None:
        return None
    unknown = Context(
        place.tenant_id,
        place.project_id,
        Actor(user.subject, "person"),
        correlation_of(request),
        channel="admin",
    )
    with bound(unknown, read_only=True):
        standing = directory().grants_of(user.subject, place.tenant_id, place.project_id)
    if standing is None:
        return None
    return Context(
        tenant_id=place.tenant_id,
        project_id=place.project_id,
        actor=_actor(user, standing),
        correlation_id=unknown.correlation_id,
        channel="admin",
    )


def _actor(user: User, standing: EffectiveGrants) -> Actor:
    content = {"factory.payloads.read"} if "payloads" in standing.grants else set()
    return Actor(
        subject=user.subject,
        kind=standing.kind,
        person=standing.person,
        roles=standing.roles,
        grants=standing.grants,
        scopes=SESSION_SCOPES | content,
    )


def context_of(request: HttpRequest) -> Context:
    """The request's trusted scope; refuses somebody who is a member of nothing."""
    ctx: Context | None = getattr(request, "context", None)
    if ctx is None:
        raise PermissionDenied("You are signed in, but a member of no project. Ask a workspace admin.")
    return ctx


def places_of(request: HttpRequest) -> Sequence[Scope]:
    """Return where this person may work, for the switcher: projects of a tenant that are called alike with
    their short names."""
    places = cast(Sequence[Scope], getattr(request, "places", ()))
    names = Counter((place.tenant_id, place.project_name) for place in places)
    return [
        place if names[place.tenant_id, place.project_name] == 1 else _told_apart(place) for place in places
    ]


def _told_apart(place: Scope) -> Scope:
    return replace(place, project_name=f"{place.project_name} ({place.project_slug})")


def go_to(request: HttpRequest, tenant_id: str, project_id: str) -> None:
    """Choose a place for the person: one of their own, which the next request finds out."""
    request.session[CHOSEN] = f"{tenant_id}/{project_id}"


@require_POST
def switch_place(request: HttpRequest) -> HttpResponse:
    """Choose another place; only one of the person's own can be chosen."""
    if not request.user.is_authenticated:
        return redirect_to_login(request.get_full_path())
    wanted = request.POST.get("place", "")
    if wanted not in {place.key for place in places_of(request)}:
        raise PermissionDenied("You are not a member there.")
    request.session[CHOSEN] = wanted
    back = request.POST.get("next", "")
    safe = url_has_allowed_host_and_scheme(back, {request.get_host()}, require_https=request.is_secure())
    return HttpResponseRedirect(back if safe else reverse("admin:index"))


def as_moment(text: str) -> datetime | None:
    """A time in UTC as a form's field holds it, or None when it is none."""
    try:
        found = parse_datetime(text.strip())
    except ValueError:
        return None
    if found is None:
        return None
    return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)


def as_uuid(value: Any) -> UUID | None:
    """An id out of a URL, or None when it is none."""
    try:
        return UUID(str(value))
    except ValueError:
        return None

"""Pages of the console that say no: not there, not for this person, or a form that is too old."""

from collections.abc import Callable, Iterator

from django.core.exceptions import DisallowedHost
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from factory.api import system
from factory.api.middleware import holds_nul
from factory.api.problems import AWAY, QUERY_CANCELED, problem_of, sqlstate
from factory.console.scope import PREFIX
from factory.console.show import seen
from factory.kernel.errors import DomainError, NotFound, OutcomeUnknown

NUL = "The address, or a field of the form, holds a NUL character. Go back, and take it out."
ELSEWHERE = "It may be in another project: choose it above. If somebody sent you here, ask them where it is."

TOO_MUCH = (
    "This takes too long to look up",
    "The database stopped looking, so that it serves everybody. Ask for less: one filter instead of two, a "
    "shorter time, or a whole id. Nothing was changed.",
)
UNKNOWN = (OutcomeUnknown.title, OutcomeUnknown().detail)


class NotKept(Http404):
    """A page that was made for one person, and is not there any more or never was: its words say so."""


class ConsoleRefusals:
    """A refusal that no page has shown is a page all the same, with its status and its words.

    So is that of a NUL character, which no view and no query ever meets.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if _in_console(request) and (holds_nul(request) or any("\x00" in text for text in _written(request))):
            return _page(request, 400, "This cannot be read", NUL)
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, fault: Exception) -> HttpResponse | None:
        if not _in_console(request):
            return None
        if isinstance(fault, DomainError):
            return refused(request, fault)
        return unwell(request, fault) if isinstance(fault, AWAY) else None


def unwell(request: HttpRequest, fault: Exception) -> HttpResponse | None:
    """Return what the database did not do in its time, or at all; a defect of ours is none of it.

    Of an act nobody here knows how far it came: this may be the page after it.
    """
    problem = problem_of(fault)
    if problem.status != 503:
        return None
    title, told = problem.title, f"{problem.detail} Nothing was changed."
    if request.method not in ("GET", "HEAD"):
        title, told = UNKNOWN
    elif sqlstate(fault) == QUERY_CANCELED:
        title, told = TOO_MUCH
    try:
        answer = _page(request, problem.status, title, told)
    except AWAY:  # then nothing can be said of who asks, or of where they may go
        answer = _plain(problem.status, title, told)
    answer["Retry-After"] = problem.headers["Retry-After"]
    return answer


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """Also of what is there for others: nobody learns of the existence of what they may not see."""
    if not _in_console(request):
        return system.not_found(request, exception)
    told = str(exception) if isinstance(exception, NotKept) else ELSEWHERE
    return _page(request, 404, "There is no such page here", told)


def malformed(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """An address, or what was sent, that nobody here takes apart; or a host that is not served."""
    if isinstance(exception, DisallowedHost):
        return system.wrong_host(request)
    if not _in_console(request):
        return system.malformed(request, exception)
    told = "It holds something that cannot be asked for here: a filter that there is not, or what is no text."
    return _page(request, 400, "The address was not understood", told)


def forbidden(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """A place that this person's roles do not open."""
    told = str(exception or "") or "Your roles and grants in this project do not open it."
    return _page(request, 403, "This page is not for you", f"{told} A workspace admin can give you a role.")


def stale_form(request: HttpRequest, reason: str = "") -> HttpResponse:
    """A form without its token: sent by another site, or shown before the person signed in again."""
    told = "The form does not belong to this session. Go back, reload the page and send it again."
    return _page(request, 403, "Nothing was sent", told)


def _written(request: HttpRequest) -> Iterator[str]:
    """Names and texts of a form."""
    if request.method == "POST":
        for name, texts in request.POST.lists():
            yield from map(str, (name, *texts))


class OnlyByAButton:
    """Answer at an address that acts when it is opened: by a reload, or from the history."""

    TOLD = "This address does something, and only when its button is pressed. Go back to where the button is."

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        answer = self.get_response(request)
        if answer.status_code != 405 or not _in_console(request):
            return answer
        page = _page(request, 405, "Nothing was done", self.TOLD)
        page["Allow"] = answer["Allow"]
        return page


def refused(request: HttpRequest, refusal: DomainError) -> HttpResponse:
    """Return what a command, or the reading of a form, says no to: in its own words."""
    if isinstance(refusal, NotFound):
        return not_found(request)
    return _page(request, refusal.http_status, refusal.title, refusal.detail)


def _in_console(request: HttpRequest) -> bool:
    return request.path.startswith(PREFIX)


def _page(request: HttpRequest, status: int, title: str, told: str) -> HttpResponse:
    from factory.console.site import site

    user = getattr(request, "user", None)
    if not _in_console(request) or user is None or not user.is_authenticated:
        return _plain(status, title, seen(told))
    context = {**site.each_context(request), "title": title, "told": seen(told)}
    return render(request, "factory/refused.html", context, status=status)


def _plain(status: int, title: str, told: str) -> HttpResponse:
    return HttpResponse(f"{title}. {told}", status=status, content_type="text/plain; charset=utf-8")

"""What an address asks for and cannot have is said: beside what is shown instead, or in place of a file."""

from collections.abc import Collection

from django.contrib import messages
from django.http import HttpRequest

from factory.console.show import seen
from factory.kernel.errors import InvalidInput

FORMAT, CSV = "format", "csv"


def wants_file(request: HttpRequest) -> bool:
    """Tell whether the list is asked for as a file, not as a page."""
    return request.method == "GET" and request.GET.get(FORMAT) == CSV


def not_all(request: HttpRequest, told: str, why: str) -> None:
    """Say beside what is shown that it is less than was rightly asked for: of a file, behind its last row.

    As `not_understood`, it says nothing on the page of an act.
    """
    if request.method == "POST":
        return
    if wants_file(request):
        request.said_last = [*said_last(request), f"{told} {why}"]  # type: ignore[attr-defined]
    else:
        messages.warning(request, seen(f"{told} {why}"))


def said_last(request: HttpRequest) -> list[str]:
    """Return what `not_all` has said of the file that is asked for."""
    return list(getattr(request, "said_last", ()))


def not_understood(request: HttpRequest, told: str, instead: str = "") -> None:
    """Say on the page what of its address was not understood, and what it shows `instead`.

    A file has no place for such words, and is read by programs: for one it raises `InvalidInput`. An act
    that is sent from such a page has another one to say something.
    """
    if request.method == "POST":
        return
    if request.GET.get(FORMAT) == CSV:
        raise InvalidInput(told)
    messages.warning(request, seen(f"{told} {instead}".strip()))


def one_asked(request: HttpRequest, name: str, known: Collection[str], default: str, what: str = "") -> str:
    """A value of the address among those that are known; the default for none, and, with words, for others.

    `what` says what is shown instead.
    """
    wanted = request.GET.get(name, "")
    if wanted in known:
        return wanted
    if wanted:
        not_understood(request, f"“{wanted[:60]}” is no value of “{name}” in an address.", what)
    return default

"""A page before an act: what it will and will not do, why it is done, and one button that says it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.contrib import messages
from django.contrib.admin import AdminSite
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse

from factory.kernel.commanding import IdempotentReplay
from factory.kernel.errors import DomainError, NotFound, VersionMismatch


@dataclass(frozen=True, slots=True)
class Act:
    """A way from a page to an act that is offered there."""

    label: str
    url: str
    danger: bool = False


@dataclass(frozen=True, slots=True)
class ChoiceField:
    """A field of the page: a line of text, one of several values, or, if `many`, any number of them.

    `name` is the pointer at which a command points for its faults, without the first slash. An option is a
    value, its words, and perhaps a line that says more; `optional` is what may be left empty.
    """

    name: str
    label: str
    options: tuple[tuple[str, ...], ...] = ()
    help: str = ""
    chosen: str | tuple[str, ...] = ""
    """What is selected or written at first: of one option among several the first, if none is named."""
    many: bool = False
    optional: bool = False
    taken: tuple[str, ...] = ()
    """Values that are shown, and that cannot be chosen."""


@dataclass(frozen=True, slots=True)
class Confirmation:
    """Hold what is about to be done, in words; `template` for a page that says `more` about it.

    `heading` names the list that the page belongs to. `stops` says why it would be refused as things stand:
    then nothing can be sent. `instead` is an address and its words: where to go after a refusal, or then.
    """

    title: str
    lead: str
    button: str
    back: str
    facts: Sequence[tuple[str, Any]] = ()
    consequences: Sequence[str] = ()
    fields: Sequence[ChoiceField] = ()
    reason: str = "Reason"
    danger: bool = True
    heading: str = ""
    stops: str = ""
    hidden: Sequence[tuple[str, str]] = field(default=())
    instead: tuple[str, str] | None = None
    template: str = "factory/confirm.html"
    more: Mapping[str, Any] = field(default_factory=dict)


def ask(
    site: AdminSite, request: HttpRequest, question: Confirmation, refusal: DomainError | None = None
) -> HttpResponse:
    """Show the page; after a refusal with what it says, and everything that was written kept.

    Kept is the version that was seen, too, until it is said that there is another: what somebody else has
    changed meanwhile is not overwritten by who only mends a field.
    """
    if refusal and not isinstance(refusal, VersionMismatch):
        kept = tuple((name, request.POST.get(name, value)) for name, value in question.hidden)
        question = replace(question, hidden=kept)
    context = {
        **site.each_context(request),
        "title": question.title,
        **told_of(question, refusal),
        "sent": request.POST if refusal else {},
        **question.more,
    }
    status = refusal.http_status if refusal else 200
    return TemplateResponse(request, question.template, context, status=status)


def told_of(question: Confirmation, refusal: DomainError | None) -> dict[str, Any]:
    """Return what the template of a refusal is given; `faulty` are places and names of the fields to look
    at."""
    faults = faults_of(question, refusal)
    faulty = [(f"field-{each.name}", each.label) for each in question.fields if each.name in faults]
    faulty += [("reason", question.reason)] if "reason" in faults else []
    return {"question": question, "refusal": refusal, "faults": faults, "faulty": faulty}


def faults_of(question: Confirmation, refusal: DomainError | None) -> dict[str, str]:
    """Return what is wrong, by the name of the field; nothing if the page has no field for some of it."""
    names = {each.name for each in question.fields} | ({"reason"} if question.reason else set())
    found = {_field_at(fault.pointer, names): fault.detail for fault in refusal.errors} if refusal else {}
    return {} if "" in found else found


def _field_at(pointer: str, names: set[str]) -> str:
    """The field that a pointer leads to, or into: a fault of `/roles/0` stands at `roles`."""
    name = pointer.removeprefix("/")
    while name and name not in names:
        name = name.rpartition("/")[0]
    return name


def act_on(
    site: AdminSite,
    request: HttpRequest,
    question: Callable[[], Confirmation],
    command: Callable[[str], object],
    *,
    done: str,
    then: str,
) -> HttpResponse:
    """GET asks; POST calls one command with the reason, and leads on, or asks again with the refusal."""
    if request.method not in ("POST",):
        return ask(site, request, question())
    try:
        command(request.POST.get("reason", ""))
    except IdempotentReplay:
        messages.info(request, "This was already done; nothing was done twice.")
    except NotFound as missing:
        raise Http404(missing.detail) from missing
    except DomainError as refusal:
        return ask(site, request, question(), refusal)
    else:
        messages.success(request, done)
    return HttpResponseRedirect(then)

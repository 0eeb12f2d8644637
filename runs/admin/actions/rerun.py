"""The page on which a run is run again: what will be pinned, and one button that makes one run."""

from uuid import UUID, uuid4

from django.contrib import messages
from django.contrib.admin import AdminSite
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.html import format_html

from approvals.selectors import current_policy
from factory.console.confirming import ChoiceField, Confirmation, ask
from factory.console.scope import as_uuid, context_of
from factory.console.show import short
from factory.kernel.context import Context
from factory.kernel.errors import Conflict, DomainError
from factory.kernel.permissions import may
from factory.kernel.tenancy import reading
from registry.selectors import ReleaseView, pinnable, release
from runs.models import Run
from runs.rest.submissions import submit
from runs.selectors import find_run
from runs.selectors.reruns import again


def may_run_again(ctx: Context, run: Run) -> bool:
    """Tell whether the button is offered; the command judges again."""
    return run.is_terminal and ctx.project_id == run.project_id and may(ctx, "SubmitRun")


def again_view(site: AdminSite, request: HttpRequest, run_id: UUID) -> HttpResponse:
    """GET shows the form with a key of its own; however often it is sent, it makes one run."""
    ctx = context_of(request)
    with reading(ctx):
        run = _run(ctx, run_id)
        asked = _question(ctx, run, request.POST.get("key", "") or str(uuid4()))
        chosen = as_uuid(request.POST.get("release_id", ""))
        payload = again(run, release_id=chosen)
    if request.method != "POST":
        return ask(site, request, asked)
    try:
        body, replayed = submit(ctx, payload=payload, key=dict(asked.hidden)["key"])
    except DomainError as refusal:
        return ask(site, request, asked, refusal)
    if replayed:
        messages.info(request, "This was asked for before; it is the same run.")
    else:
        messages.success(request, "Accepted as a new run. The old one stays as it is.")
    return HttpResponseRedirect(reverse("admin:runs_run_change", args=[body["runId"]]))


def _run(ctx: Context, run_id: UUID) -> Run:
    try:
        run = find_run(ctx, run_id)
    except DomainError as missing:
        raise Http404 from missing
    if not may(ctx, "SubmitRun"):
        raise PermissionDenied("A Requester, an Operator or a workspace admin of the project runs one again.")
    if not may_run_again(ctx, run):
        raise Conflict(f"The run is {run.state}. In its own project it is run again when it is over.")
    return run


def _question(ctx: Context, run: Run, key: str) -> Confirmation:
    found = pinnable(run.workflow_id)
    own = [pair for pair in found if pair[0].id == run.release_id]
    ordered = own + [pair for pair in found if pair[0].id != run.release_id]
    options = tuple(
        (str(view.id), _told(view.asset, view.version, view.hash, aliases, same=bool(n == 0 and own)))
        for n, (view, aliases) in enumerate(ordered)
    )
    lead = "A new run asks for the same work. It refers to this one, which stays as it is."
    before = release(run.release_id)
    if options and not own:
        lead += f" {before.asset}@{before.version} is {before.state} and takes no new runs: choose another."
    if not options:
        options = ((str(run.release_id), "The same release, which is not published any more"),)
    return Confirmation(
        title=f"Run {run.workflow_id} again",
        lead=lead,
        button="Run it again",
        back=reverse("admin:runs_run_change", args=[run.id]),
        facts=_pins(ctx, run, before),
        fields=[ChoiceField("release_id", "Against which release", options)],
        reason="",
        danger=False,
        hidden=[("key", key)],
    )


def _told(asset: str, version: str, digest: str, aliases: tuple[str, ...], *, same: bool) -> str:
    names = f", named by {', '.join(aliases)}" if aliases else ""
    return f"{asset}@{version} (…{digest[-8:]}){names}{', as before' if same else ''}"


def _pins(ctx: Context, run: Run, before: ReleaseView) -> list[tuple[str, object]]:
    limits = run.limits
    return [
        ("Release of this run", _told(before.asset, before.version, before.hash, (), same=False)),
        ("Policy", f"{current_policy(ctx).revision} (this run had {run.policy_revision})"),
        ("Model profile", run.model_profile_id),
        ("Environment", run.environment.slug if run.environment else "none"),
        ("Input", format_html("the same, {}", short(run.input_hash))),
        ("Limits", f"{limits.get('maxCostUsd')} USD, {limits.get('maxMinutes')} min"),
        ("Asked by", ctx.actor.subject),
    ]

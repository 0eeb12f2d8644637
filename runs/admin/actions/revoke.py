"""The page before a worker's credential is revoked: what it has, and what becomes of it."""

from django.contrib.admin import AdminSite
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from factory.console.confirming import Confirmation, act_on
from factory.console.scope import context_of
from factory.console.show import span
from factory.identity.config import format_leeway
from runs.dispatch import revoke_from_outside
from runs.models import Worker
from runs.operations.timing import grace


def revoke_view(site: AdminSite, request: HttpRequest, row: Worker, held: int) -> HttpResponse:
    """GET asks; POST revokes, with the reason."""
    ctx = context_of(request)
    back = reverse("admin:runs_worker_change", args=[row.pk])
    question = Confirmation(
        title=f"Revoke the credential of {row.name}",
        lead="Every token that it has is refused at once, and it is given nothing new.",
        button="Revoke it",
        back=back,
        facts=[("Attempts that it holds or is offered", held)],
        consequences=(
            "Its leases are not taken by force: they end, and its attempts are settled "
            f"{span(grace().total_seconds())} later.",
            "An attempt that may have had an effect then waits for an Operator.",
            f"A token that is issued {format_leeway()} is good again.",
        ),
    )
    return act_on(
        site,
        request,
        lambda: question,
        lambda reason: revoke_from_outside(ctx, worker_id=row.pk, reason=reason),
        done="Its tokens are refused from now on.",
        then=back,
    )

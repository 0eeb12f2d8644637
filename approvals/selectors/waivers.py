"""Reads of waivers."""

import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from uuid import UUID

from django.db.models import Count, IntegerField, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce

from approvals.errors import WaiverNotFound
from approvals.models import ApprovalRequest, Waiver
from approvals.policy.evaluation import PolicyVerdict
from approvals.policy.messages import format_rule
from approvals.selectors.requests import genuine, votes_of
from approvals.selectors.views import ApprovalView, of_row
from approvals.states import ApprovalState, SubjectType, WaiverState
from factory.kernel import clock
from factory.kernel.context import Context
from projects import selectors as projects
from projects.states import MACHINE


@dataclass(frozen=True, slots=True)
class WaiverView:
    """An approval given in advance. `state` is as of the read: one past its end is Expired.

    `uses` says how many requests were approved under it; each of them names it.
    """

    id: UUID
    project_id: UUID
    state: str
    template_id: UUID
    template_name: str
    workflow_id: str
    release_id: UUID
    release_name: str
    action_class: str
    environment_ids: tuple[UUID, ...]
    environments: tuple[str, ...]
    reason: str
    requested_by: str
    requested_at: datetime
    expires_at: datetime
    approval_id: UUID
    decided_by: str
    decided_at: datetime | None
    deciders: tuple[str, ...]
    ended_at: datetime | None
    ended_by: str
    end_reason: str
    uses: int
    version: int

    @property
    def may_be_revoked(self) -> bool:
        return self.state in (WaiverState.REQUESTED, WaiverState.ACTIVE)


def waivers(ctx: Context) -> QuerySet[Waiver]:
    """Return the waivers within the caller's trusted scope: of their project.

    A token without a project reaches none; a session that has chosen none stands in the whole tenant.
    """
    rows: QuerySet[Waiver] = Waiver.objects.all()
    if ctx.project_id is not None:
        return rows.filter(project_id=ctx.project_id)
    return rows if ctx.actor.kind == "system" or ctx.channel in ("admin", "cli") else rows.none()


def open_waivers_of_release(release_id: UUID) -> QuerySet[Waiver]:
    """Return the waivers for a release that its end would end, in whatever project; for a bounded look."""
    rows: QuerySet[Waiver] = Waiver.objects.filter(
        release_id=release_id, state__in=[WaiverState.REQUESTED, WaiverState.ACTIVE]
    )
    return rows.order_by("-requested_at", "-id")


def waiver_view(ctx: Context, waiver_id: UUID) -> WaiverView:
    """Return one waiver with its uses counted. Raises `WaiverNotFound`."""
    row = with_uses(waivers(ctx)).filter(pk=waiver_id).first()
    if row is None:
        raise WaiverNotFound("There is no such waiver here.")
    return view_of_waiver(row)


def with_uses(rows: QuerySet[Waiver]) -> QuerySet[Waiver]:
    """Return the rows, each with how many requests were approved under it, counted for a page alone."""
    under = ApprovalRequest.objects.filter(waiver_id=OuterRef("pk")).order_by().values("waiver_id")
    counted = Subquery(under.annotate(number=Count("pk")).values("number"), output_field=IntegerField())
    return rows.annotate(uses=Coalesce(counted, 0))


def waivers_of_template(template_id: UUID) -> list[WaiverView]:
    """Return all that were ever asked for about a template, newest first."""
    rows = with_uses(Waiver.objects.filter(template_id=template_id))
    view = viewing_waivers()
    return [view(row) for row in rows.order_by("-requested_at", "-id")[:100]]


def view_of_waiver(row: Waiver) -> WaiverView:
    """Return the view of a row that carries `uses`."""
    return viewing_waivers()(row)


def viewing_waivers() -> Callable[[Waiver], WaiverView]:
    """Return what makes the views of many rows that carry `uses`; time and environments are read once."""
    at = clock.now()

    @cache
    def slugs(project_id: UUID) -> dict[UUID, str]:
        return {environment.id: environment.slug for environment in projects.environments(project_id)}

    return lambda row: _view(row, slugs(row.project_id), at)


def others_in_force(row: Waiver | WaiverView) -> list[WaiverView]:
    """Return the other waivers of the same template and release that hold now in one of its environments."""
    rows = Waiver.objects.filter(
        template_id=row.template_id,
        release_id=row.release_id,
        project_id=row.project_id,
        environment_ids__overlap=list(row.environment_ids),
        state=WaiverState.ACTIVE,
        expires_at__gt=clock.now(),
    ).exclude(pk=row.id)
    return [view_of_waiver(waiver) for waiver in with_uses(rows).order_by("-expires_at", "id")[:20]]


def waivers_in_force(project_id: UUID, environment_id: UUID) -> list[Waiver]:
    """Return the rows of those that hold now in an environment, which last longest first."""
    rows = Waiver.objects.filter(
        project_id=project_id,
        environment_ids__contains=[environment_id],
        state=WaiverState.ACTIVE,
        expires_at__gt=clock.now(),
    )
    return list(rows.order_by("-expires_at", "id")[:50])


def why_not_serving(waiver: Waiver, verdict: PolicyVerdict, requesters: Collection[str], at: datetime) -> str:
    """Return why a waiver serves no request under a verdict that these people make; else empty.

    What the question is about (template, release, environment) is compared by the caller.
    Raises `ProposalCorrupted`.
    """
    if not waiver.in_force(at):
        return "its time is over."
    given = ApprovalRequest.objects.select_related("proposal").get(pk=waiver.approval_id)
    about = (given.subject_type, given.subject_id, given.state)
    if about != (SubjectType.WAIVER, waiver.id, ApprovalState.APPROVED):
        return "nobody has approved it."
    genuine(given.proposal, given.proposal_hash)
    machine = machine_among((waiver.decided_by, *waiver.deciders, given.decided_by, given.decided_for))
    if machine:
        return f"it was decided by {machine}, which is a service account, and a machine never decides."
    if not is_enough(given.approver_roles, given.quorum, verdict):
        gave, takes = format_rule(given.approver_rule), format_rule(verdict.approver_rule)
        return f"it was decided by {gave}, and here it takes {takes}."
    if not projects.people_behind(requesters).isdisjoint(projects.people_behind(waiver.never_for)):
        return "it never serves runs of who asked for it or gave it."
    return ""


def is_enough(roles: Collection[str], quorum: int, verdict: PolicyVerdict) -> bool:
    """Return whether a yes under this rule is one under the verdict's: no other role, no fewer people."""
    return bool(roles) and set(roles) <= set(verdict.roles) and quorum >= verdict.quorum


def machine_among(deciders: Iterable[str]) -> str:
    """Return a service account that is among them; empty where all are people."""
    return min((name for name in deciders if re.match(MACHINE, name)), default="")


def deciders_of(view: ApprovalView) -> set[str]:
    """Return everybody whose yes it is: who decided or voted, and in whose place; accounts and people."""
    named = {view.decided_by, view.decided_person, view.decided_for}
    for vote in votes_of(view.id):
        named |= {vote.voter, vote.person, vote.acting_for}
    return named - {""}


def _view(row: Waiver, slugs: dict[UUID, str], at: datetime) -> WaiverView:
    over = row.state == WaiverState.ACTIVE and not row.in_force(at)
    return of_row(
        WaiverView,
        row,
        state=str(WaiverState.EXPIRED.value) if over else str(row.state),
        environment_ids=tuple(row.environment_ids),
        environments=tuple(slugs.get(key, str(key)) for key in row.environment_ids),
        deciders=tuple(row.deciders),
        uses=int(getattr(row, "uses", 0)),
    )

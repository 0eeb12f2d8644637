"""Who may see what: the requests within a scope, those that wait for somebody, and their content."""

from collections.abc import Collection

from django.db.models import F, Q, QuerySet
from django.db.models.expressions import RawSQL
from django.db.models.functions import Now

from approvals.models import ApprovalRequest
from approvals.selectors.eligibility import refusal_for
from approvals.selectors.requests import requests
from approvals.selectors.views import ApprovalView
from approvals.states import ApprovalState
from approvals.subjects import unanswerable
from factory.identity.directory import directory
from factory.kernel.context import Context
from projects.selectors import names_of, people_behind

SEES_THE_PROJECT = frozenset({"Reviewer", "WorkspaceAdmin", "Operator", "PlatformAdmin", "Observer"})
"""Roles that see every request of their project; anybody else sees what they asked for."""

PAYLOADS = "factory.payloads.read"


def reachable(ctx: Context) -> QuerySet[ApprovalRequest]:
    """Return the requests within the caller's trusted scope: of their project, and of the tenant as a whole.

    A token without a project reaches no project's requests; a session that has chosen none stands in
    the whole tenant, by memberships of the whole tenant.
    """
    of_tenant = Q(project_id__isnull=True)
    if ctx.project_id is not None:
        return requests().filter(of_tenant | Q(project_id=ctx.project_id))
    everywhere = ctx.actor.kind == "system" or ctx.channel in ("admin", "cli")
    return requests() if everywhere else requests().filter(of_tenant)


def visible(ctx: Context) -> QuerySet[ApprovalRequest]:
    """Return the requests that the caller may see: all within their scope, or only their own."""
    rows, actor = reachable(ctx), ctx.actor
    if actor.kind == "system" or actor.roles & SEES_THE_PROJECT:
        return rows
    own = {actor.subject, actor.person} - {""}
    by_another = ~Q(requester_person=F("requested_by"))  # only those are in an index by the person
    return rows.filter(Q(requested_by__in=own) | (Q(requester_person__in=own) & by_another))


def mine(ctx: Context) -> QuerySet[ApprovalRequest]:
    """Return what waits for the caller: pending, in their scope, theirs to decide, without their vote, and
    such that an answer would be taken.

    The roles and the people are compared by the database, so that a page of them is a page.
    """
    actor = ctx.actor
    grants = directory().grants_of(actor.subject, ctx.tenant_id, ctx.project_id)
    rows = reachable(ctx).filter(~unanswerable(), state=ApprovalState.PENDING, expires_at__gt=Now())
    if grants is None or grants.machine or actor.kind == "service":
        return rows.none()
    by_role = Q(pk__in=[])
    for role in grants.own_roles & actor.roles:
        by_role |= Q(approver_roles__contains=[role])
    for delegation in grants.delegations:
        if delegation.role in actor.roles:
            by_role |= Q(approver_roles__contains=[delegation.role]) & ~_involves({delegation.delegator})
    own = {actor.subject, actor.person, grants.person} | people_behind([actor.address])
    mine_before = _involves(names_of(grants.person))
    rows = rows.filter(by_role).exclude(_involves(own - {""})).exclude(mine_before)
    own_names = Q(votes_cast__person=grants.person) | Q(votes_cast__person__in=names_of(grants.person))
    return rows.exclude(own_names)


def _involves(people: Collection[str] | RawSQL) -> Q:
    return Q(requested_by__in=people) | Q(requester_person__in=people) | Q(author_person__in=people)


def may_see_proposal(ctx: Context, view: ApprovalView) -> bool:
    """Return whether the caller reads a proposal: with the scope and the grant, and always who may decide.

    That is also who may break the glass, for as long as there is something to decide, and who broke it: what
    somebody signs they have to see.
    """
    if reads_payloads(ctx) or refusal_for(ctx, view) is None:
        return True
    theirs = view.is_pending or (view.break_glass and view.decided_person == ctx.actor.person)
    return theirs and refusal_for(ctx, view, break_glass=True) is None


def reads_payloads(ctx: Context) -> bool:
    """Return whether the caller reads inputs, outputs and proposals: it needs the scope and the grant."""
    actor = ctx.actor
    return actor.kind == "system" or (PAYLOADS in actor.scopes and "payloads" in actor.grants)

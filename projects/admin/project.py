"""What the page of a project says: how it stands, who can do what in it, and what works there."""

from typing import Any

from django.http import HttpRequest

from factory import clock
from factory.admin.parts import parts_of
from factory.admin.scope import context_of
from factory.admin.show import seen
from factory.identity.permissions import may
from projects.admin.standing import loans, memberships, who_can
from projects.models import Project
from projects.selectors import environments, may_end, service_accounts
from projects.states import ProjectState

ACCOUNTS = 50


def project_page(request: HttpRequest, row: Project) -> dict[str, Any]:
    """The values of the page for this reader, in the open transaction."""
    ctx, at = context_of(request), clock.now()
    figures, cards = parts_of("project", ctx, row.pk, at)
    sees_members = may(ctx, "ListMembers")
    members, more = memberships(row) if sees_members else ([], False)
    named = {one.subject: one.name for one in members}
    lent = loans(row, named, at) if may(ctx, "ListDelegations") else []
    accounts = list(service_accounts(row.pk)[: ACCOUNTS + 1]) if may(ctx, "ListServiceAccounts") else []
    return {
        "project": row,
        "sentence": sentence(row),
        "figures": figures,
        "cards": cards,
        "sees_members": sees_members,
        "members": members,
        "more_members": more,
        "can": who_can(members, lent) if sees_members else [],
        "lent": [(each, may_end(ctx, each.row)) for each in lent],
        "may_lend": ctx.project_id == row.pk and may(ctx, "LendRole"),
        "environments": environments(row.pk),
        "sees_accounts": may(ctx, "ListServiceAccounts"),
        "accounts": accounts[:ACCOUNTS],
        "more_accounts": len(accounts) > ACCOUNTS,
        "may_act": may(ctx, "SuspendProject"),
    }


def sentence(row: Project) -> str:
    """How it stands, and what that means."""
    if row.state == ProjectState.ACTIVE:
        return "It accepts runs, and what they need is dispatched to workers."
    if row.killing_since is not None:
        return "Its kill switch is thrown: nothing new starts, and its open runs are being cancelled."
    if row.killed_by:
        return (
            f"{seen(row.killed_by)} threw its kill switch, and every run that was open was asked to stop. "
            "Nothing new starts until somebody resumes it."
        )
    return "It is suspended: it accepts no runs and nothing new is dispatched, until somebody resumes it."

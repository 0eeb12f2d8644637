"""Who may call what here.

Money is decided by people who hold the grant `finance`, and by administrators within what they administer;
the commands judge that themselves, because a grant is no role. Reading the figures of one's own project is
open to every role in it.
"""

from uuid import UUID

from factory.identity.directory import directory
from factory.kernel.context import Context
from factory.kernel.permissions import may, permit
from usage.errors import NotOverMoney

_FINANCE = "finance"
_ADMINS = frozenset({"WorkspaceAdmin", "PlatformAdmin"})


PERMITS = (
    permit("CreateBudget", scope="usage.write", roles=None, level="tenant"),
    permit("ChangeBudgetAmount", scope="usage.write", roles=None, level="tenant"),
    permit("PublishPricingRevision", scope="usage.write", roles=None, level="tenant"),
    permit("EstablishPricing", scope=None, roles=(), kinds=("system",), level="tenant"),
    permit("ChangeRecurrence", scope="usage.write", roles=None, level="tenant"),
    permit("SeeToNextMonth", scope=None, roles=(), kinds=("system",), level="tenant"),
    permit("SettleHold", scope="usage.write", roles=None, level="tenant"),
    permit("ExpireHold", scope=None, roles=(), kinds=("system",), level="tenant"),
    permit("DateHolds", scope=None, roles=(), kinds=("system",), level="tenant"),
    permit("ExpireReservation", scope=None, roles=(), kinds=("system",), level="tenant"),
    permit("ListBudgets", scope="usage.read", roles=None, level="tenant"),
    permit("ReadBudget", scope="usage.read", roles=None, level="tenant"),
    permit("ReadLedger", scope="usage.read", roles=None, level="tenant"),
    permit("ReadUsage", scope="usage.read", roles=None, level="tenant"),
    permit("ListReservations", scope="usage.read", roles=None, level="tenant"),
    permit("ListPricingRevisions", scope="usage.read", roles=None, level="tenant"),
)


def require_over_money(ctx: Context, *, whole_tenant: bool) -> None:
    """Refuse unless the caller decides over money: of the whole tenant, or of the project in scope."""
    if ctx.actor.kind == "system":
        return
    roles, grants = ctx.actor.roles, ctx.actor.grants
    if whole_tenant:
        held = directory().grants_of(ctx.actor.subject, ctx.tenant_id, None)
        roles &= held.roles if held else frozenset()
        grants &= held.grants if held else frozenset()
    if _FINANCE not in grants and not roles & _ADMINS:
        scope = "the whole tenant" if whole_tenant else "this project"
        raise NotOverMoney(
            f"Deciding over money of {scope} needs the grant finance or an administrator's role there."
        )


def require_finance(ctx: Context) -> None:
    """Refuse unless the caller is a person who holds the grant finance in the scope of the call.

    What usage of unknown cost is settled at rests on that person's word, so that no role stands for it.
    """
    if ctx.actor.kind != "person" or _FINANCE not in ctx.actor.grants:
        raise NotOverMoney("Ending a hold needs a person with the grant finance here.")


def require_sight(ctx: Context) -> None:
    """Figures of a project are for everybody in it; those of the whole tenant for who decides over them."""
    if ctx.project_id is None:
        require_over_money(ctx, whole_tenant=True)
    elif ctx.actor.kind != "system" and not (ctx.actor.roles or ctx.actor.grants):
        raise NotOverMoney("The caller has no role in this project.")


def sees_money(ctx: Context) -> bool:
    """The question of `require_sight` for a page of the console, whose person's roles and grants are those
    of the place that it is read in: it asks no table."""
    actor = ctx.actor
    if actor.kind == "system":
        return True
    if ctx.project_id is None:
        return _FINANCE in actor.grants or bool(actor.roles & _ADMINS)
    return bool(actor.roles or actor.grants)


def reads_budgets(ctx: Context) -> bool:
    """Tell whether somebody sees the money of the place at all."""
    return may(ctx, "ListBudgets") and sees_money(ctx)


def is_visible(project_id: UUID, reader: UUID | None) -> bool:
    """Return whether who reads in a project, or (None) in the whole tenant, sees a run of `project_id`.

    Budgets of the tenant are drawn on by all of its projects, and nobody learns there of others' runs.
    """
    return reader in (None, project_id)

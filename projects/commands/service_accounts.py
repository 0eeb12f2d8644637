"""Machines that act in a project, and the people who answer for them."""

from uuid import UUID

from factory.kernel.clock import now
from factory.kernel.commanding import command
from factory.kernel.context import Context
from factory.kernel.errors import FieldError, NotFound
from factory.kernel.locking import lock, lock_many
from factory.kernel.reasons import reasoned
from factory.kernel.recording import audit, record
from projects.commands.inputs import (
    SERVICE_PREFIX,
    NewMember,
    member_faults,
    refuse,
    refuse_deciding_machine,
    slug_faults,
)
from projects.commands.joining import join, known_members
from projects.commands.reach import (
    lock_scope,
    lock_tenant,
    require_may_give,
    require_tenant_wide_admin,
    tenant_wide_roles,
)
from projects.errors import OwnerNotMember, ServiceAccountExists
from projects.models import Membership, ServiceAccount
from projects.permissions import ADMINS
from projects.selectors import reaches, spelled
from projects.states import MembershipState


@command("RegisterServiceAccount")
def register_service_account(
    ctx: Context,
    *,
    project_id: UUID | None,
    slug: str,
    owner: str,
    roles: tuple[str, ...],
    grants: tuple[str, ...] = (),
    name: str = "",
) -> str:
    """Make a machine's identity, with its first membership. Answers with its subject.

    What it requests counts as requested by `owner` too, who must be a member of the same scope.
    Guards: an admin of that scope. Emits: nothing. Errors: `NotFound`, `InvalidInput`,
    `RoleOfPeople`, `RoleOutOfReach`, `OwnerNotMember`, `ServiceAccountExists`.
    """
    new = NewMember(f"{SERVICE_PREFIX}{ctx.tenant_id}:{slug}", roles, grants, display_name=name or slug)
    faults = slug_faults(slug, "/slug") + member_faults(new, tenant_wide=project_id is None, pointer="")
    refuse(faults, "The service account is not valid.")
    refuse_deciding_machine(roles, "")
    _lock(ctx, project_id)
    require_may_give(ctx, project_id, roles)
    owner = spelled(owner)
    _check_owner(project_id, owner)
    _register(ctx, slug, new, owner)
    join(ctx, project_id, new, known_members(ctx, [new]), at=now(), pointer="")
    return new.subject


@command("RevokeServiceAccount")
def revoke_service_account(ctx: Context, *, account_id: UUID, reason: str) -> str:
    """Take a machine's identity back for good: it has no standing any more, whatever token it shows.

    Its memberships end. What it requested stays, and goes on. Guards: an admin of the whole tenant, or of
    the one project that the account is a member of; a reason. Emits: nothing. Errors: `NotFound`,
    `InvalidInput`, `RoleOutOfReach`, `TransitionRefused` when it is revoked already.
    """
    reason = reasoned(reason, "Revoking an account needs a reason.")
    lock_tenant(ctx)
    missing = NotFound("There is no such service account here.")
    account = lock(ServiceAccount, account_id, missing=missing)
    active = Membership.objects.filter(subject=account.subject, state=MembershipState.ACTIVE)
    members = lock_many(active)
    reached = {member.project_id for member in members}
    if ctx.project_id not in reached and not tenant_wide_roles(ctx) & frozenset(ADMINS):
        raise missing
    if reached != {ctx.project_id}:
        require_tenant_wide_admin(ctx)
    at = now()
    account.revoke(at=at)
    record(ctx, account, "RevocationRequested")
    for member in members:
        member.remove(at=at)
        record(ctx, member, "AccountRevoked")
    audit(
        ctx,
        "RevokeServiceAccount",
        subject=f"service-account:{account.id}",
        reason=reason,
        stream=account.id,
    )
    return str(account.state)


def _lock(ctx: Context, project_id: UUID | None) -> None:
    """Lock the tenant first: the account's name is unique in it."""
    lock_tenant(ctx)
    lock_scope(ctx, project_id)


def _check_owner(project_id: UUID | None, owner: str) -> None:
    if not reaches(owner, project_id):
        raise OwnerNotMember(
            f"{owner} is no member here, so they cannot answer for a service account.",
            errors=[FieldError("/owner", "Name an active member who is a person.")],
        )


def _register(ctx: Context, slug: str, new: NewMember, owner: str) -> None:
    if ServiceAccount.objects.filter(slug=slug).exists():
        raise ServiceAccountExists(
            f"There is a service account {slug} already.", errors=[FieldError("/slug", "It is taken.")]
        )
    at = now()
    account = ServiceAccount(
        tenant_id=ctx.tenant_id,
        slug=slug,
        name=new.display_name,
        subject=new.subject,
        owner=owner,
        created_at=at,
        updated_at=at,
    )
    record(ctx, account, "ServiceAccountRegistered", detail={"owner": owner})

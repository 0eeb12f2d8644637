"""Reads. To the other apps they hand frozen views, never rows."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import Case, DurationField, Exists, Func, OuterRef, Q, QuerySet, When

from factory.kernel.addresses import addresses_in
from factory.kernel.context import Context
from factory.kernel.tenancy import active, scanning
from projects.models import (
    Delegation,
    Environment,
    Identity,
    Membership,
    Project,
    ServiceAccount,
    Suspension,
    Tenant,
)
from projects.permissions import ADMINS
from projects.selectors.listing import has_project as has_project
from projects.selectors.listing import projects_of as projects_of
from projects.selectors.people import address_sql, spellings
from projects.selectors.people import members_of_sign_in as members_of_sign_in
from projects.selectors.people import names_of as names_of
from projects.selectors.people import people_behind as people_behind
from projects.selectors.people import people_with as people_with
from projects.selectors.people import person_of as person_of
from projects.selectors.people import spelled as spelled
from projects.states import DelegationState, MembershipState, ServiceAccountState, SubjectKind


@dataclass(frozen=True, slots=True)
class TenantView:
    id: str
    name: str


@dataclass(frozen=True, slots=True)
class ProjectView:
    id: UUID
    tenant_id: str
    slug: str
    name: str
    state: str
    killing_since: datetime | None = None
    killed_by: str = ""
    kill_reason: str = ""


@dataclass(frozen=True, slots=True)
class EnvironmentView:
    id: UUID
    project_id: UUID
    slug: str
    name: str


@dataclass(frozen=True, slots=True)
class MemberView:
    """A member as the other apps see one. `role` is the one that a question by role found."""

    subject: str
    person: str
    email: str
    role: str
    roles: tuple[str, ...]
    grants: tuple[str, ...]
    kind: str
    display_name: str
    project_id: UUID | None


@dataclass(frozen=True, slots=True)
class UserMembership:
    """A membership as the scan role may see it, across tenants."""

    tenant_id: str
    project_id: UUID | None
    roles: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DelegationView:
    """A role that is lent at this moment: the delegator still holds it, and both are members."""

    id: UUID
    project_id: UUID
    role: str
    delegator: str
    delegate: str
    expires_at: datetime


def tenant(tenant_id: str) -> TenantView | None:
    """Return the tenant in scope, or None if it is another's or was never onboarded."""
    row = Tenant.objects.filter(pk=tenant_id).first()
    return None if row is None else TenantView(row.id, row.name)


def project_view(row: Project) -> ProjectView:
    return ProjectView(
        row.id,
        row.tenant_id,
        row.slug,
        row.name,
        row.state,
        row.killing_since,
        row.killed_by,
        row.kill_reason,
    )


class Paused(Func):
    """`paused` as an expression: (project, since, due, at)."""

    function = "projects_paused"
    output_field = DurationField()


def paused(project_id: UUID | None, since: datetime, due: datetime, at: datetime) -> timedelta:
    """Return by how much a project's suspensions had, at `at`, put off what began at `since`, due at `due`.

    What was over before a suspension began stays over: it is not put off.
    """
    if project_id is None or at <= since:
        return timedelta(0)
    with connection.cursor() as cursor:
        cursor.execute("SELECT projects_paused(%s, %s, %s, %s)", [project_id, since, due, at])
        delay: timedelta = cursor.fetchone()[0]
    return delay


def suspensions(
    project_ids: Iterable[UUID], since: datetime | None = None
) -> dict[UUID, list[tuple[datetime, datetime | None]]]:
    """Return by project from when to when it was suspended, oldest first; one without an end still stands.

    Without those that were over at `since`.
    """
    rows = Suspension.objects.filter(project_id__in=set(project_ids)).order_by("suspended_at")
    if since is not None:
        rows = rows.exclude(resumed_at__lte=since)
    spans: dict[UUID, list[tuple[datetime, datetime | None]]] = {}
    for project_id, begin, end in rows.values_list("project_id", "suspended_at", "resumed_at"):
        spans.setdefault(project_id, []).append((begin, end))
    return spans


def project(project_id: UUID | None) -> ProjectView | None:
    """Return a project of the tenant in scope."""
    row = Project.objects.filter(pk=project_id).first()
    return None if row is None else project_view(row)


def project_by_slug(slug: str) -> ProjectView | None:
    """Return a project of the tenant in scope, by the name that people type."""
    row = Project.objects.filter(slug=slug).first()
    return None if row is None else project_view(row)


def environment(project_id: UUID | None, environment_id: UUID | None) -> EnvironmentView | None:
    """Return an environment, if it is one of that project."""
    row = Environment.objects.filter(pk=environment_id, project_id=project_id).first()
    return None if row is None else EnvironmentView(row.id, row.project_id, row.slug, row.name)


def environments(project_id: UUID | None) -> list[EnvironmentView]:
    """Return a project's environments by name; with no project, every one of the tenant."""
    rows = Environment.objects.order_by("slug", "id")
    if project_id is not None:
        rows = rows.filter(project_id=project_id)
    return [EnvironmentView(r.id, r.project_id, r.slug, r.name) for r in rows]


def active_memberships(project_id: UUID | None) -> QuerySet[Membership]:
    """Return the active memberships that reach a project: its own, and those of the whole tenant."""
    rows: QuerySet[Membership] = Membership.objects.filter(state=MembershipState.ACTIVE)
    reach = Q(project__isnull=True)
    return rows.filter(reach if project_id is None else reach | Q(project_id=project_id))


def _member_view(row: Membership, wanted: Sequence[str]) -> MemberView:
    counting = row.roles_that_count
    asked_role = next((role for role in counting if role in wanted), next(iter(counting), ""))
    return MemberView(
        subject=row.subject,
        person=row.person,
        email=row.email,
        role=asked_role,
        roles=counting,
        grants=tuple(row.grants),
        kind=row.kind,
        display_name=row.display_name,
        project_id=row.project_id,
    )


def members(project_id: UUID | None, roles: Iterable[str] = ()) -> list[MemberView]:
    """Return who is in a project at this moment, tenant-wide members included.

    With `roles`, only those who hold one of them. Somebody with a membership of each kind appears
    once for each.
    """
    wanted = tuple(map(str, roles))
    rows = active_memberships(project_id).order_by("subject", "id")
    if wanted:
        rows = rows.filter(roles__overlap=list(wanted))
    views = [_member_view(row, wanted) for row in rows]
    return [view for view in views if not wanted or view.role in wanted]


def people_beside(project_id: UUID | None, subject: str, most: int) -> list[MemberView]:
    """Return the first people who are in a project at this moment beside somebody, each once."""
    rows = active_memberships(project_id).filter(kind=SubjectKind.PERSON).exclude(subject=subject)
    people = rows.order_by("subject", "id").distinct("subject")[:most]
    return [_member_view(row, ()) for row in people]


def people_like(project_id: UUID | None, words: str, most: int = 20) -> list[MemberView]:
    """Return who is, or was, in a project (without one: in any) and is called so, or has such an address.

    Each is returned once.
    """
    rows = Membership.objects.all()
    if project_id is not None:
        rows = rows.filter(Q(project__isnull=True) | Q(project_id=project_id))
    named = Q(subject__icontains=words) | Q(display_name__icontains=words) | Q(email__icontains=words)
    return [
        _member_view(row, ())
        for row in rows.filter(named).order_by("subject", "id").distinct("subject")[:most]
    ]


def sign_ins_of(person: str) -> QuerySet[Identity]:
    """Return what an administrator has made a person's sign-ins, ended ones too."""
    rows: QuerySet[Identity] = Identity.objects.filter(person=person)
    return rows.order_by("joined_at", "id")


def identities_in(project_id: UUID | None) -> QuerySet[Identity]:
    """Return the sign-ins of who is, or was, a member of a project; with no project, all of the tenant."""
    rows: QuerySet[Identity] = Identity.objects.all()
    if project_id is None:
        return rows
    there = Membership.objects.filter(Q(project__isnull=True) | Q(project_id=project_id)).values("subject")
    return rows.filter(person__in=there)


def memberships_of(subject: str, project_id: UUID | None) -> list[Membership]:
    """Return the active memberships of one subject that reach a project (or the whole tenant)."""
    return list(active_memberships(project_id).filter(subject=subject))


def memberships_among(subjects: Iterable[str], project_id: UUID | None) -> list[Membership]:
    """Return the active memberships of several subjects that reach a scope, by subject, in one query."""
    rows = active_memberships(project_id).filter(subject__in=list(subjects))
    return list(rows.order_by("subject", "id"))


LENT = """
    FROM projects_delegation d
    WHERE d.tenant_id = %(tenant)s AND d.project_id = %(project)s
      AND d.state = 'Active' AND d.expires_at > clock_timestamp()
      AND EXISTS (SELECT FROM projects_membership p
                  WHERE p.tenant_id = d.tenant_id AND p.subject = d.delegator
                    AND p.kind = 'person' AND p.state = 'Active'
                    AND (p.project_id IS NULL OR p.project_id = d.project_id) AND d.role = ANY (p.roles))
      AND EXISTS (SELECT FROM projects_membership p
                  WHERE p.tenant_id = d.tenant_id AND p.subject = d.delegate
                    AND p.kind = 'person' AND p.state = 'Active'
                    AND (p.project_id IS NULL OR p.project_id = d.project_id))
"""
"""The delegations of a project that give their role at this very moment, by the database's clock.

Half-open: `expires_at` itself is too late. The delegator has to hold the role by a membership of their own,
and the delegate to be a member: what was lent lapses with either. In SQL, because every request asks it: the
query builder took longer over it than all else that a request does.
"""


def delegations_in_force(project_id: UUID | None) -> list[DelegationView]:
    """Return who acts for whom in a project at this moment."""
    rows = Delegation.objects.raw(f"SELECT d.* {LENT} ORDER BY d.expires_at, d.id", _scope(project_id))
    return [
        DelegationView(row.id, row.project_id, row.role, row.delegator, row.delegate, row.expires_at)
        for row in rows
    ]


def may_end(ctx: Context, row: Delegation) -> bool:
    """Return whether somebody could end a delegation: either of the two, or an admin of the project."""
    mine = ctx.actor.subject in (row.delegator, row.delegate)
    return mine or ctx.actor.kind == "system" or bool(ctx.actor.roles & frozenset(ADMINS))


def delegations_of(subject: str) -> QuerySet[Delegation]:
    """Return the Active delegations from or to somebody, in whatever project of the tenant."""
    rows: QuerySet[Delegation] = Delegation.objects.filter(state=DelegationState.ACTIVE)
    return rows.filter(Q(delegator=subject) | Q(delegate=subject)).order_by("id")


def effective_grants(subject: str, project_id: UUID | None) -> list[Membership]:
    """Return the active memberships of a subject, with the delegations to it as `lent`, in one query."""
    fields = "'id', d.id, 'role', d.role, 'delegator', d.delegator, 'expires_at', d.expires_at"
    delegations = (
        f"SELECT json_build_object({fields}) {LENT} AND d.delegate = m.subject ORDER BY d.expires_at, d.id"
    )
    rows = Membership.objects.raw(
        f"""
        SELECT m.*, ARRAY({delegations}) AS lent FROM projects_membership m
        WHERE m.tenant_id = %(tenant)s AND m.subject = %(subject)s AND m.state = 'Active'
          AND (m.project_id IS NULL OR m.project_id = %(project)s)
        ORDER BY m.id
        """,
        {"subject": subject} | _scope(project_id),
    )
    return list(rows)


def _scope(project_id: UUID | None) -> dict[str, Any]:
    """Return the tenant of the open transaction, which SQL has to name itself, and the project."""
    return {"tenant": active().tenant_id, "project": project_id}


def service_account(subject: str) -> ServiceAccount | None:
    """Return an active service account by its subject."""
    return ServiceAccount.objects.filter(subject=subject, state=ServiceAccountState.ACTIVE).first()


def service_accounts(project_id: UUID | None) -> QuerySet[ServiceAccount]:
    """Return the accounts that are, or were, members of a project; without one, every one of the tenant."""
    rows: QuerySet[ServiceAccount] = ServiceAccount.objects.all()
    if project_id is None:
        return rows
    own = Membership.objects.filter(project_id=project_id, kind=SubjectKind.SERVICE).values("subject")
    return rows.filter(subject__in=own)


def holds(subject: str, project_id: UUID | None, role: str) -> bool:
    """Return whether somebody has a role in a project by a membership of their own."""
    return any(role in membership.roles for membership in memberships_of(subject, project_id))


def holds_anywhere(subject: str, role: str) -> bool:
    """Return whether somebody has a role in the whole tenant or any of its projects by a membership of their
    own."""
    own = Membership.objects.filter(subject=subject, state=MembershipState.ACTIVE, roles__contains=[role])
    return bool(own.exists())


def holds_everywhere(subject: str, role: str) -> bool:
    """Return whether somebody has a role in the whole tenant, or in each of its projects, by memberships of
    their own: what holds in all projects is for who may decide in all of them."""
    own = Membership.objects.filter(subject=subject, state=MembershipState.ACTIVE, roles__contains=[role])
    scopes = set(own.values_list("project_id", flat=True))
    return None in scopes or not Project.objects.exclude(pk__in=[scope for scope in scopes if scope]).exists()


def in_each_project(role: str) -> Case:
    """Return, of a membership with a role in one project, whether its subject has the role by such in every
    project of the tenant: the question of `holds_everywhere`, asked beside the row."""
    own = Membership.objects.filter(subject=OuterRef(OuterRef("subject")), project=OuterRef("pk"))
    own = own.filter(state=MembershipState.ACTIVE, roles__contains=[role])
    lacks = Exists(Project.objects.filter(~Exists(own)))
    return Case(When(roles__contains=[role], project__isnull=False, then=~lacks), default=False)


def reaches(person: str, project_id: UUID | None) -> bool:
    """Return whether a person is an active member of a scope, by themselves or tenant-wide."""
    return bool(active_memberships(project_id).filter(subject=person, kind=SubjectKind.PERSON).exists())


def is_member_anywhere(person: str) -> bool:
    """Return whether a person has any active membership of their own left in the tenant."""
    rows = Membership.objects.filter(subject=person, kind=SubjectKind.PERSON, state=MembershipState.ACTIVE)
    return bool(rows.exists())


def memberships_of_user(subject: str) -> list[UserMembership]:
    """Return every active membership of a subject, in whatever tenant: for a session that has none yet.

    Read as the scan role, which sees the membership's scope and roles and nothing else.
    """
    with scanning() as cursor:
        cursor.execute(
            "SELECT tenant_id, project_id, roles FROM projects_membership"
            " WHERE subject = %s AND state = 'Active' ORDER BY tenant_id, project_id NULLS FIRST",
            [subject],
        )
        return [UserMembership(tenant, project, tuple(roles)) for tenant, project, roles in cursor.fetchall()]


def memberships_of_address(address: str) -> dict[str, tuple[UUID, str]]:
    """Return by tenant the first active membership of an address and its subject, for the command line.

    Read as the scan role, which sees whose a membership is, and nothing else of it.
    """
    with scanning() as cursor:
        cursor.execute(
            "SELECT tenant_id, id, subject FROM projects_membership"
            f" WHERE {address_sql('subject')} = ANY (%s) AND state = 'Active'"
            " ORDER BY tenant_id DESC, id DESC",
            [sorted(spellings(addresses_in(address)))],
        )
        return {tenant_id: (key, subject) for tenant_id, key, subject in cursor.fetchall()}

"""Tenants, projects, environments, and who is what in them."""

from datetime import datetime
from typing import Any, ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Upper
from django_fsm import FSMField, transition

from factory.kernel.lifecycle import Lifecycle
from factory.kernel.models.base import Journaled, TenantForeignKey, TenantModel, in_check, uuid_key
from projects.states import (
    DELEGATION,
    GRANTS,
    IDENTITY,
    LENDABLE,
    MACHINE,
    MEMBERSHIP,
    OF_PEOPLE,
    PROJECT,
    ROLES,
    SERVICE_ACCOUNT,
    DelegationState,
    IdentityState,
    MembershipState,
    ProjectState,
    ServiceAccountState,
    SubjectKind,
)

SLUG = r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"
SLUG_WORDS = "lower-case letters, digits and inner hyphens, at most 63"


class Tenant(TenantModel):
    """A customer. Its id is the scope of everything that it owns, this row included."""

    id = models.CharField(primary_key=True, max_length=64)
    name = models.CharField(max_length=200)
    created_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar[list[Any]] = [
            models.CheckConstraint(condition=models.Q(id=models.F("tenant_id")), name="tenant_owns_itself"),
            models.CheckConstraint(condition=models.Q(id__regex=SLUG), name="tenant_id_is_a_slug"),
        ]

    def __str__(self) -> str:
        return self.name


class Project(Journaled):
    """Bound where runs are requested and decided on. Suspending it stops new work, and nothing else."""

    lifecycle: ClassVar[Lifecycle] = PROJECT

    slug = models.CharField(max_length=63)
    name = models.CharField(max_length=200)
    state = FSMField(choices=ProjectState.choices, default=ProjectState.ACTIVE, protected=True)
    suspended_at = models.DateTimeField(null=True)
    suspension_reason = models.TextField(blank=True, default="")
    killing_since = models.DateTimeField(null=True)
    killed_by = models.CharField(max_length=255, blank=True, default="")
    kill_reason = models.TextField(blank=True, default="")
    version = models.BigIntegerField(default=0)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar[list[Any]] = [
            models.UniqueConstraint(fields=["tenant_id", "slug"], name="project_slug_once_a_tenant"),
            models.CheckConstraint(condition=models.Q(slug__regex=SLUG), name="project_slug_is_a_slug"),
            models.CheckConstraint(
                condition=in_check("state", ProjectState.values), name="project_state_known"
            ),
            models.CheckConstraint(
                condition=(
                    models.Q(state="Suspended", suspended_at__isnull=False) & ~models.Q(suspension_reason="")
                )
                | (~models.Q(state="Suspended") & models.Q(suspended_at__isnull=True, suspension_reason="")),
                name="project_suspended_since_and_why",
            ),
            models.CheckConstraint(
                condition=models.Q(killed_by="", kill_reason="", killing_since__isnull=True)
                | (models.Q(state="Suspended") & ~models.Q(killed_by="") & ~models.Q(kill_reason="")),
                name="project_killed_by_and_why",
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(
                fields=["killing_since"],
                condition=models.Q(killing_since__isnull=False),
                name="project_killing",
            )
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def project_id(self) -> Any:
        """Itself: for the references of its events."""
        return self.id

    @transition(field=state, source=ProjectState.ACTIVE, target=ProjectState.SUSPENDED)
    def suspend(self, *, at: datetime, reason: str) -> None:
        self.suspended_at = self.updated_at = at
        self.suspension_reason = reason

    @transition(field=state, source=ProjectState.SUSPENDED, target=ProjectState.ACTIVE)
    def resume(self, *, at: datetime) -> None:
        self.suspended_at, self.updated_at = None, at
        self.suspension_reason = self.killed_by = self.kill_reason = ""

    @transition(
        field=state, source=[ProjectState.ACTIVE, ProjectState.SUSPENDED], target=ProjectState.SUSPENDED
    )
    def kill(self, *, at: datetime, by: str, reason: str) -> None:
        self.suspended_at = self.suspended_at or at
        self.suspension_reason = self.suspension_reason or reason
        self.killing_since = self.updated_at = at
        self.killed_by, self.kill_reason = by, reason

    @transition(field=state, source=ProjectState.SUSPENDED, target=ProjectState.SUSPENDED)
    def finish_kill(self, *, at: datetime) -> None:
        """End the kill switch's work; who threw it and why stays on the row until the project is resumed."""
        self.killing_since, self.updated_at = None, at


class Suspension(TenantModel):
    """A time in which a project was suspended. What runs out by the clock stood still in it."""

    id = uuid_key()
    project = TenantForeignKey("projects.Project", related_name="suspensions")
    suspended_at = models.DateTimeField()
    resumed_at = models.DateTimeField(null=True)

    class Meta:
        constraints: ClassVar[list[Any]] = [
            models.UniqueConstraint(
                "project", condition=models.Q(resumed_at__isnull=True), name="suspension_one_at_a_time"
            ),
            models.CheckConstraint(
                condition=models.Q(resumed_at__isnull=True)
                | models.Q(resumed_at__gte=models.F("suspended_at")),
                name="suspension_ends_after_it_began",
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["project", "suspended_at"], name="suspension_by_project")
        ]

    def __str__(self) -> str:
        return f"since {self.suspended_at:%d %b %Y %H:%M:%S} UTC"


class Environment(TenantModel):
    """A place that a run may target. Policies name environments by their slug."""

    id = uuid_key()
    project = TenantForeignKey("projects.Project", related_name="environments")
    slug = models.CharField(max_length=63)
    name = models.CharField(max_length=200)
    created_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar[list[Any]] = [
            models.UniqueConstraint(
                fields=["tenant_id", "project", "slug"], name="environment_slug_once_a_project"
            ),
            models.CheckConstraint(condition=models.Q(slug__regex=SLUG), name="environment_slug_is_a_slug"),
        ]

    def __str__(self) -> str:
        return self.name


class Membership(Journaled):
    """Say what one subject is in one project, or in the whole tenant where it names no project.

    `person` answers for the subject: for a person that is the subject itself, for a service
    account its owner. Roles and grants change by a recorded command; the row only ever ends.
    """

    lifecycle: ClassVar[Lifecycle] = MEMBERSHIP

    project = TenantForeignKey("projects.Project", null=True, related_name="memberships")
    subject = models.CharField(max_length=255)
    person = models.CharField(max_length=255)
    kind = models.CharField(max_length=16, choices=SubjectKind.choices)
    email = models.EmailField(blank=True, default="")
    display_name = models.CharField(max_length=200, blank=True, default="")
    roles = ArrayField(models.CharField(max_length=32))
    grants = ArrayField(models.CharField(max_length=32), default=list, blank=True)
    state = FSMField(choices=MembershipState.choices, default=MembershipState.ACTIVE, protected=True)
    removed_at = models.DateTimeField(null=True)
    version = models.BigIntegerField(default=0)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar[list[Any]] = [
            models.UniqueConstraint(
                fields=["tenant_id", "project", "subject"],
                condition=models.Q(state="Active"),
                nulls_distinct=False,
                name="membership_once_a_scope",
            ),
            models.CheckConstraint(
                condition=models.Q(roles__contained_by=list(ROLES), roles__len__gt=0),
                name="membership_roles_known",
            ),
            models.CheckConstraint(
                condition=models.Q(grants__contained_by=list(GRANTS)), name="membership_grants_known"
            ),
            models.CheckConstraint(
                condition=models.Q(kind="person", person=models.F("subject"))
                | (models.Q(kind="service") & ~models.Q(person=models.F("subject"))),
                name="membership_person_by_kind",
            ),
            models.CheckConstraint(
                condition=models.Q(state="Active", removed_at__isnull=True)
                | models.Q(state="Removed", removed_at__isnull=False),
                name="membership_removed_since",
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(
                fields=["subject"], condition=models.Q(state="Active"), name="membership_by_subject"
            ),
            models.Index(Upper("subject"), condition=models.Q(state="Active"), name="membership_by_name"),
            models.Index(
                fields=["tenant_id", "email"],
                condition=models.Q(state="Active") & ~models.Q(email=""),
                name="membership_by_email",
            ),
        ]

    def __str__(self) -> str:
        return self.display_name or self.subject

    @property
    def roles_that_count(self) -> tuple[str, ...]:
        """Return its roles; of a machine, which may hold some from before that was refused, those it may."""
        machine = self.kind == SubjectKind.SERVICE
        return tuple(role for role in self.roles if not machine or role not in OF_PEOPLE)

    @transition(field=state, source=MembershipState.ACTIVE, target=MembershipState.ACTIVE)
    def change(self, *, at: datetime, roles: list[str], grants: list[str]) -> None:
        self.roles, self.grants, self.updated_at = roles, grants, at

    @transition(field=state, source=MembershipState.ACTIVE, target=MembershipState.REMOVED)
    def remove(self, *, at: datetime) -> None:
        self.removed_at = self.updated_at = at


class ServiceAccount(Journaled):
    """A machine's identity with a person who answers for it: what it requests, its owner requested."""

    lifecycle: ClassVar[Lifecycle] = SERVICE_ACCOUNT

    slug = models.CharField(max_length=63)
    name = models.CharField(max_length=200)
    subject = models.CharField(max_length=255)
    owner = models.CharField(max_length=255)
    state = FSMField(choices=ServiceAccountState.choices, default=ServiceAccountState.ACTIVE, protected=True)
    revoked_at = models.DateTimeField(null=True)
    version = models.BigIntegerField(default=0)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar[list[Any]] = [
            models.UniqueConstraint(fields=["tenant_id", "slug"], name="service_account_slug_once_a_tenant"),
            models.UniqueConstraint(fields=["subject"], name="service_account_subject_once"),
            models.CheckConstraint(
                condition=models.Q(slug__regex=SLUG), name="service_account_slug_is_a_slug"
            ),
            models.CheckConstraint(
                condition=models.Q(state="Active", revoked_at__isnull=True)
                | models.Q(state="Revoked", revoked_at__isnull=False),
                name="service_account_revoked_since",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @transition(field=state, source=ServiceAccountState.ACTIVE, target=ServiceAccountState.REVOKED)
    def revoke(self, *, at: datetime) -> None:
        self.revoked_at = self.updated_at = at


class Identity(Journaled):
    """A sign-in of an issuer that an administrator has made a member's: who comes by it is that person.

    `subject` is the issuer's `sub`, `person` the subject of the member. It counts in its tenant alone.
    """

    lifecycle: ClassVar[Lifecycle] = IDENTITY

    issuer = models.CharField(max_length=255)
    subject = models.CharField(max_length=255)
    person = models.CharField(max_length=255)
    reason = models.CharField(max_length=1000)
    joined_at = models.DateTimeField()
    joined_by = models.CharField(max_length=255)
    state = FSMField(choices=IdentityState.choices, default=IdentityState.ACTIVE, protected=True)
    ended_at = models.DateTimeField(null=True)
    ended_by = models.CharField(max_length=255, blank=True, default="")
    version = models.BigIntegerField(default=0)

    class Meta:
        constraints: ClassVar[list[Any]] = [
            models.UniqueConstraint(
                fields=["tenant_id", "issuer", "subject"],
                condition=models.Q(state="Active"),
                name="identity_of_one_person",
            ),
            models.CheckConstraint(
                condition=in_check("state", IdentityState.values), name="identity_state_known"
            ),
            models.CheckConstraint(condition=~models.Q(person__regex=MACHINE), name="identity_of_a_person"),
            models.CheckConstraint(
                condition=models.Q(state="Active", ended_at__isnull=True, ended_by="")
                | (~models.Q(state="Active") & ~models.Q(ended_by="") & models.Q(ended_at__isnull=False)),
                name="identity_ended_since_and_by",
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["tenant_id", "subject"], name="identity_by_subject"),
            models.Index(fields=["tenant_id", "person"], name="identity_by_person"),
        ]

    def __str__(self) -> str:
        return f"{self.subject} of {self.issuer}"

    @transition(field=state, source=IdentityState.ACTIVE, target=IdentityState.ENDED)
    def end(self, *, at: datetime, by: str) -> None:
        self.ended_at, self.ended_by = at, by


class Delegation(Journaled):
    """A role that a member lends to another in one project, until a moment that is already too late.

    It gives nothing by itself: whoever asks looks at this moment whether the delegator still holds the
    role and both are still members.
    """

    lifecycle: ClassVar[Lifecycle] = DELEGATION

    project = TenantForeignKey("projects.Project", related_name="delegations")
    role = models.CharField(max_length=32)
    delegator = models.CharField(max_length=255)
    delegate = models.CharField(max_length=255)
    reason = models.CharField(max_length=2000)
    lent_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    state = FSMField(choices=DelegationState.choices, default=DelegationState.ACTIVE, protected=True)
    ended_at = models.DateTimeField(null=True)
    ended_by = models.CharField(max_length=255, blank=True, default="")
    version = models.BigIntegerField(default=0)

    class Meta:
        constraints: ClassVar[list[Any]] = [
            models.UniqueConstraint(
                fields=["tenant_id", "project", "delegator", "delegate", "role"],
                condition=models.Q(state="Active"),
                name="delegation_once",
            ),
            models.CheckConstraint(condition=in_check("role", LENDABLE), name="delegation_role_lendable"),
            models.CheckConstraint(
                condition=in_check("state", DelegationState.values), name="delegation_state_known"
            ),
            models.CheckConstraint(
                condition=~models.Q(delegate=models.F("delegator")), name="delegation_between_two"
            ),
            models.CheckConstraint(
                condition=models.Q(expires_at__gt=models.F("lent_at")), name="delegation_has_a_time"
            ),
            models.CheckConstraint(
                condition=models.Q(state="Active", ended_at__isnull=True, ended_by="")
                | (~models.Q(state="Active") & ~models.Q(ended_by="") & models.Q(ended_at__isnull=False)),
                name="delegation_ended_since_and_by",
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(
                fields=["project", "delegate"],
                condition=models.Q(state="Active"),
                name="delegation_by_delegate",
            ),
            models.Index(
                fields=["expires_at", "id"], condition=models.Q(state="Active"), name="delegation_due"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.role} of {self.delegator} for {self.delegate}"

    def state_at(self, at: datetime) -> DelegationState:
        """Return its state as of a moment: its end itself is already too late, whether recorded or not."""
        over = self.state == DelegationState.ACTIVE and at >= self.expires_at
        return DelegationState.EXPIRED if over else DelegationState(self.state)

    @transition(field=state, source=DelegationState.ACTIVE, target=DelegationState.EXPIRED)
    def expire(self, *, at: datetime, by: str) -> None:
        self.ended_at, self.ended_by = at, by

    @transition(field=state, source=DelegationState.ACTIVE, target=DelegationState.REVOKED)
    def revoke(self, *, at: datetime, by: str) -> None:
        self.ended_at, self.ended_by = at, by

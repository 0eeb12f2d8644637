"""What goes over the wire about projects, and what is accepted."""

from typing import Any

from django.core.validators import RegexValidator
from rest_framework import serializers

from factory.api.serializers import (
    Identifier,
    InUseBody,
    StrictSerializer,
    TextField,
    TimeField,
    Whole,
    WordField,
)
from projects.commands.inputs import NewEnvironment, NewMember
from projects.models import SLUG, SLUG_WORDS
from projects.states import (
    GRANTS,
    LENDABLE,
    ROLES,
    DelegationState,
    MembershipState,
    ProjectState,
    Role,
    SubjectKind,
)


class Slug(TextField):
    """A name for URLs and policies."""

    def __init__(self, **options: Any) -> None:
        shape = RegexValidator(SLUG, f"A slug is {SLUG_WORDS}.")
        super().__init__(max_length=63, validators=[shape], **options)


class ProjectBody(StrictSerializer):
    """A project."""

    projectId = Identifier(source="id")
    slug = Slug()
    name = TextField()
    state = WordField(choices=ProjectState.choices)
    suspendedAt = TimeField(source="suspended_at", allow_null=True)
    suspensionReason = TextField(source="suspension_reason", max_length=2000)
    killingSince = TimeField(source="killing_since", allow_null=True)
    killedBy = TextField(source="killed_by", allow_blank=True)
    killReason = TextField(source="kill_reason", allow_blank=True, max_length=2000)
    version = Whole()
    createdAt = TimeField(source="created_at")
    updatedAt = TimeField(source="updated_at")


class ProjectInUseBody(ProjectBody):
    """A project with what rests on it."""

    inUse = InUseBody()


class EnvironmentBody(StrictSerializer):
    """An environment of a project."""

    environmentId = Identifier(source="id")
    slug = Slug()
    name = TextField()
    createdAt = TimeField(source="created_at")


class MemberBody(StrictSerializer):
    """A membership; one of the whole tenant has no `projectId`."""

    memberId = Identifier(source="id")
    projectId = Identifier(source="project_id", allow_null=True)
    subject = TextField()
    person = TextField()
    kind = WordField(choices=SubjectKind.choices)
    email = TextField()
    displayName = TextField(source="display_name")
    roles = serializers.ListField(child=WordField(choices=ROLES))
    grants = serializers.ListField(child=WordField(choices=GRANTS))
    state = WordField(choices=MembershipState.choices)
    version = Whole()
    createdAt = TimeField(source="created_at")
    updatedAt = TimeField(source="updated_at")
    removedAt = TimeField(source="removed_at", allow_null=True)


class NewEnvironmentBody(StrictSerializer):
    """An environment to add."""

    slug = Slug()
    name = TextField(max_length=200, required=False, default="")


PROJECT_ROLES = tuple(role for role in ROLES if role != Role.PLATFORM_ADMIN)
"""PlatformAdmin is a role in the whole tenant, and these routes are a project's."""


class GrantsBody(StrictSerializer):
    """Roles and grants."""

    roles = serializers.ListField(
        child=WordField(choices=PROJECT_ROLES), min_length=1, max_length=len(PROJECT_ROLES)
    )
    grants = serializers.ListField(
        child=WordField(choices=GRANTS), max_length=len(GRANTS), required=False, default=list
    )


class NewMemberBody(GrantsBody):
    """A member to add; `subject` is the `sub` of their tokens."""

    subject = TextField()
    email = serializers.EmailField(required=False, default="", allow_blank=True, max_length=254)
    displayName = TextField(
        source="display_name", max_length=200, required=False, default="", allow_blank=True
    )


class ChangedMemberBody(GrantsBody):
    """Say what a member shall be from now on, and on which version that was decided."""

    version = Whole()


class OnboardingBody(StrictSerializer):
    """A project with its environments and members."""

    slug = Slug()
    name = TextField(max_length=200)
    environments = serializers.ListField(
        child=NewEnvironmentBody(), required=False, default=list, max_length=50
    )
    members = serializers.ListField(child=NewMemberBody(), required=False, default=list, max_length=200)


class OnboardedBody(ProjectBody):
    """The new project; environments by slug and members by subject, with their ids."""

    environments = serializers.DictField(child=Identifier())
    members = serializers.DictField(child=Identifier())


class ReasonBody(StrictSerializer):
    """Give the reason."""

    reason = TextField(max_length=2000)


class MemberFilter(StrictSerializer):
    """Select the memberships to list."""

    state = WordField(choices=MembershipState.choices, required=False, default=MembershipState.ACTIVE.value)


class DelegationBody(StrictSerializer):
    """A role that one member lends to another. It counts before `expiresAt`, and not at it."""

    delegationId = Identifier(source="id")
    projectId = Identifier(source="project_id")
    role = WordField(choices=LENDABLE)
    delegator = TextField()
    delegate = TextField()
    reason = TextField(max_length=2000)
    state = WordField(choices=DelegationState.choices)
    lentAt = TimeField(source="lent_at")
    expiresAt = TimeField(source="expires_at")
    endedAt = TimeField(source="ended_at", allow_null=True)
    endedBy = TextField(source="ended_by", allow_blank=True)
    version = Whole()


class NewDelegationBody(StrictSerializer):
    """One of the caller's own roles, lent to another member of the project until `expiresAt`."""

    role = WordField(choices=LENDABLE)
    delegate = TextField()
    expiresAt = TimeField(source="expires_at")
    reason = TextField(max_length=2000)


class DelegationFilter(StrictSerializer):
    """Select the delegations to list by recorded `state`: an end by time is recorded within minutes."""

    state = WordField(choices=DelegationState.choices, required=False)


def new_member(values: dict[str, Any]) -> NewMember:
    return NewMember(
        subject=values["subject"],
        roles=tuple(values["roles"]),
        grants=tuple(values["grants"]),
        email=values["email"],
        display_name=values["display_name"],
    )


def new_environment(values: dict[str, Any]) -> NewEnvironment:
    return NewEnvironment(values["slug"], values["name"])

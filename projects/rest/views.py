"""Projects over HTTP: parse, call one command, translate."""

from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from factory.api.etags import with_etag
from factory.api.idempotency import ONCE
from factory.api.pages import page
from factory.api.views import BaseView
from factory.kernel.clock import now
from factory.kernel.commanding import Command
from factory.kernel.errors import NotFound
from factory.kernel.impact import concerns
from projects.commands import (
    add_environment,
    add_member,
    change_member,
    kill_project,
    lend_role,
    onboard_project,
    remove_member,
    resume_project,
    revoke_delegation,
    suspend_project,
)
from projects.models import Delegation, Environment, Membership, Project
from projects.rest.serializers import (
    ChangedMemberBody,
    DelegationBody,
    DelegationFilter,
    EnvironmentBody,
    MemberBody,
    MemberFilter,
    NewDelegationBody,
    NewEnvironmentBody,
    NewMemberBody,
    OnboardedBody,
    OnboardingBody,
    ProjectBody,
    ProjectInUseBody,
    ReasonBody,
    new_environment,
    new_member,
)


class ProjectsView(BaseView):
    """Base: finds what the caller's scope includes."""

    def own(self, project_id: UUID) -> Project:
        """Return the project, or `NotFound` where the token is another project's."""
        row: Project | None = None
        if self.ctx.project_id in (None, project_id):
            row = Project.objects.filter(pk=project_id).first()
        if row is None:
            raise NotFound("There is no such project here.")
        return row


class ProjectList(ProjectsView):
    operation = {"GET": "ListProjects", "POST": "OnboardProject"}

    @extend_schema(summary="List projects", responses=ProjectBody(many=True))
    def get(self, request: Request) -> Response:
        """Return the projects of the tenant; a project's token sees that one alone."""
        with self.reading():
            rows: QuerySet[Project] = Project.objects.all()
            if self.ctx.project_id is not None:
                rows = rows.filter(pk=self.ctx.project_id)
            return Response(page(rows, request, render=lambda row: ProjectBody(row).data))

    @extend_schema(
        summary="Onboard a project", parameters=[ONCE], request=OnboardingBody, responses={201: OnboardedBody}
    )
    def post(self, request: Request) -> Response:
        """Make a project with its environments and members: all of it, or nothing."""
        body = OnboardingBody.parse(request.data)
        onboarded, headers = self.do(
            request,
            onboard_project,
            slug=body["slug"],
            name=body["name"],
            environments=[new_environment(item) for item in body["environments"]],
            members=[new_member(item) for item in body["members"]],
        )
        with self.reading():
            row = Project.objects.get(pk=onboarded["projectId"])
        answer = {
            **ProjectBody(row).data,
            "environments": onboarded["environments"],
            "members": onboarded["members"],
        }
        return Response(answer, 201, headers={"Location": f"{request.path}/{row.id}", **headers})


class ProjectDetail(ProjectsView):
    operation = {"GET": "ReadProject"}

    @extend_schema(summary="Read a project", responses=ProjectInUseBody)
    def get(self, request: Request, project_id: UUID) -> Response:
        """Return one project, with an ETag of its version."""
        with self.reading():
            row = self.own(project_id)
            body = {**ProjectBody(row).data, "inUse": concerns("project", row.id)}
        return with_etag(request, body, row.id, row.version, body["inUse"])


class ProjectSuspension(ProjectsView):
    """Base of the two acts on a project's state."""

    command: Command[Any, Any]

    def post(self, request: Request, project_id: UUID) -> Response:
        reason = ReasonBody.parse(request.data)["reason"]
        _, headers = self.do(request, self.command, project_id=project_id, reason=reason)
        with self.reading():
            return Response(ProjectBody(self.own(project_id)).data, headers=headers)


@extend_schema(summary="Suspend a project", parameters=[ONCE], request=ReasonBody, responses=ProjectBody)
class ProjectSuspend(ProjectSuspension):
    """No new runs and no new dispatch; what is leased may finish, decisions stay possible."""

    operation = {"POST": "SuspendProject"}
    command = suspend_project


@extend_schema(summary="Resume a project", parameters=[ONCE], request=ReasonBody, responses=ProjectBody)
class ProjectResume(ProjectSuspension):
    """A suspended project takes work again."""

    operation = {"POST": "ResumeProject"}
    command = resume_project


@extend_schema(summary="Throw the kill switch", parameters=[ONCE], request=ReasonBody, responses=ProjectBody)
class ProjectKill(ProjectSuspension):
    """Suspends the project and cancels every open run of it; `killingSince` is empty when all were asked."""

    operation = {"POST": "KillProject"}
    command = kill_project


class EnvironmentList(ProjectsView):
    operation = {"GET": "ListEnvironments", "POST": "AddEnvironment"}

    @extend_schema(summary="List a project's environments", responses=EnvironmentBody(many=True))
    def get(self, request: Request, project_id: UUID) -> Response:
        """Return the environments that runs of the project may target."""
        with self.reading():
            rows: QuerySet[Environment] = Environment.objects.filter(project=self.own(project_id))
            return Response(page(rows, request, render=lambda row: EnvironmentBody(row).data))

    @extend_schema(
        summary="Add an environment",
        parameters=[ONCE],
        request=NewEnvironmentBody,
        responses={201: EnvironmentBody},
    )
    def post(self, request: Request, project_id: UUID) -> Response:
        """Add an environment to the project."""
        body = NewEnvironmentBody.parse(request.data)
        environment_id, headers = self.do(request, add_environment, project_id=project_id, **body)
        with self.reading():
            row = Environment.objects.get(pk=environment_id)
        return Response(EnvironmentBody(row).data, 201, headers=headers)


class MemberList(ProjectsView):
    operation = {"GET": "ListMembers", "POST": "AddMember"}

    @extend_schema(
        summary="List a project's members", parameters=[MemberFilter], responses=MemberBody(many=True)
    )
    def get(self, request: Request, project_id: UUID) -> Response:
        """Return the project's memberships and the whole tenant's; active ones, or those that ended."""
        state = MemberFilter.parse_query(request)["state"]
        with self.reading():
            reach = Q(project=self.own(project_id)) | Q(project__isnull=True)
            rows: QuerySet[Membership] = Membership.objects.filter(reach, state=state)
            return Response(page(rows, request, render=lambda row: MemberBody(row).data))

    @extend_schema(
        summary="Add a member", parameters=[ONCE], request=NewMemberBody, responses={201: MemberBody}
    )
    def post(self, request: Request, project_id: UUID) -> Response:
        """Make somebody a member of the project."""
        member = new_member(NewMemberBody.parse(request.data))
        member_id, headers = self.do(request, add_member, project_id=project_id, member=member)
        with self.reading():
            row = Membership.objects.get(pk=member_id)
        return Response(MemberBody(row).data, 201, headers=headers)


class MemberDetail(ProjectsView):
    operation = {"PATCH": "ChangeMember", "DELETE": "RemoveMember"}

    @extend_schema(summary="Change a member", request=ChangedMemberBody, responses=MemberBody)
    def patch(self, request: Request, project_id: UUID, member_id: UUID) -> Response:
        """Give a member of the project other roles and grants."""
        body = ChangedMemberBody.parse(request.data)
        self._check(project_id, member_id)
        change_member(self.ctx, membership_id=member_id, **body)
        with self.reading():
            return Response(MemberBody(Membership.objects.get(pk=member_id)).data)

    @extend_schema(summary="Remove a member", request=None, responses={204: None})
    def delete(self, request: Request, project_id: UUID, member_id: UUID) -> Response:
        """End a membership of the project. What the member did stays theirs."""
        self._check(project_id, member_id)
        remove_member(self.ctx, membership_id=member_id)
        return Response(status=204)

    def _check(self, project_id: UUID, member_id: UUID) -> None:
        """Refuse a membership of another project; the tenant's are not managed here."""
        with self.reading():
            rows = Membership.objects.filter(pk=member_id, project=self.own(project_id))
            if not rows.exists():
                raise NotFound("There is no such member here.")


class ProjectDelegations(ProjectsView):
    operation = {"GET": "ListDelegations", "POST": "LendRole"}

    @extend_schema(
        summary="List a project's delegations",
        parameters=[DelegationFilter],
        responses=DelegationBody(many=True),
    )
    def get(self, request: Request, project_id: UUID) -> Response:
        """List who has lent which role to whom, newest first; with `state`, only those of that state."""
        wanted = DelegationFilter.parse_query(request)
        with self.reading():
            at = now()
            rows: QuerySet[Delegation] = Delegation.objects.filter(project=self.own(project_id), **wanted)
            return Response(
                page(rows, request, key=("lent_at", "id"), render=lambda row: _delegation(row, at))
            )

    @extend_schema(
        summary="Lend a role", parameters=[ONCE], request=NewDelegationBody, responses={201: DelegationBody}
    )
    def post(self, request: Request, project_id: UUID) -> Response:
        """Lend one of your own roles in the project to another member, for an absence."""
        body = NewDelegationBody.parse(request.data)
        delegation_id, headers = self.do(request, lend_role, project_id=project_id, **body)
        with self.reading():
            row = Delegation.objects.get(pk=delegation_id)
            body = _delegation(row, now())
        return Response(body, 201, headers=headers)


def _delegation(row: Delegation, at: datetime) -> dict[str, Any]:
    """As of the read: one past its end has ended, although that is recorded minutes later."""
    return {**DelegationBody(row).data, "state": str(row.state_at(at))}


class DelegationDetail(ProjectsView):
    operation = {"DELETE": "RevokeDelegation"}

    @extend_schema(summary="Revoke a delegation", request=None, responses={204: None})
    def delete(self, request: Request, project_id: UUID, delegation_id: UUID) -> Response:
        """Take a lent role back, at once. What was decided by it stays decided."""
        with self.reading():
            rows = Delegation.objects.filter(pk=delegation_id, project=self.own(project_id))
            if not rows.exists():
                raise NotFound("There is no such delegation here.")
        revoke_delegation(self.ctx, delegation_id=delegation_id)
        return Response(status=204)

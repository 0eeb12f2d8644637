"""The calls about run templates. Each parses, calls one command or selector, and translates."""

from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from factory.api.pages import page
from factory.api.views import BaseView
from runs.commands import create_run_template, request_waiver, retire_run_template
from runs.rest.submissions import NewTemplateBody, read_template
from runs.rest.template_serializers import (
    AskedBody,
    NewWaiverBody,
    RetireBody,
    TemplateBody,
    TemplateFilter,
    body_of,
)
from runs.selectors import template, templates


class TemplateList(BaseView):
    operation = {"GET": "ListRunTemplates", "POST": "CreateRunTemplate"}

    @extend_schema(
        summary="List run templates", parameters=[TemplateFilter], responses=TemplateBody(many=True)
    )
    def get(self, request: Request) -> Response:
        """The project's run templates, newest first."""
        wanted = TemplateFilter.parse_query(request)
        with self.reading():
            return Response(page(templates(self.ctx).filter(**wanted), request, render=body_of))

    @extend_schema(summary="Create a run template", request=NewTemplateBody, responses={201: TemplateBody})
    def post(self, request: Request) -> Response:
        """Fix a workflow, a model profile, limits and the schema of the input. It never changes."""
        made, headers = self.do(request, create_run_template, wanted=read_template(request.data))
        with self.reading():
            body = body_of(template(self.ctx, UUID(made)))
        return Response(body, 201, headers={"Location": f"{request.path}/{made}", **headers})


class TemplateDetail(BaseView):
    operation = {"GET": "ReadRunTemplate"}

    @extend_schema(summary="Read a run template", responses=TemplateBody)
    def get(self, request: Request, template_id: UUID) -> Response:
        """One run template; a run is submitted from it by `templateId`."""
        with self.reading():
            return Response(body_of(template(self.ctx, template_id)))


class TemplateRetire(BaseView):
    operation = {"POST": "RetireRunTemplate"}

    @extend_schema(summary="Retire a run template", request=RetireBody, responses=TemplateBody)
    def post(self, request: Request, template_id: UUID) -> Response:
        """Begin no run from it any more, and end its waivers."""
        reason = RetireBody.parse(request.data)["reason"]
        _, headers = self.do(request, retire_run_template, template_id=template_id, reason=reason)
        with self.reading():
            return Response(body_of(template(self.ctx, template_id)), headers=headers)


class TemplateWaivers(BaseView):
    operation = {"POST": "RequestWaiver"}

    @extend_schema(summary="Ask for a waiver", request=NewWaiverBody, responses={202: AskedBody})
    def post(self, request: Request, template_id: UUID) -> Response:
        """Ask a reviewer to approve in advance what runs of this template write in some environments."""
        body = NewWaiverBody.parse(request.data)
        asked, headers = self.do(request, request_waiver, template_id=template_id, **body)
        where = f"/factory/waivers/{asked['waiverId']}"
        return Response(asked, 202, headers={"Location": where, **headers})

"""The registry over HTTP: parse, call one command, translate."""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.request import Request
from rest_framework.response import Response

from factory.api.etags import with_etag
from factory.api.pages import page
from factory.api.views import BaseView
from factory.kernel.commanding import Command
from factory.kernel.impact import concerns
from registry import selectors
from registry.commands import (
    deprecate_release,
    move_alias,
    record_evaluation,
    request_review,
    revoke_release,
    submit_release,
)
from registry.rest.serializers import (
    AliasBody,
    AliasFilter,
    AliasTargetBody,
    EmptyBody,
    EndingBody,
    EvaluatedBody,
    ManifestBody,
    NewEvaluationBody,
    NewReleaseBody,
    ReleaseBody,
    ReleaseDetailBody,
    ReleaseFilter,
    ReviewBody,
    release_detail,
)


class RegistryView(BaseView):
    """Base: commands under the caller's key, and one release as everybody sees it."""

    def detail(self, release_id: UUID) -> dict[str, Any]:
        with self.reading():
            row = selectors.find_release(release_id)
            aliases, in_use = selectors.aliases_of(row.id), concerns("release", row.id)
            return release_detail(row, selectors.evaluations(row), aliases, in_use)


class ReleaseList(RegistryView):
    operation = {"GET": "ListReleases", "POST": "SubmitRelease"}

    @extend_schema(summary="List releases", parameters=[ReleaseFilter], responses=ReleaseBody(many=True))
    def get(self, request: Request) -> Response:
        """Return the tenant's releases, newest first, of one asset or in one state if asked for."""
        wanted = ReleaseFilter.parse_query(request)
        with self.reading():
            rows = selectors.releases().defer("closure__definition")
            if "asset" in wanted:
                rows = rows.filter(asset__name=wanted["asset"])
            if "state" in wanted:
                rows = rows.filter(state=wanted["state"])
            return Response(page(rows, request, render=lambda row: ReleaseBody(row).data))

    @extend_schema(summary="Submit a candidate", request=NewReleaseBody, responses={202: ReleaseDetailBody})
    def post(self, request: Request) -> Response:
        """Take in one commit as a Draft. It is fetched afterwards; `resolution` says how that goes."""
        body = NewReleaseBody.parse(request.data)
        release_id, headers = self.do(request, submit_release, keyed=True, **body)
        headers["Location"] = f"{request.path}/{release_id}"
        return Response(self.detail(UUID(release_id)), 202, headers=headers)


class ReleaseDetail(RegistryView):
    operation = {"GET": "ReadRelease"}

    @extend_schema(summary="Read a release", responses=ReleaseDetailBody)
    def get(self, request: Request, release_id: UUID) -> Response:
        """Return one release, with its evaluations and the aliases that name it."""
        body = self.detail(release_id)
        return with_etag(request, body, release_id, body["revision"], *body["aliases"], body["inUse"])


class ReleaseManifest(RegistryView):
    operation = {"GET": "LoadRelease"}

    @extend_schema(summary="Load a release", operation_id="load_release", responses=ManifestBody)
    def get(self, request: Request, release_id: UUID) -> Response:
        """Return the manifest and the hash of every file; 422 unless the release is loadable."""
        with self.reading():
            return Response(selectors.load_release(release_id))


class AnyType(BaseContentNegotiation):
    """A file is what it is, whatever the caller would rather have."""

    def select_parser(self, request: Request, parsers: Iterable[Any]) -> Any:
        return next(iter(parsers))

    def select_renderer(
        self, request: Request, renderers: Iterable[Any], format_suffix: str | None = None
    ) -> Any:
        first = next(iter(renderers))
        return first, first.media_type


class ReleaseFile(RegistryView):
    operation = {"GET": "LoadRelease"}
    content_negotiation_class = AnyType

    @extend_schema(
        summary="Load a file of a release",
        operation_id="load_release_file",
        parameters=[OpenApiParameter("sha256", OpenApiTypes.STR, "path", pattern="^(sha256:)?[0-9a-f]{64}$")],
        responses={(200, "application/octet-stream"): OpenApiTypes.BINARY},
    )
    def get(self, request: Request, release_id: UUID, sha256: str) -> HttpResponse:
        """Return the bytes of a file by its hash; 422 unless the release is loadable."""
        with self.reading():
            content = selectors.file_content(release_id, sha256)
        # The content is somebody's: nothing that a browser would run.
        headers = {"Content-Disposition": "attachment", "X-Content-Type-Options": "nosniff"}
        return HttpResponse(content, content_type="application/octet-stream", headers=headers)


class ReleaseEvaluations(RegistryView):
    operation = {"POST": "RecordEvaluation"}

    @extend_schema(summary="Record an evaluation", request=NewEvaluationBody, responses={201: EvaluatedBody})
    def post(self, request: Request, release_id: UUID) -> Response:
        """Keep what the manifest's suite found about exactly this hash."""
        body = NewEvaluationBody.parse(request.data)
        recorded, headers = self.do(request, record_evaluation, release_id=release_id, **body)
        return Response(recorded, 201, headers=headers)


class ReleaseReview(RegistryView):
    operation = {"POST": "RequestReview"}

    @extend_schema(summary="Ask for the review", request=EmptyBody, responses={202: ReviewBody})
    def post(self, request: Request, release_id: UUID) -> Response:
        """Open the publication approval; the release is InReview until it is decided."""
        EmptyBody.parse(request.data)
        opened, headers = self.do(request, request_review, release_id=release_id)
        return Response({**opened, "state": "InReview"}, 202, headers=headers)


class ReleaseEnding(RegistryView):
    """Base of the two ways out of use."""

    command: Command[Any, Any]

    def post(self, request: Request, release_id: UUID) -> Response:
        body = EndingBody.parse(request.data)
        _, headers = self.do(request, self.command, release_id=release_id, **body)
        return Response(self.detail(release_id), headers=headers)


@extend_schema(summary="Deprecate a release", request=EndingBody, responses=ReleaseDetailBody)
class ReleaseDeprecate(ReleaseEnding):
    """No new submissions; runs that pinned it still load it."""

    operation = {"POST": "DeprecateRelease"}
    command = deprecate_release


@extend_schema(summary="Revoke a release", request=EndingBody, responses=ReleaseDetailBody)
class ReleaseRevoke(ReleaseEnding):
    """Taken back for good: nothing loads it any more."""

    operation = {"POST": "RevokeRelease"}
    command = revoke_release


class AliasDetail(RegistryView):
    operation = {"GET": "ReadAlias", "PUT": "MoveAlias"}

    @extend_schema(summary="Read an alias", parameters=[AliasFilter], responses=AliasBody)
    def get(self, request: Request, asset: str, alias: str) -> Response:
        """Return the release that an alias names; with `at`, the one that it named then."""
        wanted = AliasFilter.parse_query(request)
        with self.reading():
            return Response(AliasBody(selectors.alias(asset, alias, at=wanted.get("at"))).data)

    @extend_schema(summary="Move an alias", request=AliasTargetBody, responses=AliasBody)
    def put(self, request: Request, asset: str, alias: str) -> Response:
        """Let an alias name another Published release; only later submissions are affected."""
        body = AliasTargetBody.parse(request.data)
        _, headers = self.do(request, move_alias, asset=asset, alias=alias, **body)
        with self.reading():
            return Response(AliasBody(selectors.alias(asset, alias)).data, headers=headers)

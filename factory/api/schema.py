"""The OpenAPI document: every operation with its bearer token and the problems that it may answer."""

from collections.abc import Mapping
from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema

from factory.api.pages import DEFAULT_LIMIT, MAX_LIMIT
from factory.api.serializers import StrictSerializer

READS = ("400", "401", "403", "404", "429", "503")
WRITES = (*READS, "409", "410", "413", "415", "422")
PROBLEM = {
    "type": "object",
    "required": ["type", "title", "status", "detail", "instance", "traceId"],
    "properties": {
        "type": {"type": "string", "examples": ["/factory/problems/not-found"]},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "instance": {"type": "string"},
        "traceId": {"type": "string", "format": "uuid"},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["pointer", "detail"],
                "properties": {"pointer": {"type": "string"}, "detail": {"type": "string"}},
            },
        },
    },
}


class BearerScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "factory.api.authentication.BearerAuthentication"
    name = "bearer"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, Any]:
        return {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}


class Page:
    """Describe how a list is answered (`factory.api.pages`), and what else its view says beside the items."""

    def __init__(self, members: Mapping[str, Any]) -> None:
        self.members = members

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        limit = {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT}
        cursor = {"type": "string", "description": "The `next` of the page before."}
        return [
            {"name": name, "in": "query", "required": False, "schema": schema}
            for name, schema in (("limit", limit), ("cursor", cursor))
        ]

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        return {
            "type": "object",
            "required": [*self.members, "items", "next", "asOf"],
            "properties": {
                **self.members,
                "items": schema,
                "next": {"type": ["string", "null"], "description": "The cursor of the next page."},
                "asOf": {"type": "string", "format": "date-time", "description": "The time of the read."},
            },
        }


class BaseSchema(AutoSchema):
    """Names an operation as the permission table does, so that the two can be read side by side.

    A view that answers with a list of something answers with a page of it.
    """

    def _get_paginator(self) -> Page:
        return Page(getattr(self.view, "page_members", {}))

    def _map_basic_serializer(self, serializer: Any, direction: str) -> dict[str, Any]:
        library: Any = super()
        mapped: dict[str, Any] = library._map_basic_serializer(serializer, direction)
        if direction == "request" and isinstance(serializer, StrictSerializer):
            mapped["additionalProperties"] = False
        return mapped

    def get_operation_id(self) -> str:
        named = getattr(self.view, "operation", {}).get(self.method.upper())
        return str(named) if named else str(super().get_operation_id())

    def get_tags(self) -> list[str]:
        parts = [part for part in self.path.split("/") if part and part != "factory"]
        return [parts[0]] if parts else ["house"]


def add_problems(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Give every operation its problem answers, by reference."""
    components = result.setdefault("components", {})
    components.setdefault("schemas", {})["Problem"] = PROBLEM
    components.setdefault("responses", {})["Problem"] = {
        "description": "The request was refused (RFC 9457).",
        "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    for path in result.get("paths", {}).values():
        for method, operation in path.items():
            statuses = READS if method in ("get", "head") else WRITES
            for status in statuses:
                answers = operation.setdefault("responses", {})
                answers.setdefault(status, {"$ref": "#/components/responses/Problem"})
    return result

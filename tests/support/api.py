"""The REST surface as its callers see it: a bearer token and JSON."""

import json
from collections.abc import Iterable
from typing import Any

from factory.identity.issuer import issue_person_token, issue_worker_token
from factory.kernel.context import Context
from tests.support.client import Client


def token_of(ctx: Context, **claims: Any) -> str:
    """A token with which the caller would come to have this context."""
    options: dict[str, Any] = {
        "tenant_id": ctx.tenant_id,
        "project_id": ctx.project_id,
        "scopes": ctx.actor.scopes,
        **claims,
    }
    return issue_person_token(ctx.actor.subject, **options)


def worker_token(name: str = "worker-1", pool: str = "default") -> str:
    return issue_worker_token(name, pool=pool)


class Api:
    """A caller of the API. `as_(ctx)` is one with that person's token."""

    def __init__(self, token: str = "") -> None:
        self.token = token
        self.client = Client(raise_request_exception=False)

    @classmethod
    def as_(cls, ctx: Context, scopes: Iterable[str] | None = None, **claims: Any) -> "Api":
        return cls(token_of(ctx, **({} if scopes is None else {"scopes": scopes}), **claims))

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """The response; `body` is sent as JSON, or as it is where it is bytes."""
        if self.token:
            headers.setdefault("Authorization", f"Bearer {self.token}")
        sent: dict[str, Any] = {}
        if body is not None:
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            sent = {"data": data, "content_type": headers.pop("Content_Type", "application/json")}
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.client.generic(method, path, headers=fields, **sent)

    def get(self, path: str, **headers: str) -> Any:
        return self.call("GET", path, **headers)

    def post(self, path: str, body: Any, **headers: str) -> Any:
        return self.call("POST", path, body, **headers)


def problem(response: Any) -> dict[str, Any]:
    """The problem that a response tells, without what differs from call to call."""
    assert response["Content-Type"] == "application/problem+json", response.content
    told: dict[str, Any] = response.json()
    assert told.pop("traceId") == response["X-Request-ID"]
    assert told["status"] == response.status_code
    return told

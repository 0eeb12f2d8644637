"""The launcher as a client of the HTTP API: it can do what any other client with its tokens can."""

import time
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import httpx

TRIES = 20
PAUSE_SECONDS = 0.25
PAGE = 200


class ApiCallRefused(Exception):
    """The API said no. The text says what is wrong, member by member."""


class Api:
    """The API as one person sees it."""

    def __init__(self, web_url: str, token: str) -> None:
        headers = {"Authorization": f"Bearer {token}"}
        self._client = httpx.Client(base_url=f"{web_url}/factory", headers=headers, timeout=20)

    def get(self, path: str, **query: Any) -> dict[str, Any]:
        return self._call("GET", path, params={name: str(value) for name, value in query.items()})

    def items(self, path: str, **query: Any) -> Iterator[dict[str, Any]]:
        """Every item of a list, page by page."""
        cursor: dict[str, Any] = {}
        while True:
            page = self.get(path, limit=PAGE, **query, **cursor)
            yield from page["items"]
            if not page["next"]:
                return
            cursor = {"cursor": page["next"]}

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Under a key of its own, so that trying again after a lost answer is the same request."""
        return self._call("POST", path, json=body, headers={"Idempotency-Key": str(uuid4())})

    def _call(self, method: str, path: str, **more: Any) -> dict[str, Any]:
        for left in reversed(range(TRIES)):
            try:
                answer = self._client.request(method, path, **more)
            except httpx.TransportError:
                if not left:
                    raise
            else:
                if not answer.is_server_error or not left:  # the same key: what was done is not done again
                    return _read(answer)
            time.sleep(PAUSE_SECONDS)
        raise AssertionError("the last try returns or raises")


def _read(answer: httpx.Response) -> dict[str, Any]:
    if answer.is_success:
        found: dict[str, Any] = answer.json()
        return found
    try:
        problem = answer.json()
    except ValueError:
        problem = {"detail": answer.text[:300]}
    faults = [f"  {fault['pointer']}: {fault['detail']}" for fault in problem.get("errors", ())]
    if answer.is_server_error and problem.get("traceId"):
        faults.append(f"  traceId {problem['traceId']}")
    said = problem.get("detail") or problem.get("title") or "no reason given"
    raise ApiCallRefused("\n".join([f"{answer.status_code} {said}", *faults]))

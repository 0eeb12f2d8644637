"""The workers' surface: parse, call one command in a thread, translate. Nothing waits in a thread."""

import asyncio
import re
from collections.abc import Callable
from typing import Any
from uuid import UUID

from starlette.requests import Request
from starlette.responses import Response

from factory.api.serializers import StrictSerializer
from factory.api.strict_json import loads
from factory.kernel.context import Context
from factory.kernel.errors import FieldError, Forbidden, InvalidInput, NotFound
from runs.selectors import assignment_scope
from runs.watch import acts, bodies
from runs.watch.board import PollBoard, WaitingPoll
from runs.watch.http import Endpoint, answer, caller, read_body
from runs.watch.scopes import tenants_of
from runs.watch.threads import Threads

INSTANCE = "Factory-Worker-Instance"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
STILL_THERE_SECONDS = 2.0
"""How often a poll that waits looks whether anybody waits for its answer."""

Told = tuple[Any, int]
Act = Callable[[Context, UUID, UUID | None, dict[str, Any]], Told]
Call = tuple[str, str, Endpoint]


class WorkerSurface:
    """The calls of a worker, each of them its command."""

    def __init__(self, threads: Threads, board: PollBoard) -> None:
        self._threads = threads
        self._board = board

    def calls(self) -> list[Call]:
        attempt = "/attempts/{attempt_id}"
        authorization = self._about(bodies.AuthorizationRequest, acts.authorization)
        return [
            ("PUT", "/workers/{name}", self.register),
            ("POST", "/workers/{name}/drain", self.drain),
            ("POST", "/workers/{name}/poll", self.poll),
            ("GET", "/releases/{release_id}/manifest", self.manifest),
            ("GET", "/releases/{release_id}/files/{digits}", self.file),
            ("POST", f"{attempt}/lease", self._about(bodies.UnderLease, acts.lease)),
            ("POST", f"{attempt}/receipts", self._about(bodies.Receipts, acts.receipts)),
            ("POST", f"{attempt}/approvals", self._about(bodies.ApprovalRequestBody, acts.approval)),
            ("POST", f"{attempt}/authorizations", authorization),
            ("POST", f"{attempt}/outcome", self._about(bodies.AttemptOutcomeBody, acts.outcome)),
        ]

    async def register(self, request: Request) -> Response:
        """Register or update a worker; answers the instance id that its later calls carry."""
        name, body = _name(request), await read_body(request)

        def work() -> Any:
            ctx = _worker(request)
            return acts.register(ctx, name, bodies.Registration.parse(loads(body)))

        return answer(await self._threads.run(work))

    async def drain(self, request: Request) -> Response:
        """No new offers for this worker; what it holds, it may finish."""
        name, body = _name(request), await read_body(request)

        def work() -> Any:
            ctx = _worker(request)
            bodies.Nothing.parse(loads(body))
            return acts.drain(ctx, name, _instance(request))

        return answer(await self._threads.run(work))

    async def poll(self, request: Request) -> Response:
        """A heartbeat, and work as soon as there is some; waits in the loop and never in a thread."""
        name, body = _name(request), await read_body(request)
        wait = bodies.waiting_time(request.query_params.getlist("wait"))
        ctx, tenants = await self._threads.run(lambda: _poller(request, body))
        instance = _instance(request)
        ends_at = asyncio.get_running_loop().time() + wait
        while True:
            with self._board.waiting(tenants) as waiting:
                assignments = await self._threads.run(lambda: acts.poll(ctx, name, instance))
                left = ends_at - asyncio.get_running_loop().time()
                if assignments or left <= 0 or await request.is_disconnected():
                    return answer({"assignments": assignments})
                try:
                    await _called(request, waiting, left)
                except asyncio.CancelledError:  # the process stops; another one will answer the next poll
                    return answer({"assignments": []})

    async def manifest(self, request: Request) -> Response:
        """The release of an assignment: its manifest and the hash of every file."""
        release_id = _id(request, "release_id", "release")
        return answer(await self._threads.run(lambda: acts.manifest(_worker(request), release_id)))

    async def file(self, request: Request) -> Response:
        """The bytes of a file of a release, by their hash."""
        release_id = _id(request, "release_id", "release")
        sha256 = f"sha256:{request.path_params['digits']}"
        content = await self._threads.run(lambda: acts.file(_worker(request), release_id, sha256))
        return Response(content, media_type="application/octet-stream")

    def _about(self, form: type[StrictSerializer], act: Act) -> Endpoint:
        """A call of an attempt's holder, worked in the attempt's own tenant."""

        async def call(request: Request) -> Response:
            attempt_id = _id(request, "attempt_id", "attempt")
            instance_id = _instance(request) if INSTANCE in request.headers else None
            body = await read_body(request)

            def work() -> Told:
                ctx = _worker(request)
                values = form.parse(loads(body, apart=bodies.ITEM_BY_ITEM))
                return act(assignment_scope(ctx, attempt_id), attempt_id, instance_id, values)

            told, status = await self._threads.run(work)
            return answer(told, status)

        return call


async def _called(request: Request, waiting: WaitingPoll, seconds: float) -> None:
    """Until the board calls, the time is over, or the caller has gone away."""
    ends_at = asyncio.get_running_loop().time() + seconds
    while not waiting.called.done():
        left = ends_at - asyncio.get_running_loop().time()
        if left <= 0 or await request.is_disconnected():
            return
        await asyncio.wait([waiting.called], timeout=min(left, STILL_THERE_SECONDS))


def _worker(request: Request) -> Context:
    """The worker that calls; nobody else has anything to say here."""
    _, ctx = caller(request)
    if ctx.actor.kind != "worker":
        raise Forbidden("This surface is for workers: their tokens have an audience of their own.")
    return ctx


def _poller(request: Request, body: bytes) -> tuple[Context, list[str]]:
    """The worker, and the tenants that its pool works for."""
    ctx = _worker(request)
    bodies.Nothing.parse(loads(body))
    return ctx, tenants_of(ctx.actor.pool)


def _name(request: Request) -> str:
    name: str = request.path_params["name"]
    if not NAME.fullmatch(name):
        raise InvalidInput("A worker's name has 1 to 64 letters, digits, dots, dashes or underscores.")
    return name


def _instance(request: Request) -> UUID:
    try:
        return UUID(request.headers.get(INSTANCE, ""))
    except ValueError as fault:
        error = FieldError(f"/{INSTANCE}", "The instanceId that the registration answered.")
        raise InvalidInput(f"Send {INSTANCE}.", errors=[error]) from fault


def _id(request: Request, name: str, what: str) -> UUID:
    try:
        return UUID(request.path_params[name])
    except ValueError as fault:
        raise NotFound(f"There is no such {what} here.") from fault

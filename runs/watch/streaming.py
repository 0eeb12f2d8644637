"""`GET /factory/watch`: every state change of the caller's scope, in order per run, without a gap."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from uuid import UUID

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from factory.identity.tokens import Token
from factory.kernel.context import Context
from factory.kernel.errors import Busy, DomainError, FieldError, InvalidInput
from factory.kernel.permissions import authorize
from runs.watch.cursor import Cursor
from runs.watch.feed import WatchScope, key_of
from runs.watch.http import caller
from runs.watch.hub import Hub, Watcher, sse
from runs.watch.threads import Threads

QUIET_SECONDS = 15.0
RECHECK_SECONDS = 60.0
MAX_WATCHERS = 2000

ScopeOf = Callable[[Context, UUID | None], WatchScope]


class Watching:
    """The endpoint. `scope_of` says, blocking, what a caller may see."""

    def __init__(self, hub: Hub, threads: Threads, scope_of: ScopeOf) -> None:
        self._hub = hub
        self._threads = threads
        self._scope_of = scope_of

    async def __call__(self, request: Request) -> Response:
        run_id = _run_id(request)
        sealed = request.headers.get("Last-Event-ID")
        cursor = Cursor.open(sealed) if sealed else None
        token, scope = await self._threads.run(lambda: self._admit(request, run_id))
        if self._hub.watching >= MAX_WATCHERS:
            raise Busy("This process has as many watchers as it serves; another may have room.")
        watcher = await self._hub.join(scope, cursor)
        messages = self._messages(request, watcher, token, run_id)
        headers = {"X-Accel-Buffering": "no"}
        return StreamingResponse(messages, media_type="text/event-stream", headers=headers)

    def _admit(self, request: Request, run_id: UUID | None) -> tuple[Token, WatchScope]:
        token, ctx = caller(request)
        authorize(ctx, "WatchPool" if ctx.actor.kind == "worker" else "WatchRuns")
        return token, self._scope_of(ctx, run_id)

    async def _messages(
        self, request: Request, watcher: Watcher, token: Token, run_id: UUID | None
    ) -> AsyncIterator[bytes]:
        try:
            async for message in self._earlier(watcher):
                yield message
            checked_at = time.monotonic()
            while True:
                message_or_end = await _next(watcher)
                if message_or_end is None:
                    return
                yield message_or_end
                if time.monotonic() - checked_at > RECHECK_SECONDS:
                    checked_at = time.monotonic()
                    if not await self._still_admitted(request, watcher, token, run_id):
                        return
        finally:
            self._hub.leave(watcher)

    async def _earlier(self, watcher: Watcher) -> AsyncIterator[bytes]:
        """Return where the stream starts, then what the caller missed since its last event."""
        feed, start, cursor = self._hub.feed, watcher.start, watcher.cursor
        if cursor is None:
            here = Cursor(start, start)
            yield f"retry: 2000\nid: {here.seal()}\n\n".encode()
            current = await feed.current(watcher.scope, start) if watcher.scope.run_id else None
            if current is not None:
                yield sse(current, here)
            return
        yield b"retry: 2000\n\n"
        if cursor.key is not None:
            async for event in feed.missed(watcher.scope, cursor, cursor.batch):
                if start.sees(event.transaction_id):
                    yield sse(event, Cursor(cursor.before, cursor.batch, key_of(event)))
        after = Cursor(cursor.batch, cursor.batch)
        async for event in feed.missed(watcher.scope, after, start):
            yield sse(event, Cursor(cursor.batch, start, key_of(event)))

    async def _still_admitted(
        self, request: Request, watcher: Watcher, token: Token, run_id: UUID | None
    ) -> bool:
        """Tokens expire and memberships end while a stream stays open."""
        try:
            _, watcher.scope = await self._threads.run(lambda: self._admit(request, run_id))
        except Busy:
            return True
        except DomainError:
            return False
        return True


async def _next(watcher: Watcher) -> bytes | None:
    if watcher.ended and watcher.queue.empty():
        return None
    try:
        async with asyncio.timeout(QUIET_SECONDS):
            return await watcher.queue.get()
    except TimeoutError:
        return b": still here\n\n"


def _run_id(request: Request) -> UUID | None:
    unknown = set(request.query_params) - {"runId"}
    given = request.query_params.getlist("runId")
    if unknown or len(given) > 1:
        raise InvalidInput("The only parameter is runId, once.")
    try:
        return UUID(given[0]) if given else None
    except ValueError as fault:
        raise InvalidInput(
            "runId is not a UUID.", errors=[FieldError("/runId", "A UUID is expected.")]
        ) from fault

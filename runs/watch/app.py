"""The ASGI application of the stream process."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from django.conf import settings
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from factory.api.system import readiness, readiness_body
from factory.kernel.telemetry import setup
from runs.operations.timing import grace
from runs.selectors.waiting import todo
from runs.watch.background import Background
from runs.watch.board import PollBoard
from runs.watch.feed import Feed
from runs.watch.http import answer, endpoint, lost, wrong_method
from runs.watch.hub import Hub
from runs.watch.scopes import watch_scope
from runs.watch.streaming import Watching
from runs.watch.threads import Threads
from runs.watch.wakes import Wakes
from runs.watch.workers import WorkerSurface


class WatchProcess:
    """Hold one tailer, one listener for hints, and a few threads for commands."""

    def __init__(self, threads: int) -> None:
        self.wakes = Wakes()
        self.feed = Feed()
        self.hub = Hub(self.feed, self.wakes)
        self.threads = Threads(threads)
        self.watching = Watching(self.hub, self.threads, watch_scope)
        self.board = PollBoard(self.threads, self.wakes, lambda tenants: todo(tenants, grace()))
        self.workers = WorkerSurface(self.threads, self.board)
        self.background = Background(
            {"watching": self.hub.run, "hints": self.wakes.listen, "polling": self.board.run}
        )

    @asynccontextmanager
    async def lifespan(self, app: Starlette) -> AsyncIterator[None]:
        """The background tasks live as long as the server."""
        setup.start("stream")
        await self.feed.open()
        self.background.start()
        try:
            yield
        finally:
            self.hub.close()
            await self.background.stop()
            await self.feed.close()
            self.threads.close()

    def routes(self) -> list[Route]:
        return [
            Route("/healthz", _healthz),
            Route("/readyz", self._readyz),
            Route("/metrics", self._metrics),
            Route("/factory/watch", endpoint(self.watching), methods=["GET"]),
            *(
                Route(f"/factory{path}", endpoint(handler), methods=[method])
                for method, path, handler in self.workers.calls()
            ),
        ]

    async def _readyz(self, request: Request) -> Response:
        checks = await self.threads.run(readiness)
        status, body, headers = readiness_body(checks | self.background.checks())
        return answer(body, status, headers)

    async def _metrics(self, request: Request) -> Response:
        """In a thread: what is counted when it is asked is counted in the database."""
        body, content_type = await self.threads.run(setup.exposition)
        return Response(body, headers={"Content-Type": content_type})


async def _healthz(request: Request) -> Response:
    return answer({"status": "ok"})


def make(threads: int | None = None) -> Starlette:
    """The application; its threads are as many as its database connections."""
    stream = WatchProcess(threads or settings.WEB_THREADS)
    return Starlette(
        routes=stream.routes(),
        lifespan=stream.lifespan,
        exception_handlers={404: lost, 405: wrong_method},
    )


application = make()

"""The stream process on uvicorn. `python -m config.serving.stream --port 7402`."""

import asyncio
import os
from collections.abc import Sequence
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from config.serving import exiting_with_a_sentence, listen_address, listening

READ_SECONDS = 60.0
"""A reader that takes nothing for so long is let go; who watches resumes from its last event."""
GRACE_SECONDS = 2


class Protocol(H11Protocol):
    """HTTP as uvicorn speaks it; it ends a request that is too long in arriving, and an unread answer."""

    request_seconds = 30.0
    _arriving: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=0)  # else no answer below 64 KiB would ever count as unread
        self._follow()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._follow()

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._arriving, self._unread):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread = self.loop.call_later(READ_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._unread is not None:
            self._unread.cancel()

    def _follow(self) -> None:
        """Time the request from its first byte to its last."""
        if self.conn.their_state in (h11.IDLE, h11.SEND_BODY):
            if self._arriving is None:
                self._arriving = self.loop.call_later(self.request_seconds, self.transport.close)
        elif self._arriving is not None:
            self._arriving.cancel()
            self._arriving = None


def configured(application: Any, settings: Any, **more: Any) -> uvicorn.Config:
    """Return how uvicorn is set, for an application, with the bounds of the settings."""
    bounded = type("Bounded", (Protocol,), {"request_seconds": float(settings.FACTORY_REQUEST_SECONDS)})
    return uvicorn.Config(
        application, http=bounded, timeout_keep_alive=settings.FACTORY_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS, access_log=False, log_level="warning",
        proxy_headers=False,  # whose word about an address is taken, FACTORY_TRUSTED_PROXIES says
        **more,
    )  # fmt: skip


def main(argv: Sequence[str] | None = None) -> None:
    where = listen_address("stream", 7402, argv)
    os.environ["FACTORY_PROCESS"] = "stream"
    from django.conf import settings

    from config.asgi import application  # it reads the settings, of a stream process

    uvicorn.Server(configured(application, settings)).run(sockets=[listening(where)])


if __name__ == "__main__":
    with exiting_with_a_sentence():
        main()

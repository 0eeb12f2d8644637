"""The web process on waitress: its threads see requests that have arrived whole, and answers leave without
them. `python -m config.serving.web --port 8000`."""

import os
import signal
import time
from collections.abc import Sequence
from typing import Any, NoReturn

from waitress.adjustments import Adjustments
from waitress.channel import HTTPChannel
from waitress.server import TcpWSGIServer

from config.serving import ListenAddress, exiting_with_a_sentence, listen_address, listening
from config.serving.bodies import Parser
from factory.api.strict_json import MOST_UNREAD

MOST_CONNECTIONS = 400
"""With a file for a large body each: below the 1024 that a process usually may open."""
LOOK_SECONDS = 2
"""How often connections are looked at that took their time."""
MOST_WAITING_TO_BE_READ = 2**30
"""Bytes of one answer that wait, on disk, for a slow reader; only beyond that a thread waits too."""


class HttpChannel(HTTPChannel):
    """One connection: since when a request is awaited on it, and an answer waits for its reader."""

    parser_class = Parser
    answer_seconds = 60.0
    least_rate = 16 * 1024
    """An answer may take `answer_seconds`, and a second more for each so many bytes that were taken of it."""
    arriving_since: float | None = None
    unread_since: float | None = None
    taken = 0

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.arriving_since = self.creation_time

    def received(self, data: bytes) -> bool:
        before = self.request
        more = super().received(data)
        if self.request is None:
            self.arriving_since = None
        elif self.request is not before:
            self.arriving_since = time.time()
        return more

    def send(self, data: bytes, do_close: bool = True) -> int:
        sent: int = super().send(data, do_close)
        self.taken += sent
        return sent

    def look(self, now: float, request_seconds: float) -> None:
        """End the connection whose request, or whose reader, is over its time.

        Nothing is read while a request is worked on or its answer waits: half a request behind it has its
        time from then on, or ending it would drop that answer.
        """
        if not self.total_outbufs_len:
            self.unread_since = None
        elif self.unread_since is None:
            self.unread_since, self.taken = now, 0
        elif now - self.unread_since > self.answer_seconds + self.taken / self.least_rate:
            self.will_close = True
        if self.arriving_since is None:
            return
        if self.requests or self.total_outbufs_len:
            self.arriving_since = now
        elif now - self.arriving_since > request_seconds:
            self.will_close = True


class Server(TcpWSGIServer):
    """Waitress, that also ends what takes too long to arrive or to be read, however busy the other end is."""

    channel_class = HttpChannel
    active_channels: dict[int, HttpChannel]  # type: ignore[assignment]  # its stub forgets the dictionary

    def __init__(self, *args: Any, request_seconds: int, **kwargs: Any) -> None:
        self._request_seconds = request_seconds
        super().__init__(*args, **kwargs)

    def maintenance(self, now: float) -> None:
        super().maintenance(int(now))
        for channel in self.active_channels.values():
            channel.look(now, self._request_seconds)


def adjustments(settings: Any) -> Adjustments:
    """Return how waitress is set; a proxy's headers reach the application only where one is trusted."""
    return Adjustments(
        threads=settings.WEB_THREADS,
        channel_timeout=settings.FACTORY_KEEP_ALIVE_SECONDS,
        cleanup_interval=LOOK_SECONDS,
        connection_limit=MOST_CONNECTIONS,
        max_request_header_size=64 * 1024,
        max_request_body_size=MOST_UNREAD,
        outbuf_high_watermark=MOST_WAITING_TO_BE_READ,
        asyncore_use_poll=True,
        clear_untrusted_proxy_headers=not (
            settings.SECURE_PROXY_SSL_HEADER or settings.FACTORY_TRUSTED_PROXIES
        ),
        ident="",
    )


def make(where: ListenAddress) -> Server:
    """Return the server of this process, with its application loaded."""
    from django.conf import settings

    from config.wsgi import application  # it reads the settings, of a web process

    sock = listening(where)
    info = (sock.family, sock.type, sock.proto, sock.getsockname())
    return Server(
        application, {}, _sock=sock, adj=adjustments(settings), sockinfo=info, bind_socket=False,
        request_seconds=settings.FACTORY_REQUEST_SECONDS,
    )  # fmt: skip


def _stop(number: int, frame: object) -> NoReturn:
    raise SystemExit(0)


def main(argv: Sequence[str] | None = None) -> None:
    where = listen_address("web", 8000, argv)
    os.environ["FACTORY_PROCESS"] = "web"
    server = make(where)
    signal.signal(signal.SIGTERM, _stop)
    server.run()


if __name__ == "__main__":
    with exiting_with_a_sentence():
        main()

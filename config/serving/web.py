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

from config.serving import Place, listening, place, told_in_a_sentence
from config.serving.bodies import Parser
from factory.api.strict_json import MOST_UNREAD

MOST_CONNECTIONS = 400
"""With a file for a large body each: below the 1024 that a process usually may open."""
LOOK_SECONDS = 2
"""How often connections are looked at that took their time."""
MOST_WAITING_TO_BE_READ = 2**30
"""Bytes of one answer that wait, on disk, for a slow reader; only beyond that a thread waits too."""


class Channel(HTTPChannel):
    """One connection, and since when a request has been arriving on it."""

    parser_class = Parser
    arriving_since: float | None = None

    def received(self, data: bytes) -> bool:
        before = self.request
        more = super().received(data)
        if self.request is None:
            self.arriving_since = None
        elif self.request is not before:
            self.arriving_since = time.time()
        return more


class Server(TcpWSGIServer):
    """Waitress, that also ends a request which takes too long to arrive, however busy its sender is."""

    channel_class = Channel
    active_channels: dict[int, Channel]  # type: ignore[assignment]  # its stub forgets the dictionary

    def __init__(self, *args: Any, request_seconds: int, **kwargs: Any) -> None:
        self._request_seconds = request_seconds
        super().__init__(*args, **kwargs)

    def maintenance(self, now: float) -> None:
        super().maintenance(int(now))
        for channel in self.active_channels.values():
            since = channel.arriving_since
            if since is not None and now - since > self._request_seconds:
                channel.will_close = True


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


def make(where: Place) -> Server:
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
    where = place("web", 8000, argv)
    os.environ["FACTORY_PROCESS"] = "web"
    server = make(where)
    signal.signal(signal.SIGTERM, _stop)
    server.run()


if __name__ == "__main__":
    with told_in_a_sentence():
        main()

"""An endpoint on this machine that remembers what it was sent, and answers as a test wants."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Message:
    """One request."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def event(self) -> dict[str, Any]:
        return dict(json.loads(self.body))


Reply = Callable[[Message], int | tuple[int, dict[str, str]]]


@dataclass
class Receiver:
    """`reply` decides the answer; `messages` are all requests in the order in which they came."""

    url: str = ""
    place: str = ""
    reply: Reply = lambda _: 204
    messages: list[Message] = field(default_factory=list)

    def kinds(self) -> list[str]:
        return [message.event["type"].rsplit(".", 1)[-1] for message in self.messages]


@contextmanager
def receiving() -> Iterator[Receiver]:
    receiver, lock = Receiver(), threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length", "0"))
            headers = {name.lower(): value for name, value in self.headers.items()}
            message = Message(self.path, headers, self.rfile.read(length))
            with lock:
                receiver.messages.append(message)
            answer = receiver.reply(message)
            status, more = answer if isinstance(answer, tuple) else (answer, {})
            try:
                self.send_response(status)
                for name, value in more.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", "0")
                self.end_headers()
            except OSError:
                return  # whoever asked has given up

        do_GET = do_POST

        def log_message(self, *_: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    receiver.place = f"127.0.0.1:{server.server_port}"
    receiver.url = f"http://{receiver.place}/hook"
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()

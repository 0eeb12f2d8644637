"""Bodies as the web process takes them in: whole, however they are sent, and none kept that nobody reads."""

import json
from uuid import uuid4

from waitress.buffers import OverflowableBuffer
from waitress.parser import HTTPRequestParser
from waitress.utilities import RequestEntityTooLarge

from factory.api.problems import CONTENT_TYPE, problem_of
from factory.api.strict_json import MAX_BODY
from factory.kernel.errors import TooLarge

MOST_KEPT = 3 * MAX_BODY
"""More than any surface reads. The rest of a larger body is taken in and thrown away: who is still sending
would never see the answer."""


class BoundedBuffer(OverflowableBuffer):
    """The body, as far as it may be read; beyond half a megabyte in a file."""

    is_full = False

    def append(self, piece: bytes) -> None:
        self.is_full = self.is_full or len(self) + len(piece) > MOST_KEPT
        if not self.is_full:
            super().append(piece)


class Refused(RequestEntityTooLarge):
    """The answer to a body that no surface reads, before anybody is asked who they are."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._path = path

    def to_response(  # type: ignore[override]  # bytes they are, whatever its stub says
        self, ident: str | None = None
    ) -> tuple[str, list[tuple[str, str]], bytes]:
        trace = str(uuid4())
        problem = problem_of(TooLarge(f"The body is larger than {MAX_BODY // 1024} KiB."))
        body = json.dumps(problem.body(instance=self._path, trace_id=trace)).encode()
        headers = [("Content-Type", CONTENT_TYPE), ("X-Request-ID", trace), ("Cache-Control", "no-store")]
        return f"{problem.status} {self.reason}", headers, body


class Parser(HTTPRequestParser):
    """A request as it arrives. A chunked body reaches the application with the length that it had."""

    path: str
    kept: BoundedBuffer | None = None

    def parse_header(self, header_plus: bytes) -> None:
        super().parse_header(header_plus)
        if self.body_rcv is not None:
            self.kept = self.body_rcv.buf = BoundedBuffer(self.adj.inbuf_overflow)

    def received(self, data: bytes) -> int:
        consumed = super().received(data)
        if self.completed and self._is_too_large():
            self.error = Refused(self.path)
        return consumed

    def _is_too_large(self) -> bool:
        if self.error is not None:
            return isinstance(self.error, RequestEntityTooLarge)
        return self.kept is not None and self.kept.is_full

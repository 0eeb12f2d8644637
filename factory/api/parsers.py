"""JSON in, JSON out, and nothing else."""

from collections.abc import Iterable, Mapping
from typing import IO, Any

from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

from factory.api.strict_json import MAX_BODY, check_encoding, check_size, loads_kept


class StrictJSONParser(BaseParser):
    """Reads a bounded body; what is larger is refused before it is parsed."""

    media_type = "application/json"
    limit = MAX_BODY

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        request = (parser_context or {}).get("request")
        headers = request.META if request is not None else {}
        check_encoding(str(headers.get("HTTP_CONTENT_ENCODING") or ""))
        declared = str(headers.get("CONTENT_LENGTH") or "")
        if declared.isdecimal():
            check_size(int(declared), self.limit)
        body = stream.read(self.limit + 1)
        check_size(len(body), self.limit)
        return loads_kept(body)


class OneRepresentation(BaseContentNegotiation):
    """Whatever Accept says, the answer is the view's first renderer: there is one representation."""

    def select_parser(self, request: Request, parsers: Iterable[BaseParser]) -> BaseParser | None:
        kind = (request.content_type or "").partition(";")[0].strip().lower()
        return next((parser for parser in parsers if parser.media_type == kind), None)

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        first = next(iter(renderers))
        return first, first.media_type or ""

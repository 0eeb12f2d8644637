"""The base of every REST view: the permission table is asked before the view's own three lines run."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, ClassVar

from rest_framework.request import Request
from rest_framework.views import APIView

from factory.api.idempotency import REPLAYED, key_of
from factory.kernel.commanding import Command, IdempotencyKey, IdempotentReplay, commands
from factory.kernel.context import Context
from factory.kernel.errors import Forbidden, Unauthenticated
from factory.kernel.hashing import digest
from factory.kernel.permissions import authorize
from factory.kernel.tenancy import reading


class BaseView(APIView):
    """Names the operation behind each method. `self.ctx` is who calls; reads run in `self.reading()`."""

    operation: ClassVar[Mapping[str, str]] = {}
    metadata_class = None

    @property
    def ctx(self) -> Context:
        context: Context = self.request.context  # type: ignore[attr-defined]
        return context

    def reading(self) -> AbstractContextManager[None]:
        return reading(self.ctx)

    def do(
        self, request: Request, command: Command[Any, Any], *, keyed: bool = False, **values: Any
    ) -> tuple[Any, dict[str, str]]:
        """Run a command, once where the caller gave a key, with the headers that tell a replay.

        The same key is good for one path and body. `keyed`: without a key it is refused.
        """
        run: Callable[..., Any] = command
        if keyed or request.headers.get("Idempotency-Key"):
            run = command.under(IdempotencyKey(key_of(request), digest([request.path, request.data])))
        try:
            return run(self.ctx, **values), {}
        except IdempotentReplay as done:
            return done.result, {REPLAYED: "true"}

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if getattr(request, "context", None) is None:
            raise Unauthenticated("Send a bearer token in the Authorization header.")
        operation = self.operation.get("GET" if request.method == "HEAD" else request.method or "")
        if operation is not None:
            self._authorize(operation)
        elif hasattr(self, (request.method or "").lower()) and request.method != "OPTIONS":
            # A handler that names no operation was forgotten, and stays closed; without one it is a 405.
            raise Forbidden("This is in no permission table, so nobody may call it.")

    def _authorize(self, operation: str) -> None:
        try:
            authorize(self.ctx, operation)
        except Forbidden as refusal:
            command = commands().get(operation)
            if command is not None:
                command.note(self.ctx, refusal)
            raise

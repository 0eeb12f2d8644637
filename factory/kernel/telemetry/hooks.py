"""Where the kernel tells telemetry what it does: a span for each command, never its content."""

from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry import trace
from opentelemetry.trace import Status, StatusCode

from factory.kernel.context import Context

_tracer = trace.get_tracer("factory")


@contextmanager
def command_span(name: str, ctx: Context) -> Iterator[None]:
    """A span around one command, with the ids that apply and nothing of what it carries."""
    attributes = {"tenant.id": ctx.tenant_id, "factory.channel": ctx.channel}
    if ctx.project_id:
        attributes["project.id"] = str(ctx.project_id)
    with _tracer.start_as_current_span(
        name, attributes=attributes, record_exception=False, set_status_on_exception=False
    ) as span:
        try:
            yield
        except Exception as fault:
            if type(fault).__name__ == "IdempotentReplay":
                raise  # a repeat that gets its first answer is no error
            span.set_status(Status(StatusCode.ERROR, getattr(fault, "code", type(fault).__name__)))
            raise

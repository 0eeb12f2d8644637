"""Rows of the outbox as commands leave them, with the commit in the test's own hands."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID, uuid4

import psycopg
from django.db import connection

from factory.kernel.ids import uuid7
from factory.kernel.tenancy import TENANT_SETTING

TOPIC = "run-control.runs.v1.run-state-changed"
_INSERT = """
INSERT INTO factory_outboxevent (id, tenant_id, stream_id, sequence, position, lane, topic, schema_version,
    project_id, run_id, correlation_id, traceparent, payload, occurred_at, transaction_id, handle_attempts,
    handle_error, stream_attempts, stream_error, handled_at, streamed_at)
VALUES (%s, %s, %s, %s, 0, 0, %s, 1, %s, %s, %s, '', %s::jsonb, clock_timestamp(),
    pg_current_xact_id()::text::bigint, 0, '', 0, '', clock_timestamp(), clock_timestamp())
"""


class Writer:
    """One transaction that tells events of a tenant; nobody sees them before it commits."""

    def __init__(self, tenant_id: str, project_id: UUID | None = None) -> None:
        parameters = connection.get_connection_params()
        for ours in ("cursor_factory", "context", "prepare_threshold", "pool", "server_side_binding"):
            parameters.pop(ours, None)
        self._held = psycopg.connect(**parameters)
        self._held.execute("SELECT set_config(%s, %s, false)", [TENANT_SETTING, tenant_id])
        self.tenant_id, self.project_id = tenant_id, project_id
        self._held.commit()

    def tell(self, run_id: UUID, sequence: int, topic: str = TOPIC) -> str:
        identifier = uuid7()
        values: list[Any] = [identifier, self.tenant_id, run_id, sequence, topic, self.project_id, run_id]
        self._held.execute(_INSERT, [*values, uuid4(), "{}"])
        return str(identifier)

    def commit(self) -> None:
        self._held.commit()

    def close(self) -> None:
        self._held.close()


@contextmanager
def writing(tenant_id: str, project_id: UUID | None = None) -> Iterator[Writer]:
    writer = Writer(tenant_id, project_id)
    try:
        yield writer
        writer.commit()
    finally:
        writer.close()

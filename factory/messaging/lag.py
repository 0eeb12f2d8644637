"""How far events are behind, for the first page: bounded questions, each by an index."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection

from factory.kernel.context import Context

MOST = 1000
"""So many waiting events are looked at; more of them are only said to be more."""

_WAITING = """
SELECT count(*), min(occurred_at) FROM (
    SELECT e.occurred_at FROM factory_outboxevent e
    WHERE e.tenant_id = %(tenant)s AND (e.handled_at IS NULL OR e.streamed_at IS NULL) {project}
      AND NOT EXISTS (
          SELECT 1 FROM factory_outboxevent b
          WHERE b.tenant_id = e.tenant_id AND b.stream_id = e.stream_id
            AND ((b.handle_set_aside_at IS NOT NULL AND b.handled_at IS NULL)
                 OR (b.stream_set_aside_at IS NOT NULL AND b.streamed_at IS NULL)))
    ORDER BY e.occurred_at LIMIT %(most)s
) AS oldest
"""
_ASIDE = """
SELECT (SELECT count(*) FROM (
           SELECT 1 FROM factory_outboxevent
           WHERE tenant_id = %(tenant)s AND handle_set_aside_at IS NOT NULL AND handled_at IS NULL {project}
           LIMIT %(most)s) AS a)
     + (SELECT count(*) FROM (
           SELECT 1 FROM factory_outboxevent
           WHERE tenant_id = %(tenant)s AND stream_set_aside_at IS NOT NULL AND streamed_at IS NULL {project}
           LIMIT %(most)s) AS b)
     + (SELECT count(*) FROM (
           SELECT 1 FROM factory_webhookdelivery
           WHERE tenant_id = %(tenant)s AND set_aside_at IS NOT NULL AND delivered_at IS NULL {project}
           LIMIT %(most)s) AS c)
"""


@dataclass(frozen=True, slots=True)
class Backlog:
    """Events on their way to handlers or streams, without those that wait behind one that is set aside."""

    count: int
    oldest_at: datetime | None

    def lag(self, at: datetime) -> float:
        """For how many seconds the oldest has waited."""
        return max(0.0, (at - self.oldest_at).total_seconds()) if self.oldest_at else 0.0


def backlog(ctx: Context) -> Backlog:
    """Return what of the place waits to be told, at most `MOST` of it, oldest first; in a reading
    transaction."""
    return Backlog(*_row(_WAITING, ctx, MOST))


def set_aside_count(ctx: Context, most: int) -> int:
    """Return how many events of the place wait for a person, at most `most` of each kind of consumer."""
    return int(_row(_ASIDE, ctx, most)[0])


def _row(sql: str, ctx: Context, most: int) -> Any:
    project = "AND project_id = %(project)s" if ctx.project_id else ""
    params = {"tenant": ctx.tenant_id, "project": ctx.project_id, "most": most}
    with connection.cursor() as cursor:
        cursor.execute(sql.format(project=project), params)
        return cursor.fetchone()

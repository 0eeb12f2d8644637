"""Lending roles in tests, and making the time of a loan pass."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from django.db import connections, transaction

from factory.kernel.context import Context
from projects.commands import lend_role


def lend(by: Context, to: Context, role: str = "Reviewer", *, hours: float = 1, **other: str) -> UUID:
    """`by` lends `to` a role in the project of `by`'s context."""
    assert by.project_id is not None
    made = lend_role(
        by,
        project_id=by.project_id,
        role=role,
        delegate=to.actor.subject,
        expires_at=datetime.now(UTC) + timedelta(hours=hours),
        reason=other.get("reason", "on leave"),
    )
    return UUID(made)


def end_now(delegation_id: UUID) -> None:
    """The loan's end was a moment ago; nobody has recorded it yet. As the tables' owner, time passes."""
    with transaction.atomic(using="owner"), connections["owner"].cursor() as cursor:
        cursor.execute("ALTER TABLE projects_delegation NO FORCE ROW LEVEL SECURITY")
        cursor.execute("ALTER TABLE projects_delegation DISABLE TRIGGER pinned_columns")
        cursor.execute(
            "UPDATE projects_delegation SET lent_at = lent_at - interval '2 days', "
            "expires_at = clock_timestamp() WHERE id = %s",
            [delegation_id],
        )
        cursor.execute("ALTER TABLE projects_delegation ENABLE ALWAYS TRIGGER pinned_columns")
        cursor.execute("ALTER TABLE projects_delegation FORCE ROW LEVEL SECURITY")

"""How many runs are not over, for the meters: counted where they are kept, in every tenant."""

from factory.kernel.tenancy import scanning

_ACTIVE = """
SELECT tenant_id, state, count(*) FROM runs_run
WHERE state NOT IN ('Completed', 'Failed', 'Cancelled') GROUP BY tenant_id, state
"""


def active_runs() -> dict[tuple[str, str], int]:
    """The numbers as of now, by tenant and state."""
    with scanning() as cursor:
        cursor.execute(_ACTIVE)
        return {(tenant, state): count for tenant, state, count in cursor.fetchall()}

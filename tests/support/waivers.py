"""Run templates and approvals in advance in tests, by the real commands; and making the time of one pass."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from django.db import connections, transaction

from approvals.selectors import WaiverView, waiver_view
from factory.kernel.context import Context
from factory.kernel.tenancy import reading
from runs.commands import create_run_template, request_waiver, start_run
from runs.rest.submissions import read_template, submit
from tests.support.running import House
from tests.support.workflows import PROFILE

LIMITS = {"maxCostUsd": 5, "maxMinutes": 30}


def template(house: House, workflow_id: str = "gated", *, by: Context | None = None, **other: Any) -> UUID:
    """A template of a workflow, made by the operator."""
    content: dict[str, Any] = {
        "name": f"nightly-{workflow_id}",
        "workflowId": workflow_id,
        "modelProfileId": PROFILE,
        "limits": LIMITS,
    }
    return UUID(create_run_template(by or house.world.operator, wanted=read_template(content | other)))


def ask_waiver(
    house: House, template_id: UUID, *, by: Context | None = None, hours: float = 24, **other: Any
) -> dict[str, UUID]:
    """Ask for a waiver of the house's release on staging; the ids of the waiver and of its request."""
    values: dict[str, Any] = {
        "release_id": house.release,
        "environment_ids": [house.world.environment],
        "expires_at": datetime.now(UTC) + timedelta(hours=hours),
        "reason": "it writes the same report every night",
    }
    made = request_waiver(by or house.world.workspace_admin, template_id=template_id, **{**values, **other})
    return {name: UUID(made[f"{name}Id"]) for name in ("waiver", "approval")}


def waiver(house: House, template_id: UUID, *, decided_by: Context | None = None, **other: Any) -> UUID:
    """A waiver in force, decided by the reviewer."""
    asked = ask_waiver(house, template_id, **other)
    house.decide(asked["approval"], by=decided_by)
    return asked["waiver"]


def run_from(house: House, template_id: UUID, *, by: Context | None = None, **other: Any) -> UUID:
    """A run of the template on staging whose first steps wait for a worker."""
    payload = {
        "templateId": str(template_id),
        "environmentId": str(house.world.environment),
        "input": {"repository": "https://git.example.test/x.git"},
    }
    body, _ = submit(by or house.world.requester, payload=payload | other, key=str(uuid4()))
    start_run(house.system, run_id=UUID(body["runId"]))
    return UUID(body["runId"])


def shown(house: House, waiver_id: UUID) -> WaiverView:
    with reading(house.system):
        return waiver_view(house.system, waiver_id)


def end_now(waiver_id: UUID) -> None:
    """The waiver's end was a moment ago; nobody has recorded it yet. As the tables' owner, time passes."""
    with transaction.atomic(using="owner"), connections["owner"].cursor() as cursor:
        cursor.execute("ALTER TABLE approvals_waiver NO FORCE ROW LEVEL SECURITY")
        cursor.execute("ALTER TABLE approvals_waiver DISABLE TRIGGER pinned_columns")
        cursor.execute(
            "UPDATE approvals_waiver SET expires_at = clock_timestamp() WHERE id = %s", [waiver_id]
        )
        cursor.execute("ALTER TABLE approvals_waiver ENABLE ALWAYS TRIGGER pinned_columns")
        cursor.execute("ALTER TABLE approvals_waiver FORCE ROW LEVEL SECURITY")

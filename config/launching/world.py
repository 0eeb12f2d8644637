"""The demo tenant: its project, people, money, policy and prices, its release, and the tokens of the tour."""

import json
from datetime import date
from decimal import Decimal
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import UUID

from django.conf import settings
from django.core.management import call_command

from approvals.commands import adopt_platform_policy
from config.launching.bundled import publish_bundled
from config.launching.people import (
    ALL_PEOPLE,
    PEOPLE,
    PERSONS_SCOPES,
    TENANT_PEOPLE,
    acting,
    email_of,
    sign_in,
)
from config.launching.processes import POOL, WORKER_NAME
from factory.embedded.system import write_private
from factory.identity.issuer import issue_person_token, issue_worker_token
from factory.kernel.context import system
from runs.commands.pools import serve_tenant
from usage.commands import create_budget, establish_pricing
from usage.errors import BudgetExists

TENANT = "demo"
PROJECT = "factory"
MONTHLY_BUDGET = Decimal("500")
TOKEN_SECONDS = 24 * 3600
WORKER_TOKEN_SECONDS = 365 * 24 * 3600


def make_world(today: date) -> dict[str, Any]:
    """Make what is missing, and say what there is. Passwords stay in files that only we may read."""
    found = _onboard()
    project_id = UUID(found["projectId"])
    # A relay hands these out too; a first run should not have to wait for it.
    as_system = system(TENANT, "demo", channel="cli")
    adopt_platform_policy(as_system)
    establish_pricing(as_system)
    serve_tenant(as_system, pool=POOL, tenant_id=TENANT)
    _open_budget(project_id, today.replace(day=1))
    token = issue_worker_token(WORKER_NAME, pool=POOL, ttl_seconds=WORKER_TOKEN_SECONDS)
    write_private(Path(settings.SECRETS_DIR) / "demo_worker_token", token)
    return {
        "tenant": TENANT,
        "project": PROJECT,
        "projectId": str(project_id),
        "environments": found["environments"],
        "passwords": {part: sign_in(part) for part in ALL_PEOPLE},
        "emails": {part: email_of(part) for part in ALL_PEOPLE},
        "tokens": {part: _token(part, project_id) for part in PEOPLE},
        "release": publish_bundled(TENANT, project_id),
    }


def _onboard() -> dict[str, Any]:
    said = StringIO()
    call_command(
        "onboard",
        tenant=TENANT,
        tenant_name="Demo",
        project=PROJECT,
        name="Factory",
        if_missing=True,
        environment=["test=Test", "production=Production"],
        member=list(PEOPLE.values()),
        tenant_member=list(TENANT_PEOPLE.values()),
        as_json=True,
        stdout=said,
    )
    found: dict[str, Any] = json.loads(said.getvalue())
    return found


def _open_budget(project_id: UUID, month: date) -> None:
    try:
        finance = acting("finance", TENANT, project_id)
        create_budget(finance, project_id=project_id, month=month, amount=MONTHLY_BUDGET)
    except BudgetExists:
        return


def _token(part: str, project_id: UUID) -> str:
    return issue_person_token(
        email_of(part),
        tenant_id=TENANT,
        project_id=project_id,
        scopes=PERSONS_SCOPES,
        roles=None,
        service=False,
        ttl_seconds=TOKEN_SECONDS,
    )

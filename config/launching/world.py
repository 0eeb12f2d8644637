"""The demo tenant: its project, its people, their passwords, and the tokens of the guided run."""

import json
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import UUID

from django.conf import settings
from django.core.management import call_command

from config.launching.processes import POOL, WORKER_NAME
from factory.embedded.system import secret, write_private
from factory.identity.issuer import issue_person_token, issue_worker_token
from factory.identity.permissions import SCOPES
from factory.models import User

TENANT = "demo"
PROJECT = "factory"
PEOPLE = {
    "requester": "requester@demo.test=Requester",
    "reviewer": "reviewer@demo.test=Reviewer,payloads",
    "operator": "operator@demo.test=Operator,payloads",
    "admin": "admin@demo.test=WorkspaceAdmin,audit,payloads",
    "finance": "finance@demo.test=Observer,finance",
}
TOKEN_SECONDS = 24 * 3600
WORKER_TOKEN_SECONDS = 365 * 24 * 3600


def make_world() -> dict[str, Any]:
    """Make what is missing, and say what there is. Passwords stay in files that only we may read."""
    found = _onboard()
    project_id = UUID(found["projectId"])
    _make_worker_token()
    return {
        "tenant": TENANT,
        "project": PROJECT,
        "projectId": str(project_id),
        "environments": found["environments"],
        "passwords": {part: _sign_in(_email(part)) for part in PEOPLE},
        "emails": {part: _email(part) for part in PEOPLE},
        "tokens": {part: _token(part, project_id) for part in PEOPLE},
    }


def _onboard() -> dict[str, Any]:
    said = StringIO()
    call_command(
        "onboard", tenant=TENANT, tenant_name="Demo", project=PROJECT, name="Factory", if_missing=True,
        environment=["test=Test", "production=Production"], member=list(PEOPLE.values()), as_json=True,
        stdout=said,
    )  # fmt: skip
    found: dict[str, Any] = json.loads(said.getvalue())
    return found


def _email(part: str) -> str:
    return PEOPLE[part].partition("=")[0]


def _sign_in(email: str) -> str:
    """A user with the password of our file; somebody who changed theirs keeps it."""
    password = secret(settings.SECRETS_DIR, f"password-{email}")
    if not User.objects.filter(subject=email).exists():
        User.objects.create_user(email, password, subject=email, is_staff=True)
    return password


def _token(part: str, project_id: UUID) -> str:
    return issue_person_token(
        _email(part),
        tenant_id=TENANT,
        project_id=project_id,
        scopes=SCOPES - {"factory.worker"},
        roles=None,
        service=False,
        ttl_seconds=TOKEN_SECONDS,
    )


def _make_worker_token() -> None:
    token = issue_worker_token(WORKER_NAME, pool=POOL, ttl_seconds=WORKER_TOKEN_SECONDS)
    write_private(Path(settings.SECRETS_DIR) / "demo_worker_token", token)

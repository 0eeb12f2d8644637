"""manage.py onboard: what a newcomer's machine and an operator's script call."""

import json
from io import StringIO
from uuid import UUID

import pytest
from django.core.management import CommandError, call_command

from factory.kernel.context import system
from factory.kernel.models import User
from factory.kernel.tenancy import reading
from projects import selectors
from tests.support import evidence


def run(*arguments: str) -> str:
    out = StringIO()
    call_command("onboard", *arguments, stdout=out)
    return out.getvalue()


def arguments(tenant_id: str, *more: str) -> list[str]:
    return [
        *("--tenant", tenant_id, "--tenant-name", "Example", "--project", "assessments"),
        *("--environment", "staging", "--environment", "production=Production"),
        *("--member", f"requester@{tenant_id}.test=Requester,payloads"),
        *("--member", f"Finance@{tenant_id}.test=Observer,finance"),
        *("--tenant-member", f"admin@{tenant_id}.test=WorkspaceAdmin"),
        *("--service-account", f"ci:requester@{tenant_id}.test=Requester"),
        *more,
    ]


def test_onboards_everything_and_answers_in_json(tenant_id):
    made = json.loads(run(*arguments(tenant_id, "--json", "--create-users")))
    project_id = UUID(made["projectId"])
    with reading(system(tenant_id, "test")):
        assert selectors.tenant(tenant_id).name == "Example"
        assert {str(e.id) for e in selectors.environments(project_id)} == set(made["environments"].values())
        members = {m.subject: (m.roles, m.grants) for m in selectors.members(project_id)}
    assert members == {
        f"requester@{tenant_id}.test": (("Requester",), ("payloads",)),
        f"finance@{tenant_id}.test": (("Observer",), ("finance",)),
        f"admin@{tenant_id}.test": (("WorkspaceAdmin",), ()),
        f"service:{tenant_id}:ci": (("Requester",), ()),
    }
    assert made["serviceAccounts"] == {"ci": f"service:{tenant_id}:ci"}
    for line in made["members"]:
        assert User.objects.get(subject=line["subject"]).check_password(line["password"])
    assert evidence.violations(tenant_id) == []


def test_makes_no_sign_ins_and_shows_no_passwords_unless_asked(tenant_id):
    told = run(*arguments(tenant_id))
    assert "password" not in told
    assert f"requester@{tenant_id}.test" in told
    assert not User.objects.filter(subject=f"requester@{tenant_id}.test").exists()


def test_refuses_a_project_that_is_there_with_the_reason(tenant_id):
    run(*arguments(tenant_id))
    with pytest.raises(CommandError, match=r"There is a project assessments already.\n  /slug: It is taken."):
        run(*arguments(tenant_id))


def test_leaves_a_project_that_is_there_alone_when_asked(tenant_id):
    first = json.loads(run(*arguments(tenant_id, "--json")))
    again = json.loads(run(*arguments(tenant_id, "--json", "--if-missing", "--create-users")))
    assert (first["created"], again["created"]) == (True, False)
    assert (again["projectId"], again["environments"]) == (first["projectId"], first["environments"])
    assert not any("password" in line for line in again["members"])


def test_a_second_project_of_a_tenant_keeps_its_tenant_wide_members(tenant_id):
    run(*arguments(tenant_id))
    second = [*arguments(tenant_id, "--json")[:-3], "--json"]  # without the service account
    second[second.index("assessments")] = "second"
    assert json.loads(run(*second))["created"] is True


def test_points_at_a_member_that_is_no_member(tenant_id):
    with pytest.raises(CommandError, match="/members/0/roles/0"):
        run("--tenant", tenant_id, "--project", "p", "--member", "ann@example.org=King")
    with pytest.raises(CommandError, match="/members/0/roles: A member has at least one role"):
        run("--tenant", tenant_id, "--project", "p", "--member", "ann@example.org")


def test_registers_a_service_account_later(tenant_id):
    run(*arguments(tenant_id))
    owner, out = f"requester@{tenant_id}.test", StringIO()
    call = ["register_service_account", "nightly", "--tenant", tenant_id, "--project", "assessments"]
    call_command(*call, "--owner", owner, "--role", "Requester", "--role", "Observer", "--json", stdout=out)
    subject = json.loads(out.getvalue())["subject"]
    assert subject == f"service:{tenant_id}:nightly"
    with reading(system(tenant_id, "test")):
        assert selectors.person_of(subject) == owner
    with pytest.raises(CommandError, match="There is a service account nightly already"):
        call_command(*call, "--owner", owner, "--role", "Requester")
    with pytest.raises(CommandError, match="is no member here"):
        call_command(*call, "--owner", "nobody", "--role", "Requester")
    call[call.index("assessments")] = "elsewhere"
    with pytest.raises(CommandError, match="no project elsewhere"):
        call_command(*call, "--owner", owner, "--role", "Requester")

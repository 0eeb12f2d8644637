"""What belongs to no tenant: a scope that nobody of a tenant can name, with a chain like every other."""

import json
import re
from dataclasses import replace
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from factory.evidence.anchors.checking import compare
from factory.evidence.anchors.place import in_folder, known
from factory.evidence.anchors.taking import take
from factory.evidence.auditor import audit_all, snapshot
from factory.evidence.verification import verify_and_act
from factory.identity.formats import TENANT
from factory.identity.issuer import NotIssuable, issue_person_token
from factory.kernel import reloading
from factory.kernel.changing import change_setting
from factory.kernel.context import PLATFORM, platform, system
from factory.kernel.errors import Forbidden
from factory.kernel.models import AuditEntry, Setting, Verification
from factory.kernel.tenancy import reading
from projects.commands import onboard_tenant
from projects.models import SLUG
from tests.support.evidence import audits
from tests.support.own_database import own_database
from tests.support.world import world

LEASE = "FACTORY_LEASES_DURATION_SECONDS"


@pytest.fixture
def alone() -> Any:
    with own_database():
        yield
    reloading.forget()


def setting(*args: str, **options: Any) -> Any:
    said = StringIO()
    call_command("setting", *args, stdout=said, **options)
    return json.loads(said.getvalue()) if options.get("json") else said.getvalue()


def test_no_token_and_no_tenant_is_called_as_the_platform_s_scope() -> None:
    assert not TENANT.fullmatch(PLATFORM)
    assert not re.fullmatch(SLUG, PLATFORM)
    with pytest.raises(NotIssuable):
        issue_person_token("u", tenant_id=PLATFORM)
    with pytest.raises(Exception, match=r"slug|letters|valid"):
        onboard_tenant(system(PLATFORM, "test"), name="The platform")


def test_nobody_of_a_tenant_changes_a_setting_whatever_they_are(tenant_id: str) -> None:
    w = world(tenant_id)
    strange = replace(w.platform_admin, tenant_id=PLATFORM, project_id=None)
    for by in (w.platform_admin, w.tenant_admin, w.service, w.system(), strange):
        with pytest.raises(Forbidden):
            change_setting(by, name=LEASE, value=1, reason="mine alone")


def test_the_host_s_command_lists_sets_and_resets(alone: None) -> None:
    shown = {row["name"]: row for row in setting(json=True)}
    assert set(shown) == set(reloading.ABOUT)
    first = shown[LEASE]
    assert (first["source"], first["least"], first["most"]) == ("variable", 1, 3600)
    [row] = setting(LEASE, "60", reason="a slow link", json=True)
    told = (row["value"], row["source"], row["variable"], row["changedBy"], row["reason"])
    assert told == (60, "row", first["value"], "system:host", "a slow link")
    assert reloading.value(LEASE) == 60
    assert f"{LEASE} = 60 seconds (1 to 3600), by system:host at " in setting(LEASE)
    [row] = setting(LEASE, reset=True, reason="it is fast again", json=True)
    assert (row["value"], row["source"]) == (first["value"], "variable")
    log = [
        (row["before"], row["after"], row["by"], row["reason"]) for row in setting(LEASE, log=True, json=True)
    ]
    assert log == [(60, None, "system:host", "it is fast again"), (None, 60, "system:host", "a slow link")]
    assert "60 -> its variable, by system:host" in setting(log=True)


@pytest.mark.parametrize(
    ("args", "options", "said"),
    [
        (("FACTORY_NOTHING",), {}, "There are: FACTORY_APPROVALS"),
        ((LEASE, "0"), {"reason": "x"}, "from 1 to 3600"),
        ((LEASE, "3601"), {"reason": "x"}, "from 1 to 3600"),
        ((LEASE, "60"), {}, "can be seen"),
        ((LEASE, "60"), {"reset": True, "reason": "x"}, "no value"),
        ((), {"reset": True, "reason": "x"}, "takes the name"),
    ],
)
def test_the_host_s_command_says_what_is_wrong(args: Any, options: Any, said: str) -> None:
    before = Setting.objects.count()
    with pytest.raises(CommandError, match=said):
        setting(*args, **options)
    assert Setting.objects.count() == before


def test_a_change_is_in_a_chain_of_its_own_that_no_tenant_sees(alone: None, tmp_path: Any) -> None:
    house = world("tenant-a")
    change_setting(platform(), name=LEASE, value=60, reason="a slow link")
    change_setting(platform(), name=LEASE, value=61, reason="slower")
    rows = audits(platform(), "ChangeSetting")
    assert [(row.sequence, row.outcome, row.detail["after"]) for row in rows] == [
        (1, "done", 60),
        (2, "done", 61),
    ]
    assert rows[1].prev_hash == rows[0].hash
    for ctx in (house.system(), house.platform_admin):
        with reading(ctx), connection.cursor() as cursor:
            assert AuditEntry.objects.filter(action="ChangeSetting").count() == 0
            cursor.execute("SELECT count(*) FROM factory_auditentry WHERE action = 'ChangeSetting'")
            assert cursor.fetchone() == (0,)
    assert audit_all() == []
    with in_folder(tmp_path):
        assert PLATFORM in {head.tenant for head in take().heads}
        with snapshot() as cursor:
            assert compare(cursor, known()) == []


def test_the_auditor_finds_a_setting_that_nobody_changed_by_the_command(alone: None) -> None:
    change_setting(platform(), name=LEASE, value=60, reason="a slow link")
    Setting.objects.filter(pk=LEASE).update(value=1)
    [found] = audit_all(["F4"])
    assert (found.tenant_id, found.subject) == ("", f"setting:{LEASE}")
    assert found.detail == "the row says 1, the audit log 60"
    verify_and_act()
    assert [wall[0] for wall in Verification.objects.latest("started_at").walls] == ["F4"]
    Setting.objects.filter(pk=LEASE).delete()
    assert [each.detail for each in audit_all(["F4"])] == ["the row says nothing, the audit log 60"]

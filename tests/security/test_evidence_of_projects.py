"""The audit grant opens the evidence of the project that it is held in, and of no other of the tenant."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.urls import reverse

from approvals.models import Authorization
from factory.console.evidence import JournalAdmin
from factory.console.lists import bounded_scan, pages
from factory.console.project_of import kinds_of_projects
from factory.evidence.auditor import Violation
from factory.evidence.invariants import journaled_models
from factory.evidence.verification import record_findings
from factory.kernel.chain import audit_stream, scope_stream
from factory.kernel.clock import now
from factory.kernel.context import Context
from factory.kernel.ids import uuid7
from factory.kernel.lifecycle import lifecycles
from factory.kernel.models import Finding, JournalEntry, Verification
from factory.kernel.tenancy import reading
from notifications.models import Notice
from projects.admin.detail.labels import grant_lets, role_lets
from runs.commands import start_run
from runs.rest.submissions import submit
from tests.console.test_lists import sheet, text, way
from tests.console.test_looking import walk
from tests.console.test_pages import signed_in
from tests.kernel.damage import corrupt
from tests.security.scene import Place, Scene
from tests.support.client import Client
from tests.support.receipts import costing
from tests.support.world import context_of

JOURNAL = reverse("admin:factory_journalentry_changelist")
FINDINGS = reverse("admin:factory_finding_changelist")
OF_NO_PROJECT = {"release", "alias", "policy-revision", "pricing-revision", "service-account", "identity"}
"""Kinds that every project of a tenant shares."""


def everywhere(place: Place) -> dict[str, tuple[JournalEntry, UUID | None]]:
    """All entries of the tenant, and the project that the row says that each is about."""
    models = {model.lifecycle.entity: model for model in journaled_models()}
    with reading(place.system()):
        return {
            str(entry.pk): (entry, models[entry.entity].objects.get(pk=entry.entity_id).refs.project_id)
            for entry in JournalEntry.objects.all()
        }


def of(place: Place) -> set[str]:
    return {key for key, (_, project) in everywhere(place).items() if project == place.project}


def one_of_each(place: Place) -> list[JournalEntry]:
    """An entry of each kind that is of another project, or of none."""
    kinds = {
        (entry.entity, project): entry
        for entry, project in everywhere(place).values()
        if project != place.project
    }
    return [*kinds.values()]


def listed(client: Client, query: str = "") -> set[str]:
    """All pages of the journal."""
    at, found = JOURNAL + query, set[str]()
    while at:
        answer = client.get(at)
        assert answer.status_code == 200
        found |= {*entries(answer)}
        at = way(answer, "next")
    return found


def entries(answer: Any) -> list[str]:
    return re.findall(rf"{JOURNAL}([0-9a-f-]{{36}})/change/", text(answer))


def in_place(member: Context, place: str) -> Client:
    client = signed_in(member)
    client.post("/admin/place/", {"place": place})
    return client


@pytest.fixture(params=["home", "sister"])
def here(request: Any, scene: Scene) -> Place:
    found: Place = getattr(scene, request.param)
    return found


@pytest.fixture
def there(here: Place, scene: Scene) -> Place:
    return scene.sister if here is scene.home else scene.home


def test_every_kind_of_thing_is_of_a_project_or_said_to_be_of_none() -> None:
    made_by_tests = {"door"}
    assert kinds_of_projects() | OF_NO_PROJECT | made_by_tests == {*lifecycles()} | made_by_tests
    assert not kinds_of_projects() & OF_NO_PROJECT


def test_who_stands_in_a_project_reads_its_journal_alone(here: Place, there: Place) -> None:
    client, own, others = signed_in(here.everybody), of(here), of(there)
    assert own
    assert others
    assert listed(client) == own
    assert {everywhere(here)[key][0].entity for key in own} >= kinds_of_projects() - {"usage-record"}
    lines = sheet(client.get(f"{JOURNAL}?format=csv"))
    assert len(lines) == 1 + len(own)
    for key in sorted(own)[:3]:
        assert client.get(f"{JOURNAL}{key}/change/").status_code == 200
    for entry in one_of_each(here):
        assert client.get(f"{JOURNAL}{entry.pk}/change/").status_code == 404, entry
        assert listed(client, f"?q={entry.stream_id}") <= own, entry
    assert not listed(client, f"?q={there.ids['run_id']}")
    assert len(sheet(client.get(f"{JOURNAL}?q={there.ids['run_id']}&format=csv"))) == 1


def test_a_look_through_the_journal_of_a_project_loses_nothing_and_says_where_it_ends(
    here: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_scan.BoundedScan, "_at_first", lambda *_: None)
    monkeypatch.setattr(bounded_scan, "AT_ONCE", 23)
    monkeypatch.setattr(pages, "PATIENCE", 0.0)
    client = signed_in(here.everybody)
    walked = walk(client, JOURNAL)
    found = [key for page in walked for key in entries(page)]
    assert sorted(found) == sorted(of(here))
    assert "23 rows of the list were looked through" in text(walked[0])
    assert not [page for page in walked if "have moved on" in text(page)]
    assert not [page for page in walked if "Clear the search" in text(page)], "Nothing was chosen"
    assert len(sheet(client.get(f"{JOURNAL}?format=csv"))) == 1 + len(found)


def test_who_reads_the_whole_tenant_reads_all_of_it_and_of_a_chosen_project_its_own(
    here: Place, scene: Scene
) -> None:
    admin = here.house.world.tenant_admin
    assert listed(in_place(admin, f"{here.tenant}/")) == {*everywhere(here)}
    everybody = here.everybody
    assert listed(in_place(everybody, f"{here.tenant}/{here.project}")) == of(here)


class Looked:
    """A verification that a test makes up."""

    def __init__(self) -> None:
        self.id, self.started_at = uuid7(), now()


def found_here(place: Place, found: Sequence[Violation]) -> list[str]:
    """Subjects of what was found, as they are listed in a project."""
    mark = uuid4().hex
    told = [replace(each, detail=f"{each.detail} {mark}") for each in found]
    record_findings(place.system(), verification=Looked(), found=told)  # type: ignore[arg-type]
    lines = sheet(signed_in(place.everybody).get(f"{FINDINGS}?format=csv"))
    return [line[2] for line in lines if mark in line[3]]


def worked(place: Place, receipt: str) -> str:
    """A run of the project whose worker sent this receipt and took an authorization, and the id of that."""
    body, _ = submit(place.everybody, payload=place.house.payload("gated"), key=str(uuid4()))
    start_run(place.system(), run_id=UUID(body["runId"]))
    hand = place.house.hand(f"w-{uuid4().hex[:6]}")
    work = hand.take()
    hand.receipts(work, costing("0.01") | {"receiptId": receipt})
    asked = hand.ask(work)
    other = context_of(f"another-{place.everybody.actor.subject}", place.tenant, place.project)
    place.house.decide(asked.approval_id, by=other)
    hand.authorize(work, asked.approval_id)
    with reading(place.system()):
        return str(Authorization.objects.get(approval_id=asked.approval_id).pk)


JOURNALED = "UPDATE factory_journalentry SET"
TAMPERED = {
    "A6 a run's journal": (
        "A6",
        f"{JOURNALED} actor = 'eve' WHERE stream_id = %s AND sequence = 2",
        "run_id",
    ),
    "A8 its times": (
        "A8",
        f"{JOURNALED} occurred_at = now() - interval '1 day' WHERE stream_id = %s AND sequence = 2",
        "run_id",
    ),
    "A6b a run's audit chain": (
        "A6b",
        "UPDATE factory_auditentry SET outcome = 'refused' WHERE stream_id = %s AND sequence = 1",
        "audit of run_id",
    ),
    "A3b its end": (
        "A3b",
        "UPDATE factory_chainhead SET sequence = 99 WHERE stream_id = %s",
        "audit of run_id",
    ),
    "A6b a membership's": (
        "A6b",
        "UPDATE factory_auditentry SET outcome = 'refused' WHERE stream_id = %s AND sequence = 1",
        "audit of member_id",
    ),
    "C2 an event": ("C2", "UPDATE factory_outboxevent SET payload = '{}' WHERE id = %s", "event_id"),
    "D3 a use": (
        "D3",
        "UPDATE approvals_authorization SET authorized_at = now() + interval '9 days' WHERE id = %s",
        "authorization_id",
    ),
    "N2 a message": (
        "N2",
        "UPDATE notifications_notification SET subject = 'eve' WHERE id = %s",
        "notification_id",
    ),
}


@pytest.mark.parametrize("what", TAMPERED)
def test_what_the_auditor_writes_of_a_project_is_read_there_alone(
    here: Place, there: Place, what: str
) -> None:
    code, damage, about = TAMPERED[what]
    if about == "authorization_id":
        key = UUID(worked(here, uuid4().hex))
    else:
        key = UUID(here.ids[about.removeprefix("audit of ")])
    key = audit_stream(key) if about.startswith("audit of ") else key
    found = corrupt(code, [(damage, [key])], tenant_id=here.tenant)
    found = [each for each in found if str(key) in each.subject]
    assert found, "the auditor sees the damage"
    assert found_here(here, found) == [each.subject for each in reversed(found)]
    assert found_here(there, found) == []


def test_findings_of_the_scope_of_a_project_of_receipts_and_of_notices(here: Place, there: Place) -> None:
    own, named = audit_stream(scope_stream(here.everybody)), f"msg-{uuid4().hex[:8]}:{there.ids['run_id']}"
    worked(here, named)
    with reading(here.system()):
        notice = Notice.objects.filter(project_id=here.project).values_list("pk", flat=True)[0]
    subjects = [f"{own}#1", str(own), f"receipt:{named}", f"notice:{notice}"]
    found = [Violation("A6b", here.tenant, subject, "broken") for subject in subjects]
    assert sorted(found_here(here, found)) == sorted(subjects)
    assert found_here(there, found) == []
    release, tenant = here.house.release, scope_stream(replace(here.everybody, project_id=None))
    shared = [release, audit_stream(release), tenant, audit_stream(tenant)]
    found = [Violation("A6b", here.tenant, f"{key}#1", "broken") for key in shared]
    assert found_here(here, found) == []


def test_findings_are_read_where_the_thing_is_that_they_are_about(here: Place, there: Place) -> None:
    looked = Looked()
    told = {
        f"run:{here.ids['run_id']}": "a run here",
        here.ids["run_id"]: "its chain",
        f"lease:{here.ids['lease_id']}": "a lease here",
        f"run:{there.ids['run_id']}": "a run there",
        there.ids["approval_id"]: "an approval there",
        f"release:{here.ids['release_id']}": "a release",
        "policy:default": "a policy",
        "unheard": "of nothing",
    }
    record_findings(
        here.system(),
        verification=looked,  # type: ignore[arg-type]
        found=[
            Violation("A4", here.tenant, subject, f"{words} {here.project}")
            for subject, words in told.items()
        ],
    )
    with reading(here.system()):
        assert Finding.objects.filter(verification_id=looked.id).count() == len(told)
    shown = text(signed_in(here.everybody).get(FINDINGS))
    assert [words for words in told.values() if f"{words} {here.project}" in shown] == [
        "a run here",
        "its chain",
        "a lease here",
    ]
    everything = text(in_place(here.house.world.tenant_admin, f"{here.tenant}/").get(FINDINGS))
    assert all(f"{words} {here.project}" in everything for words in told.values())


def test_the_first_page_of_a_project_counts_what_the_list_behind_it_holds(here: Place, there: Place) -> None:
    looked = Verification(id=uuid7(), started_at=now(), seconds=1, rules=9, violations=3)
    looked.save(force_insert=True)
    subjects = [f"run:{here.ids['run_id']}", f"{there.ids['run_id']}#2", f"release:{here.house.release}"]
    found = [Violation("A6", here.tenant, subject, "broken") for subject in subjects]
    record_findings(here.system(), verification=looked, found=found)
    told = text(signed_in(here.everybody).get("/admin/"))
    assert "The last verification found 1 violation<" in told
    assert re.search(r">\s*1 violation\s*<", told), "the figure counts the same"
    told = text(in_place(here.house.world.tenant_admin, f"{here.tenant}/").get("/admin/"))
    assert "The last verification found 3 violations" in told


def test_a_project_reads_on_a_worker_s_page_only_leases_of_its_runs(here: Place, there: Place) -> None:
    page = reverse("admin:runs_worker_change", args=[there.ids["worker_id"]])
    link = reverse("admin:runs_run_change", args=[there.ids["run_id"]])
    shown = text(signed_in(here.everybody).get(page))
    assert there.ids["run_id"] not in shown
    assert "1 attempt of another project of this tenant: it is read there." in shown
    assert "Nothing. An attempt" not in shown
    assert link in text(signed_in(there.everybody).get(page))
    assert "of another project" not in text(signed_in(there.everybody).get(page))


def test_the_journal_of_a_project_offers_no_choice_that_can_never_match(here: Place) -> None:
    def offered(client: Client, name: str) -> set[str]:
        choices = text(client.get(JOURNAL)).partition(f'name="{name}">')[2].partition("</select>")[0]
        return set(re.findall(r'value="([A-Za-z-]+)"', choices))

    client = signed_in(here.everybody)
    wide = in_place(here.house.world.tenant_admin, f"{here.tenant}/")
    assert offered(client, "entity") == kinds_of_projects()
    assert offered(wide, "entity") == {*lifecycles()}
    assert "Published" in offered(wide, "to_state") - offered(client, "to_state")
    assert "Completed" in offered(client, "to_state")
    refused = text(client.get(f"{JOURNAL}?entity=release"))
    assert "is no what here" in refused
    assert not entries(client.get(f"{JOURNAL}?to_state=Published"))
    assert "stands where the whole tenant is chosen" in JournalAdmin.nothing_yet


def test_the_words_of_the_audit_grant_say_how_far_it_reaches() -> None:
    for told, wide in ((grant_lets("audit", wide=False), False), (grant_lets("audit", wide=True), True)):
        assert "indings" in told
        assert ("of this project" in told) is not wide
        assert ("the whole journal" in told.lower()) is wide
    assert "findings of this project" in role_lets("Operator", wide=False)
    assert "all findings" in role_lets("Operator", wide=True)

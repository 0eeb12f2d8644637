"""Every page of the console: who may open it, whose rows it shows, and that it changes nothing."""

import re
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.admin.options import ModelAdmin
from django.db.models import Model
from django.urls import reverse

import config.urls  # noqa: F401 - it is what registers the pages
from factory.console.base import BaseAdmin
from factory.console.evidence import EvidenceAdmin
from factory.console.site import site
from factory.kernel.context import Context
from factory.kernel.models import AuditEntry, OutboxEvent, User
from factory.kernel.models.base import TenantModel
from factory.kernel.tenancy import reading
from projects.commands import onboard_project
from tests.support.approvals import Asking, asking
from tests.support.client import Client
from tests.support.queries import within_budget
from tests.support.running import House
from tests.support.world import World, second_world

PAGES: list[tuple[type[Model], ModelAdmin]] = sorted(site._registry.items(), key=lambda p: p[0]._meta.label)
NOWHERE = "01900000-0000-7000-8000-000000000000"
UUIDS = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
IDS = [model._meta.label_lower for model, _ in PAGES]


def newest(model: type[Model]) -> Any:
    """The tenant's newest row of a kind; of the platform's own tables (workers) none is its own."""
    return model._default_manager.order_by("-pk").first() if issubclass(model, TenantModel) else None


@pytest.fixture(scope="module")
def asked() -> Asking:
    """A tenant with a policy and one question that waits; these tests change nothing in it."""
    made = asking(f"t-{uuid4().hex[:16]}")
    made.ask()
    return made


@pytest.fixture(scope="module")
def stranger(asked: Asking) -> World:
    return second_world(asked.world.tenant)


def signed_in(member: Context) -> Client:
    """A browser session of one of the world's people."""
    subject = member.actor.subject
    user = User.objects.filter(subject=subject).first() or User.objects.create_user(subject, subject=subject)
    client = Client()
    client.force_login(user)
    return client


def url(model: type[Model], page: str, *args: object) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}", args=args)


@pytest.mark.parametrize(("model", "page"), PAGES, ids=IDS)
def test_no_filter_breaks_a_list_with_a_value_that_nobody_knows(
    asked: Asking, model: type[Model], page: ModelAdmin
) -> None:
    client, at = signed_in(asked.world.platform_admin), url(model, "changelist")
    for each in page.list_filter:
        name = getattr(each, "parameter_name", None) or f"{each}__exact"
        answer = client.get(f"{at}?{name}=nobody-knows-this", follow=True)
        assert answer.status_code == 200, name
        assert "nobody-knows-this" in answer.content.decode(), name


@pytest.mark.parametrize(("model", "page"), PAGES, ids=IDS)
def test_every_page_is_read_only_and_reads_in_its_tenant(model: type[Model], page: ModelAdmin) -> None:
    assert isinstance(page, BaseAdmin), f"{model} is not shown through BaseAdmin"
    assert page.view_operation
    assert page.about
    assert page.show_full_result_count is False
    assert page.shows_stored <= isinstance(page, EvidenceAdmin), "Columns as they are stored are evidence"


@pytest.mark.parametrize(("model", "page"), PAGES, ids=IDS)
def test_every_list_opens_for_an_administrator(asked: Asking, model: type[Model], page: ModelAdmin) -> None:
    client = signed_in(asked.world.workspace_admin)
    with within_budget("console list"):
        answer = client.get(url(model, "changelist"))
    assert answer.status_code == 200


@pytest.mark.parametrize(("model", "page"), PAGES, ids=IDS)
def test_every_page_of_a_thing_opens_and_is_closed_to_strangers(
    asked: Asking, stranger: World, model: type[Model], page: ModelAdmin
) -> None:
    with reading(asked.house):
        row = newest(model)
    if row is None:
        missing = signed_in(asked.world.workspace_admin).get(url(model, "change", NOWHERE))
        assert missing.status_code in (302, 404), "of what this small world lacks there is no page either"
        return
    at_home = signed_in(asked.world.workspace_admin).get(url(model, "change", row.pk))
    assert at_home.status_code == 200
    text = at_home.content.decode()
    (heading,) = re.findall(r"<h1[^>]*>(.*?)</h1>", text, re.S)  # a page says once what it is
    assert not UUIDS.search(heading), "A heading is of words: ids stand below it"
    assert not re.search(r"\d (?:a|p)\.m\.|noon|midnight", text), "Times are told to the second, in UTC"
    foreign = signed_in(stranger.workspace_admin).get(url(model, "change", row.pk))
    assert foreign.status_code in (302, 404)
    if foreign.status_code == 302:
        assert foreign["Location"] == reverse("admin:index"), "Django's answer to a row that does not exist"


def test_a_heading_spells_a_name_as_it_is(asked: Asking) -> None:
    with reading(asked.house):
        event, entry = newest(OutboxEvent), newest(AuditEntry)
    client = signed_in(asked.world.workspace_admin)
    for row, name in ((event, event.topic), (entry, entry.actor)):
        assert f"<h1>{name}" in client.get(url(type(row), "change", row.pk)).content.decode()


@pytest.mark.requirement("SEC-12")
@pytest.mark.parametrize(("model", "page"), PAGES, ids=IDS)
@pytest.mark.parametrize("verb", ["add", "delete", "save"])
def test_nothing_is_added_saved_or_deleted(
    asked: Asking, model: type[Model], page: ModelAdmin, verb: str
) -> None:
    client = signed_in(asked.world.tenant_admin)
    with reading(asked.house):
        row = newest(model)
    key = row.pk if row else NOWHERE
    where = {
        "add": url(model, "add"),
        "delete": url(model, "delete", key),
        "save": url(model, "change", key),
    }[verb]
    assert client.post(where, {"state": "Approved", "post": "yes"}).status_code in (302, 403, 404)
    with reading(asked.house):
        after = newest(model)
    assert (row is None) == (after is None)
    if row is not None:
        assert vars(after)["_held"] == vars(row)["_held"]


def test_a_stranger_sees_none_of_it(asked: Asking, stranger: World) -> None:
    client = signed_in(stranger.workspace_admin)
    page = client.get(url(asked_model(), "changelist"))
    assert page.status_code == 200
    assert b"commit report.md" not in page.content


def asked_model() -> type[Model]:
    return next(model for model, _ in PAGES if model._meta.label == "approvals.ApprovalRequest")


@pytest.mark.parametrize(
    "path", ["/admin/", "/admin/approvals/approvalrequest/", "/admin/factory/journalentry/"]
)
def test_nobody_enters_without_signing_in(path: str) -> None:
    answer = Client().get(path)
    assert answer.status_code == 302
    assert "/admin/login/" in answer["Location"]


def test_the_evidence_is_for_those_who_audit(asked: Asking) -> None:
    journal = "/admin/factory/journalentry/"
    assert signed_in(asked.world.auditor).get(journal).status_code == 200
    assert signed_in(asked.world.requester).get(journal).status_code == 403


def test_a_nul_character_is_refused_by_a_page_of_the_house(asked: Asking) -> None:
    client = signed_in(asked.world.workspace_admin)
    for answer in (
        client.get("/admin/runs/run/?q=%00"),
        client.get("/admin/runs/run/%00/change/"),
        client.post("/admin/place/", {"place": "\x00"}),
    ):
        assert answer.status_code == 400
        told = answer.content.decode()
        assert "holds a NUL character. Go back, and take it out." in told
        assert 'id="fc-find"' in told


def test_a_member_of_nothing_is_told_so() -> None:
    user = User.objects.create_user("nobody@nowhere.test")
    client = Client()
    client.force_login(user)
    try:
        page = client.get("/admin/")
        assert page.status_code == 200
        assert b"member of no project" in page.content
        assert client.get("/admin/approvals/approvalrequest/").status_code == 403
    finally:
        user.delete()


class TestThePlace:
    def test_follows_the_choice_of_the_person(self, asked: Asking) -> None:
        client = signed_in(asked.world.tenant_admin)
        keys = [p.key for p in client.get("/admin/").context["places"]]
        assert len(keys) >= 2
        for key in keys:
            assert client.post("/admin/place/", {"place": key}).status_code == 302
            assert client.get("/admin/").context["place"].key == key

    def test_is_told_from_another_of_the_same_name(self, tenant_id: str) -> None:
        house = House(tenant_id)
        for slug, name in (("one", "Twin"), ("two", "Twin"), ("three", "Single")):
            onboard_project(house.world.system(), slug=slug, name=name, environments=[], members=[])
        told = signed_in(house.world.tenant_admin).get("/admin/").content.decode()
        for words in ("Twin (one)", "Twin (two)", "Single"):
            assert f">{words}</option>" in told

    def test_cannot_be_anothers(self, asked: Asking, stranger: World) -> None:
        client = signed_in(asked.world.requester)
        foreign = f"{stranger.tenant}/{stranger.project}"
        assert client.post("/admin/place/", {"place": foreign}).status_code == 403
        assert client.get("/admin/").context["place"].tenant_id == asked.world.tenant

    def test_changes_only_by_post_and_leads_nowhere_else(self, asked: Asking) -> None:
        client = signed_in(asked.world.requester)
        key = client.get("/admin/").context["place"].key
        assert client.get("/admin/place/", {"place": key}).status_code == 405
        away = client.post("/admin/place/", {"place": key, "next": "https://elsewhere.example/"})
        assert away["Location"] == reverse("admin:index")

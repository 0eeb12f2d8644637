"""Where one is: one entry of the side bar, and the way back from a page to its list."""

import re
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest
from django.urls import reverse
from django.utils.html import conditional_escape, strip_tags

import config.urls  # noqa: F401 - it is what registers the pages
from approvals.models import PolicyRevision
from factory.console.events import EventAdmin
from factory.console.evidence import JournalAdmin
from factory.console.links import Reference, named, names_of
from factory.console.lists.columns import written
from factory.console.menu import where
from factory.console.show import parted, whole
from factory.console.site import site
from factory.kernel.models import JournalEntry, OutboxEvent
from factory.kernel.tenancy import reading
from tests.console.test_pages import signed_in
from tests.support.client import Client
from tests.support.running import House


@pytest.fixture(scope="module")
def house() -> House:
    made = House(f"t-{uuid4().hex[:16]}")
    made.run("gated")
    return made


@pytest.fixture(scope="module")
def admin(house: House) -> Client:
    return signed_in(house.world.tenant_admin)


@pytest.fixture
def wide(house: House) -> Client:
    """The same person, where the whole tenant is chosen: policies and aliases are of no project."""
    client = signed_in(house.world.tenant_admin)
    client.post("/admin/place/", {"place": f"{house.tenant}/"})
    return client


def trail(page: str) -> list[tuple[str, str]]:
    """Each part of the way to a page: where it leads, and its words."""
    told = page.partition('aria-label="Where you are"')[2].partition("</nav>")[0].partition(">")[2]
    parts = re.findall(r'<a href="([^"]+)">([^<]+)</a>|<span>([^<]+)</span>', told)
    return [(link, name or plain) for link, name, plain in parts]


def entries(page: str) -> list[str]:
    """What is marked in the side bar as the page that one is on."""
    marked = re.findall(r'aria-current="page">.*?<span>([^<]+)</span>', page, re.S)
    return [name.strip() for name in marked]


@pytest.mark.parametrize(
    ("page", "group", "entry"),
    [
        ("factory_consumers", "Evidence", "Consumers"),
        ("factory_outboxevent_changelist", "Evidence", "Events"),
        ("usage_explorer", "Money", "Usage explorer"),
        ("usage_usagerecord_changelist", "Money", "Usage"),
        ("factory_webhook_new", "Tenant", "Webhooks"),
        ("notifications_mine", "Work", "My notifications"),
        ("factory_setting_changelist", "Tenant", "Settings"),
    ],
)
def test_a_page_is_of_one_entry_and_leads_back_to_it(
    admin: Client, page: str, group: str, entry: str
) -> None:
    shown = admin.get(reverse(f"admin:{page}")).content.decode()
    assert entries(shown) == [entry]
    assert [words for _, words in trail(shown)] == [group, entry]
    assert trail(shown)[1][0], "the list is a link"


@pytest.mark.parametrize(
    ("page", "ways"),
    [
        ("registry_aliasmove_changelist", ["Assets", "Aliases"]),
        ("usage_ledgerentry_changelist", ["Money", "Budgets"]),
    ],
)
def test_a_list_without_an_entry_belongs_to_what_it_is_part_of(
    admin: Client, page: str, ways: list[str]
) -> None:
    shown = admin.get(reverse(f"admin:{page}")).content.decode()
    assert entries(shown) == ways[1:]
    assert [words for _, words in trail(shown)][:2] == ways
    assert trail(shown)[2][0] == reverse(f"admin:{page}")


def test_the_way_to_a_record_ends_at_its_list(house: House, admin: Client) -> None:
    with reading(house.system):
        row = JournalEntry.objects.filter(tenant_id=house.tenant, entity="step").first()
    assert row is not None
    shown = admin.get(reverse("admin:factory_journalentry_change", args=[row.pk])).content.decode()
    assert trail(shown) == [("", "Evidence"), (reverse("admin:factory_journalentry_changelist"), "Journal")]
    assert f"<dt>Entity id</dt><dd><code>{row.entity_id}</code></dd>" in shown.partition("As it is stored")[0]


def test_the_journal_calls_an_alias_by_its_names_as_the_audit_log_does(house: House, wide: Client) -> None:
    with reading(house.system):
        row = JournalEntry.objects.filter(tenant_id=house.tenant, entity="alias").first()
        assert row is not None
        [name] = names_of("alias", [row.entity_id]).values()
    shown = wide.get(f"{reverse('admin:factory_journalentry_changelist')}?entity=alias").content.decode()
    assert f'href="{reverse("admin:registry_alias_change", args=[row.entity_id])}">alias {name}</a>' in shown


def test_evidence_calls_a_policy_by_its_number_as_people_do(house: House, wide: Client) -> None:
    with reading(house.system):
        row = PolicyRevision.objects.order_by("number").first()
        assert row is not None
    page_of = reverse("admin:approvals_policyrevision_change", args=[row.id])
    for page in ("journalentry_changelist", "auditentry_changelist"):
        where = f"{reverse(f'admin:factory_{page}')}?q={row.id}"
        assert f'href="{page_of}">policy {row.revision}</a>' in wide.get(where).content.decode(), page


def test_an_entry_that_is_not_shown_is_no_way_back() -> None:
    def item(link: str, seen: bool) -> dict[str, Any]:
        return {"link": link, "has_permission": seen}

    groups = [{"items": [item("/admin/a/", True), item("/admin/a/b/", False), item("/admin/", True)]}]
    found = where(groups, "/admin/a/b/c/")
    assert found is not None
    assert found[1]["link"] == "/admin/a/"
    assert where(groups, "/admin/z/") is None


def test_a_name_breaks_after_its_dots() -> None:
    name = parted("run-control.runs.v1.<b>")
    assert name == '<code class="fc-parted">run-control.<wbr>runs.<wbr>v1.<wbr>&lt;b&gt;</code>'


def test_what_a_page_shortens_is_whole_in_a_file() -> None:
    reference = Reference("run", "x" * 40)
    assert "x" * 9 not in strip_tags(reference.__html__())
    assert written(reference) == f"run {'x' * 40}"
    assert written(Decimal("0.048750")) == "0.04875 USD"


def test_a_shortened_id_keeps_its_dots() -> None:
    assert whole("<i>, run …62930a50.") == '&lt;i&gt;, run <span class="fc-nowrap">…62930a50</span>.'


def test_an_event_says_what_it_is_about_and_leads_there(house: House, admin: Client) -> None:
    with reading(house.system):
        told = OutboxEvent.objects.filter(topic__endswith="asset-release-published").first()
    assert told is not None
    shown = admin.get(
        f"{reverse('admin:factory_outboxevent_changelist')}?topic={told.topic}"
    ).content.decode()
    assert reverse("admin:registry_release_change", args=[told.payload["releaseId"]]) in shown


def test_an_alias_is_found_from_its_event_and_from_the_audit_log() -> None:
    moved, key = OutboxEvent(topic="agent-registry.aliases.v1.alias-moved", payload={}), uuid4()
    moved.stream_id = key
    page = EventAdmin(OutboxEvent, site)
    assert reverse("admin:registry_alias_change", args=[key]) in page.about_(moved)
    moved.payload = {"asset": "sample", "alias": "stable"}
    assert ">alias sample stable</a>" in page.about_(moved)
    told = OutboxEvent(topic="governance.policies.v1.policy-revision-published", payload={"revision": "r2"})
    assert ">policy r2</a>" in page.about_(told)
    listed = reverse("admin:registry_alias_changelist")
    assert f'href="{listed}?q=sample+stable">alias sample stable</a>' in conditional_escape(
        named("alias:sample/stable")
    )


def test_what_was_only_noted_has_become_nothing() -> None:
    """A vote is an entry of the journal, and its request is what it was."""
    page = JournalAdmin(JournalEntry, site)
    noted = JournalEntry(entity="approval", from_state="Pending", to_state="Pending", cause="VoteCast")
    decided = JournalEntry(entity="approval", from_state="Pending", to_state="Approved", cause="Approve")
    assert (page.moved(noted), page.headline(noted)) == ("–", "Approval, still Pending: vote cast")
    assert "Approved" in page.moved(decided)
    assert page.why(decided) == "Decision to approve"
    assert page.headline(decided) == "Approval: Pending → Approved (decision to approve)"


def test_the_events_of_a_new_webhook_are_told_by_service_with_what_they_mean(admin: Client) -> None:
    shown = admin.get(reverse("admin:factory_webhook_new")).content.decode()
    of_runs = shown.partition("<legend>From run-control</legend>")[2]
    assert (
        "run-control.<wbr>runs.<wbr>v1.<wbr>run-state-changed</code><small>A run moved, and why.</small>"
        in of_runs
    )
    assert "<code>passedOver</code> could have decided" in shown
    assert "<code>deciders</code> gave it." in shown
    assert "Go back, and change nothing" in shown

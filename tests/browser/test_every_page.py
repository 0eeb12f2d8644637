"""Every page of the console in a browser: no error, nothing wider than a small screen, all of it named."""

from uuid import UUID, uuid4

import pytest
from django.urls import reverse

import config.urls  # noqa: F401 - it is what registers the pages
from factory.admin.site import site
from factory.tenancy import reading
from runs.models import RunTemplate
from tests.browser.conftest import Visit
from tests.browser.proposals import change
from tests.browser.visitor import Visitor
from tests.support.running import House, receipt
from tests.support.waivers import template, waiver

MODELS = sorted(site._registry, key=lambda model: model._meta.label)

UNNAMED = """() => [...document.querySelectorAll("#main *")]
  .filter(e => e.matches("input:not([type=hidden]), select, textarea, button, a[href]") && e.offsetParent)
  .filter(e => !e.textContent.trim() && !(e.labels || []).length && !e.getAttribute("aria-label")
    && !e.title && !e.placeholder && !(e.type === "submit" && e.value))
  .map(e => e.outerHTML.slice(0, 160))"""


@pytest.fixture(scope="module")
def house() -> House:
    """A run that waits, one that is through, and one that failed."""
    made = House(f"t-{uuid4().hex[:16]}")
    worker = made.hand("a-worker-with-a-long-name-in-eu-central-1", slots=8)
    made.run("single")
    work = worker.take()
    worker.report(work, output={"found": 1}, receipts=[receipt(), receipt(name="never-heard-of")])
    made.run("stubborn")
    worker.fail(worker.take(), "permanent")
    made.run("gated")
    worker.ask(worker.take(), change(), park=True)
    made.run("diamond")
    waiver(made, template(made))
    return made


@pytest.fixture(scope="module")
def paths(house: House) -> list[str]:
    """Every list, and the newest row's page of each."""
    found = ["/admin/", reverse("admin:notifications_mine")]
    for model in MODELS:
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}"
        found.append(reverse(f"{name}_changelist"))
        with reading(house.system):
            row = model._default_manager.order_by("-pk").first()
        if row is not None and model._meta.model_name != "step":
            found.append(reverse(f"{name}_change", args=[row.pk]))
        if row is not None and model is RunTemplate:
            acts = ("runs_from_template", "runs_request_waiver", "runs_retire_template")
            found += [reverse("admin:runs_new_template")]
            found += [reverse(f"admin:{act}", args=[row.pk]) for act in acts]
    return found


def sound(visitor: Visitor) -> None:
    assert visitor.measure("document.documentElement.scrollWidth") <= visitor.measure("innerWidth"), (
        f"{visitor.page.url} runs out of the screen"
    )
    assert visitor.measure(UNNAMED) == [], visitor.page.url
    assert not visitor.troubles, visitor.page.url


SCREENS = ((390, "light"), (820, "dark"), (1440, "light"))


def test_every_page_is_sound_at_every_width(house: House, paths: list[str], visit: Visit) -> None:
    admin = visit(width=390).sign_in(house.world.workspace_admin)
    for path in paths:
        answer = admin.open(path)
        assert answer is not None
        assert answer.status == 200, path
        for width, scheme in SCREENS:
            admin.page.emulate_media(color_scheme=scheme)
            admin.page.set_viewport_size({"width": width, "height": 900})
            sound(admin)


@pytest.mark.parametrize(
    "member", ["requester", "reviewer", "operator", "finance", "auditor", "tenant_admin"]
)
def test_everybody_has_a_first_page_on_which_every_way_is_open(
    house: House, visit: Visit, member: str
) -> None:
    person = visit(width=390).sign_in(getattr(house.world, member))
    sound(person)
    ways = person.page.eval_on_selector_all("a[href^='/admin/']", "found => found.map(a => a.href)")
    for way in sorted(set(ways)):
        if "logout" not in way and "password" not in way:
            assert person.page.request.get(way).status == 200, way


def test_what_is_not_there_is_said_in_the_console(house: House, visit: Visit) -> None:
    person = visit(width=390).sign_in(house.world.requester)
    person.expected |= {403, 404}
    for path, said in (
        (f"/admin/runs/run/{UUID(int=7)}/change/", "There is no such page here"),
        ("/admin/factory/journalentry/", "This page is not for you"),
    ):
        person.open(path)
        person.reads(said)
        sound(person)


def test_the_door_is_sound(visit: Visit) -> None:
    stranger = visit(width=390)
    stranger.open("/admin/login/")
    sound(stranger)

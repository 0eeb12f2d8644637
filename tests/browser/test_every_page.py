"""Every page of the console in a browser: no error, nothing wider than a small screen, all of it named."""

from uuid import UUID, uuid4

import pytest

from tests.browser.accessibility import findings
from tests.browser.conftest import Visit
from tests.browser.pages import pages, several_pages, wide_pages
from tests.browser.visitor import Visitor
from tests.support.furnished import furnished
from tests.support.running import House

UNNAMED = """() => [...document.querySelectorAll("#main *")]
  .filter(e => e.matches("input:not([type=hidden]), select, textarea, button, a[href]") && e.offsetParent)
  .filter(e => !e.textContent.trim() && !(e.labels || []).length && !e.getAttribute("aria-label")
    && !e.title && !e.placeholder && !(e.type === "submit" && e.value))
  .map(e => e.outerHTML.slice(0, 160))"""


@pytest.fixture(scope="module")
def house() -> House:
    """Everything has happened there once."""
    return furnished(f"t-{uuid4().hex[:16]}")


SQUEEZED = """() => [...document.querySelectorAll("#main .fc-badge")]
  .filter(e => e.offsetParent && e.offsetHeight > 1.5 * e.offsetWidth && e.textContent.trim().length > 3)
  .map(e => e.outerHTML.slice(0, 160))"""
"""A word that stands letter below letter: its column has no room."""


def sound(visitor: Visitor) -> None:
    assert visitor.measure("document.documentElement.scrollWidth") <= visitor.measure("innerWidth"), (
        f"{visitor.page.url} runs out of the screen"
    )
    assert visitor.measure(UNNAMED) == [], visitor.page.url
    assert visitor.measure(SQUEEZED) == [], visitor.page.url
    assert not visitor.troubles, visitor.page.url


SPELLED = r"""() => [...document.querySelectorAll("h1")]
  .filter(e => /[0-9a-f]{8}-[0-9a-f]{4}-/.test(e.textContent)).length"""
SCREENS = ((390, "light"), (820, "dark"), (1440, "light"))


def seen_at_every_width(visitor: Visitor, path: str) -> None:
    answer = visitor.open(path)
    assert answer is not None
    assert answer.status == 200, path
    for width, scheme in SCREENS:
        visitor.page.emulate_media(color_scheme=scheme)
        visitor.page.set_viewport_size({"width": width, "height": 900})
        sound(visitor)
    assert findings(visitor) == [], path
    assert not visitor.measure(SPELLED), f"{path}: a heading is of words, ids stand below it"


def test_whoever_decides_reads_a_publication_and_a_change_of_files_whole(house: House, visit: Visit) -> None:
    reviewer = visit(width=390).sign_in(house.world.reviewer)
    for name, path in pages(house.world.reviewer):
        if name in ("approvals.approvalrequest Pending", "approvals.approvalrequest Rejected"):
            seen_at_every_width(reviewer, path)


@pytest.mark.parametrize("part", [0, 1], ids=["one half", "the other half"])
def test_every_page_is_sound_at_every_width_and_axe_finds_nothing_grave(
    house: House, visit: Visit, part: int
) -> None:
    member = house.world.workspace_admin
    admin = visit(width=390).sign_in(member)
    for _, path in list(pages(member))[part::2]:
        seen_at_every_width(admin, path)


@pytest.mark.parametrize(("member", "acts"), [("reviewer", 2), ("operator", 1), ("workspace_admin", 3)])
def test_pages_of_several_rows_are_sound_too(house: House, visit: Visit, member: str, acts: int) -> None:
    visitor = visit().sign_in(getattr(house.world, member))
    asked = list(several_pages(visitor))
    assert len(asked) == acts
    for _, path in asked:
        seen_at_every_width(visitor, path)


def test_pages_of_the_whole_tenant_are_sound_too(house: House, visit: Visit) -> None:
    admin = visit(width=390).sign_in(house.world.tenant_admin)
    admin.choose(f"{house.tenant}/")
    for _, path in wide_pages():
        admin.open(path)
        for width, scheme in SCREENS:
            admin.page.emulate_media(color_scheme=scheme)
            admin.page.set_viewport_size({"width": width, "height": 900})
            sound(admin)
        assert findings(admin) == [], path


def test_a_project_is_onboarded_on_a_phone_without_scripts(house: House, visit: Visit) -> None:
    admin = visit(width=390, scripts=False).sign_in(house.world.tenant_admin)
    admin.expected |= {400}
    admin.open("/admin/projects/project/")
    admin.follow("Onboard a project")
    admin.page.get_by_label("Name", exact=True).fill("On the phone")
    admin.part("[name=slug]").fill("On the phone")
    admin.part("[name='members/0/subject']").fill("ann@example.org")
    admin.press("More members")
    admin.part("[name='members/0/roles'][value=Requester]").check()
    admin.press("Onboard the project")
    admin.reads("Look below at Short name (slug).")
    admin.part("[name=slug]").fill("on-the-phone")
    admin.press("Onboard the project")
    admin.reads("On the phone is there, with 0 environments and 1 member of its own")
    admin.reads("There is no environment, and a run targets one.")


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

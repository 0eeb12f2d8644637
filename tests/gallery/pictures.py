"""The pictures themselves. Each page is read once for a person, and then shown at each width and theme."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.browser.pages import pages, several_pages, wide_pages
from tests.browser.visitor import Visitor
from tests.browser.web import BROWSER_FLAGS, find_chromium
from tests.support.running import House
from tests.support.world import TENANT_WIDE

WIDTHS = (390, 820, 1440)
THEMES = ("light", "dark")
PEOPLE = (
    "workspace_admin",
    "requester",
    "reviewer",
    "operator",
    "finance",
    "auditor",
    "observer",
    "tenant_admin",
    "platform_admin",
)


@dataclass
class Shown:
    """A page as one person sees it."""

    person: str
    title: str
    path: str
    pictures: dict[tuple[int, str], str] = field(default_factory=dict)
    troubles: list[str] = field(default_factory=list)


def take(house: House, web: str, place: Path, only: str, people: Sequence[str]) -> Iterator[Shown]:
    """Every page for whoever may open it. One that looks the same for somebody else is pictured once."""
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"  # the browser's event loop runs in this thread
    seen: dict[tuple[str, str], Shown] = {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=list(BROWSER_FLAGS))
        try:
            for person in people:
                visitor = Visitor(browser, web, width=WIDTHS[-1])
                visitor.expected |= {403, 404}
                visitor.sign_in(getattr(house.world, person))
                for title, path in _pages(house, visitor, person):
                    if only in title and _opens(visitor, path):
                        yield _pictured(visitor, Shown(person, title, path), place, seen)
                visitor.leave()
        finally:
            browser.close()


def _pages(house: House, visitor: Visitor, person: str) -> Iterator[tuple[str, str]]:
    """All pages in the project, and then, for who is a member of the whole tenant, what is its own."""
    yield from pages(house.system)
    yield from several_pages(visitor)
    if person in TENANT_WIDE:
        visitor.open("/admin/")
        visitor.choose(f"{house.tenant}/")
        yield from wide_pages()


def _opens(visitor: Visitor, path: str) -> bool:
    answer = visitor.open(path)
    return answer is not None and answer.status == 200 and visitor.page.url.endswith(path)


def _pictured(visitor: Visitor, shown: Shown, place: Path, seen: dict[tuple[str, str], Shown]) -> Shown:
    looks = (shown.path, sha256(visitor.page.locator("#content").inner_html().encode()).hexdigest())
    same = seen.setdefault(looks, shown)
    if same is not shown:
        shown.pictures = same.pictures
        return shown
    for theme in THEMES:
        visitor.measure(f"document.documentElement.classList.toggle('dark', {str(theme == 'dark').lower()})")
        for width in WIDTHS:
            name = f"{shown.person}-{shown.title}-{width}-{theme}.png".replace(" ", "-")
            shown.pictures[width, theme] = name
            visitor.picture(place / name, width)
            if visitor.measure("document.documentElement.scrollWidth") > width:
                shown.troubles.append(f"wider than {width} px")
    shown.troubles += visitor.troubles
    visitor.troubles.clear()
    return shown

"""A real browser on a real web process, over the test's database: what a person would see and do."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.browser.visitor import Visitor
from tests.browser.web import BROWSER_FLAGS, serving
from tests.support.running import House


@pytest.fixture(scope="session")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The web process, with the address where it answers."""
    with serving(tmp_path_factory.mktemp("web")) as address:
        yield address


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Browser]:
    """One Chromium for a module. It ends with it: while it lives, its event loop does."""
    with pytest.MonkeyPatch.context() as patch:
        # Playwright runs an event loop in this thread; Django takes the test for a coroutine and refuses.
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        with sync_playwright() as playwright:
            opened = playwright.chromium.launch(executable_path=chromium, args=list(BROWSER_FLAGS))
            yield opened
            opened.close()


Visit = Callable[..., Visitor]


@pytest.fixture
def visit(browser: Browser, web: str) -> Iterator[Visit]:
    """Open a window for somebody. At the end, nothing in it may have gone wrong unseen."""
    opened: list[Visitor] = []

    def come(**how: object) -> Visitor:
        opened.append(Visitor(browser, web, **how))
        return opened[-1]

    yield come
    for visitor in opened:
        visitor.leave()


@pytest.fixture
def house(tenant_id: str) -> House:
    return House(tenant_id)

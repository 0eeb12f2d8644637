"""Somebody at a browser window, and everything that goes wrong in it."""

import re
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, ConsoleMessage, Dialog, Locator, Response, expect

from factory.kernel.context import Context
from factory.kernel.models import User

PASSWORD = "a password for the tests only"
PATIENCE_MS = 30_000

# What a policy stops is an event of the document; the console repeats it, but not in every version.
WATCH = """
addEventListener("securitypolicyviolation", (event) =>
  console.error(`stopped by the policy: ${event.effectiveDirective} ${event.blockedURI} ${event.sample}`));
"""


class Visitor:
    """A window with its own cookies. `troubles` are dialogs, console errors and faults of scripts."""

    def __init__(
        self, browser: Browser, web: str, *, width: int = 1440, dark: bool = False, scripts: bool = True
    ) -> None:
        self.web = web
        self.troubles: list[str] = []
        self.expected: set[int] = set()
        self.window = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme="dark" if dark else "light",
            java_script_enabled=scripts,
            reduced_motion="reduce",
        )
        self.window.set_default_timeout(PATIENCE_MS)
        self.window.add_init_script(WATCH)
        self.page = self.window.new_page()
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda fault: self.troubles.append(f"script: {fault}"))
        self.page.on("dialog", self._dialog)
        self.page.on("response", self._answered)

    def _said(self, message: ConsoleMessage) -> None:
        refused = re.search(r"status of (\d+)", message.text)
        if message.type == "error" and not (refused and int(refused[1]) in self.expected):
            self.troubles.append(f"console: {message.text} {message.location.get('url', '')}")

    def _dialog(self, dialog: Dialog) -> None:
        self.troubles.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _answered(self, answer: Response) -> None:
        if answer.status >= 400 and answer.status not in self.expected:
            self.troubles.append(f"answer: {answer.status} {answer.url}")

    def sign_in(self, member: Context, *, opening: str = "/admin/") -> "Visitor":
        """Through the form, as a person does; lands on the page that was asked for."""
        subject = member.actor.subject
        if not User.objects.filter(subject=subject).exists():
            User.objects.create_user(subject, PASSWORD, subject=subject, is_staff=True)
        self.page.goto(self.web + opening)
        self.page.get_by_label("Email").fill(subject)
        self.page.get_by_label("Password").fill(PASSWORD)
        self.page.get_by_role("button", name="Log in").click()
        self.page.wait_for_url(self.web + opening)
        return self

    def open(self, path: str) -> Response | None:
        return self.page.goto(self.web + path)

    def press(self, name: str) -> None:
        """Click a button where the mouse finds it."""
        button = self.page.get_by_role("button", name=name, exact=True)
        button.scroll_into_view_if_needed()
        box = button.bounding_box()
        assert box, f"{name} is nowhere on the page"
        self.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)

    def choose(self, place: str) -> None:
        """Go to another project, or to the whole tenant, by the choice in the header."""
        chosen = self.page.locator("select[name=place]")
        if chosen.input_value() != place:
            with self.page.expect_navigation():
                chosen.select_option(value=place)

    def look_away(self) -> None:
        """The page learns of nothing any more: what somebody sends from it may have been overtaken."""
        self.expected.add(503)
        self.page.route("**/*part=standing*", lambda asked: asked.fulfill(status=503))

    def follow(self, name: str | re.Pattern[str]) -> None:
        self.page.get_by_role("link", name=name).first.click()

    def reads(self, words: str | re.Pattern[str]) -> None:
        expect(self.page.locator("body")).to_contain_text(words, timeout=PATIENCE_MS)

    def part(self, selector: str) -> Locator:
        return self.page.locator(selector)

    def measure(self, script: str) -> Any:
        return self.page.evaluate(script)

    def picture(self, file: Path, width: int) -> None:
        """All of the page at a width, as high as it is."""
        self.page.set_viewport_size({"width": width, "height": 900})
        self.page.screenshot(path=file, full_page=True, animations="disabled")

    def leave(self) -> None:
        self.window.close()
        assert self.troubles == []

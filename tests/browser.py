"""Headless Chromium, driven by playwright: pages as a person gets them, with everything that goes wrong written down."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

WIDE, PHONE = 1280, 390


@dataclass
class Opened:
    """A page in the browser, what it asked of a network, and what went wrong in it."""

    page: Any
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """All visible text."""
        return str(self.page.inner_text("body"))

    def until(self, expression: str, seconds: float = 60.0) -> None:
        """Wait until it holds; playwright's own way needs ``eval``, which the pages forbid."""
        deadline_s = time.monotonic() + seconds
        while not self.page.evaluate(expression):
            assert time.monotonic() < deadline_s, f"never: {expression}"
            self.page.wait_for_timeout(20)

    def draw_all(self) -> None:
        """Unfold every section and bring each icicle into sight, so that all are drawn."""
        for section in self.page.query_selector_all("details:not([open])"):
            section.evaluate("section => { section.open = true; }")
        for icicle in self.page.query_selector_all("[data-icicle]"):
            icicle.scroll_into_view_if_needed()
            icicle.wait_for_selector(".tile", state="attached")
        self.page.evaluate("scrollTo(0, 0)")


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A browser for the tests of one file: while playwright is open, its event loop runs, and no test can run another."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright (pip install playwright)")
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("needs chromium (apt-get install chromium)")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def opened(browser: Any, file: Path, width: int = WIDE, scheme: str = "light") -> Iterator[Opened]:
    """The page of a file on disk; nothing it asks for but itself is answered.

    All pages are opened in one tab: a process for each costs more than the page. One that a test failed on is closed.
    """
    context = next(iter(browser.contexts), None) or browser.new_context()
    try:
        shown = Opened(next(iter(context.pages), None) or context.new_page())
        page, address = shown.page, file.as_uri()

        def answer(route: Any) -> None:
            if route.request.url == address:
                route.continue_()
            else:
                shown.requests.append(route.request.url)
                route.abort()

        listeners = {
            "console": lambda message: shown.complaints.append(f"{message.type}: {message.text}"),
            "pageerror": lambda error: shown.complaints.append(str(error)),
            "dialog": lambda dialog: (shown.complaints.append(dialog.message), dialog.dismiss()),
        }
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)
        page.mouse.move(0, 0)
        page.route("**/*", answer)
        for event, listener in listeners.items():
            page.on(event, listener)
        page.goto(address)
        shown.until("document.documentElement.dataset.ready === 'true'")
        yield shown
        for event, listener in listeners.items():
            page.remove_listener(event, listener)
        page.goto("about:blank")
        page.unroute("**/*", answer)
    except BaseException:
        context.close()
        raise

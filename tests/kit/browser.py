"""A real browser for the tests of web pages: Chromium of an npm package, driven by Playwright."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from shutil import which
from tempfile import mkdtemp
from typing import Any

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Dialog, Page, Request, expect, sync_playwright

from kit.places import ROOT, TESTS

HERE = TESTS / "real" / "browser"
CACHE = ROOT / ".cache" / "browser"
PACKAGE = HERE / "node_modules" / "@sparticuz" / "chromium" / "package.json"

# Twelve times as long as by default: other tests run at the same time.
expect.set_options(timeout=60_000)

UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u202a-\u202e\u2066-\u2069]")
"""Characters that a page shows by their names, because they change what is shown around them."""

FLAGS = ["--no-sandbox", "--no-zygote", "--disable-gpu", "--font-render-hinting=none"]


def unpacked() -> Path:
    """Return the path of the browser, which is unpacked once; skip the test where there is none."""
    if not sys.platform.startswith("linux"):
        pytest.skip("the browser of @sparticuz/chromium is for Linux")
    if not PACKAGE.is_file() or which("node") is None:
        pytest.skip("@sparticuz/chromium is not installed: `make test` does it where there is npm")
    home = CACHE / str(int(PACKAGE.stat().st_mtime))
    if not home.is_dir():
        CACHE.mkdir(parents=True, exist_ok=True)
        # Renamed when it is complete: another worker may unpack it at the same time.
        place = mkdtemp(dir=CACHE)
        command = ["node", str(HERE / "unpack.mjs")]
        subprocess.run(command, env={**os.environ, "TMPDIR": place}, check=True, timeout=110, capture_output=True)
        # Another one may have been faster.
        with suppress(OSError):
            Path(place).rename(home)
    return home / "chromium"


@contextmanager
def running_browser() -> Iterator[Browser]:
    """A browser for the tests of one file. Not for longer: Playwright keeps an event loop running."""
    program = unpacked()
    with sync_playwright() as playwright:
        environment: dict[str, str | float | bool] = {**os.environ, "HOME": str(program.parent)}
        running = playwright.chromium.launch(executable_path=str(program), args=FLAGS, env=environment, timeout=60_000)
        try:
            yield running
        finally:
            running.close()


class Watched:
    """A page, and everything that it must not do. It may load from *origin* alone, and log only what *logs* matches."""

    def __init__(self, page: Page, origin: str = "", logs: str = "") -> None:
        self.page = page
        self._origin = origin
        self._logs = re.compile(logs or "(?!)")
        self.complaints: list[str] = []
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        page.on("dialog", self._dialog)
        page.on("request", self._request)

    def _console(self, message: ConsoleMessage) -> None:
        if self._logs.search(message.text) is None:
            self.complaints.append(f"{message.type}: {message.text}")

    def _dialog(self, dialog: Dialog) -> None:
        self.complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _request(self, request: Request) -> None:
        is_own = self._origin != "" and request.url.startswith(self._origin)
        if not is_own and request.url.partition(":")[0] not in {"file", "data", "blob"}:
            self.complaints.append(f"request: {request.url}")

    def open(self, place: Path | str) -> Page:
        """Go to a file or an address; return the page when it is ready."""
        # Another fragment alone would not load the page again.
        self.page.goto("about:blank")
        self.page.goto(place if isinstance(place, str) else place.as_uri())
        self.page.wait_for_selector("body[data-ready]")
        return self.page

    def check(self) -> None:
        """The page must not have logged, asked or requested anything since the last check."""
        complaints, self.complaints = self.complaints, []
        assert not complaints, complaints


@contextmanager
def watched_page(browser: Browser, origin: str = "", logs: str = "", **options: Any) -> Iterator[Watched]:
    """
    A page in a context of its own; *options* are those of a context of Playwright.

    Requests to *origin*, and log lines that the pattern *logs* matches, are allowed.
    """
    usual = {"locale": "en-US", "viewport": {"width": 1280, "height": 900}}
    context = browser.new_context(**{**usual, **options})
    context.set_default_timeout(60_000)
    context.add_init_script(HURRY)
    try:
        yield Watched(context.new_page(), origin, logs)
    finally:
        context.close()


HURRY = """
const usual = window.setTimeout;
window.setTimeout = (work, pause, ...more) => usual(work, pause < 4000 ? pause / 10 : pause, ...more);
"""
"""Has a page wait for a tenth of its pauses, which people need. Not of those of notes, which are to be read."""

Opened = Callable[..., Page]
"""Opens a file or an address; options are those of a context of Playwright, and the fragment of the address."""


@contextmanager
def opening_pages(browser: Browser, origin: str = "", logs: str = "") -> Iterator[Opened]:
    """Open pages, each as `watched_page`; at the end none may have logged, asked or requested anything."""
    pages: list[Watched] = []
    with ExitStack() as stack:

        def open_page(place: Path | str, *, fragment: str = "", **options: Any) -> Page:
            watched = stack.enter_context(watched_page(browser, origin, logs, **options))
            pages.append(watched)
            return watched.open((place if isinstance(place, str) else place.as_uri()) + fragment)

        yield open_page
    for each in pages:
        each.check()


# ── what every page has to be ────────────────────────────────────────────────────────────────────────────────────────

AXE = "options => axe.run(document, {resultTypes: ['violations'], ...options})"


def accessibility_faults(page: Page, name: str) -> list[str]:
    """
    Return the rules of accessibility that the page breaks now, in light and in dark colours.

    The page has to be opened with `bypass_csp`: its policy would not run the script.
    """
    script = HERE / "node_modules" / "axe-core" / "axe.min.js"
    if not script.is_file():
        pytest.skip("axe-core is not installed: `make test` does it where there is npm")
    if page.evaluate("typeof axe") == "undefined":
        page.evaluate(script.read_text(encoding="utf-8"))
    found = page.evaluate(AXE, {})["violations"]
    page.emulate_media(color_scheme="dark")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    # Only colours differ in the dark.
    found += page.evaluate(AXE, {"runOnly": ["color-contrast"]})["violations"]
    page.emulate_media(color_scheme="light")
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    return [
        f"{name}: {each['id']}: {each['help']}: {node['html'][:200]}"
        for each in found
        if each["impact"] in {"serious", "critical", "moderate"}
        for node in each["nodes"]
    ]


def strange_attributes(page: Page) -> list[str]:
    """Return the attributes with code, or with a character that is not seen."""
    attributes = page.evaluate(
        "[...document.body.querySelectorAll('*')].flatMap(e => [...e.attributes].map(a => a.name + '=' + a.value))"
    )
    return [each for each in attributes if each.startswith("on") or UNSEEN.search(each)]

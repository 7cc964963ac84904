"""The page of `assay console` in a real browser: a real console, real guards, real servers and clients."""

import json
import re
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from console_scene import HttpClient, library, program, served_library, show, usual_calls
from playwright.sync_api import Browser, Locator, Page, expect

from kit.browser import HERE, Opened, Watched, opening_pages, watched_page
from kit.consoles import SECONDS, RunningConsole, StdioGuard, console

REFUSALS = r"status of (401|404|409|410|503)|ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED_ENCODING"
"""What a browser logs by itself for an answer that is an error, or a console that ends or has ended."""

KEY = "a key of at least sixteen characters"

SCREENS = ("servers", "stream", "message", "findings", "contracts", "sessions", "performance")


class Scene:
    """A console, and the same library behind a guard under audit and behind one under enforce."""

    def __init__(self, running: RunningConsole, audited: StdioGuard, enforced: HttpClient) -> None:
        self.console = running
        self.audited = audited
        self.enforced = enforced

    def seq(self, verdict: str, server: str, kind: str = "request") -> int:
        """Return the number of a message of a call."""
        names = {each["id"]: each["name"] for each in self.console.get("api/state")["servers"]}
        wanted = (server, kind, "tools/call")
        return next(
            int(row["seq"])
            for row in self.console.rows()
            if (names[row["server"]], row["kind"], row["method"]) == wanted and verdict == row["verdict"]
        )


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        command = program(tmp_path_factory.mktemp("library"))
        running = stack.enter_context(console(place))
        audited = stack.enter_context(library(place, "library", command, "--mode", "audit"))
        enforced = stack.enter_context(served_library(place, "archive", command, "--mode", "enforce"))
        audited.open()
        for client in (audited, enforced):
            usual_calls(client)
        enforced.call("search", query="sea", limit="5")
        running.wait(lambda rows: sum(row["method"] == "tools/call" for row in rows) >= 25)
        yield Scene(running, audited, enforced)


@pytest.fixture
def opened(browser: Browser, scene: Scene) -> Iterator[Opened]:
    with opening_pages(browser, scene.console.base, REFUSALS) as open_page:

        def open_screen(fragment: str = "", **options: Any) -> Page:
            page = open_page(scene.console.address, **options)
            if fragment:
                show(page, fragment)
            return page

        yield open_screen


@pytest.fixture(scope="module")
def only_page(browser: Browser, scene: Scene) -> Iterator[Watched]:
    clipboard = ["clipboard-read", "clipboard-write"]
    with watched_page(browser, scene.console.base, REFUSALS, permissions=clipboard) as watched:
        watched.open(scene.console.address)
        yield watched


@pytest.fixture
def shown(only_page: Watched) -> Iterator[Opened]:
    """
    Shows a screen in a page that tests share, because loading one takes most of a short test.

    A test that changes how the page looks, or what it remembers, needs one of its own.
    """
    page = only_page.page

    def show_screen(fragment: str = "#/servers") -> Page:
        page.evaluate("document.querySelectorAll('dialog').forEach((each) => each.close())")
        show(page, "#/message")
        show(page, fragment)
        return page

    yield show_screen
    only_page.check()


def lines(page: Page) -> Locator:
    return page.locator(".line[data-seq]:not([hidden])")


def choose(page: Page, text: str) -> None:
    """Filter the stream, and wait until all rows have been looked at."""
    page.locator("#filter").fill(text)
    expect(page).to_have_url(re.compile(r"#/stream\?filter=" if text else r"#/stream$"))
    expect(page.locator("#filter-count")).not_to_contain_text("reading")


# ── servers ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_guard_has_a_row(shown: Opened) -> None:
    page = shown()
    expect(page.get_by_role("heading", level=1)).to_have_text("Servers")
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(2)
    audited = rows.filter(has=page.get_by_role("link", name="library", exact=True))
    expect(audited).to_contain_text("running")
    expect(audited).to_contain_text("stdio, audit")
    expect(audited).to_contain_text("2025-11-25")
    enforced = rows.filter(has=page.get_by_role("link", name="archive", exact=True))
    expect(enforced).to_contain_text("http, enforce")
    expect(enforced).to_contain_text("http://127.0.0.1:")
    expect(enforced.locator("td[data-title=Blocked]")).to_have_text("2")
    expect(enforced.locator("td[data-title=Tools]")).to_have_text("3")
    enforced.get_by_role("link", name="archive", exact=True).click()
    expect(page.locator("#filter")).to_have_value("server:archive")
    expect(lines(page).locator(".cell-server").first).to_have_text("archive")


@pytest.fixture
def guarded(browser: Browser, state: Path, tmp_path: Path) -> Iterator[tuple[Page, HttpClient]]:
    """A page that shows the servers, and the client of the only one, which has listed its tools."""
    with (
        console(state) as running,
        served_library(state, "archive", program(tmp_path), "--mode", "enforce") as client,
        opening_pages(browser, running.base, REFUSALS) as open_page,
    ):
        running.wait(lambda rows: any((row["method"], row["kind"]) == ("tools/list", "result") for row in rows))
        yield open_page(running.address, viewport={"width": 900, "height": 600}), client


def test_a_table_is_brought_up_to_date_in_place(guarded: tuple[Page, HttpClient]) -> None:
    page, client = guarded
    table = page.locator(".table")
    table.evaluate("each => { each.isSame = true; each.scrollLeft = 60; }")
    page.get_by_role("link", name="archive", exact=True).evaluate("each => getSelection().selectAllChildren(each)")
    client.call("search", query="sea", limit="five")
    expect(page.locator("td[data-title=Blocked]")).to_have_text("1")
    # A table that is made anew has none of these.
    assert table.evaluate("each => [each.isSame, each.scrollLeft]") == [True, 60]
    assert page.evaluate("getSelection().toString()") == "archive"


def test_a_click_during_an_update_is_not_lost(guarded: tuple[Page, HttpClient]) -> None:
    page, client = guarded
    stopped = page.locator("td[data-title=Blocked]")
    findings = page.locator(".tabs a[data-screen=findings] .count")
    before = findings.inner_text()
    page.clock.install()
    page.locator("td[data-title=Tools] a").hover()
    page.mouse.down()
    client.call("search", query="sea", limit="five")
    expect(findings).not_to_have_text(before)
    page.clock.run_for(3000)
    assert stopped.inner_text() == "0"
    page.mouse.up()
    expect(page.locator("main[data-screen=contracts]")).to_be_visible()
    page.go_back()
    expect(stopped).to_have_text("1")


def test_without_a_guard_the_page_shows_how_to_begin(browser: Browser, state: Path, tmp_path: Path) -> None:
    with console(state) as running, opening_pages(browser, running.base, REFUSALS) as open_page:
        page = open_page(running.address)
        expect(page.locator("main")).to_contain_text("No guard is running on this machine")
        expect(page.locator(".command")).to_have_count(3)
        expect(page.locator("main")).to_contain_text("One whose journal is off is not shown.")
        with served_library(state, "archive", program(tmp_path)):
            expect(page.locator("tbody tr")).to_contain_text("archive")
            expect(page.locator("tbody tr")).to_contain_text("running")
        expect(page.locator("tbody tr")).to_contain_text("ended")
        running.process.terminate()
        running.process.wait(SECONDS)
        expect(page.locator(".connection")).to_have_text(re.compile("Console ended|Reconnecting"))


# ── stream ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_request_and_its_answer_are_one_line(opened: Opened, scene: Scene) -> None:
    page = opened("#/stream?filter=server:library+tool:lend")
    expect(lines(page)).to_have_count(1)
    line = lines(page).first
    expect(line.locator(".cell-what")).to_have_text("tools/call lend")
    expect(line.locator(".cell-took")).to_have_text(re.compile("s$"))
    expect(line.locator(".cell-outcome")).to_have_text("✓ ok")
    assert line.locator(".fall").evaluate("each => each.offsetWidth") >= 3
    page.get_by_role("button", name="Fold").click()
    expect(lines(page)).to_have_count(2)
    expect(lines(page).nth(1)).to_contain_text("(result)")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("tool:lend", lambda row: row["tool"] == "lend"),
        ("method:tools/call server:archive", lambda row: row["method"] == "tools/call" and row["server"] == "archive"),
        ("verdict:blocked", lambda row: row["verdict"] in {"blocked", "would block"}),
        ("-verdict:ok", lambda row: row["verdict"] != "ok"),
        ("rule:output", lambda row: "contract/output" in row["rules"]),
        ("rule:contract tool:search", lambda row: row["tool"] == "search" and "contract" in str(row["rules"])),
        ('"tools/list"', lambda row: row["method"] == "tools/list"),
        ("id:3 dir:server", lambda row: "3" in str(row["id"]) and row["party"] == "server"),
        ("kind:notification", lambda row: row["kind"] == "notification"),
    ],
)  # fmt: skip
def test_filter_words(text: str, wanted: Any, shown: Opened, scene: Scene) -> None:
    names = {each["id"]: each["name"] for each in scene.console.get("api/state")["servers"]}
    rows = [{**row, "server": names[row["server"]]} for row in scene.console.rows()]
    exchanges: dict[int, list[dict[str, Any]]] = {}
    for row in rows:
        exchanges.setdefault(row["of"] or row["seq"], []).append(row)
    expected = sum(any(wanted(row) for row in each) for each in exchanges.values())
    page = shown("#/stream")
    choose(page, text)
    expect(page.locator("#filter-count")).to_contain_text(f"{expected} line{'' if expected == 1 else 's'} of")
    assert 0 < expected < len(exchanges)


def test_counts_views_and_pins(opened: Opened) -> None:
    page = opened("#/stream")
    chip = page.locator(".chip", has_text="blocked")
    count = int(chip.locator("b").inner_text())
    chip.click()
    expect(page.locator("#filter")).to_have_value("verdict:blocked")
    expect(lines(page)).to_have_count(count)
    page.get_by_role("button", name="Save view").click()
    choose(page, "")
    page.keyboard.press("Escape")
    page.keyboard.press("End")
    page.keyboard.press("m")
    expect(page.locator(".line.pinned")).to_have_count(1)
    page.reload()
    view = page.locator(".view", has_text="verdict:blocked")
    expect(view).to_contain_text(str(count))
    expect(page.get_by_title("Open the pinned message")).to_be_visible()
    view.get_by_role("button", name="verdict:blocked").first.click()
    expect(lines(page)).to_have_count(count)
    page.get_by_role("button", name="Remove the view verdict:blocked").click()
    expect(page.locator(".view")).to_have_count(0)


def test_new_messages_come_by_themselves_unless_paused(guarded: tuple[Page, HttpClient]) -> None:
    page, client = guarded
    show(page, "#/stream?filter=tool:lend+server:archive")
    client.call("lend", book=7, days=1)
    expect(lines(page)).to_have_count(1)
    page.keyboard.press("p")
    client.call("lend", book=9, days=1)
    expect(page.locator("#filter-count")).to_contain_text("paused: 1 new")
    expect(lines(page)).to_have_count(1)
    page.keyboard.press("p")
    expect(lines(page)).to_have_count(2)
    page.keyboard.press("f")
    expect(page.get_by_role("button", name="Follow")).to_have_attribute("aria-pressed", "false")


def test_a_list_that_becomes_smaller_still_follows(opened: Opened) -> None:
    page = opened("#/stream", viewport={"width": 1280, "height": 900})
    follow = page.get_by_role("button", name="Follow")
    last = lines(page).last.get_attribute("data-seq")
    for height in (420, 700, 380):
        page.set_viewport_size({"width": 1280, "height": height})
        expect(lines(page).locator(f"xpath=self::*[@data-seq='{last}']")).to_be_in_viewport()
        expect(follow).to_have_attribute("aria-pressed", "true")
    page.locator(".virtual").evaluate("each => { each.scrollTop = 0; }")
    expect(follow).to_have_attribute("aria-pressed", "false")


def test_everything_by_keyboard(opened: Opened, scene: Scene) -> None:
    page = opened(permissions=["clipboard-read", "clipboard-write"])
    for number, name in enumerate(SCREENS, 1):
        page.keyboard.press(str(number))
        expect(page.locator("main")).to_have_attribute("data-screen", name)
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("Keys and filter words")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("/")
    expect(page.locator("#filter")).to_be_focused()
    page.keyboard.type("server:library tool:search")
    page.keyboard.press("Enter")
    grid = page.get_by_role("grid", name="Messages")
    expect(grid).to_be_focused()
    page.keyboard.press("Home")
    page.keyboard.press("j")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("k")
    active = page.locator(".line[aria-selected=true]")
    expect(active).to_have_attribute("aria-rowindex", "3")
    expect(grid).to_have_attribute("aria-activedescendant", str(active.get_attribute("id")))
    page.keyboard.press("y")
    expect(page.locator("#toast")).to_contain_text("Copied the message")
    copied = json.loads(page.evaluate("navigator.clipboard.readText()"))
    assert copied["params"]["arguments"]["query"] == "river"
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("tools/call search")
    first = page.url
    page.keyboard.press("j")
    expect(page).not_to_have_url(first)
    page.keyboard.press("Escape")
    expect(page.locator("#filter")).to_have_value("server:library tool:search")
    page.keyboard.press("Escape")
    expect(page.locator("#filter")).to_have_value("")


# ── one message ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_message_shows_its_fault_with_the_rule(shown: Opened, scene: Scene) -> None:
    page = shown(f"#/message/{scene.seq('would block', 'library')}")
    expect(page.get_by_role("heading", level=1)).to_have_text("tools/call search")
    expect(page.locator(".frame .fault")).to_have_text('"five hundred"')
    found = page.locator("article.finding")
    expect(found.locator(".compare")).to_contain_text("an integer, at least 1, at most 50")
    expect(found.locator(".compare")).to_contain_text('the string "five hundred"')
    expect(found.locator(".rule")).to_contain_text("contract/input")
    expect(found.locator(".rule")).to_contain_text("inputSchema of search")
    expect(found.locator(".branch")).to_contain_text("maximum: 50")
    expect(page.locator(".banner")).to_contain_text("Enforce mode would answer with INVALID_TOOL_INPUT")
    expect(page.locator(".delivered")).to_have_text("Delivered as it was sent, byte for byte.")
    page.locator(".frame").get_by_role("button", name="Raw").click()
    expect(page.locator(".frame mark.fault")).to_have_text('"five hundred"')
    page.get_by_role("link", name="← result").click()
    expect(page.locator(".verdict-line")).to_contain_text("result from the server")


def test_a_stopped_message_shows_what_was_delivered_in_its_place(shown: Opened, scene: Scene) -> None:
    stopped = scene.seq("blocked", "archive", "result")
    page = shown(f"#/message/{stopped}")
    sides = page.locator(".sides .frame")
    expect(sides).to_have_count(2)
    expect(sides.nth(0).locator(".fault")).to_have_text('"1987"')
    expect(sides.nth(1)).to_contain_text("The receiver got an error in its place.")
    page.get_by_role("button", name="Copy as recording").click()
    expect(page.locator("#toast")).to_contain_text("Copied the recording")
    copied = page.evaluate("navigator.clipboard.readText()").splitlines()
    assert any("1987" in line for line in copied)
    page.get_by_role("link", name="→ request").click()
    page.get_by_role("button", name="Copy as curl").click()
    expect(page.locator("#toast")).to_contain_text("Copied the command")
    assert page.evaluate("navigator.clipboard.readText()").startswith("curl ")


def test_a_message_that_is_not_there_is_an_error_with_a_way_back(shown: Opened) -> None:
    page = shown("#/message/999999")
    expect(page.locator(".banner")).to_be_visible()
    page.get_by_role("link", name="Back to the stream").click()
    expect(page.locator("main")).to_have_attribute("data-screen", "stream")


# ── findings ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_findings_say_what_enforce_would_have_stopped(opened: Opened, scene: Scene) -> None:
    page = opened("#/findings")
    expect(page.locator(".lead-sentence")).to_contain_text("Enforce mode would have blocked 2 more messages.")
    expect(page.locator(".lead-sentence")).to_contain_text("2 messages were blocked.")
    group = page.locator(".finding-group").filter(has_text="contract/output").filter(has_text="library")
    expect(group.locator(".row-count")).to_have_text("× 1")
    group.locator("summary").click()
    expect(group.locator(".compare")).to_contain_text('the string "1987"')
    expect(group.locator(".rule")).to_contain_text("Requirement")
    scene.audited.call("search", query="lie")
    expect(group.locator(".row-count")).to_have_text("× 2")
    expect(group.locator(".samples a")).to_have_count(2)
    for by in ("Tool", "Place", "Server"):
        page.get_by_role("button", name=by, exact=True).click()
        expect(group.locator(".samples")).to_be_visible()
    group.get_by_role("link", name="Show in the stream").click()
    expect(lines(page)).to_have_count(2)


def test_an_exception_is_made_with_an_end_date(shown: Opened) -> None:
    page = shown("#/findings")
    group = page.locator(".finding-group").filter(has_text="contract/output").first
    group.locator("summary").click()
    group.get_by_role("button", name="Make an exception…").click()
    asked = page.get_by_role("dialog")
    asked.get_by_label("Reason").fill('fixed in "2.1"')
    asked.get_by_label("Last day, in UTC").fill("2099-12-31")
    asked.get_by_role("button", name="Make the exception").click()
    expect(asked.locator(".command")).to_contain_text('rule = "contract/output"')
    expect(asked.locator(".command")).to_contain_text('tool = "search"')
    expect(asked.locator(".command")).to_contain_text("until = 2099-12-31")


def test_findings_are_exported_as_sarif(shown: Opened) -> None:
    page = shown("#/findings")
    with page.expect_download() as download:
        page.get_by_role("button", name="Export as SARIF").click()
    sarif = json.loads(Path(download.value.path()).read_text(encoding="utf-8"))
    assert {each["ruleId"] for each in sarif["runs"][0]["results"]} >= {"contract/input", "contract/output"}


# ── contracts ────────────────────────────────────────────────────────────────────────────────────────────────────────


def number_of(scene: Scene, name: str) -> str:
    """Return the number of the first server with this name."""
    return next(str(each["id"]) for each in scene.console.get("api/state")["servers"] if each["name"] == name)


def entry_of(page: Page, at: int) -> Locator:
    """Return an entry of a list, open."""
    entry = page.locator("details.entry").nth(at)
    entry.evaluate("each => { each.open = true; }")
    return entry


def test_contracts_list_the_tools_with_their_state(shown: Opened, scene: Scene) -> None:
    page = shown(f"#/contracts?server={number_of(scene, 'archive')}")
    entries = page.locator("details.entry")
    expect(entries).to_have_count(3)
    expect(entries.nth(0)).to_contain_text("read-only")
    expect(entries.nth(2)).to_contain_text("quarantined")
    expect(entry_of(page, 2).locator(".banner")).to_contain_text("Quarantined")
    expect(page.locator(".lead-sentence")).to_contain_text("tokens in every conversation")


def test_an_open_entry_stays_as_it_is_when_the_server_lists_again(shown: Opened, scene: Scene) -> None:
    page = shown(f"#/contracts?server={number_of(scene, 'archive')}")
    message = page.get_by_role("link", name="show the message")

    def list_again() -> None:
        before = str(message.get_attribute("href"))
        scene.enforced.ask("tools/list")
        expect(message).not_to_have_attribute("href", before)

    # In the second list the entries are no longer new.
    list_again()
    entry = entry_of(page, 1)
    entry.evaluate("each => { each.dataset.mark = 'same'; each.querySelector('summary').focus(); }")
    list_again()
    same = page.locator("details.entry[data-mark=same][open]")
    expect(same.locator(".row-body")).to_be_visible()
    expect(same.locator("summary")).to_be_focused()


# ── sessions and performance ─────────────────────────────────────────────────────────────────────────────────────────


def test_sessions_lead_to_their_messages(shown: Opened) -> None:
    page = shown("#/sessions")
    row = page.locator("tbody tr").filter(has_text="library").filter(has_text="tester 7")
    expect(row).to_have_count(1)
    expect(row).to_contain_text("open")
    expect(row).to_contain_text("roots")
    row.get_by_role("link").first.click()
    expect(page.locator("#filter")).to_have_value("server:library")


def test_performance_has_percentiles_and_a_distribution(shown: Opened) -> None:
    page = shown("#/performance")
    row = page.locator("tbody tr").filter(has_text="tools/call search").filter(has_text="archive")
    for title in ("p50", "p95", "p99", "In the guard"):
        expect(row.locator(f"td[data-title='{title}']")).to_have_text(re.compile(r"^[\d.,]+ (µs|ms|s)$"))
    expect(row.locator("td[data-title=Errors]")).to_contain_text("1")
    row.get_by_role("button").click()
    expect(page.locator("figcaption")).to_contain_text("tools/call search of archive")
    expect(page.locator(".chart canvas")).to_be_visible()


# ── how it looks ─────────────────────────────────────────────────────────────────────────────────────────────────────


def visit_all(page: Page, scene: Scene) -> Iterator[str]:
    """Show every screen, and yield its name."""
    for name in SCREENS:
        place = f"#/message/{scene.seq('blocked', 'archive', 'result')}" if name == "message" else f"#/{name}"
        page.evaluate("each => { location.hash = each; }", place)
        expect(page.locator("main")).to_have_attribute("data-screen", name)
        expect(page.locator("main h1")).to_be_attached()
        yield name


def test_a_phone_needs_no_scrolling_to_the_side(opened: Opened, scene: Scene) -> None:
    page = opened(viewport={"width": 375, "height": 700})
    for name in visit_all(page, scene):
        page.locator("main :is(tbody tr, .line[data-seq], .frame, details.row)").first.wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") == 375, name
        expect(page.locator("nav [aria-current=page]")).to_be_in_viewport(ratio=0.95)


AXE = "options => axe.run(document, {resultTypes: ['violations'], ...options})"


def test_no_rule_of_accessibility_is_broken(scene: Scene, browser: Browser) -> None:
    script = HERE / "node_modules" / "axe-core" / "axe.min.js"
    if not script.is_file():
        pytest.skip("axe-core is not installed: `make test` does it where there is npm")
    serious = []
    # The policy of the page would not run the script of the test.
    with opening_pages(browser, scene.console.base, REFUSALS) as open_page:
        page = open_page(scene.console.address, color_scheme="light", bypass_csp=True)
        page.evaluate(script.read_text(encoding="utf-8"))
        for name in visit_all(page, scene):
            page.locator("main :is(tbody tr, .line[data-seq], .frame, details.row)").first.wait_for()
            found = page.evaluate(AXE, {})["violations"]
            page.emulate_media(color_scheme="dark")
            expect(page.locator("html")).to_have_attribute("data-theme", "dark")
            # Only colours differ in the dark.
            found += page.evaluate(AXE, {"runOnly": ["color-contrast"]})["violations"]
            page.emulate_media(color_scheme="light")
            expect(page.locator("html")).to_have_attribute("data-theme", "light")
            serious += [
                f"{name}: {each['id']}: {each['help']}: {node['html'][:200]}"
                for each in found
                if each["impact"] in {"serious", "critical", "moderate"}
                for node in each["nodes"]
            ]
    assert serious == []


def test_the_theme_is_switched_and_remembered(opened: Opened) -> None:
    page = opened(color_scheme="dark")
    colour = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(colour)
    page.get_by_role("button", name="Use light colours").click()
    assert page.evaluate(colour) != dark
    page.reload()
    page.wait_for_selector("body[data-ready]")
    assert page.evaluate(colour) != dark


def test_signing_out_ends_every_page_of_this_browser(opened: Opened, scene: Scene) -> None:
    page = opened("#/stream")
    other = page.context.new_page()
    other.goto(scene.console.base)
    expect(other.locator(".connection")).to_have_text("Live")
    page.get_by_role("button", name="Sign out").focus()
    page.keyboard.press("Enter")
    expect(page.locator("body")).to_contain_text("This console needs its token.")
    expect(other.get_by_role("heading", level=1)).to_have_text("Sign in")
    expect(other.locator("tbody tr")).to_have_count(0)
    page.goto(scene.console.address)
    expect(page.locator(".connection")).to_have_text("Live")


def test_no_script_but_its_own_runs_in_the_page(browser: Browser, scene: Scene) -> None:
    context = browser.new_context(locale="en-US")
    page = context.new_page()
    page.goto(scene.console.address)
    page.wait_for_selector("body[data-ready]")
    page.evaluate("""() => {
        const made = document.createElement('script');
        made.textContent = 'window.ran = 1';
        document.body.append(made);
        const holder = document.createElement('div');
        document.body.append(holder);
        holder.innerHTML = '<img src=x onerror="window.ran = 1">';
    }""")
    assert page.evaluate("new Promise((done) => setTimeout(() => done(window.ran ?? null), 50))") is None
    assert page.evaluate("fetch('http://127.0.0.1:9/').then(() => 'sent', (error) => error.name)") == "TypeError"
    context.close()


# ── the modules ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_words_of_a_filter_are_read(shown: Opened) -> None:
    script = "text => import('./assets/console_filter.js').then(({parseFilter}) => parseFilter(text))"
    found = shown().evaluate(script, '-Verdict:OK tool:"my tool" https://x "a b" -"c d" rule:')
    assert [(each["key"], each["value"], each["isNot"]) for each in found] == [
        ("verdict", "ok", True),
        ("tool", "my tool", False),
        ("", "https://x", False),
        ("", "a b", False),
        ("", "c d", True),
        ("", "rule:", False),
    ]


def test_a_difference_has_the_changed_lines(shown: Opened) -> None:
    page = shown()
    script = "both => import('./assets/text_diff.js').then(({diffLines}) => diffLines(...both))"
    found = page.evaluate(script, ['{"a":1,"b":[1,2],"c":3}', '{"a":1,"b":[2],"c":4}'])
    assert [(sign, line.strip(" ,")) for sign, line in found if sign != " "] == [
        *(("-", "1"), ("-", '"c": 3'), ("+", '"c": 4')),
    ]
    long = [json.dumps(list(range(first, first + 4000))) for first in (0, 1_000_000)]
    assert len(page.evaluate(script, long)) == 8002

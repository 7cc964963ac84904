"""The page of `assay console` in a real browser: a real console, real guards, real servers and clients."""

import json
import re
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from console_scene import HttpClient, library, message, program, served_library, show, usual_calls
from playwright.sync_api import Browser, Locator, Page, expect

from kit.browser import UNSEEN, Opened, Watched, accessibility_faults, opening_pages, strange_attributes, watched_page
from kit.consoles import SECONDS, RunningConsole, StdioGuard, console

REFUSALS = r"status of (401|404|409|410|503)|ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED_ENCODING"
"""What a browser logs by itself for an answer that is an error, or a console that ends or has ended."""

SCREENS = ("servers", "stream", "findings", "contracts", "sessions", "performance")

FILLED = "main :is(tbody tr, .line[data-seq], .frame, .finding)"
"""What a screen has as soon as it shows something."""


class Scene:
    """A console, and the same library behind a guard under audit and behind one under enforce."""

    def __init__(self, running: RunningConsole, audited: StdioGuard, enforced: HttpClient) -> None:
        self.console = running
        self.audited = audited
        self.enforced = enforced

    def rows(self) -> list[dict[str, Any]]:
        """Return all rows, each with the name of its server."""
        names = {each["id"]: each["name"] for each in self.console.get("api/state")["servers"]}
        return [{**row, "server": names[row["server"]]} for row in self.console.rows()]

    def seq(self, verdict: str, server: str, kind: str = "request") -> int:
        """Return the number of a message of a call."""
        wanted = (verdict, server, kind, "tools/call")
        return next(
            int(row["seq"])
            for row in self.rows()
            if (row["verdict"], row["server"], row["kind"], row["method"]) == wanted
        )

    def bad(self) -> None:
        """Make a call with a wrong argument."""
        self.enforced.call("search", query="sea", limit="five")


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
    """Opens a screen in a page of its own, for what a page looks like or remembers."""
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
def page(only_page: Watched) -> Iterator[Page]:
    """The page that most tests share; after each of them it must not have logged anything."""
    show(only_page.page, "#/servers")
    yield only_page.page
    only_page.check()


def lines(page: Page) -> Locator:
    return page.locator(".line[data-seq]:not([hidden])")


def until_shown(page: Page, selector: str, text: str) -> None:
    """Wait for *text*, which comes after a while: `expect` looks only twice a second then."""
    shown = (
        "([selector, text]) => [...document.querySelectorAll(selector)].some((each) => each.textContent.includes(text))"
    )
    page.wait_for_function(shown, arg=[selector, text])


def visit_all(page: Page, scene: Scene) -> Iterator[str]:
    """Show every screen until it has something, and yield its name."""
    for name in SCREENS:
        show(page, f"#/{name}")
        page.locator(FILLED).first.wait_for()
        yield name
    show(page, message(scene.seq("blocked", "archive", "result")))
    page.locator(".frame").first.wait_for()
    yield "message"


# ── every screen ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_screen_shows_what_the_console_knows_on_a_phone_as_well(page: Page, scene: Scene) -> None:
    main = page.locator("main")
    wanted: dict[str, list[str | re.Pattern[str]]] = {
        "servers": [
            "library", "archive", "running", "1 run, audit mode", "1 with blocked messages",
            "1 where enforce mode would block",
        ],
        "stream": ["tools/call lend", "✓ ok", "limit must be an integer"],
        "message": ['"1987"', "The receiver got an error in its place."],
        "findings": [re.compile(r"have blocked \d+ more messages\.\s+\d+ messages were blocked\."), "contract/output"],
        "contracts": ["would be quarantined", "query, limit?", "tokens in every conversation"],
        "sessions": ["tester 7", "roots", "open"],
        "performance": ["Tools", "search", "Start-up and lists"],
    }  # fmt: skip
    usual = page.viewport_size
    assert usual is not None
    for name in visit_all(page, scene):
        if name == "contracts":
            # It begins with the server in most trouble, which depends on the calls of other tests.
            page.get_by_label("Server").select_option(label="library")
        for text in wanted[name]:
            expect(main).to_contain_text(text)
        page.set_viewport_size({"width": 375, "height": 700})
        assert page.evaluate("document.documentElement.scrollWidth") == 375, name
        page.set_viewport_size(usual)
    show(page, "#/performance")
    # So few answers have a distribution only if it is asked for.
    page.get_by_role("button", name="search").first.click()
    expect(page.locator("canvas").first).to_be_visible()
    show(page, "#/servers")
    page.get_by_role("button", name="1 run").first.click()
    expect(page.locator(".runs")).to_contain_text(re.compile("stdio, audit|http, enforce"))
    page.evaluate("location.hash = '#/stream?message=999999'")
    expect(page.locator(".message-panel")).to_contain_text("There is no row 999999.")
    page.get_by_role("button", name="Close the message").click()
    expect(page.locator(".message-panel")).to_have_count(0)


def test_a_message_shows_its_fault_its_rule_and_what_was_delivered(page: Page, scene: Scene) -> None:
    show(page, message(scene.seq("would block", "library")))
    expect(page.locator(".frame .fault")).to_have_text('"five hundred"')
    found = page.locator("article.finding")
    for text in ("an integer from 1 to 50", 'the string "five hundred"', "contract/input", "maximum: 50"):
        expect(found).to_contain_text(text)
    expect(page.locator("main")).to_contain_text("Enforce mode would answer with INVALID_TOOL_INPUT")
    expect(page.locator("main")).to_contain_text("Delivered as it was sent, byte for byte.")
    page.get_by_role("button", name="← result").click()
    expect(page.locator("main")).to_contain_text("result from the server")
    show(page, message(scene.seq("blocked", "archive", "result")))
    expect(page.locator("main")).to_contain_text("The receiver got an error in its place.")
    expect(page.locator(".frame").first).to_contain_text('"1987"')
    page.get_by_role("button", name="Copy as recording").click()
    expect(page.locator("body")).to_contain_text("Copied the recording")
    assert "1987" in page.evaluate("navigator.clipboard.readText()")
    page.get_by_role("button", name="→ request").click()
    page.get_by_role("button", name="Copy as curl").click()
    expect(page.locator("body")).to_contain_text("Copied the command")
    assert page.evaluate("navigator.clipboard.readText()").startswith("curl ")


def test_a_finding_becomes_an_exception_or_sarif(page: Page) -> None:
    show(page, "#/findings")
    group = page.locator(".finding").filter(has_text="contract/output").first
    expect(group.locator(".fix")).to_be_visible()
    group.get_by_role("button", name="Make an exception…").click()
    asked = page.get_by_role("dialog")
    asked.get_by_label("Reason").fill('fixed in "2.1"')
    asked.get_by_label("Last day, in UTC").fill("2099-12-31")
    asked.get_by_role("button", name="Make the exception").click()
    for text in ('rule = "contract/output"', 'tool = "search"', "until = 2099-12-31"):
        expect(asked).to_contain_text(text)
    page.keyboard.press("Escape")
    expect(asked).to_have_count(0)
    with page.expect_download() as download:
        page.get_by_role("button", name="Export as SARIF").click()
    sarif = json.loads(Path(download.value.path()).read_text(encoding="utf-8"))
    assert {each["ruleId"] for each in sarif["runs"][0]["results"]} >= {"contract/input", "contract/output"}


# ── filter and keys ──────────────────────────────────────────────────────────────────────────────────────────────────

FILTERS: dict[str, Any] = {
    "tool:lend": lambda row: row["tool"] == "lend",
    "method:tools/call server:archive": lambda row: row["method"] == "tools/call" and row["server"] == "archive",
    'rule:contract tool:"search"': lambda row: row["tool"] == "search" and "contract" in str(row["rules"]),
}


def test_a_filter_is_kept_as_a_view_a_theme_is_remembered_and_signing_out_ends_every_page(
    opened: Opened, scene: Scene
) -> None:
    exchanges: dict[int, list[dict[str, Any]]] = {}
    for row in scene.rows():
        exchanges.setdefault(row["of"] or row["seq"], []).append(row)
    page = opened("#/stream?all=1", color_scheme="dark")
    for text, wanted in FILTERS.items():
        expected = sum(any(wanted(row) for row in each) for each in exchanges.values())
        assert 0 < expected < len(exchanges), text
        page.locator("#filter").fill(text)
        until_shown(page, "#filter-count", f"{expected} line{'' if expected == 1 else 's'} of")
    page.locator("#filter").fill("tool:lend server:library")
    expect(lines(page)).to_have_count(1)
    # People who do not see the list hear how many there are.
    expect(page.locator("output.said")).to_have_text(re.compile("^1 line of"))
    page.get_by_role("button", name="Fold").click()
    expect(lines(page)).to_have_count(2)
    page.get_by_role("button", name="Save view").click()
    page.locator("#filter").fill("")
    colour = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(colour)
    page.get_by_role("button", name="Use light colours").click()
    page.reload()
    page.wait_for_selector("body[data-ready]")
    assert page.evaluate(colour) != dark
    page.get_by_role("button", name="tool:lend server:library").first.click()
    expect(page.locator("#filter")).to_have_value("tool:lend server:library")
    other = page.context.new_page()
    other.goto(scene.console.base)
    expect(other.locator("tbody tr").first).to_be_visible()
    page.get_by_role("button", name="Sign out").focus()
    page.keyboard.press("Enter")
    expect(page.locator("body")).to_contain_text("This console needs its token.")
    until_shown(other, "h1", "Sign in")
    expect(other.locator("tbody tr")).to_have_count(0)


def test_everything_is_done_by_keyboard(page: Page) -> None:
    for number, name in enumerate(SCREENS, 1):
        page.keyboard.press(str(number))
        expect(page.locator("main")).to_have_attribute("data-screen", name)
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("Keys and filter words")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("2")
    grid = page.get_by_role("grid", name="Messages")
    grid.focus()
    page.keyboard.press("End")
    active = page.locator("[aria-selected=true]")
    expect(active).to_have_count(1)
    page.keyboard.press("/")
    expect(page.locator("#filter")).to_be_focused()
    page.keyboard.type("server:library tool:search")
    page.keyboard.press("Enter")
    expect(grid).to_be_focused()
    for key in ("Home", "j", "ArrowDown", "k"):
        page.keyboard.press(key)
    expect(active).to_have_attribute("aria-rowindex", "3")
    expect(grid).to_have_attribute("aria-activedescendant", str(active.get_attribute("id")))
    page.keyboard.press("y")
    expect(page.locator("body")).to_contain_text("Copied the message")
    assert json.loads(page.evaluate("navigator.clipboard.readText()"))["params"]["arguments"]["query"] == "river"
    page.keyboard.press("Enter")
    expect(page.locator(".message-panel h2")).to_have_text("tools/call search")
    expect(page.locator(".message-panel h2")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator(".message-panel")).to_have_count(0)
    expect(grid).to_be_focused()
    expect(page.locator("#filter")).to_have_value("server:library tool:search")
    page.keyboard.press("Escape")
    expect(page.locator("#filter")).to_have_value("")


# ── while traffic goes on ────────────────────────────────────────────────────────────────────────────────────────────


def test_guards_and_messages_come_by_themselves(browser: Browser, state: Path, tmp_path: Path) -> None:
    with console(state) as running, opening_pages(browser, running.base, REFUSALS) as open_page:
        page = open_page(running.address)
        expect(page.locator("main")).to_contain_text("No server is behind a guard yet.")
        with served_library(state, "archive", program(tmp_path)) as client:
            expect(page.locator("tbody tr")).to_contain_text("archive")
            expect(page.locator("tbody tr")).to_contain_text("running")
            show(page, "#/stream?filter=tool:lend+server:archive")
            client.call("lend", book=7, days=1)
            expect(lines(page)).to_have_count(1)
            page.keyboard.press("p")
            client.call("lend", book=9, days=1)
            until_shown(page, "#filter-count", "paused: 1 new")
            expect(lines(page)).to_have_count(1)
            page.keyboard.press("p")
            expect(lines(page)).to_have_count(2)
            for number in range(110):
                client.call("lend", book=number)
            # A long list has only the lines that are seen.
            until_shown(page, "#filter-count", "112 lines of")
            assert page.locator(".line").count() < 100
            show(page, "#/servers")
        until_shown(page, "tbody tr", "ended")
        running.process.terminate()
        running.process.wait(SECONDS)
        expect(page.locator("body")).to_contain_text(re.compile("Console ended|Reconnecting"))


def test_what_a_person_does_is_not_disturbed_by_what_comes(page: Page, scene: Scene) -> None:
    counted = page.locator(".tabs a[data-screen=findings] .count")

    def comes() -> None:
        """Let a finding come, and wait until the head of the page has it: it changes whatever is pressed."""
        before = counted.inner_text()
        scene.bad()
        expect(counted).not_to_have_text(before)

    # A selection, and the release of a press on what was pressed.
    archive = page.get_by_role("link", name="archive", exact=True)
    archive.evaluate("each => getSelection().selectAllChildren(each)")
    comes()
    assert page.evaluate("getSelection().toString()") == "archive"
    page.locator("td[data-title=Tools] a").first.hover()
    page.mouse.down()
    comes()
    page.mouse.up()
    expect(page.locator("main")).to_have_attribute("data-screen", "contracts")

    # An entry that is read, when the server lists again.
    number = next(each["id"] for each in scene.console.get("api/state")["servers"] if each["name"] == "archive")
    show(page, f"#/contracts?server={number}")
    link, entry = page.get_by_role("link", name="show the message"), page.get_by_role("button", name="lend")
    entry.click()
    for _ in range(2):
        before = str(link.get_attribute("href"))
        scene.enforced.ask("tools/list")
        until_shown(page, f"a:not([href='{before}'])", "show the message")
    expect(entry).to_be_focused()
    expect(entry).to_have_attribute("aria-expanded", "true")
    expect(page.locator(".entry .tree")).to_be_visible()
    page.get_by_role("button", name="broken").click()
    expect(page.locator(".entry .tree .fault")).to_have_text('"string"')
    expect(page.locator(".entry .fix").first).to_be_visible()

    # A finding whose rule is open.
    show(page, "#/findings")
    card = page.get_by_role("region", name="Findings of archive")
    group = card.locator(".finding").filter(has_text="contract/input").filter(has_text="/params/arguments/limit")
    group.locator("summary").focus()
    page.keyboard.press("Enter")
    count = group.locator("b").first.inner_text()
    comes()
    expect(group.locator("b").first).not_to_have_text(count)
    expect(group.locator("details")).to_have_attribute("open", "")
    expect(group.locator("summary")).to_be_focused()

    # The line that is pressed in a list that moves.
    show(page, "#/stream?all=1")
    exchanges = {row["of"] or row["seq"] for row in scene.rows()}
    expect(page.locator("#filter-count")).to_contain_text(f"{len(exchanges)} lines")
    # The list scrolls to it, and may then have others behind it.
    lines(page).last.hover()
    pressed = page.locator("[data-seq]:hover").get_attribute("data-seq")
    page.mouse.down()
    comes()
    page.mouse.up()
    shown = page.locator(".message-panel[data-seq]")
    answer = next((row["seq"] for row in scene.rows() if row["of"] == int(str(pressed)) != row["seq"]), pressed)
    expect(shown).to_have_attribute("data-seq", re.compile(f"^({pressed}|{answer})$"))


LIVE_REGIONS = """() => {
    window.said = [];
    const selector = 'output, [role=status], [role=alert], [aria-live]';
    const regionOf = (node) => (node instanceof Element ? node : node.parentElement)?.closest(selector);
    new MutationObserver((all) => {
        for (const { target } of all) {
            const region = regionOf(target);
            if (region && region.ariaLive !== 'off') window.said.push(region.textContent);
        }
    }).observe(document.body, { subtree: true, childList: true, characterData: true });
}"""


def test_no_rule_of_accessibility_is_broken_and_a_screen_reader_hears_nothing_of_mere_traffic(
    opened: Opened, scene: Scene
) -> None:
    # The policy of the page would not run the script of the test.
    page = opened(color_scheme="light", bypass_csp=True)
    counted = page.locator(".tabs a[data-screen=findings] .count")
    page.evaluate(LIVE_REGIONS)
    for name in visit_all(page, scene):
        assert accessibility_faults(page, name) == []
        if name == "stream":
            expect(page.locator(".said")).not_to_be_empty()
        page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        page.evaluate("window.said.length = 0")
        before = counted.inner_text()
        scene.bad()
        expect(counted).not_to_have_text(before)
        assert page.evaluate("window.said") == [], name


# ── who may look ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_no_script_but_its_own_runs_in_the_page(browser: Browser, scene: Scene) -> None:
    context = browser.new_context(locale="en-US")
    page = context.new_page()
    page.goto(scene.console.address)
    page.wait_for_selector("body[data-ready]")
    refused = page.evaluate("""() => new Promise((done) => {
        const found = [];
        document.addEventListener('securitypolicyviolation', (event) => {
            found.push(event.effectiveDirective);
            if (found.length === 2) done(found.sort());
        });
        const made = document.createElement('script');
        made.textContent = 'window.ran = 1';
        document.body.append(made);
        const holder = document.createElement('div');
        document.body.append(holder);
        holder.innerHTML = '<img src="data:," onerror="window.ran = 1">';
    })""")
    assert refused == ["script-src-attr", "script-src-elem"]
    assert page.evaluate("window.ran ?? null") is None
    assert page.evaluate("fetch('http://127.0.0.1:9/').then(() => 'sent', (error) => error.name)") == "TypeError"
    context.close()


# ── what peers send ──────────────────────────────────────────────────────────────────────────────────────────────────

HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(2)></textarea></title>{{constructor.constructor('alert(3)')()}}"
    "<b style=color:red>x</b>\x1b[31mred\x07\x00abc\u202edef\u2066ghi\u200f\u200b javascript:alert(4) \"' & ${alert(5)}"
)

ELEMENTS = """['script', 'img, iframe, b[style], base, object, embed', 'title'].map(
    (each) => document.querySelectorAll(each).length)"""


def hostile_tools() -> list[dict[str, Any]]:
    """Tools with hostile text in every member, and one that is quarantined."""
    schema = {
        "type": "object",
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "properties": {"query": {"type": "string", "description": HOSTILE}, HOSTILE: {"enum": [HOSTILE]}},
        "required": [HOSTILE],
    }
    texts = {"name": HOSTILE, "title": HOSTILE, "description": HOSTILE}
    tool = {**texts, "inputSchema": schema, "annotations": {"title": HOSTILE}}
    return [tool, {"name": f"broken {HOSTILE}", "inputSchema": {"type": HOSTILE}}]


def test_hostile_text_stays_text_on_every_screen(browser: Browser, state: Path, tmp_path: Path) -> None:
    command = program(tmp_path, hostile_tools(), HOSTILE)
    with (
        console(state) as running,
        library(state, "hostile <b>x</b>", command, "--mode", "audit") as guard,
        opening_pages(browser, running.base) as open_page,
    ):
        hello = {"name": HOSTILE, "version": HOSTILE, "title": HOSTILE}
        guard.ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": {HOSTILE: {}}, "clientInfo": hello})
        guard.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        guard.ask("tools/list")
        guard.call(HOSTILE, **{"query": 7, HOSTILE: HOSTILE})
        guard.ask(HOSTILE, {HOSTILE: HOSTILE})
        guard.send({"jsonrpc": "2.0", "id": HOSTILE, "method": "ping", "params": {HOSTILE: HOSTILE}})
        rows = running.wait(lambda found: any("alert(1)" in str(row["id"]) for row in found))
        page = open_page(running.address)
        expect(page.locator("tbody tr")).to_have_count(1)
        before = page.evaluate(ELEMENTS)

        def check() -> None:
            """Nothing of what peers wrote became an element, an attribute with code, or an invisible character."""
            assert page.evaluate(ELEMENTS) == before
            assert UNSEEN.search(page.evaluate("document.body.innerText")) is None
            assert strange_attributes(page) == []
            assert set(page.evaluate("[...document.querySelectorAll('a')].map(e => e.protocol)")) <= {"http:"}

        places = [*(f"#/{name}" for name in SCREENS), *(message(row["seq"]) for row in rows)]
        for place in places:
            show(page, place)
            page.locator(FILLED).first.wait_for()
            page.locator("main :is(details > summary, [aria-expanded=false])").evaluate_all(
                "all => all.forEach(each => each.click())"
            )
            if place == "#/contracts":
                expect(page.locator("main")).to_contain_text("U+202E")
            check()
        show(page, "#/stream")
        page.locator("#filter").fill(HOSTILE.replace("\x00", ""))
        page.get_by_role("button", name="Save view").click()
        expect(page.locator(".view")).to_have_count(1)
        check()

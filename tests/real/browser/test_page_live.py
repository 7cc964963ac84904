"""The page of `assay console` while traffic goes on: what a person does with it is not disturbed by what comes."""

import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from console_scene import TOOLS, HttpClient, library, program, served_library, show
from playwright.sync_api import Browser, Locator, Page, expect

from kit.browser import Opened, opening_pages
from kit.consoles import RunningConsole, StdioGuard, console

SLOW_SERVER = """# warm start
import json, sys
held = []
TOOLS = [{"name": name, "inputSchema": {"type": "object"}} for name in ("wait", "release")]
def say(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    params = message.get("params") or {}
    result = {"content": []}
    if message["method"] == "initialize":
        result = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
                  "serverInfo": {"name": "slow", "version": "1"}}
    elif message["method"] == "tools/list":
        result = {"tools": TOOLS}
    elif params["name"] == "wait":
        held.append(message["id"])
        continue
    else:
        say({"id": held.pop(0), "result": result})
    say({"id": message["id"], "result": result})
"""


class SlowLibrary:
    """A client of a server that answers a call of `wait` when `release` is called, the oldest first."""

    def __init__(self, guard: StdioGuard) -> None:
        self._guard = guard
        self._number = 1000

    def wait(self, **arguments: Any) -> None:
        """Begin a call."""
        self._send("wait", arguments)

    def release(self) -> None:
        """Let the oldest call be answered."""
        self._send("release", {})
        assert self._guard.process.stdout is not None
        for _ in range(2):
            self._guard.process.stdout.readline()

    def _send(self, tool: str, arguments: dict[str, Any]) -> None:
        self._number += 1
        params = {"name": tool, "arguments": arguments}
        self._guard.send({"jsonrpc": "2.0", "id": self._number, "method": "tools/call", "params": params})


class Live:
    """A console, a library behind a guard over HTTP, and a page that shows them."""

    def __init__(self, stack: ExitStack, browser: Browser, state: Path, folder: Path) -> None:
        self._stack, self._state, self._folder = stack, state, folder
        self.console: RunningConsole = stack.enter_context(console(state))
        self.client: HttpClient = stack.enter_context(
            served_library(state, "archive", program(folder, TOOLS[:2]), "--mode", "audit")
        )
        self._open: Opened = stack.enter_context(opening_pages(browser, self.console.base))
        self.console.wait(lambda rows: any(row["method"] == "tools/list" for row in rows))

    def page(self, fragment: str, **options: Any) -> Page:
        """Open a screen."""
        page = self._open(self.console.address, **{"viewport": {"width": 1000, "height": 600}, **options})
        show(page, fragment)
        return page

    def good(self) -> None:
        """Make a call without a fault."""
        self.client.call("lend", book=7)

    def bad(self) -> None:
        """Make a call with a wrong argument."""
        self.client.call("search", query="sea", limit="five")

    def slow(self) -> SlowLibrary:
        """Start a guard in front of a server that answers when it is told to."""
        path = self._folder / "slow_server.py"
        path.write_text(SLOW_SERVER, encoding="utf-8")
        guard = self._stack.enter_context(library(self._state, "slow", [sys.executable, str(path)]))
        guard.open()
        return SlowLibrary(guard)

    def other(self, name: str) -> StdioGuard:
        """Start another guard; its client has said nothing yet."""
        return self._stack.enter_context(library(self._state, name, program(self._folder)))

    def seq(self, tool: str) -> int:
        """Return the number of the first call of a tool, once it has come."""
        rows = self.console.wait(lambda rows: any(row["tool"] == tool for row in rows))
        return next(int(row["seq"]) for row in rows if row["tool"] == tool)


@pytest.fixture
def live(browser: Browser, state: Path, tmp_path: Path) -> Iterator[Live]:
    with ExitStack() as stack:
        yield Live(stack, browser, state, tmp_path)


def line_of(page: Page, seq: int | str | None) -> Locator:
    return page.locator(f".line[data-seq='{seq}']:not([hidden])")


def place_of(found: Locator) -> Any:
    """Return where an element is when the page has drawn what it knows."""
    found.page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    return found.bounding_box()


def told(page: Page, count: int) -> None:
    """Wait until the head of the page has so many findings: it is updated whatever is pressed."""
    expect(page.locator(".tabs a[data-screen=findings] .count")).to_have_text(str(count))


# ── the stream ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_press_opens_the_line_that_was_pressed_although_the_list_moves(live: Live) -> None:
    for _ in range(20):
        live.good()
    page = live.page("#/stream", viewport={"width": 1000, "height": 420})
    expect(page.locator("#filter-count")).to_contain_text("23 lines")
    last = page.locator(".line[data-seq]:not([hidden])").last
    expect(last.locator(".cell-what")).to_have_text("tools/call lend")
    pressed = last.get_attribute("data-seq")
    line_of(page, pressed).hover()
    page.mouse.down()
    live.bad()
    told(page, 1)
    expect(page.locator(".line[data-seq]:not([hidden])").last).to_contain_text("search")
    page.mouse.up()
    expect(page).to_have_url(re.compile(rf"#/message/{pressed}$"))


def test_chips_keep_their_place_their_focus_and_their_click(live: Live) -> None:
    live.good()
    page = live.page("#/stream")
    ok = page.locator(".chip", has_text="✓ ok")
    ok.focus()
    ok.evaluate("each => { each.isSame = true; }")
    for count in range(1, 8):
        live.bad()
        told(page, count)
    passed = page.locator(".chip", has_text="✗ blocked")
    expect(passed.locator("b")).to_have_text("7")
    expect(ok).to_be_focused()
    assert ok.evaluate("each => each.isSame")
    passed.hover()
    page.mouse.down()
    live.bad()
    expect(passed.locator("b")).to_have_text("8")
    page.mouse.up()
    expect(page.locator("#filter")).to_have_value("verdict:blocked")


def test_a_saved_view_keeps_its_focus_while_its_count_grows(live: Live) -> None:
    page = live.page("#/stream?filter=tool:lend")
    page.get_by_role("button", name="Save view").click()
    view = page.locator(".view .chip").first
    expect(view.locator("b")).to_have_text("0")
    page.get_by_role("button", name="Remove the view tool:lend").focus()
    live.good()
    expect(view.locator("b")).to_have_text("1")
    expect(page.get_by_role("button", name="Remove the view tool:lend")).to_be_focused()


def test_the_active_line_and_the_place_stay_when_lines_leave_the_filter(live: Live) -> None:
    slow = live.slow()
    for number in range(30):
        slow.wait(number=number)
    page = live.page("#/stream?filter=status:open", viewport={"width": 1000, "height": 420})
    expect(page.locator("#filter-count")).to_contain_text("30 lines of")
    page.keyboard.press("End")
    for _ in range(12):
        page.keyboard.press("k")
    active = page.locator(".line[aria-selected=true]")
    expect(active).to_have_attribute("aria-rowindex", "19")
    seq = str(active.get_attribute("data-seq"))
    expect(page.get_by_role("button", name="Follow")).to_have_attribute("aria-pressed", "false")
    before = place_of(line_of(page, seq))
    for _ in range(3):
        slow.release()
    expect(page.locator("#filter-count")).to_contain_text("27 lines of")
    expect(active).to_have_attribute("data-seq", seq)
    assert place_of(line_of(page, seq)) == before
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(rf"#/message/{seq}$"))


def test_text_that_is_selected_in_the_stream_stays(live: Live) -> None:
    for _ in range(20):
        live.good()
    page = live.page("#/stream", viewport={"width": 1000, "height": 420})
    expect(page.locator("#filter-count")).to_contain_text("23 lines")
    cell = page.locator(".line[data-seq]:not([hidden])").last.locator(".cell-when")
    # It waits until the line stands still.
    cell.hover()
    place = place_of(cell)
    middle = place["y"] + place["height"] / 2
    page.mouse.move(place["x"] + 1, middle)
    page.mouse.down()
    page.mouse.move(place["x"] + 60, middle, steps=4)
    page.mouse.up()
    selected = page.evaluate("getSelection().toString()")
    assert selected
    # The end of a selection is no click on the line, and the list does not go on below it.
    expect(page.get_by_role("button", name="Follow")).to_have_attribute("aria-pressed", "false")
    live.bad()
    expect(page.locator(".chip", has_text="✗ blocked")).to_be_visible()
    assert page.evaluate("getSelection().toString()") == selected
    expect(page).to_have_url(re.compile("#/stream$"))


def test_a_turn_of_the_wheel_ends_following_at_once(live: Live) -> None:
    for _ in range(20):
        live.good()
    page = live.page("#/stream", viewport={"width": 1000, "height": 420})
    expect(page.locator("#filter-count")).to_contain_text("23 lines")
    grid = page.get_by_role("grid", name="Messages")
    # The list is scrolled after the event: messages that come in between must not scroll it back.
    grid.evaluate("each => each.dispatchEvent(new WheelEvent('wheel', { deltaY: -10 }))")
    assert page.get_by_role("button", name="Follow").get_attribute("aria-pressed") == "false"


def test_a_guard_that_starts_is_found_by_a_filter_for_its_name(live: Live) -> None:
    page = live.page("#/stream?filter=server:newcomer")
    expect(page.locator("#filter-count")).to_contain_text("0 lines of")
    guard = live.other("newcomer")
    guard.open()
    guard.call("lend", book=1)
    live.seq("lend")
    told_rows = sum(row["kind"] in {"request", "notification"} for row in live.console.rows() if row["server"] == 2)
    expect(page.locator("#filter-count")).to_contain_text(f"{told_rows} lines of")


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


@pytest.mark.parametrize("screen", ["servers", "stream", "findings", "contracts", "sessions", "performance"])
def test_a_screen_reader_hears_nothing_of_mere_traffic(screen: str, live: Live) -> None:
    live.bad()
    page = live.page(f"#/{screen}")
    told(page, 1)
    expect(page.locator(".connection")).to_have_text("Live")
    if screen == "stream":
        expect(page.locator("#filter-count")).to_contain_text("lines")
        expect(page.locator(".said")).not_to_be_empty()
    page.evaluate(LIVE_REGIONS)
    for count in (2, 3):
        live.bad()
        live.good()
        told(page, count)
    if screen == "stream":
        expect(page.locator(".chip", has_text="✗ blocked").locator("b")).to_have_text("3")
    assert page.evaluate("window.said") == []


def test_a_screen_reader_hears_what_a_filter_has_found(live: Live) -> None:
    live.good()
    page = live.page("#/stream")
    page.locator("#filter").fill("tool:lend")
    expect(page.locator("output.said")).to_have_text(re.compile("^1 line of"))


# ── a message ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_message_that_is_read_stays_as_it_is_when_its_answer_comes(live: Live) -> None:
    slow = live.slow()
    slow.wait(words=[f"word {number}" for number in range(80)])
    page = live.page(f"#/message/{live.seq('wait')}", viewport={"width": 1000, "height": 400})
    record = page.locator("details.record")
    record.locator("summary").click()
    record.locator("summary").focus()
    page.evaluate("document.scrollingElement.scrollTop = 200")
    page.locator("h1").evaluate("each => getSelection().selectAllChildren(each)")
    slow.release()
    expect(page.get_by_role("link", name="← result")).to_be_attached()
    expect(record).to_have_attribute("open", "")
    expect(record.locator("summary")).to_be_focused()
    assert page.evaluate("document.scrollingElement.scrollTop") > 150
    assert page.evaluate("getSelection().toString()") == "tools/call wait"


def test_a_message_that_was_answered_meanwhile_has_its_answer_when_it_is_opened_again(live: Live) -> None:
    slow = live.slow()
    slow.wait()
    page = live.page(f"#/message/{live.seq('wait')}")
    expect(page.locator("h1")).to_have_text("tools/call wait")
    page.keyboard.press("2")
    slow.release()
    expect(page.locator(".line", has_text="release")).to_be_visible()
    page.keyboard.press("3")
    expect(page.get_by_role("link", name="← result")).to_be_visible()


# ── findings ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_group_of_findings_keeps_what_somebody_does_with_it(live: Live) -> None:
    live.bad()
    page = live.page("#/findings")
    group = page.locator(".finding-group").filter(has_text="contract/input")
    count = group.locator(".row-count")
    group.locator("summary").click()
    sample = group.locator(f".samples a[href='{group.locator('.samples a').get_attribute('href')}']")
    sample.focus()
    group.locator(".row-sentence code").evaluate("each => getSelection().selectAllChildren(each)")
    live.bad()
    expect(count).to_have_text("× 2")
    expect(group.locator(".samples a")).to_have_count(2)
    expect(sample).to_be_focused()
    assert page.evaluate("getSelection().toString()") == "/params/arguments/limit"
    # The press takes the focus away from where it was, and the release closes the group.
    group.locator("summary .row-sentence").hover()
    page.mouse.down()
    live.bad()
    told(page, 3)
    page.mouse.up()
    expect(group).not_to_have_attribute("open", "")
    expect(count).to_have_text("× 3")


def test_an_open_group_shows_what_was_found_the_last_time(live: Live) -> None:
    live.bad()
    page = live.page("#/findings")
    group = page.locator(".finding-group").filter(has_text="contract/input")
    group.locator("summary").click()
    expect(group.locator(".compare")).to_contain_text('"five"')
    live.client.call("search", query="sea", limit="seven")
    expect(group.locator(".compare")).to_contain_text('"seven"')


def test_groups_do_not_move_under_the_pointer(live: Live) -> None:
    live.bad()
    page = live.page("#/findings")
    first = page.locator(".finding-group").first
    expect(first).to_contain_text("contract/input")
    first.locator("summary").hover()
    before = place_of(first)
    for _ in range(3):
        live.client.call("search", query="lie")
    expect(page.locator(".lead-sentence")).to_contain_text("4 findings")
    expect(first).to_contain_text("contract/input")
    assert place_of(first) == before
    # Without the pointer, the most frequent ones come first.
    page.mouse.move(5, 5)
    expect(first).to_contain_text("contract/output")


# ── contracts ────────────────────────────────────────────────────────────────────────────────────────────────────────


def list_again(live: Live, message: Locator) -> None:
    """Let the client ask for the tools, and wait until the link *message* names the new list."""
    before = str(message.get_attribute("href"))
    live.client.ask("tools/list")
    expect(message).not_to_have_attribute("href", before)


def test_what_is_selected_in_an_entry_stays_when_the_server_lists_again(live: Live) -> None:
    page = live.page("#/contracts")
    message = page.get_by_role("link", name="show the message")
    entry = page.locator("details.entry").first
    # In the second list the tools are no longer new.
    list_again(live, message)
    entry.locator("summary").click()
    message.focus()
    entry.locator(".tree").evaluate(
        """each => {
            each.style.setProperty('max-height', '50px');
            each.scrollTop = 30;
            getSelection().selectAllChildren(each);
        }"""
    )
    selected = page.evaluate("getSelection().toString()")
    list_again(live, message)
    expect(message).to_be_focused()
    assert page.evaluate("getSelection().toString()") == selected
    assert entry.locator(".tree").evaluate("each => each.scrollTop") == 30


def test_the_server_that_is_read_is_not_changed_for_another(browser: Browser, state: Path, tmp_path: Path) -> None:
    with (
        console(state) as running,
        library(state, "early", program(tmp_path)) as early,
        opening_pages(browser, running.base) as open_page,
    ):
        # It comes first among the servers, and lists its tools last.
        running.wait_for("api/state", lambda found: len(found["servers"]) == 1)
        with served_library(state, "archive", program(tmp_path)):
            running.wait(lambda rows: any((row["method"], row["kind"]) == ("tools/list", "result") for row in rows))
            page = open_page(running.address)
            show(page, "#/contracts")
            lead = page.locator(".lead-sentence strong")
            expect(lead).to_have_text("archive")
            early.open()
            running.wait_for("api/contracts", lambda found: all(each["lists"] for each in found["contracts"]))
            show(page, "#/servers")
            show(page, "#/contracts")
            expect(page.get_by_label("Server", exact=True).locator("option")).to_have_count(2)
            expect(lead).to_have_text("archive")


def test_the_focus_has_a_place_when_what_opened_a_dialog_is_gone(live: Live) -> None:
    live.bad()
    page = live.page("#/findings")
    group = page.locator("details.finding-group").first
    group.locator("summary").click()
    group.get_by_role("button", name="Make an exception…").click()
    form = page.get_by_role("dialog")
    expect(form).to_be_visible()
    group.evaluate("each => { each.remove(); }")
    page.keyboard.press("Escape")
    expect(form).to_have_count(0)
    expect(page.get_by_role("heading", level=1)).to_be_focused()


# ── tables ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_sessions_do_not_move_under_the_pointer(live: Live) -> None:
    other = HttpClient(live.client.url)
    with other.http:
        other.open()
        page = live.page("#/sessions")
        rows = page.locator("tbody tr")
        expect(rows).to_have_count(2)
        first = rows.nth(0)
        key = str(first.get_attribute("data-key"))
        first.get_by_role("link").first.hover()
        for client in (live.client, other, live.client):
            before = rows.locator("td[data-title=Messages]").all_inner_texts()
            client.call("lend", book=1)
            expect(rows.locator("td[data-title=Messages]")).not_to_have_text(before)
            assert first.get_attribute("data-key") == key
    third = HttpClient(live.client.url)
    with third.http:
        third.open()
        expect(rows).to_have_count(3)
        expect(first).to_have_attribute("data-key", key)
        page.mouse.move(5, 5)
        expect(first).not_to_have_attribute("data-key", key)


def test_bars_of_the_performance_are_brought_up_to_date(live: Live) -> None:
    live.good()
    page = live.page("#/performance")
    row = page.locator("tbody tr").filter(has_text="tools/call lend")
    bar = row.locator(".share").first
    bar.evaluate("each => { each.isSame = true; each.style.setProperty('width', '0.01%'); }")
    live.good()
    # The policy of the page forbids styles in attributes: what was forbidden is in its log.
    expect(row.locator("td[data-title=Answers]")).to_have_text("2")
    assert bar.evaluate("each => [each.isSame, each.style.width !== '0.01%']") == [True, True]


def test_the_chart_is_not_made_anew(live: Live) -> None:
    live.good()
    page = live.page("#/performance")
    page.locator("tbody button", has_text="tools/call lend").click()
    caption = page.locator("figcaption")
    expect(caption).to_contain_text("1 answer")
    page.locator(".chart").evaluate("each => { each.isSame = true; }")
    live.good()
    expect(caption).to_contain_text("2 answers")
    assert page.locator(".chart").evaluate("each => each.isSame")
    expect(page.locator(".chart canvas")).to_have_count(1)


@pytest.mark.parametrize("screen", ["servers", "sessions", "findings"])
def test_the_age_of_the_last_message_grows_without_traffic(screen: str, live: Live) -> None:
    live.bad()
    page = live.page("#/message")
    page.clock.install()
    show(page, f"#/{screen}")
    main = page.locator(f"main[data-screen={screen}]")
    expect(main).to_contain_text(re.compile(r"now|s ago"))
    page.clock.run_for(20 * 60 * 1000)
    expect(main).to_contain_text("20 min ago")


def test_a_press_that_opens_a_menu_does_not_stop_the_updates(live: Live) -> None:
    page = live.page("#/servers")
    findings = page.locator("td[data-title=Findings]")
    expect(findings).to_have_text("0")
    findings.hover()
    # A menu of the browser keeps the release for itself.
    page.mouse.down(button="right")
    live.bad()
    expect(findings).to_have_text("1")


MANY_SESSIONS = """async () => {
    const { SessionsScreen } = await import('./assets/console_sessions.js');
    const { ConsoleStore } = await import('./assets/console_store.js');
    const store = new ConsoleStore();
    const screen = new SessionsScreen(store);
    screen.isShown = true;
    for (let id = 1; id <= 1500; id += 1)
        store.tell('board:sessions', { sessions: [{ id, first: 0, last: id }] });
    screen.isShown = false;
    store.tell('board:sessions', { sessions: [{ id: 2000, first: 0, last: 2000 }] });
    return [screen.sessions.size, Math.min(...screen.sessions.keys()), Math.max(...screen.sessions.keys())];
}"""


def test_a_page_keeps_as_many_sessions_as_the_console(live: Live) -> None:
    assert live.page("#/stream").evaluate(MANY_SESSIONS) == [1000, 501, 1500]

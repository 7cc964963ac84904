"""The page of `assay report` in a real browser."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest
from browser_recordings import MAPPED, call, large, opening, timed, write
from playwright.sync_api import Browser, Error, Locator, Page, expect

from assay.cli.main import main
from kit.browser import HERE, Opened, Watched, opening_pages, watched_page
from kit.check_formats import page_data
from kit.places import ROOT

SAMPLE = "examples/conversation.jsonl"


@pytest.fixture(scope="module")
def only_page(browser: Browser) -> Iterator[Watched]:
    with watched_page(browser) as watched:
        yield watched


@pytest.fixture
def opened(browser: Browser, only_page: Watched) -> Iterator[Opened]:
    """Opens a report, in a page that tests share unless one needs a context of its own."""
    with opening_pages(browser) as open_page:

        def open_report(path: Path, *, fragment: str = "", **options: Any) -> Page:
            return (
                open_page(path, fragment=fragment, **options) if options else only_page.open(path.as_uri() + fragment)
            )

        yield open_report
    only_page.check()


Made = Callable[..., Path]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Make a page with the real command; the same arguments make it once."""
    place, pages = tmp_path_factory.mktemp("pages"), dict[tuple[str, ...], Path]()

    def make(*arguments: str) -> Path:
        if arguments not in pages:
            page = place / f"{len(pages)}.html"
            with pytest.MonkeyPatch.context() as patch:
                patch.chdir(ROOT)
                patch.setenv("SOURCE_DATE_EPOCH", "1784858594")
                assert main(["report", "-o", str(page), *arguments]) == 0
            pages[arguments] = page
        return pages[arguments]

    return make


@pytest.fixture(scope="module")
def timed_page(made: Made, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(*MAPPED, str(timed(tmp_path_factory.mktemp("timed") / "library.jsonl")))


def rows(page: Page) -> Locator:
    return page.locator("#findings .row > summary")


def row(page: Page, rule: str) -> Locator:
    """The first row of findings of *rule*."""
    return (
        page.locator("#findings .row").filter(has=page.locator("summary code", has_text=re.compile(f"^{rule}$"))).first
    )


CLICK = "all => all.forEach(each => each.click())"
"""Many clicks at once: one by one Playwright takes a tenth of a second for each."""


def open_all(page: Page) -> None:
    """Open all findings."""
    rows(page).evaluate_all(CLICK)
    expect(page.locator("#findings .row .finding")).to_have_count(rows(page).count())


def open_row(page: Page, rule: str) -> Locator:
    found = row(page, rule)
    found.locator("> summary").click()
    expect(found.locator(".finding")).to_be_visible()
    return found


# ── the verdict ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_verdict_is_one_sentence_with_its_figures(made: Made, opened: Opened) -> None:
    page = opened(made(SAMPLE))
    blocked = "2 results, 2 unreadable messages and 1 call"
    sentence = f"Enforce mode would have blocked 5 of 19 messages ({blocked})."
    expect(page.get_by_role("heading", level=1)).to_have_text(sentence)
    tiles = page.locator(".tiles")
    expect(tiles).to_contain_text("19")
    expect(tiles).to_contain_text("2025-11-25")
    expect(tiles).to_contain_text("the recording has no times")
    expect(page.locator("footer")).to_contain_text("Made by assay")
    expect(page.locator("footer")).to_contain_text("2026-07-24 02:03 UTC")


def test_what_was_not_observed_is_at_the_top(timed_page: Path, opened: Opened) -> None:
    page = opened(timed_page)
    notice = page.get_by_role("complementary", name="What this report cannot show")
    expect(notice).to_contain_text("not observed is not passed")
    expect(notice.get_by_text("HTTP headers")).to_be_visible()
    expect(page.locator(".tiles")).to_contain_text("2026-07-24 02:03:24 – 02:03:54 UTC")


def test_a_valid_recording_has_a_page_without_findings(made: Made, opened: Opened, tmp_path: Path) -> None:
    file = write(tmp_path / "good.jsonl", ((1, number, each) for number, each in enumerate(opening([]))))
    page = opened(made(*MAPPED, str(file)))
    expect(page.get_by_role("heading", level=1)).to_have_text("All 5 messages are valid.")
    expect(page.locator("#findings")).to_contain_text("No findings: every message is valid.")


# ── findings ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_findings_are_grouped_by_rule_tool_and_place(timed_page: Path, opened: Opened) -> None:
    page = opened(timed_page)
    heads = page.locator("#findings .group-head h3")
    rules = heads.all_inner_texts()
    assert {"contract/input", "contract/output", "protocol/unanswered"} <= set(rules)
    page.get_by_role("button", name="Tool", exact=True).click()
    assert {"search", "write", "tool broken"} <= set(heads.all_inner_texts())
    page.get_by_role("button", name="Place", exact=True).click()
    assert "/result/structuredContent/books/*/year" in heads.all_inner_texts()
    counted = page.locator("#findings .row-count").all_inner_texts()
    assert sum(int(each.split()[0]) for each in counted) == page_data(timed_page.read_text())["totals"]["findings"]


def test_an_open_finding_shows_the_fault_in_its_message(timed_page: Path, opened: Opened) -> None:
    page = opened(timed_page)
    found = open_row(page, "contract/output")
    expect(found.locator(".compare")).to_contain_text("an integer")
    expect(found.locator(".compare")).to_contain_text('the string "1988"')
    expect(found.locator(".tree .fault")).to_have_text('"1988"')
    # The fault is far down in the message: its box is scrolled to it.
    found.locator(".json").evaluate("each => each.scrollIntoView()")
    expect(found.locator(".tree .fault")).to_be_in_viewport()
    expect(found.locator(".rule")).to_contain_text("A result has structuredContent")
    source = found.locator(".rule a").last
    expect(source).to_have_attribute(
        "href", re.compile(r"^https://modelcontextprotocol\.io/specification/.*server/tools$")
    )
    expect(found).to_contain_text("Place in the schema")
    found.get_by_role("button", name="Raw").click()
    expect(found.locator(".raw mark")).to_have_text('"1988"')


def test_a_message_is_a_tree_for_the_keyboard(timed_page: Path, opened: Opened) -> None:
    page = opened(timed_page)
    tree = open_row(page, "contract/output").get_by_role("tree").first
    root = tree.get_by_role("treeitem", expanded=True).first
    root.focus()
    focused = page.locator(":focus")
    page.keyboard.press("ArrowDown")
    expect(focused).to_have_text('jsonrpc: "2.0"')
    page.keyboard.press("ArrowLeft")
    expect(focused).to_have_attribute("aria-expanded", "true")
    page.keyboard.press("ArrowLeft")
    expect(focused).to_have_attribute("aria-expanded", "false")
    expect(tree.locator(".fault")).to_be_hidden()
    page.keyboard.press("End")
    expect(focused).to_have_attribute("aria-expanded", "false")
    page.keyboard.press("Enter")
    page.keyboard.press("End")
    expect(focused).not_to_have_text('jsonrpc: "2.0"')
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    expect(focused).to_have_text('jsonrpc: "2.0"')
    expect(tree.locator(".fault")).to_be_visible()
    # One stop for the Tab key, wherever it was left.
    assert tree.locator('[tabindex="0"]').count() == 1


def test_every_finding_of_the_sample_is_marked_at_its_place(made: Made, opened: Opened) -> None:
    """The text at each pointer is compared with what Python finds there."""
    path = made(SAMPLE)
    data, page = page_data(path.read_text()), opened(path)
    checked = 0
    for group in data["groups"]:
        found = page.locator(f'details[id="{group["id"]}"]')
        found.locator("> summary").click()
        number, at = group["samples"][0]
        message, finding = data["messages"][number], data["messages"][number]["findings"][at]
        if message["text"] and finding["at"].startswith("/") and "span" not in finding:
            expected = pointed(json.loads(message["text"]), finding["at"])
            if expected is not None and not isinstance(expected, dict | list):
                expect(found.locator(".tree .fault")).to_have_text(json.dumps(expected, ensure_ascii=False))
                checked += 1
        elif "span" in finding:
            start, end = finding["span"]
            assert found.locator(".raw mark").inner_text() == message["text"][start:end]
            checked += 1
    assert checked >= 5


def pointed(value: Any, pointer: str) -> Any:
    """Return the value at a JSON Pointer; None if it is missing."""
    for token in pointer.split("/")[1:]:
        step = token.replace("~1", "/").replace("~0", "~")
        try:
            value = value[int(step)] if isinstance(value, list) else value[step]
        except (KeyError, IndexError, TypeError, ValueError):
            return None
    return value


def test_a_repeated_key_is_marked_where_it_is_repeated(made: Made, opened: Opened, tmp_path: Path) -> None:
    twice = '{"jsonrpc":"2.0","id":5,"method":"ping","params":{"a":1,"b":12345678901234567890,"a":2}}'
    file = tmp_path / "twice.jsonl"
    file.write_text(json.dumps({"dir": "c2s", "msg": twice}) + "\n", encoding="utf-8")
    page = opened(made("--revision", "2025-11-25", str(file)))
    found = open_row(page, "syntax/duplicate-key")
    expect(found.locator(".tree .fault")).to_have_text("2")
    # As it is written: a browser's own parser would round it.
    expect(found.locator(".tree")).to_contain_text("12345678901234567890")


def test_a_long_message_is_cut_around_its_fault(made: Made, opened: Opened, tmp_path: Path) -> None:
    tools = [
        {"name": f"tool-{number}", "description": "x" * 3000, "inputSchema": {"type": "object"}}
        for number in range(300)
    ]
    tools[211]["inputSchema"] = {"type": "object", "properties": {"words": "string"}}
    file = write(tmp_path / "long.jsonl", ((1, number, each) for number, each in enumerate(opening(tools))))
    path = made(*MAPPED, str(file))
    assert path.stat().st_size < 500_000
    page = opened(path)
    found = open_row(page, "contract/schema")
    expect(found.locator(".message")).to_contain_text("parts that are not near a fault are left out")
    expect(found.locator(".tree .fault")).to_have_text('"string"')
    expect(found.locator(".tree")).to_contain_text("left out")


# ── searching, keys, links ───────────────────────────────────────────────────────────────────────────────────────────


def test_search_words_are_combined(timed_page: Path, opened: Opened) -> None:
    page = opened(timed_page)
    search = page.get_by_role("searchbox")
    everything = rows(page).count()
    search.fill("rule:contract tool:search")
    assert 0 < rows(page).count() < everything
    assert all(each.startswith("contract/") for each in page.locator("#findings h3").all_inner_texts())
    search.fill("rule:contract/input five")
    expect(rows(page)).to_have_count(1)
    expect(page.locator(".found")).to_contain_text("found")
    search.fill("nowhere-to-be-found")
    expect(page.locator("#findings")).to_contain_text("No finding matches the search.")
    expect(page.locator("#tools")).to_be_hidden()
    search.fill("method:initialize")
    expect(page.locator("#latency tbody tr:visible")).to_have_count(1)
    search.press("Escape")
    expect(search).to_have_value("")
    expect(rows(page)).to_have_count(everything)
    expect(page.locator("#tools")).to_be_visible()


def test_everything_can_be_done_with_the_keyboard(timed_page: Path, opened: Opened) -> None:
    page = opened(timed_page)
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox")).to_be_focused()
    page.keyboard.type("rule:contract")
    page.keyboard.press("Enter")
    expect(rows(page).nth(0)).to_be_focused()
    page.keyboard.press("j")
    expect(rows(page).nth(1)).to_be_focused()
    page.keyboard.press("k")
    expect(rows(page).nth(0)).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(rows(page).nth(1)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#findings .row[open] .finding")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("searchbox")).to_have_value("")


def test_an_address_opens_a_finding_or_a_conversation(timed_page: Path, opened: Opened) -> None:
    data = page_data(timed_page.read_text())
    group = data["groups"][-1]
    page = opened(timed_page, fragment=f"#{group['id']}")
    expect(page.locator(f'details[id="{group["id"]}"] .finding')).to_be_visible()
    expect(page.locator(f'details[id="{group["id"]}"] > summary')).to_be_focused()
    talk = data["talks"][-1]
    page = opened(timed_page, fragment=f"#{talk['id']}")
    expect(page.locator("#timeline h3")).to_have_text(f"Conversation {talk['number']}")
    expect(page.locator("#timeline")).to_be_in_viewport()
    page = opened(timed_page, fragment="#%3Cscript%3E")
    expect(rows(page).first).to_be_visible()


def test_a_link_to_something_that_the_search_hides_clears_the_search(timed_page: Path, opened: Opened) -> None:
    page = opened(timed_page)
    page.get_by_role("searchbox").fill("rule:contract/input")
    other = next(each for each in page_data(timed_page.read_text())["groups"] if each["rule"] == "contract/output")
    page.evaluate("(name) => { location.hash = name; }", other["id"])
    expect(page.locator(f'details[id="{other["id"]}"] .finding')).to_be_visible()
    expect(page.get_by_role("searchbox")).to_have_value("")


def test_opening_a_finding_changes_the_address(timed_page: Path, opened: Opened) -> None:
    page = opened(timed_page)
    found = open_row(page, "contract/input")
    assert page.url.endswith(f"#{found.get_attribute('id')}")


# ── conversations, figures, tools ────────────────────────────────────────────────────────────────────────────────────


def test_a_timeline_has_a_bar_from_each_request_to_its_answer(timed_page: Path, opened: Opened) -> None:
    page = opened(timed_page)
    talks = page.locator(".talks button")
    expect(talks).to_have_count(3)
    # The conversation with most findings comes first.
    expect(talks.nth(0)).to_contain_text("Conversation 1")
    expect(talks.nth(0)).to_have_attribute("aria-pressed", "true")
    talks.filter(has_text="Conversation 2").click()
    expect(page.locator("#timeline")).to_contain_text("tester-2 1.0 ↔ library 2")
    steps = page.locator("#timeline .steps > li")
    expect(steps).to_have_count(13)
    slow = steps.filter(has_text="#10")
    expect(slow.locator(".took")).to_have_text("1.6 s")
    widths = [steps.nth(at).locator(".bar").evaluate("each => each.offsetWidth") for at in (-2, -1)]
    assert widths[1] > 8 * widths[0]
    talks.filter(has_text="Conversation 1").click()
    page.locator("#timeline button.step").filter(has_text="search #4").click()
    expect(page.locator(".row[open]")).to_contain_text('"five"')


def test_without_times_messages_are_in_order(made: Made, opened: Opened) -> None:
    page = opened(made(SAMPLE))
    expect(page.locator("#timeline")).to_contain_text("The recording has no times: messages are in their order")
    expect(page.locator("#timeline .when").nth(1)).to_have_text(re.compile(r"^line 1"))
    expect(page.locator("#latency")).to_contain_text("there are no response times")


def test_response_times_and_sizes(timed_page: Path, opened: Opened) -> None:
    page = opened(timed_page)
    line = page.locator("#latency tbody tr").filter(has_text="tools/call search")
    cells = line.locator("td").all_inner_texts()
    assert cells[1] == "30"
    for shown, real in ((cells[2], 100), (cells[4], 1600)):
        number, unit = shown.split()
        assert abs(float(number) * {"ms": 1, "s": 1000}[unit] - real) <= 0.045 * real
    assert cells[5] == "1.6 s"
    line.get_by_role("button").click()
    expect(page.locator("#latency figcaption")).to_have_text("Response times of tools/call search, 30 answers")
    expect(page.locator("#latency canvas")).to_be_visible()
    expect(page.locator("#sizes").get_by_text("The largest messages").first).to_be_visible()
    expect(page.locator("#sizes canvas")).to_be_attached()
    expect(page.locator("#conversations canvas")).to_be_attached()


def test_tools_with_their_use_and_cost(timed_page: Path, opened: Opened) -> None:
    page = opened(timed_page)
    tools = page.locator("#tools tbody tr")
    expect(tools).to_have_count(3)
    search = tools.filter(has_text="Search books")
    cells = search.locator("td").all_inner_texts()
    assert cells[0] == "30"
    assert cells[5] == "yes"
    expect(search).to_contain_text("read-only")
    expect(tools.filter(has_text="broken")).to_contain_text("quarantined")
    expect(page.locator("#tools .totals")).to_contain_text("3 tools, about")
    expect(page.locator("#tools .totals")).to_contain_text("2 without an outputSchema")
    search.get_by_role("button", name="search").click()
    expect(page.get_by_role("searchbox")).to_have_value('tool:"search"')


# ── how it looks ─────────────────────────────────────────────────────────────────────────────────────────────────────


def background(page: Page) -> str:
    return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))


def test_dark_follows_the_system_and_the_switch_is_remembered(timed_page: Path, opened: Opened) -> None:
    light, dark = background(opened(timed_page)), background(page := opened(timed_page, color_scheme="dark"))
    assert light != dark
    page.get_by_role("button", name="Use light colours").click()
    assert background(page) == light
    page.reload()
    page.wait_for_selector("body[data-ready]")
    assert background(page) == light


def test_a_dark_page_is_printed_in_light_colours(timed_page: Path, opened: Opened) -> None:
    page = opened(timed_page, color_scheme="dark")
    dark = page.evaluate("getComputedStyle(document.body).color")
    page.emulate_media(media="print", color_scheme="dark")
    light = opened(timed_page).evaluate("getComputedStyle(document.body).color")
    assert page.evaluate("getComputedStyle(document.body).color") == light != dark


def test_a_phone_needs_no_scrolling_to_the_side(timed_page: Path, opened: Opened) -> None:
    page = opened(timed_page, viewport={"width": 375, "height": 700})
    open_all(page)
    assert page.evaluate("document.documentElement.scrollWidth") == 375
    page.get_by_role("button", name="Raw").first.click()
    assert page.evaluate("document.documentElement.scrollWidth") == 375


def test_print_shows_everything_and_no_controls(timed_page: Path, opened: Opened) -> None:
    page = opened(timed_page, color_scheme="light")
    page.emulate_media(media="print")
    expect(page.locator("#findings .row:not([open])")).to_have_count(0)
    for each in ("header.top", "nav.sections", "#findings .choice", ".keys"):
        expect(page.locator(each).first).to_be_hidden()
    expect(page.locator("#findings .tree").first).to_be_visible()
    assert page.pdf(format="A4").startswith(b"%PDF")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_rule_of_accessibility_is_broken(scheme: str, timed_page: Path, browser: Browser) -> None:
    script = HERE / "node_modules" / "axe-core" / "axe.min.js"
    if not script.is_file():
        pytest.skip("axe-core is not installed: `make test` does it where there is npm")
    # The policy of the page would not run the script of the test.
    with opening_pages(browser) as open_page:
        page = open_page(timed_page, color_scheme=scheme, bypass_csp=True)
        open_row(page, "contract/output")
        page.evaluate(script.read_text(encoding="utf-8"))
        found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    serious = [
        f"{each['id']}: {each['help']}: {node['html'][:200]}"
        for each in found["violations"]
        if each["impact"] in {"serious", "critical", "moderate"}
        for node in each["nodes"]
    ]
    assert serious == []


# ── what peers send ──────────────────────────────────────────────────────────────────────────────────────────────────

HOSTILE = {
    "script": "<script>alert(1)</script><img src=x onerror=alert(2)>",
    "the end of the data": "</script><script>alert(3)</script><!-- <script>",
    "template": "{{constructor.constructor('alert(4)')()}} ${alert(5)} javascript:alert(6)",
    "colours": "\x1b[31mred\x1b[0m\x07\x00",
    "direction": "abc\u202edef\u2066ghi\u200f\u200bzero",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_stays_text_in_every_field(text: str, made: Made, opened: Opened, tmp_path: Path) -> None:
    tool = {
        "name": text, "title": text, "description": text, "annotations": {"title": text},
        "inputSchema": {"type": "object", "properties": {"n": {"type": "integer", "description": text}}},
    }  # fmt: skip
    faulty = {"name": f"faulty {text}", "inputSchema": {"type": text}}
    messages = [
        *opening([tool, faulty], text),
        call(1, {"n": text, text: text}, text),
        {"jsonrpc": "2.0", "id": 1, "result": {"content": text}},
        {"jsonrpc": "2.0", "id": text, "method": text, "params": {text: text}},
        {"jsonrpc": "2.0", "id": 7, "error": {"code": text, "message": text}},
        text,
    ]  # fmt: skip
    folder = tmp_path / "a'b\"<b>&"
    folder.mkdir()
    file = write(folder / "x<img src=x>.jsonl", ((1, number, each) for number, each in enumerate(messages)))
    path = made(*MAPPED, str(file))
    page = opened(path)
    everything = "['script', 'img,iframe,b,base,meta,object'].map((each) => document.querySelectorAll(each).length)"
    before = page.evaluate(everything)
    open_all(page)
    for each in ("#findings .choice button", ".talks button", "#latency button.link", "#sizes button.link"):
        page.locator(each).evaluate_all(CLICK)
    page.get_by_role("searchbox").fill(text)
    page.get_by_role("searchbox").fill("")
    assert page.evaluate(everything) == before
    # The data, the chart library and the modules.
    assert before[0] == 3
    shown = page.evaluate("document.body.innerText")
    assert re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u202a-\u202e\u2066-\u2069]", shown) is None
    if "\u202e" in text:
        assert "U+202E" in shown
    if "\x1b" in text:
        assert "U+001B" in shown
    attributes = page.evaluate(
        "[...document.body.querySelectorAll('*')].flatMap(e => [...e.attributes].map(a => a.name + '=' + a.value))"
    )
    assert not [each for each in attributes if each.startswith("on") or re.search("[\x00-\x08\x1b\u202e\u2066]", each)]
    hrefs = page.evaluate("[...document.querySelectorAll('a')].map(e => e.protocol)")
    assert set(hrefs) <= {"https:", "file:"}


def test_nothing_else_can_run_in_the_page(timed_page: Path, browser: Browser) -> None:
    """The policy of the page is in force: no script that is added runs, and nothing is parsed as HTML."""
    context = browser.new_context(locale="en-US")
    page = context.new_page()
    page.goto(timed_page.as_uri())
    page.wait_for_selector("body[data-ready]")
    added = "const made = document.createElement('script'); made.textContent = 'window.ran = 1'"
    with pytest.raises(Error, match="TrustedScript"):
        page.evaluate(f"(() => {{ {added}; document.body.append(made); }})()")
    with pytest.raises(Error, match="TrustedHTML"):
        page.evaluate("document.body.innerHTML = '<b>x</b>'")
    assert page.evaluate("window.ran") is None
    blocked = page.evaluate("fetch('http://127.0.0.1:9/').then(() => 'sent', (error) => error.name)")
    assert blocked == "TypeError"
    context.close()


# ── real and large recordings ────────────────────────────────────────────────────────────────────────────────────────


def test_the_page_of_all_recorded_conversations(shared: Path, made: Made, opened: Opened) -> None:
    path = made(str(shared / "transcripts"))
    page = opened(path)
    expect(page.locator(".verdict .files")).to_contain_text("75 files in ")
    expect(page.locator("#tools .totals")).to_contain_text("the largest list costs about")
    expect(page.locator("#tools tbody tr:visible")).to_have_count(40)
    page.locator("#tools").get_by_role("button", name="Show all").click()
    expect(page.locator("#tools tbody tr:visible")).to_have_count(page.locator("#tools tbody tr").count())
    data = page_data(path.read_text(encoding="utf-8"))
    assert len(data["files"]) >= 75
    open_all(page)
    assert rows(page).count() == len(data["groups"])
    shown = page.locator("#findings .row").evaluate_all(
        "all => all.map(each => each.querySelectorAll('.fault').length)"
    )
    missing = [group["rule"] for group, count in zip(data["groups"], shown, strict=True) if count == 0]
    # Requests that were never answered have no message.
    assert set(missing) <= {"protocol/unanswered"}


@pytest.mark.timeout(240)  # It has much to do, and other tests run beside it.
def test_a_hundred_thousand_messages(made: Made, opened: Opened, tmp_path: Path) -> None:
    path = made(str(large(tmp_path / "large.jsonl", 100_000)))
    size = path.stat().st_size
    assert size < 20_000_000
    started = perf_counter()
    page = opened(path)
    took = perf_counter() - started
    expect(page.get_by_role("heading", level=1)).to_contain_text("of 100,000 messages")
    expect(rows(page).first).to_be_visible()
    expect(page.locator("#conversations")).to_contain_text("The page has")
    print(f"\na page of {size:,} bytes about 100,000 messages opens in {took:.2f} s")


# ── the chart library ────────────────────────────────────────────────────────────────────────────────────────────────


def test_charts_are_drawn_in_a_browser_without_a_locale(timed_page: Path, browser: Browser) -> None:
    context = browser.new_context(locale="en-US")
    context.add_init_script(
        "Object.defineProperty(Navigator.prototype, 'language', { get: () => 'en-US@posix', configurable: true })"
    )
    page = context.new_page()
    page.goto(timed_page.as_uri())
    expect(page.locator(".chart canvas").first).to_be_visible()
    context.close()


def test_the_chart_library_is_the_published_one() -> None:
    vendored, package = ROOT / "src/assay/web/vendor/uplot", HERE / "node_modules/uplot"
    if not package.is_dir():
        pytest.skip("uplot is not installed: `make test` does it where there is npm")
    assert json.loads((package / "package.json").read_text())["version"] == (vendored / "VERSION").read_text().strip()
    for name, published in (("uPlot.iife.min.js", "dist"), ("uPlot.min.css", "dist"), ("LICENSE", "")):
        assert (vendored / name).read_bytes() == (package / published / name).read_bytes(), name

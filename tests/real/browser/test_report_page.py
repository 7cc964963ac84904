"""The page of `assay report` in a real browser: it opens from disk, and needs nothing else."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from browser_recordings import MAPPED, call, opening, timed, write
from playwright.sync_api import Browser, Error, Locator, Page, expect

from assay.cli.main import main
from kit.browser import UNSEEN, Opened, accessibility_faults, opening_pages, strange_attributes
from kit.check_formats import page_data
from kit.places import ROOT

SAMPLE = "examples/conversation.jsonl"


@pytest.fixture
def opened(browser: Browser) -> Iterator[Opened]:
    """Opens a report; at the end no page may have logged or requested anything."""
    with opening_pages(browser) as open_page:
        yield open_page


Made = Callable[..., Path]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Make a page with the command; the same arguments make it once."""
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


CLICK = "all => all.forEach(each => each.click())"
"""Many clicks at once: one by one Playwright takes a tenth of a second for each."""


def open_all(page: Page) -> None:
    """Open all findings."""
    rows(page).evaluate_all(CLICK)
    expect(page.locator("#findings .row .finding")).to_have_count(rows(page).count())


def open_row(page: Page, rule: str) -> Locator:
    """Open the first row of findings of *rule*."""
    named = page.locator("summary code", has_text=re.compile(f"^{rule}$"))
    found = page.locator("#findings .row").filter(has=named).first
    found.locator("> summary").click()
    expect(found.locator(".finding")).to_be_visible()
    return found


def test_a_report_says_what_was_found_and_what_could_not_be_seen(
    made: Made, timed_page: Path, opened: Opened, tmp_path: Path
) -> None:
    page = opened(made(SAMPLE))
    blocked = "2 results, 2 unreadable messages and 1 call"
    sentence = f"Enforce mode would have blocked 5 of 19 messages ({blocked})."
    expect(page.get_by_role("heading", level=1)).to_have_text(sentence)
    expect(page.locator("body")).to_contain_text("the recording has no times")
    expect(page.locator("footer")).to_contain_text("2026-07-24 02:03 UTC")

    page = opened(timed_page)
    notice = page.get_by_role("complementary", name="What this report cannot show")
    expect(notice).to_contain_text("not observed is not passed")
    expect(page.locator("body")).to_contain_text("2026-07-24 02:03:24 – 02:03:54 UTC")
    counted = page.locator("#findings .row-count").all_inner_texts()
    assert sum(int(each.split()[0]) for each in counted) == page_data(timed_page.read_text())["totals"]["findings"]
    expect(page.locator("#timeline")).to_contain_text("tester-1 1.0 ↔ library 2")
    expect(page.locator("#latency")).to_contain_text("tools/call search")
    expect(page.locator("#latency")).to_contain_text("1.6 s")
    expect(page.locator("#tools")).to_contain_text("3 tools, about")
    expect(page.locator("#tools tbody tr").filter(has_text="broken")).to_contain_text("quarantined")

    good = write(tmp_path / "good.jsonl", ((1, number, each) for number, each in enumerate(opening([]))))
    page = opened(made(*MAPPED, str(good)))
    expect(page.get_by_role("heading", level=1)).to_have_text("All 5 messages are valid.")


def test_every_finding_is_marked_at_its_place(made: Made, opened: Opened, tmp_path: Path) -> None:
    """The text at each pointer is compared with what Python finds there."""
    path = made(SAMPLE)
    data, page = page_data(path.read_text()), opened(path)
    checked = 0
    open_all(page)
    for group in data["groups"]:
        found = page.locator(f'details[id="{group["id"]}"]')
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

    twice = '{"jsonrpc":"2.0","id":5,"method":"ping","params":{"a":1,"b":12345678901234567890,"a":2}}'
    file = tmp_path / "twice.jsonl"
    file.write_text(json.dumps({"dir": "c2s", "msg": twice}) + "\n", encoding="utf-8")
    found = open_row(opened(made("--revision", "2025-11-25", str(file))), "syntax/duplicate-key")
    expect(found.locator(".tree .fault")).to_have_text("2")
    # As it is written: a browser's own parser would round it.
    expect(found.locator(".tree")).to_contain_text("12345678901234567890")

    plain, wrong = {"type": "object"}, {"type": "object", "properties": {"words": "string"}}
    tools = [{"name": f"tool-{number}", "description": "x" * 3000, "inputSchema": plain} for number in range(300)]
    tools[211]["inputSchema"] = wrong
    file = write(tmp_path / "long.jsonl", ((1, number, each) for number, each in enumerate(opening(tools))))
    path = made(*MAPPED, str(file))
    assert path.stat().st_size < 500_000
    found = open_row(opened(path), "contract/schema")
    expect(found).to_contain_text("parts that are not near a fault are left out")


def pointed(value: Any, pointer: str) -> Any:
    """Return the value at a JSON Pointer; None if it is missing."""
    for token in pointer.split("/")[1:]:
        step = token.replace("~1", "/").replace("~0", "~")
        try:
            value = value[int(step)] if isinstance(value, list) else value[step]
        except (KeyError, IndexError, TypeError, ValueError):
            return None
    return value


def test_findings_are_searched_opened_and_linked_by_keyboard(timed_page: Path, opened: Opened) -> None:
    page = opened(timed_page)
    search, everything = page.get_by_role("searchbox"), rows(page).count()
    page.keyboard.press("/")
    expect(search).to_be_focused()
    page.keyboard.type("rule:contract tool:search")
    page.keyboard.press("Enter")
    expect(rows(page).nth(0)).to_be_focused()
    assert 0 < rows(page).count() < everything
    page.keyboard.press("j")
    expect(rows(page).nth(1)).to_be_focused()
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    expect(page.locator("#findings .row[open] .finding")).to_be_visible()
    # The address names the finding that is open.
    assert page.url.endswith(f"#{page.locator('#findings .row[open]').get_attribute('id')}")
    page.keyboard.press("Escape")
    expect(search).to_have_value("")
    search.fill("nowhere-to-be-found")
    expect(page.locator("#findings")).to_contain_text("No finding matches the search.")
    # A link to something that the search hides clears the search.
    other = next(each for each in page_data(timed_page.read_text())["groups"] if each["rule"] == "contract/output")
    page.evaluate("(name) => { location.hash = name; }", other["id"])
    found = page.locator(f'details[id="{other["id"]}"]')
    expect(found.locator(".compare")).to_contain_text('the string "1988"')
    expect(search).to_have_value("")

    tree = found.get_by_role("tree").first
    tree.get_by_role("treeitem", expanded=True).first.focus()
    focused = page.locator(":focus")
    page.keyboard.press("ArrowDown")
    expect(focused).to_have_text('jsonrpc: "2.0"')
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    expect(focused).to_have_attribute("aria-expanded", "false")
    expect(tree.locator(".fault")).to_be_hidden()
    page.keyboard.press("Enter")
    expect(tree.locator(".fault")).to_be_visible()
    # One stop for the Tab key, wherever it was left.
    assert tree.locator('[tabindex="0"]').count() == 1

    page = opened(timed_page, fragment="#%3Cscript%3E")
    expect(rows(page).first).to_be_visible()


def background(page: Page) -> str:
    return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))


def test_a_report_is_read_in_the_dark_on_a_phone_on_paper_and_by_a_screen_reader(
    timed_page: Path, opened: Opened
) -> None:
    # The policy of the page would not run the script of the test.
    page = opened(timed_page, color_scheme="light", bypass_csp=True)
    open_row(page, "contract/output")
    assert accessibility_faults(page, "report") == []

    page = opened(timed_page, color_scheme="dark", viewport={"width": 375, "height": 700})
    open_all(page)
    assert page.evaluate("document.documentElement.scrollWidth") == 375
    dark = background(page)
    page.emulate_media(media="print", color_scheme="dark")
    expect(page.locator("#findings .row:not([open])")).to_have_count(0)
    expect(page.get_by_role("searchbox")).to_be_hidden()
    expect(page.locator("#findings .tree").first).to_be_visible()
    assert background(page) != dark
    assert page.pdf(format="A4").startswith(b"%PDF")
    page.emulate_media(media="screen", color_scheme="dark")
    page.get_by_role("button", name="Use light colours").click()
    page.reload()
    page.wait_for_selector("body[data-ready]")
    assert background(page) != dark


HOSTILE = (
    "</script><script>alert(1)</script><img src=x onerror=alert(2)><!-- <script>"
    " {{constructor.constructor('alert(3)')()}} ${alert(4)} javascript:alert(5)"
    " \x1b[31mred\x07\x00 abc\u202edef\u2066ghi\u200f\u200bzero"
)


def test_hostile_text_stays_text_in_every_field(made: Made, opened: Opened, tmp_path: Path) -> None:
    text = HOSTILE
    tool = {
        "name": text, "title": text, "description": text, "annotations": {"title": text},
        "inputSchema": {"type": "object", "properties": {"n": {"type": "integer", "description": text}}},
    }  # fmt: skip
    faulty = {"name": f"faulty {text}", "inputSchema": {"type": text}}
    messages = [
        *opening([tool, faulty], text),
        call(1, {"n": text, text: text}, text),
        {"jsonrpc": "2.0", "id": 1, "result": {"content": text}},
        {"jsonrpc": "2.0", "id": text, "method": "<img src=x>\x1b\u202e", "params": {text: text}},
        {"jsonrpc": "2.0", "id": 7, "error": {"code": text, "message": text}},
        text,
    ]  # fmt: skip
    folder = tmp_path / "a'b\"<b>&"
    folder.mkdir()
    file = write(folder / "x<img src=x>.jsonl", ((1, number, each) for number, each in enumerate(messages)))
    page = opened(made(*MAPPED, str(file)))
    everything = "['script', 'img,iframe,b,base,meta,object'].map((each) => document.querySelectorAll(each).length)"
    before = page.evaluate(everything)
    open_all(page)
    page.locator("main button:visible").evaluate_all(CLICK)
    page.get_by_role("searchbox").fill(text)
    page.get_by_role("searchbox").fill("")
    assert page.evaluate(everything) == before
    shown = page.evaluate("document.body.innerText")
    assert UNSEEN.search(shown) is None
    assert "U+202E" in shown
    assert "U+001B" in shown
    assert strange_attributes(page) == []
    assert set(page.evaluate("[...document.querySelectorAll('a')].map(e => e.protocol)")) <= {"https:", "file:"}


def test_nothing_else_can_run_in_the_page(timed_page: Path, browser: Browser) -> None:
    """The policy of the page is in force: no script that is added runs, and nothing is parsed as HTML."""
    context = browser.new_context(locale="en-US")
    # Charts are drawn although a browser without a locale calls its language so.
    context.add_init_script(
        "Object.defineProperty(Navigator.prototype, 'language', { get: () => 'en-US@posix', configurable: true })"
    )
    page = context.new_page()
    page.goto(timed_page.as_uri())
    expect(page.locator("canvas").first).to_be_visible()
    added = "const made = document.createElement('script'); made.textContent = 'window.ran = 1'"
    with pytest.raises(Error, match="TrustedScript"):
        page.evaluate(f"(() => {{ {added}; document.body.append(made); }})()")
    with pytest.raises(Error, match="TrustedHTML"):
        page.evaluate("document.body.innerHTML = '<b>x</b>'")
    assert page.evaluate("window.ran") is None
    assert page.evaluate("fetch('http://127.0.0.1:9/').then(() => 'sent', (error) => error.name)") == "TypeError"
    context.close()

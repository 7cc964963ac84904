"""The page of `assay report` in a real browser: it opens from disk, and needs nothing else."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from browser_recordings import MAPPED, call, opening, timed, write
from console_scene import message, show
from playwright.sync_api import Browser, Error, Page, expect

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


def test_a_report_says_what_was_found_and_what_could_not_be_seen(
    made: Made, timed_page: Path, opened: Opened, tmp_path: Path
) -> None:
    page = opened(made(SAMPLE))
    body = page.locator("body")
    expect(body).to_contain_text("Enforce mode would block 5 of 19 messages")
    expect(body).to_contain_text("2026-07-24 02:03 UTC")
    show(page, "#/performance")
    expect(body).to_contain_text("The recording has no times")

    page = opened(timed_page)
    main = page.locator("main")
    expect(main).to_contain_text("not observed: HTTP headers")
    # One request was never answered, which is no message on any screen.
    expect(main).to_contain_text("of 76 messages")
    show(page, "#/sessions")
    counts = page.locator("td[data-title=Messages]")
    expect(counts).to_have_count(3)
    assert sum(map(int, counts.all_text_contents())) == 76
    show(page, "#/stream?all=1")
    expect(page.locator("#filter-count")).to_contain_text("of 76 messages")
    wanted = {
        "stream": ["tools/call search", "1.6 s"],
        "findings": ["contract/output", "contract/schema", "Fix:"],
        "contracts": ["broken", "would be quarantined"],
        "sessions": ["tester-1 1.0", "tester-3 1.0"],
        "performance": ["search", "1.6 s"],
    }
    for name, texts in wanted.items():
        show(page, f"#/{name}")
        for text in texts:
            expect(main).to_contain_text(text)

    good = write(tmp_path / "good.jsonl", ((1, number, each) for number, each in enumerate(opening([]))))
    page = opened(made(*MAPPED, str(good)))
    expect(page.locator("main")).to_contain_text("All 5 messages are valid.")


def test_every_finding_is_marked_at_its_place(made: Made, opened: Opened, tmp_path: Path) -> None:
    """The text at each pointer is compared with what Python finds there."""
    path = made(SAMPLE)
    data, page = page_data(path.read_text()), opened(path)
    checked = 0
    for name, found in data.items():
        if not name.startswith("messages/") or len(found["violations"]) != 1 or not found["sent"]["text"]:
            continue
        [violation] = found["violations"]
        expected = pointed(found["sent"]["text"], violation["at"])
        if expected is not None and violation["at"] and not isinstance(expected, dict | list):
            show(page, message(found["seq"]))
            expect(page.locator(".tree .fault")).to_have_text(json.dumps(expected, ensure_ascii=False))
            checked += 1
    assert checked >= 4
    # The request of a failed answer has the finding: the line shows that one.
    show(page, "#/stream")
    page.locator(".line", has_text="resources/read").click()
    expect(page.locator(".message-panel .verdict-line")).to_contain_text("reported request from the client")
    expect(page.locator(".message-panel .finding")).to_contain_text("protocol/capability")

    twice = '{"jsonrpc":"2.0","id":5,"method":"ping","params":{"a":1,"b":12345678901234567890,"a":2}}'
    file = tmp_path / "twice.jsonl"
    file.write_text(json.dumps({"dir": "c2s", "msg": twice}) + "\n", encoding="utf-8")
    page = opened(made("--revision", "2025-11-25", str(file)))
    show(page, message(1))
    expect(page.locator(".tree .fault")).to_have_text("2")
    # As it is written: a browser's own parser would round it.
    expect(page.locator(".tree")).to_contain_text("12345678901234567890")

    plain, wrong = {"type": "object"}, {"type": "object", "properties": {"words": "string"}}
    tools = [{"name": f"tool-{number}", "description": "x" * 3000, "inputSchema": plain} for number in range(300)]
    for number in range(205, 215):
        tools[number]["inputSchema"] = wrong
    file = write(tmp_path / "long.jsonl", ((1, number, each) for number, each in enumerate(opening(tools))))
    path = made(*MAPPED, str(file))
    assert path.stat().st_size < 500_000
    page = opened(path)
    show(page, message(5))
    expect(page.locator(".message-panel")).to_contain_text("The message is too long for the report")
    expect(page.locator(".message-panel .finding").filter(has_text="contract/schema").first).to_be_visible()
    show(page, "#/findings")
    expect(page.locator(".card article")).to_have_count(12)
    page.get_by_role("button", name="more kinds").click()
    expect(page.locator(".card article")).to_have_count(20)


def pointed(text: str, pointer: str) -> Any:
    """Return the value at a JSON Pointer in the JSON *text*; None if it is missing."""
    try:
        value = json.loads(text)
        for token in pointer.split("/")[1:]:
            step = token.replace("~1", "/").replace("~0", "~")
            value = value[int(step)] if isinstance(value, list) else value[step]
    except (KeyError, IndexError, TypeError, ValueError):
        return None
    return value


def test_a_message_is_found_and_read_by_keyboard(timed_page: Path, opened: Opened) -> None:
    page = opened(timed_page)
    page.keyboard.press("/")
    expect(page.locator("#filter")).to_be_focused()
    page.keyboard.type("rule:contract tool:search")
    page.keyboard.press("Enter")
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    panel = page.locator(".message-panel")
    # It opens on the part with the finding.
    expect(panel.locator(".finding")).to_be_visible()
    expect(panel.locator(".fault").first).to_be_visible()
    tree = panel.get_by_role("tree").first
    tree.get_by_role("treeitem", expanded=True).first.focus()
    focused = page.locator(":focus")
    page.keyboard.press("ArrowDown")
    expect(focused).to_have_text('jsonrpc: "2.0"')
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    expect(focused).to_have_attribute("aria-expanded", "false")
    expect(tree.locator(".fault")).to_have_count(0)
    page.keyboard.press("Enter")
    expect(tree.locator(".fault")).to_be_visible()
    # One stop for the Tab key, wherever it was left.
    assert tree.locator('[tabindex="0"]').count() == 1
    page.keyboard.press("Escape")
    page.locator("#filter").fill("nowhere-to-be-found")
    expect(page.locator("main")).to_contain_text("No message has all of these words.")

    page = opened(timed_page, fragment="#/%3Cscript%3E")
    expect(page.locator("tbody tr").first).to_be_visible()


def background(page: Page) -> str:
    return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))


def test_a_report_is_read_in_the_dark_on_a_phone_on_paper_and_by_a_screen_reader(
    timed_page: Path, opened: Opened
) -> None:
    # The policy of the page would not run the script of the test.
    page = opened(timed_page, color_scheme="light", bypass_csp=True)
    assert accessibility_faults(page, "report") == []

    page = opened(timed_page, color_scheme="dark", viewport={"width": 375, "height": 700})
    assert page.evaluate("document.documentElement.scrollWidth") == 375
    for name in ("Servers", "Stream", "Findings", "Contracts", "Sessions", "Performance"):
        expect(page.get_by_role("link", name=re.compile(f"^{name}")).first).to_be_in_viewport()
    dark = background(page)
    page.emulate_media(media="print", color_scheme="dark")
    expect(page.get_by_role("navigation")).to_be_hidden()
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
    everything = (
        "['script', 'img,iframe,b[style],base,meta,object'].map((each) => document.querySelectorAll(each).length)"
    )
    before = page.evaluate(everything)
    screens = ("servers", "stream?all=1", "findings", "contracts", "sessions", "performance")
    seen = ""
    for place in (*(f"#/{each}" for each in screens), *(message(seq) for seq in range(5, 11))):
        show(page, place) if "message" not in place else page.evaluate("each => { location.hash = each; }", place)
        page.locator("main :is(tbody tr, .line[data-seq], .finding, .message-panel)").first.wait_for()
        page.locator("main :is(details > summary, [aria-expanded=false])").evaluate_all(
            "all => all.forEach(each => each.click())"
        )
        assert page.evaluate(everything) == before, place
        shown = page.evaluate("document.body.innerText")
        assert UNSEEN.search(shown) is None
        assert strange_attributes(page) == []
        seen += shown
    assert "U+202E" in seen
    assert "U+001B" in seen
    assert set(page.evaluate("[...document.querySelectorAll('a')].map(e => e.protocol)")) <= {"https:", "file:"}


def test_nothing_else_can_run_in_the_page(timed_page: Path, browser: Browser) -> None:
    """The policy of the page is in force: no script that is added runs, and nothing is parsed as HTML."""
    context = browser.new_context(locale="en-US")
    # Charts are drawn although a browser without a locale calls its language so.
    context.add_init_script(
        "Object.defineProperty(Navigator.prototype, 'language', { get: () => 'en-US@posix', configurable: true })"
    )
    page = context.new_page()
    page.goto(f"{timed_page.as_uri()}#/performance")
    expect(page.locator("canvas").first).to_be_visible()
    added = "const made = document.createElement('script'); made.textContent = 'window.ran = 1'"
    with pytest.raises(Error, match="TrustedScript"):
        page.evaluate(f"(() => {{ {added}; document.body.append(made); }})()")
    with pytest.raises(Error, match="TrustedHTML"):
        page.evaluate("document.body.innerHTML = '<b>x</b>'")
    assert page.evaluate("window.ran") is None
    assert page.evaluate("fetch('http://127.0.0.1:9/').then(() => 'sent', (error) => error.name)") == "TypeError"
    context.close()

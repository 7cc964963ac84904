"""The page of `assay console` with hostile text in every field, and with 100,000 messages."""

import re
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest
from console_scene import library, many_records, program, show, usual_calls
from playwright.sync_api import Browser, Page, expect

from kit.browser import opening_pages
from kit.consoles import console

MESSAGES = 100_000

UNRECORDED = ("--set", "journal.payloads=false", "--journal")
"""Options for a journal without the messages themselves, which is read faster."""

HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(2)></textarea></title>{{constructor.constructor('alert(3)')()}}"
    "<b style=color:red>x</b>\x1b[31mred\x07\x00abc\u202edef\u2066ghi\u200f\u200b javascript:alert(4) \"' & ${alert(5)}"
)


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


ELEMENTS = """['script', 'img, iframe, b[style], base, object, embed', 'title'].map(
    (each) => document.querySelectorAll(each).length)"""
UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u202a-\u202e\u2066-\u2069]")


def check(page: Page, before: list[int]) -> None:
    """Nothing of what peers wrote became an element, an attribute with code, or an invisible character."""
    assert page.evaluate(ELEMENTS) == before
    assert UNSEEN.search(page.evaluate("document.body.innerText")) is None
    attributes = page.evaluate(
        "[...document.body.querySelectorAll('*')].flatMap(e => [...e.attributes].map(a => a.name + '=' + a.value))"
    )
    assert not [each for each in attributes if each.startswith("on") or UNSEEN.search(each)]
    assert set(page.evaluate("[...document.querySelectorAll('a')].map(e => e.protocol)")) <= {"http:"}


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
        rows = running.wait(lambda found: any(row["id"] == HOSTILE or "alert(1)" in str(row["id"]) for row in found))
        page = open_page(running.address)
        expect(page.locator("tbody tr")).to_have_count(1)
        before = page.evaluate(ELEMENTS)
        screens = ["stream", "findings", "contracts", "sessions", "performance", "servers"]
        for place in [*screens, *(f"message/{row['seq']}" for row in rows)]:
            show(page, f"#/{place}")
            page.locator("main :is(tbody tr, .line[data-seq], .frame, details.row)").first.wait_for()
            page.locator("main details > summary").evaluate_all("all => all.forEach(each => each.click())")
            check(page, before)
        show(page, "#/contracts")
        expect(page.locator("main")).to_contain_text("U+202E")
        show(page, "#/stream")
        page.locator("#filter").fill(HOSTILE.replace("\x00", ""))
        page.get_by_role("button", name="Save view").click()
        expect(page.locator(".view")).to_have_count(1)
        check(page, before)


SCROLL = """async () => {
    const list = document.querySelector('.virtual');
    const frames = [];
    const tasks = [0];
    new PerformanceObserver((seen) => tasks.push(...seen.getEntries().map((each) => each.duration)))
        .observe({type: 'longtask'});
    let most = 0;
    let last = await new Promise(requestAnimationFrame);
    for (let step = 0; step <= 150; step += 1) {
        list.scrollTop = (list.scrollHeight * step) / 150;
        const now = await new Promise(requestAnimationFrame);
        frames.push(now - last);
        last = now;
        most = Math.max(most, list.querySelectorAll('.line').length);
    }
    frames.sort((one, other) => one - other);
    const heap = performance.memory.usedJSHeapSize;
    return {longest: frames.at(-1), task: Math.max(...tasks), middle: frames[75], most, heap};
}"""

TYPE = """async (text) => {
    const input = document.getElementById('filter');
    let longest = 0;
    let last = await new Promise(requestAnimationFrame);
    for (const end of text.split('').keys()) {
        input.value = text.slice(0, end + 1);
        input.dispatchEvent(new Event('input'));
        for (let frame = 0; frame < 4; frame += 1) {
            const now = await new Promise(requestAnimationFrame);
            longest = Math.max(longest, now - last);
            last = now;
        }
    }
    return longest;
}"""


@pytest.mark.timeout(240)  # It has much to do, and other tests run beside it.
def test_a_hundred_thousand_messages_stay_fluid(browser: Browser, state: Path, tmp_path: Path) -> None:
    with library(state, "library", program(tmp_path), *UNRECORDED, str(tmp_path / "journal")) as guard:
        guard.open()
        usual_calls(guard)
    [journal] = (tmp_path / "journal").glob("*.jsonl")
    large = many_records(journal, tmp_path / "large.jsonl", MESSAGES)
    with console(state, str(large)) as running, opening_pages(browser, running.base) as open_page:
        started = perf_counter()
        page = open_page(running.address)
        page.keyboard.press("2")
        count = page.locator("#filter-count")
        # Rows come while the console reads the file; the oldest may have been dropped at the end.
        expect(count).to_have_text(re.compile(r"^(100,|99,|98,)\d{3} messages"))
        expect(page.locator(".banners")).not_to_contain_text("Reading")
        read = perf_counter() - started
        started = perf_counter()
        page.reload()
        expect(count).to_have_text(re.compile(r"^(100,|99,|98,)\d{3} messages"))
        expect(count).not_to_contain_text("reading")
        loaded = perf_counter() - started
        page.keyboard.press("f")
        seen = page.evaluate(SCROLL)
        typed = page.evaluate(TYPE, "tool:search verdict:blocked")
        expect(count).to_contain_text(re.compile(r"^[\d,]{5,} lines of"))
        expect(page.locator(".line[data-seq]:not([hidden])").first).to_contain_text("would block")
        work = f"longest frame {seen['longest']:.0f} ms (longest work {seen['task']:.0f} ms)"
        frames = f"{work}, median {seen['middle']:.0f} ms, typing {typed:.0f} ms"
        memory = f"{seen['most']} rows in the page, heap {seen['heap'] / 1e6:.0f} MB"
        print(f"\nread in {read:.1f} s, shown in {loaded:.1f} s, {frames}, {memory}")
        assert seen["most"] < 100
        assert seen["heap"] < 300e6
        # Generous: a busy machine without a graphics card draws slowly. The median has a frame at every refresh.
        assert seen["longest"] < 2000
        assert typed < 2000

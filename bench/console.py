"""
The page of a console beside much traffic: 54 servers, a million lines in their journals, and 37,000 calls while a real
browser has the page open.

What counts is that nothing grows without a bound, and that the page never holds a person up: no frame over 100 ms. It
needs the browser of the tests, `tests/real/browser/node_modules`, which `make set-up` installs.
"""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import orjson

from assay.judge.conversation import Conversation
from assay.model.verdict import Party
from assay.records import run_files
from assay.records.moments import Moment, spelled_ids
from assay.records.record import RunIdentity, record_of, written_record
from assay.settings.state_directory import make_folder, server_folder
from serve import ROOT
from tables import PROGRESS

SERVERS: Final = 54
LINES: Final = 1_000_000
CALLS: Final = 37_000
LONGEST_FRAME: Final = 100
"""Milliseconds."""

_BROWSER: Final = ROOT / "tests" / "real" / "browser"
_FLAGS: Final = ["--no-sandbox", "--no-zygote", "--disable-gpu", "--enable-precise-memory-info"]

_FRAMES: Final = """() => {
    window.frames_ = [];
    let last = performance.now();
    const step = (now) => { window.frames_.push(now - last); last = now; requestAnimationFrame(step); };
    requestAnimationFrame(step);
}"""


def lines_of(number: int) -> list[bytes]:
    """Return the lines of calls of one server, one in fifty with a finding, as a guard writes them."""
    run = RunIdentity(server=f"server-{number:02}", mode="audit", payloads=True)
    conversation = Conversation(mode="audit")
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
    info = {"name": "s", "version": "1"}
    welcome = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
    schema = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
    said: list[tuple[Party, Any]] = [
        (Party.CLIENT, {"id": "i", "method": "initialize", "params": hello}),
        (Party.SERVER, {"id": "i", "result": welcome}),
        (Party.CLIENT, {"method": "notifications/initialized"}),
        (Party.CLIENT, {"id": "l", "method": "tools/list"}),
        (Party.SERVER, {"id": "l", "result": {"tools": [{"name": "search", "inputSchema": schema}]}}),
    ]
    for ident in range(50):
        arguments = {"query": 5 if ident == 0 else f"word {ident}"}
        params = {"name": "search", "arguments": arguments}
        said.append((Party.CLIENT, {"id": ident, "method": "tools/call", "params": params}))
        said.append((Party.SERVER, {"id": ident, "result": {"content": [{"type": "text", "text": "found"}]}}))
    made = []
    for party, message in said:
        verdict = conversation.hear(party, orjson.dumps({"jsonrpc": "2.0", **message}))
        moment = Moment("stdio", "stdio", spelled_ids("0" * 36, "0" * 32, "0" * 16), 0.0)
        made.append(written_record(record_of(verdict, moment, run, ts="TS", milliseconds=1.5, sent=100)) + b"\n")
    return made


class Journals:
    """The journals of all servers, which grow."""

    def __init__(self, state: Path) -> None:
        self._lines = [lines_of(number) for number in range(SERVERS)]
        self._files = []
        self._count = 0
        for number in range(SERVERS):
            folder = server_folder({"XDG_STATE_HOME": str(state)}, f"server-{number:02}")
            assert folder is not None
            make_folder(folder)
            self._files.append(run_files.create(folder)[0])

    def write(self, calls: int) -> None:
        """Write so many calls and their answers, to one journal after the other."""
        for _ in range(calls):
            self._count += 1
            number = self._count % SERVERS
            lines = self._lines[number]
            at = 5 + 2 * (self._count // SERVERS % 50)
            ident = f"{self._count:032x}".encode()
            now = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime()).encode() + b".000000Z"
            pair = b"".join(lines[at : at + 2]).replace(b'"TS"', b'"%b"' % now)
            os.write(self._files[number], re.sub(rb'"requestId":"[^"]*"', b'"requestId":"%b"' % ident, pair))

    def fill(self, lines: int) -> None:
        """Write so many lines at once."""
        now = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime()).encode() + b".000000Z"
        for number, descriptor in enumerate(self._files):
            whole = b"".join(self._lines[number]).replace(b'"TS"', b'"%b"' % now)
            for _ in range(lines // SERVERS // len(self._lines[number])):
                os.write(descriptor, whole)


@contextmanager
def console(state: Path) -> Iterator[tuple[int, str]]:
    """Run a console; yield its process and its address."""
    environment = {**os.environ, "XDG_STATE_HOME": str(state), "ASSAY_JOURNAL": ""}
    command = [sys.executable, "-m", "assay", "console", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, cwd=state, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.pid, process.stdout.readline().strip()
        finally:
            process.terminate()


def memory(pid: int) -> float:
    """Return the resident megabytes of a process."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmRSS"))


def browser_program(place: str) -> str:
    """Unpack the browser of the tests."""
    environment = {**os.environ, "TMPDIR": place}
    command = ["node", str(_BROWSER / "unpack.mjs")]
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout


def measured(page: Any, pid: int) -> dict[str, float]:
    """Return what the page and the process have at this moment, and the slowest frames since the last time."""
    frames = sorted(page.evaluate("() => window.frames_.splice(0)"))
    return {
        "longest_frame_ms": round(frames[-1], 1),
        "frame_p99_ms": round(frames[len(frames) * 99 // 100], 1),
        "heap_mb": round(page.evaluate("() => performance.memory.usedJSHeapSize / 1e6"), 1),
        "console_mb": round(memory(pid), 1),
    }


def main() -> dict[str, Any]:
    """Measure the page, and return the figures."""
    if not (_BROWSER / "node_modules").is_dir():
        print("console: left out, because the browser of the tests is not installed (make set-up)")
        return {}
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - for this part only

    with TemporaryDirectory() as place, sync_playwright() as playwright:
        state = Path(place) / "state"
        journals = Journals(state)
        journals.fill(LINES)
        program = browser_program(place)
        browser = playwright.chromium.launch(executable_path=program, args=_FLAGS, env={**os.environ, "HOME": place})
        with console(state) as (pid, address):
            page = browser.new_page(viewport={"width": 1400, "height": 900})
            began = time.monotonic()
            page.goto(address)
            page.wait_for_selector("body[data-ready=true]", timeout=60_000)
            page.wait_for_selector("tbody tr", timeout=60_000)
            found: dict[str, Any] = {"servers": SERVERS, "lines": LINES, "open_s": round(time.monotonic() - began, 2)}
            page.wait_for_timeout(3000)
            page.evaluate(_FRAMES)
            for screen in ("servers", "stream", "findings", "sessions", "performance", "contracts"):
                PROGRESS.show(f"console: {screen}")
                page.evaluate("each => { location.hash = '#/' + each; }", screen)
                page.wait_for_timeout(500)
                page.evaluate("() => window.frames_.splice(0)")
                for _ in range(CALLS // 6 // 60):
                    journals.write(60)
                    page.wait_for_timeout(20)
                page.wait_for_timeout(500)
                found[screen] = measured(page, pid)
            browser.close()
    report(found)
    return found


def report(found: dict[str, Any]) -> None:
    """Print the figures."""
    print(f"\nThe page of a console: {SERVERS} servers, {LINES:,} lines before, {CALLS:,} calls while it is open\n")
    print(f"  first screen after {found['open_s']} s")
    print(f"  {'screen':<12} {'longest frame':>14} {'p99':>9} {'heap of the tab':>16} {'console':>10}")
    for screen, each in found.items():
        if isinstance(each, dict):
            frames = f"{each['longest_frame_ms']:>11} ms {each['frame_p99_ms']:>6} ms"
            print(f"  {screen:<12} {frames} {each['heap_mb']:>13} MB {each['console_mb']:>7} MB")
    worst = max(each["longest_frame_ms"] for each in found.values() if isinstance(each, dict))
    print(f"  wanted: no frame over {LONGEST_FRAME} ms; {'met' if worst <= LONGEST_FRAME else 'missed'}")


if __name__ == "__main__":
    main()

"""Actions that wait: they hold up neither other requests nor the end of the console."""

import asyncio
import signal
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import sleep

import httpx
import pytest
from test_console_state import fed, record

from assay.console.action_threads import MOST_ACTIONS
from assay.console.api_values import ApiError, ApiReply, ApiRequest, ConsoleActions
from assay.console.console_access import TokenAccess
from assay.console.console_exports import ExportFile, Numbered
from assay.console.console_posts import ConsolePosts
from assay.console.console_state import ConsoleState
from kit import consoles
from kit.consoles import RunningConsole, console, http_guard

SLOW = 2 * consoles.SECONDS
"""Seconds that the slow tool takes: longer than the console has for its end."""

SERVER = consoles.SERVER.replace(
    '    elif method == "tools/call":\n',
    f'    elif method == "tools/call":\n        if params["name"] == "change":\n            time.sleep({SLOW})\n',
).replace("import json, sys", "import json, sys, time")


@pytest.fixture
def running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningConsole]:
    """Return a console of a guard with a slow tool; it ends after the test, and must not take long for that."""
    monkeypatch.setattr(consoles, "SERVER", SERVER)
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder)
        with http_guard(state, tmp_path, "--set", "journal.payloads=true"), console(state) as found:
            yield found


def test_slow_calls_hold_up_nothing_else(running: RunningConsole) -> None:
    [server] = running.wait_for("api/state", lambda found: found["servers"])["servers"]
    wish = {"server": server["id"], "tool": "change", "confirmed": True}
    statuses: list[int] = []
    refused = threading.Barrier(8 - MOST_ACTIONS + 1)

    def call() -> None:
        try:
            sent = httpx.post(
                f"{running.base}api/call",
                json=wish,
                headers={"Authorization": f"Bearer {running.token}"},
                timeout=SLOW * 2,
                trust_env=False,
            )
            statuses.append(sent.status_code)
            if "at most" in sent.text:
                refused.wait(consoles.SECONDS)
        except httpx.HTTPError:
            statuses.append(0)

    threads = [threading.Thread(target=call) for _ in range(8)]
    for each in threads:
        each.start()
    running.wait(lambda rows: sum(row["method"] == "tools/call" for row in rows) >= MOST_ACTIONS)
    refused.wait(consoles.SECONDS)
    answer = running.http.get("assets/console_stream.js", headers={"Accept-Encoding": "gzip"})
    assert answer.headers["content-encoding"] == "gzip"
    running.process.send_signal(signal.SIGTERM)
    assert running.process.wait(consoles.SECONDS) == 0
    for each in threads:
        each.join()
    assert statuses == [503] * 8


def test_exports_are_made_one_after_the_other() -> None:
    running, most = 0, 0

    def slow(rows: Sequence[Numbered]) -> ExportFile:
        nonlocal running, most
        running += 1
        most = max(most, running)
        sleep(0.05)
        running -= 1
        return ExportFile(b"%d" % len(rows), "text/plain", "txt")

    state = fed(ConsoleState(), iter([record(1), record(2, tool="look")]))
    posts = ConsolePosts(
        state, TokenAccess(port=1), ConsoleActions(), {"slow": slow}, lambda _: pytest.fail("no server")
    )
    wish = ApiRequest("POST", "api/export", {}, {}, {"format": "slow", "filter": "tool:look"})

    async def all_of_them() -> list[ApiReply]:
        return await asyncio.gather(*(posts.answer(wish) for _ in range(6)))

    assert [each.content for each in asyncio.run(all_of_them())] == [b"1"] * 6
    assert most == 1
    posts.end()
    with pytest.raises(ApiError, match="the console ends"):
        asyncio.run(posts.answer(wish))

"""Actions that wait: they hold up neither other requests nor the end of the console."""

import signal
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import httpx
import pytest

from kit import consoles
from kit.consoles import RunningConsole, console, http_guard

SLOW = 20.0
"""Seconds that the slow tool takes."""

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
        except httpx.HTTPError:
            statuses.append(0)

    threads = [threading.Thread(target=call) for _ in range(8)]
    for each in threads:
        each.start()
    running.wait(lambda rows: sum(row["method"] == "tools/call" for row in rows) >= 4)
    began = monotonic()
    answer = running.http.get("api/rows", headers={"Accept-Encoding": "gzip"})
    assert answer.headers["content-encoding"] == "gzip"
    running.process.send_signal(signal.SIGTERM)
    assert running.process.wait(consoles.SECONDS) == 0
    assert monotonic() - began < SLOW / 2
    for each in threads:
        each.join()
    assert statuses == [503] * 8

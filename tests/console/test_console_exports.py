"""Exports wait for each other: all records together take some hundred megabytes as values."""

import asyncio
import threading
from collections.abc import Sequence

from test_console_state import fed, record

from assay.console.exports import ExportFile, Exports, Numbered
from assay.console.state import ConsoleState


def test_exports_are_made_one_after_the_other() -> None:
    running, most = 0, 0

    def slow(rows: Sequence[Numbered]) -> ExportFile:
        nonlocal running, most
        running += 1
        most = max(most, running)
        for _ in range(3):
            # Whatever the event loop has to begin meanwhile is begun.
            turned = threading.Event()
            loops[0].call_soon_threadsafe(turned.set)
            assert turned.wait(60)
        running -= 1
        return ExportFile(b"%d" % len(rows), "text/plain", "txt")

    state = fed(ConsoleState(), iter([record(1), record(2, tool="look")]))
    exports = Exports(state, {"slow": slow})
    wish = {"format": "slow", "filter": "tool:look"}

    loops: list[asyncio.AbstractEventLoop] = []

    async def all_of_them() -> list[ExportFile]:
        loops.append(asyncio.get_running_loop())
        return await asyncio.gather(*(exports.file(wish) for _ in range(6)))

    assert [each.content for each in asyncio.run(all_of_them())] == [b"1"] * 6
    assert most == 1

"""A client on standard streams that does not read: what waits for it is bounded, and nothing of it is lost."""

import asyncio
import os

from assay.edges.client_stdio import StdioClient
from assay.edges.pipes import FULL

LINE = b"x" * 9_999 + b"\n"
PIPE = 1 << 16
"""Bytes that are in the pipe itself."""


def test_what_waits_for_a_client_that_does_not_read_is_bounded_and_comes_whole() -> None:
    """Who has more for it waits until it reads on."""

    async def flood() -> tuple[int, bytes]:
        (source, unused), (reader, sink) = os.pipe(), os.pipe()
        client = StdioClient(source, sink, limit=1000, before_writing=lambda: None)
        sent = 0
        while not client.full:
            client.say(LINE)
            sent += 1
            await asyncio.sleep(0)
        waiting = asyncio.ensure_future(client.room())
        await asyncio.sleep(0)
        assert not waiting.done()
        got = b""
        while not waiting.done():
            got += await asyncio.to_thread(os.read, reader, PIPE)
        finishing = asyncio.ensure_future(client.finish())
        while len(got) < sent * len(LINE):
            got += await asyncio.to_thread(os.read, reader, PIPE)
        await finishing
        client.close()
        for each in (source, unused, reader, sink):
            os.close(each)
        return sent, got

    sent, got = asyncio.run(flood())
    assert FULL <= sent * len(LINE) <= FULL + PIPE + len(LINE)
    assert got == LINE * sent

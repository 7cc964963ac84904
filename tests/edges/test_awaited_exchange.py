"""A response that a connection waits for: what it is written by, and that its records come first."""

import asyncio
from typing import Any

from assay.edges.awaited_exchange import AwaitedExchange


class Timeless:
    """An exchange of which only its time is asked for."""

    def keep_time(self) -> None:
        """Apply the time limit."""


async def never() -> dict[str, Any]:
    """The client says nothing more."""
    await asyncio.Event().wait()
    return {}


def test_records_are_written_before_a_response_that_took_long() -> None:
    """A task of the connection has taken over when the response comes; it is sent then without a buffer."""
    steps: list[str] = []

    async def send(message: dict[str, Any]) -> None:
        steps.append(message["type"])

    async def scenario() -> None:
        comes = asyncio.Event()
        request: Any = None
        exchange: Any = Timeless()
        awaited = AwaitedExchange(request, 0.0, lambda: steps.append("commit"))

        async def work() -> None:
            await comes.wait()
            steps.append("record")
            await awaited.send({"type": "start", "status": 200, "headers": []})
            await awaited.send({"type": "body", "body": b"{}"})

        awaited.start(exchange, work())
        writing = asyncio.ensure_future(awaited.carry_on(never, send))
        await asyncio.sleep(0)
        steps.clear()
        comes.set()
        await asyncio.wait_for(writing, 60)

    asyncio.run(scenario())
    assert steps[:3] == ["record", "commit", "start"]
    assert "body" in steps[3:]

"""Schemas are compiled one after the other, principals take turns, and everything else goes on meanwhile."""

import asyncio
from collections.abc import Iterator
from typing import Any, cast

from assay.edges.compile_turns import CompileTurns
from assay.schema.tool_contract import Contract


class Slow:
    """A contract that notes when it is compiled."""

    def __init__(self, name: str, done: list[str], steps: int = 1) -> None:
        self._name, self._done, self._steps = name, done, steps

    def compiling(self) -> Iterator[None]:
        """Compile it, in some steps."""
        for _ in range(self._steps):
            self._done.append(self._name)
            yield


def contracts(*every: Any) -> list[Contract]:
    """What stands for contracts."""
    return cast("list[Contract]", list(every))


def test_principals_take_turns() -> None:
    done: list[str] = []

    async def run() -> None:
        turns = CompileTurns()
        mallory = [asyncio.ensure_future(turns.compile(contracts(Slow(f"m{n}", done)), "mallory")) for n in range(5)]
        alice = asyncio.ensure_future(turns.compile(contracts(Slow("a", done)), "alice"))
        await asyncio.gather(alice, *mallory)

    asyncio.run(run())
    assert done.index("a") <= 1


def test_what_nobody_waits_for_any_more_is_not_compiled() -> None:
    done: list[str] = []

    async def run() -> None:
        turns = CompileTurns()
        first = asyncio.ensure_future(turns.compile(contracts(Slow("first", done)), "a"))
        gone = asyncio.ensure_future(turns.compile(contracts(Slow("gone", done)), "b"))
        last = asyncio.ensure_future(turns.compile(contracts(Slow("last", done)), "c"))
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.gather(first, last)

    asyncio.run(run())
    assert done == ["first", "last"]


def test_other_work_goes_on_between_two_schemas() -> None:
    done: list[str] = []

    async def run() -> None:
        async def other() -> None:
            for _ in range(3):
                done.append("other")
                await asyncio.sleep(0)

        await asyncio.gather(CompileTurns().compile(contracts(Slow("schema", done, 3)), ""), other())

    asyncio.run(run())
    assert done.index("other") < len(done) - 1 - done[::-1].index("schema")

"""
Compiles the schemas of tools between other work, for all servers and clients.

A hostile schema takes up to a tenth of a second. So one schema is compiled at a time, the principals take turns, and
everything else gets as much time as a schema took before the next one is compiled.
"""

import asyncio
from collections import deque
from collections.abc import Iterable
from time import perf_counter
from typing import Final, NamedTuple

from assay.schema.tool_contract import Contract

_LONGEST_PAUSE: Final = 0.1
"""Seconds between two schemas at most."""


class _Waiting(NamedTuple):
    contract: Contract
    done: "asyncio.Future[None]"


class CompileTurns:
    """The contracts that wait to be compiled, by principal."""

    def __init__(self) -> None:
        self._waiting: dict[str, deque[_Waiting]] = {}
        """The principal whose turn is next comes first."""
        self._task: asyncio.Task[None] | None = None

    async def compile(self, contracts: Iterable[Contract], owner: str) -> None:
        """Compile *contracts*, which a message of *owner* needs. One that is not waited for any more is left out."""
        for contract in contracts:
            done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            if self._task is None or self._task.done() or self._task.get_loop() is not done.get_loop():
                # The first one; or an event loop before this one has ended.
                self._waiting.clear()
                self._task = asyncio.ensure_future(self._work())
            self._waiting.setdefault(owner, deque()).append(_Waiting(contract, done))
            await done

    async def _work(self) -> None:
        while self._waiting:
            owner = next(iter(self._waiting))
            own = self._waiting.pop(owner)
            one = own.popleft()
            if own:
                # Behind all others.
                self._waiting[owner] = own
            # A waiting client that has gone has cancelled it.
            if not one.done.done():
                await self._compile(one)

    async def _compile(self, one: _Waiting) -> None:
        try:
            begun = perf_counter()
            for _ in one.contract.compiling():
                await asyncio.sleep(min(perf_counter() - begun, _LONGEST_PAUSE))
                begun = perf_counter()
        finally:
            # Whatever became of it: the judge compiles what is missing.
            if not one.done.done():
                one.done.set_result(None)


TURNS: Final = CompileTurns()

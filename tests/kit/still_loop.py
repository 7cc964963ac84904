"""An event loop whose clock moves only when nothing else is left to do, and then at once to the next timer."""

import asyncio
import selectors
from collections.abc import Mapping
from typing import Any


class NothingHappensError(RuntimeError):
    """Everything waits, and there is no timer: this would hang."""


class _Selector(selectors.BaseSelector):
    """Waits for nothing: where the loop would, the clock moves."""

    def __init__(self) -> None:
        self._real = selectors.DefaultSelector()
        self.now = 1000.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        found = self._real.select(0)
        if found or timeout == 0:
            return found
        if timeout is None:
            raise NothingHappensError("nothing is left to do, and no timer runs")
        self.now += timeout
        return []

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._real.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._real.unregister(fileobj)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._real.get_map()

    def close(self) -> None:
        self._real.close()


class StillLoop(asyncio.SelectorEventLoop):
    """The loop."""

    def __init__(self) -> None:
        self._still = _Selector()
        super().__init__(self._still)

    def time(self) -> float:
        """The time of its own clock."""
        return self._still.now

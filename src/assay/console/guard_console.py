"""The console beside a guard over HTTP: it shows the records of that guard only."""

import asyncio
import secrets
from collections.abc import Collection, Iterable
from typing import Any, Final

from assay.console.api_values import ConsoleActions
from assay.console.console_access import ConsoleAccess, GateAccess, TokenAccess
from assay.console.console_app import ConsoleApp
from assay.console.console_service import logged
from assay.console.console_sources import GuardPump
from assay.console.console_state import ConsoleState
from assay.console.contract_board import LockOf
from assay.edges.http.access import Door
from assay.edges.http.listen_address import ListenAddress
from assay.edges.http.replies import Receive, Send
from assay.records.live.live_feed import LiveFeed

PREFIX: Final = "/console/"


class GuardConsole:
    """The console of one guard. Its parts are made as the guard starts."""

    prefix = PREFIX

    def __init__(self, actions: ConsoleActions, lock_of: LockOf, names: Collection[str] = ()) -> None:
        """*names* are the principals that have access, where the guard has authentication."""
        self._actions, self._names = actions, tuple(names)
        self._state = ConsoleState(lock_of=lock_of)
        self._app: ConsoleApp | None = None
        self._pump: GuardPump | None = None
        self._task: asyncio.Task[None] | None = None
        self._lines: list[str] = []

    def attend(self, feed: LiveFeed) -> None:
        """Listen to *feed*; called before the first server is there."""
        self._pump = GuardPump(self._state, self._changed, feed)

    def open(self, door: Door, place: ListenAddress) -> None:
        """Serve at *place* those that *door* lets in: principals, or without authentication this user's programs."""
        port = place.sock.getsockname()[1]
        access: ConsoleAccess
        if door.gate is not None:
            access = GateAccess(door.gate, place.safety, port, self._names)
            self._lines = [f"console at {place.url}{PREFIX} for {', '.join(self._names)}"]
        else:
            tokens = access = TokenAccess(port=port, safety=place.safety)
            self._lines = [f"console at {place.url}{PREFIX}?token={tokens.token}"]
        epoch = secrets.token_hex(4)
        self._app = ConsoleApp(self._state, access, self._actions, base=PREFIX, own="guard", epoch=epoch)

    def enter(self) -> Iterable[str]:
        """Start on the running event loop; return lines for the operator."""
        if self._pump is not None:
            self._task = asyncio.get_running_loop().create_task(logged(self._pump.run))
        return self._lines

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Answer one HTTP request."""
        if self._app is not None:
            await self._app(scope, receive, send)

    def stop(self) -> None:
        """End the streams, after the last records."""
        if self._pump is not None:
            self._pump.take()
        if self._app is not None:
            self._app.end()

    async def close(self) -> None:
        """Take no further records."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _changed(self) -> None:
        if self._app is not None:
            self._app.signal.changed()

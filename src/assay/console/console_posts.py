"""What a page lets a console do: export rows, write an exception, call a tool, start the demonstration."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from shlex import join
from typing import Any, Final

import orjson

from assay.console.action_threads import ActionThreads
from assay.console.api_values import (
    ApiError,
    ApiReply,
    ApiRequest,
    CallConfirmError,
    CallFailedError,
    CallWish,
    ConsoleActions,
    NewGuard,
    json_reply,
)
from assay.console.console_access import ConsoleAccess
from assay.console.console_exports import (
    Exporter,
    ExportFile,
    NoPayloadsError,
    chosen_seqs,
    recording_file,
    recording_of,
)
from assay.console.console_state import ConsoleState, ServerFacts
from assay.console.exception_text import exception_text
from assay.records.journal.reading import Record
from assay.records.live.filter_words import FilterError, FilterWords, answered_requests


class ConsolePosts:
    """The answers to requests that do something. What waits runs in a thread."""

    def __init__(
        self,
        state: ConsoleState,
        access: ConsoleAccess,
        actions: ConsoleActions,
        exporters: Mapping[str, Exporter],
        server_of: Callable[[Any], ServerFacts],
    ) -> None:
        """*server_of* returns the server with a number, or raises `ApiError`."""
        self._state, self._access, self._actions = state, access, actions
        self._exporters, self._server_of = exporters, server_of
        self._threads = ActionThreads()
        self._exporting = asyncio.Lock()

    async def answer(self, request: ApiRequest) -> ApiReply:
        """Return the answer to a POST. Raises `ApiError`."""
        handler = _POSTS.get(request.path)
        if handler is None:
            raise ApiError(404, "unknown", "there is nothing here")
        return await handler(self, request)

    def end(self) -> None:
        """Wait for no action any more."""
        self._threads.end()

    async def _export(self, request: ApiRequest) -> ApiReply:
        exporter = self._exporters.get(str(request.value.get("format")))
        if exporter is None:
            raise ApiError(400, "invalid", f"format: expected one of {', '.join(self._exporters)}")
        try:
            words = FilterWords.parse(str(request.value.get("filter") or ""))
            seqs = chosen_seqs(request.value.get("seqs"))
        except (FilterError, ValueError) as error:
            raise ApiError(400, "invalid", str(error)) from None
        # One after the other: all records together take some hundred megabytes as values.
        try:
            async with self._exporting:
                file, missing = await self._exported(exporter, words, seqs)
        except NoPayloadsError as error:
            raise ApiError(409, "payloads", str(error)) from None
        left_out = file.left_out + missing
        headers = [(b"content-disposition", f'attachment; filename="assay-{file.ending}"'.encode())]
        if left_out:
            headers.append((b"assay-left-out", b"%d" % left_out))
        return ApiReply(file.content, file.kind.encode(), headers=tuple(headers))

    async def _exported(self, exporter: Exporter, words: FilterWords, seqs: set[int] | None) -> tuple[ExportFile, int]:
        """Return the file of the wanted rows, and how many of them were dropped."""
        # Taken here: the store changes while a thread makes the file.
        store = self._state.store
        raw = store.raw_records(seqs)
        # Which requests are answered also other rows say.
        answers = store.raw_records(None) if words.asks_for_answers else []
        others = store.raw_records(None) if exporter is recording_file else []
        names = self._state.server_names(seq for seq, _ in raw) if words.asks_for_server else {}

        def made() -> tuple[ExportFile, int]:
            known = ((seq, orjson.loads(each)) for seq, each in raw if each is not None)
            missing = sum(each is None for _, each in raw)
            answered = answered_requests(orjson.loads(each) for _, each in answers if each is not None)

            def is_wanted(seq: int, record: Record) -> bool:
                return words.wants(record, server=names.get(seq, ""), is_open=record["requestId"] not in answered)

            if exporter is not recording_file:
                return exporter([each for each in known if is_wanted(*each)]), missing
            # A recording is judged again, which takes more than the chosen rows.
            wanted = {each[0] for each in known if is_wanted(*each)}
            every = [(seq, orjson.loads(each)) for seq, each in others if each is not None]
            return recording_of(every, wanted), missing

        return await self._threads.run(made)

    async def _exception(self, request: ApiRequest) -> ApiReply:
        wanted = {**request.value}
        if "server" in wanted:
            wanted["server_name"] = self._server_of(wanted["server"]).name
        try:
            text, notes = exception_text(wanted, datetime.now(UTC).date())
        except ValueError as error:
            raise ApiError(400, "invalid", str(error)) from None
        return json_reply({"toml": text, "file": "assay.toml", "notes": notes})

    async def _call(self, request: ApiRequest) -> ApiReply:
        value, call = request.value, self._actions.call
        if call is None:
            raise ApiError(404, "unknown", "this console cannot call tools")
        server = self._server_of(value.get("server"))
        tool, arguments = value.get("tool"), value.get("arguments", {})
        if not isinstance(tool, str) or not isinstance(arguments, dict):
            raise ApiError(400, "invalid", "expected tool, a string, and arguments, an object")
        given = value.get("authorization")
        if not isinstance(given, str):
            given = self._access.credential(request.headers)
        wish = CallWish(server.address, tool, arguments, value.get("confirmed") is True, given)
        if not server.address:
            wish = wish._replace(guard=self._new_guard(server), authorization="")
            started = self._started(server)
            # What a guard reports can change while a page asks: only what was shown is confirmed.
            is_other = any(value.get(name, shown) != shown for name, shown in started.items())
            if not wish.confirmed or is_other:
                said = "starts another program than the confirmed one" if is_other else "starts a program"
                raise ApiError(409, "confirm", f"the call {said}; confirm it", **started)
        try:
            return json_reply(await self._threads.run(partial(call, wish)))
        except CallConfirmError as error:
            raise ApiError(409, "confirm", str(error), annotations=error.annotations) from None
        except CallFailedError as error:
            raise ApiError(502, "failed", str(error)) from None

    def _new_guard(self, server: ServerFacts) -> NewGuard:
        """Return the guard to start for a call, by what the feed of the running one says. Raises `ApiError`."""
        if server.start is not None and self._actions.starts:
            return NewGuard(server.name, server.start, server.totals.mode, server.payloads is True)
        if server.totals.state == "ended" or server.source.kind != "guard":
            raise ApiError(409, "unreachable", "its guard has ended")
        why = "a server over STDIO belongs to its client, and its whole command is not known: use assay call -- COMMAND"
        raise ApiError(409, "unreachable", why)

    def _started(self, server: ServerFacts) -> dict[str, Any]:
        start = server.start
        return {} if start is None else {"command": join(start.words), "directory": start.directory}

    async def _demo(self, _: ApiRequest) -> ApiReply:
        if self._actions.demo is None:
            raise ApiError(404, "unknown", "this console has no demonstration")
        try:
            return json_reply({"server": await self._threads.run(self._actions.demo)})
        except CallFailedError as error:
            raise ApiError(502, "failed", str(error)) from None


_POSTS: Final[dict[str, Callable[[ConsolePosts, ApiRequest], Awaitable[ApiReply]]]] = {
    "api/export": ConsolePosts._export,
    "api/exception": ConsolePosts._exception,
    "api/call": ConsolePosts._call,
    "api/demo": ConsolePosts._demo,
}

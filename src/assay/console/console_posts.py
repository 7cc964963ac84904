"""What a page lets a console do: export rows, and write an exception."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import orjson

from assay.console.api_values import ApiError, ApiReply, ApiRequest, json_reply
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
from assay.records.filter_words import FilterError, FilterWords, answered_requests
from assay.records.journal.reading import Record


class ConsolePosts:
    """The answers to requests that do something."""

    def __init__(
        self, state: ConsoleState, exporters: Mapping[str, Exporter], server_of: Callable[[Any], ServerFacts]
    ) -> None:
        """*server_of* returns the server with a number, or raises `ApiError`."""
        self._state, self._exporters, self._server_of = state, exporters, server_of
        self._exporting = asyncio.Lock()

    async def answer(self, request: ApiRequest) -> ApiReply:
        """Return the answer to a POST. Raises `ApiError`."""
        handler = _POSTS.get(request.path)
        if handler is None:
            raise ApiError(404, "unknown", "there is nothing here")
        return await handler(self, request)

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

        return await asyncio.to_thread(made)

    async def _exception(self, request: ApiRequest) -> ApiReply:
        wanted = {**request.value}
        if "server" in wanted:
            wanted["server_name"] = self._server_of(wanted["server"]).name
        try:
            text, notes = exception_text(wanted, datetime.now(UTC).date())
        except ValueError as error:
            raise ApiError(400, "invalid", str(error)) from None
        return json_reply({"toml": text, "file": "assay.toml", "notes": notes})


_POSTS: Final[dict[str, Callable[[ConsolePosts, ApiRequest], Awaitable[ApiReply]]]] = {
    "api/export": ConsolePosts._export,
    "api/exception": ConsolePosts._exception,
}

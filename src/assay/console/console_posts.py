"""What a page lets a console do: export rows, and write an exception."""

import asyncio
import re
import tomllib
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from assay.base.errors import SettingsError
from assay.console.api_values import ApiError, ApiReply, ApiRequest, json_reply
from assay.console.console_exports import (
    Exporter,
    ExportFile,
    NoPayloadsError,
    Numbered,
    chosen_seqs,
    recording_file,
    recording_of,
)
from assay.console.console_state import ConsoleState, ServerFacts
from assay.records.filtering import FilterError, RecordFilter, answered_requests
from assay.records.record import Record, read_record
from assay.settings import Settings
from assay.settings.loading import in_file, made
from assay.settings.settings_files import FoundSettings

_DAYS: Final = 30
"""Days for which an exception holds, unless the request has another end."""

_LONGEST: Final = 500
"""Maximal characters of a text."""

_PLAIN: Final = re.compile(r"[^\x00-\x1f\x7f]*")
"""A text without control characters."""

_WHERE: Final = (
    "the guard reads `assay.toml` in its working directory, once you have run `assay trust assay.toml` there; "
    "or the file that `--config` names"
)


def exception_text(wanted: dict[str, Any], today: date) -> tuple[str, list[str]]:
    """Return the TOML of the exception that *wanted* describes, and notes. Raises `ValueError`."""
    rule, reason = _text(wanted, "rule").strip(), _text(wanted, "reason").strip() or "accepted in the console"
    # A name is used as it is: with its white space removed, it would be that of another tool, or of all.
    tool, server = _text(wanted, "tool"), _text(wanted, "server_name")
    until = _until(wanted.get("until"), today)
    rows = [("rule", _quoted(rule))]
    if tool:
        rows.append(("tool", _quoted(tool)))
    action = _text(wanted, "action").strip()
    if action:
        rows.append(("action", _quoted(action)))
    rows += [("reason", _quoted(reason)), ("until", until.isoformat())]
    text = "[[guard.exceptions]]\n" + "".join(f"{name} = {value}\n" for name, value in rows)
    check(text)
    notes = [_WHERE]
    if server:
        notes.append(f"it holds for every server that this file is used for, not only for {server}")
    return text, notes


def check(text: str) -> Settings:
    """Return the settings of a file with this *text*. Raises `ValueError`, as the guard would for such a file."""
    found = FoundSettings(tomllib.loads(text), "", "assay.toml", text.encode(), named=True)
    try:
        settings: Settings = made(in_file(found))
    except SettingsError as error:
        raise ValueError(str(error)) from None
    return settings


def _text(wanted: dict[str, Any], name: str) -> str:
    value = wanted.get(name)
    if value is None:
        return ""
    if not isinstance(value, str) or len(value) > _LONGEST or _PLAIN.fullmatch(value) is None:
        raise ValueError(f"{name}: expected at most {_LONGEST} characters, none of them a control character")
    return value


def _until(given: Any, today: date) -> date:
    if given is None:
        return today + timedelta(days=_DAYS)
    try:
        until = date.fromisoformat(given)
    except (TypeError, ValueError):
        raise ValueError("until: expected a day such as 2026-12-31") from None
    if until < today:
        raise ValueError(f"until: {until} is over")
    return until


def _quoted(text: str) -> str:
    """Return *text* as a string of TOML. What cannot be seen, or turns the text around it, is escaped."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(each if each.isprintable() else f"\\U{ord(each):08X}" for each in escaped) + '"'


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
            words = RecordFilter.parse(str(request.value.get("filter") or ""))
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

    async def _exported(self, exporter: Exporter, words: RecordFilter, seqs: set[int] | None) -> tuple[ExportFile, int]:
        """Return the file of the wanted rows, and how many of them were dropped."""
        # Taken here: the store changes while a thread makes the file.
        store = self._state.store
        raw = store.raw_records(seqs)
        # Which requests are answered also other rows say.
        answers = store.raw_records(None) if words.asks_for_answers else []
        others = store.raw_records(None) if exporter is recording_file else []
        names = self._state.server_names(seq for seq, _ in raw) if words.asks_for_server else {}

        def made() -> tuple[ExportFile, int]:
            known = _read(raw)
            missing = sum(each is None for _, each in raw)
            answered = answered_requests(record for _, record in _read(answers))

            def is_wanted(seq: int, record: Record) -> bool:
                return words.wants(record, server=names.get(seq, ""), is_open=record.request_id not in answered)

            if exporter is not recording_file:
                return exporter([each for each in known if is_wanted(*each)]), missing
            # A recording is judged again, which takes more than the chosen rows.
            wanted = {each[0] for each in known if is_wanted(*each)}
            return recording_of(list(_read(others)), wanted), missing

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


def _read(raw: Iterable[tuple[int, bytes | None]]) -> Iterator[Numbered]:
    """Yield the records of rows that are still there."""
    for seq, line in raw:
        record = read_record(line) if line is not None else None
        if record is not None:
            yield seq, record


_POSTS: Final[dict[str, Callable[[ConsolePosts, ApiRequest], Awaitable[ApiReply]]]] = {
    "api/export": ConsolePosts._export,
    "api/exception": ConsolePosts._exception,
}

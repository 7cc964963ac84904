"""
The HTTP exchange that carried a message, for records with payloads. No I/O.

Without payloads nothing here is used. A header is written only if it is in `SHOWN`: any other may have a secret, so
records have its name alone.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from assay.guard.internal_errors import log_once
from assay.judge.headers import decode
from assay.model.verdict import Party, Verdict
from assay.records.record import RunIdentity, cut

SHOWN: Final = {
    b"accept": "Accept",
    b"content-type": "Content-Type",
    b"last-event-id": "Last-Event-ID",
    b"mcp-method": "Mcp-Method",
    b"mcp-name": "Mcp-Name",
    b"mcp-protocol-version": "MCP-Protocol-Version",
    b"mcp-session-id": "Mcp-Session-Id",
    b"origin": "Origin",
    b"user-agent": "User-Agent",
}
"""The headers whose values are written, by their names in lower case. Of a session id, only the digest is."""

PRESENT: Final = "(present)"
"""The value of every other header."""

_MOST_HEADERS: Final = 40
"""Maximal headers of one record: browsers send some 20, and a client chooses their number."""

_NAME_LENGTH: Final = 60
_VALUE_LENGTH: Final = 200
"""Maximal characters of a name and of a value."""

_ANSWERS: Final = frozenset({"result", "error", "missing", "batch"})
_ENCODED: Final = "=?"
"""The beginning of a value in Base64."""

_SESSION: Final = b"mcp-session-id"


class HttpNote:
    """One HTTP request of a client, and the status of its response."""

    __slots__ = ("_headers", "_method", "_path", "status", "status_of")

    def __init__(self, method: str, path: str, headers: Mapping[bytes, bytes]) -> None:
        """*headers* by their names in lower case."""
        self._method, self._path, self._headers = method, path, headers
        self.status: int | None = None
        """The status of the response, once it is known."""
        self.status_of: Callable[[bytes], int] | None = None
        """Returns the status of a response with this message, where it depends on the message."""

    def members(self, verdict: Verdict, run: RunIdentity) -> dict[str, Any]:
        """Return what a record has of the exchange: a message of the client the request, an answer the status."""
        if verdict.party is not Party.CLIENT:
            status = self.status if verdict.kind in _ANSWERS else None
            if status is None and self.status_of is not None and verdict.kind in _ANSWERS:
                status = self.status_of(verdict.onward or verdict.frame)
            return {} if status is None else {"status": status}
        found: dict[str, Any] = {"method": self._method, "path": cut(run.redactor.text(self._path), _VALUE_LENGTH)}
        if self.status is not None:
            found["status"] = self.status
        # Those that matter to the protocol come first.
        shown = [(SHOWN[name], _value(name, value, run)) for name, value in self._headers.items() if name in SHOWN]
        others = [name for name in self._headers if name not in SHOWN][: _MOST_HEADERS - len(shown)]
        found["headers"] = dict(shown + [(_title(name, run), PRESENT) for name in others])
        return found


def _value(name: bytes, value: bytes, run: RunIdentity) -> str:
    text = value.decode("latin-1")
    if name == _SESSION:
        return run.session_name(text)
    if text.lstrip().startswith(_ENCODED):
        plain = decode(value)
        if plain is None or plain.startswith(_ENCODED):
            return PRESENT
        # In Base64 a secret is not recognized.
        shown = run.redactor.text(plain)
        return cut(text if shown == plain else shown, _VALUE_LENGTH)
    # Redact first, then cut: part of a secret is not recognized.
    return cut(run.redactor.text(text), _VALUE_LENGTH)


def _title(name: bytes, run: RunIdentity) -> str:
    """Return the name of a header, which a client may have chosen: without secrets, parts capitalised, cut."""
    given = name.decode("ascii", "replace")
    text = run.redactor.text(given)
    parts = text[:_NAME_LENGTH].split("-")
    return "-".join(part.capitalize() if text == given else part for part in parts)


class HttpNotes:
    """
    The HTTP request whose message is being judged.

    The status of the response to a refused message is known only after its verdict, so the records of the message are
    made at `end`. An edge calls `begin`, judges and calls `end` without waiting in between.
    """

    __slots__ = ("_path", "_waiting", "note")

    def __init__(self, path: str) -> None:
        """*path* is that of all requests."""
        self._path = path
        self.note: HttpNote | None = None
        self._waiting: list[Callable[[HttpNote], None]] = []

    def begin(self, method: str, headers: Mapping[bytes, bytes]) -> HttpNote:
        """Note the request that is judged next."""
        self.note = HttpNote(method, self._path, headers)
        return self.note

    def defer(self, write: Callable[[HttpNote], None]) -> None:
        """Call *write* with the note at `end`."""
        self._waiting.append(write)

    def end(self, status: int | None = None) -> None:
        """The message was judged; *status* is that of its response, if the guard answers it at once."""
        note, self.note = self.note, None
        waiting, self._waiting = self._waiting, []
        if note is not None:
            note.status = status
            for write in waiting:
                try:
                    write(note)
                except Exception as error:
                    log_once(error, "a message could not be recorded")

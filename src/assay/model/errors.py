"""
Errors of operators, one table from error code to HTTP status, JSON-RPC code and message (specs/000), and the error that
a client shows in place of a missing answer. No I/O.
"""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple


class ErrorRow(NamedTuple):
    """One canonical error: HTTP status, JSON-RPC code and message."""

    http_status: int
    jsonrpc_code: int
    message: str


# The first four are exactly those of specs/000. The specification reserves -32020 … -32099: only the codes that it
# defines are used there. -32000 … -32019 are legacy, and drafts of extensions use some of them (-32011 to -32015 mean
# something else in the events draft); so codes of our own are outside -32768 … -32000, as the specification asks.
_TABLE: dict[str, ErrorRow] = {
    "INVALID_ENVELOPE": ErrorRow(400, -32600, "Invalid MCP envelope"),
    "INVALID_TOOL_INPUT": ErrorRow(422, -32602, "Invalid tool input"),
    "TOOL_NOT_FOUND": ErrorRow(404, -32001, "Unknown tool"),
    "INTERNAL_ERROR": ErrorRow(500, -32603, "Internal error"),
    "PARSE_ERROR": ErrorRow(400, -32700, "Parse error"),
    "PAYLOAD_TOO_LARGE": ErrorRow(413, -32600, "Invalid MCP envelope"),
    "METHOD_NOT_FOUND": ErrorRow(404, -32601, "Method not found"),
    "INVALID_PARAMS": ErrorRow(400, -32602, "Invalid params"),
    "UNKNOWN_TOOL": ErrorRow(200, -32602, "Unknown tool"),
    "HEADER_MISMATCH": ErrorRow(400, -32020, "Header mismatch"),
    "MISSING_CAPABILITY": ErrorRow(400, -32021, "Missing required client capability"),
    "UNSUPPORTED_REVISION": ErrorRow(400, -32022, "Unsupported protocol version"),
    "RESOURCE_NOT_FOUND": ErrorRow(404, -32002, "Resource not found"),
    "UPSTREAM_INVALID": ErrorRow(502, -31010, "The answer broke the contract"),
    "UPSTREAM_FAILURE": ErrorRow(502, -31011, "No answer came"),
    "TIMEOUT": ErrorRow(504, -31012, "No answer came in time"),
    "UNAUTHENTICATED": ErrorRow(401, -31013, "Authentication required"),
    "FORBIDDEN": ErrorRow(403, -31014, "Forbidden"),
    "TIER_REQUIRED": ErrorRow(403, -31015, "A higher tier is required"),
    "OVERLOADED": ErrorRow(503, -31016, "Too many requests at once"),
}


class SettingsError(Exception):
    """An error in the settings, in one line: the place, what is wrong, and the likely fix."""


class UsageError(SettingsError):
    """An error in the arguments of a command, which is reported under the name of that command."""


class CanonicalError:
    """Maps internal error codes to statuses and messages. An unknown code raises ``KeyError``: there is no default."""

    @staticmethod
    def codes() -> tuple[str, ...]:
        """Return every code, those of specs/000 first."""
        return tuple(_TABLE)

    @staticmethod
    def to_http_status(code: str) -> int:
        """Return the HTTP status for *code*."""
        return _row(code).http_status

    @staticmethod
    def to_jsonrpc_error(code: str) -> dict[str, int | str]:
        """Return a new ``{"code", "message"}`` for *code*."""
        row = _row(code)
        return {"code": row.jsonrpc_code, "message": row.message}


def _row(code: str) -> ErrorRow:
    try:
        return _TABLE[code]
    except KeyError:
        raise KeyError(f"no canonical error {code!r}; there are {', '.join(_TABLE)}") from None


# ── in place of an answer ────────────────────────────────────────────────────────────────────────────────────────────

SHOWN: Final = 300
"""The length of a cause in a message, in characters: a client shows it on a line or two."""

_ANSWERED: Final = ("it answered", "its answer", "the server answered")
"""The start of a reason if something came that does not answer the request."""

_USELESS: Final = re.compile(r"\s|Node\.js v\d|note: run with |\^+$")
"""The start of stderr lines that a runtime writes around the reason: stack frames, versions, hints."""


def within(seconds: float) -> str:
    """Return the reason after a time-out of *seconds*."""
    return f"within {seconds:g} s"


def no_answer(
    code: str, why: str = "", last_words: Sequence[str] = (), owed_by: str = "server"
) -> dict[str, int | str]:
    """
    Return the error for *code* that a client shows in place of a missing answer, with the reason *why*.

    The reason is in the message: most clients show that, and not the data. In *why*, ``it`` is the party *owed_by*;
    the most useful line of *last_words*, its stderr, follows.
    """
    made = CanonicalError.to_jsonrpc_error(code)
    if not why or code == "INTERNAL_ERROR":
        return made
    if code == "TIMEOUT":
        return {**made, "message": f"No answer came {why}"}
    head = "No usable answer came" if code == "UPSTREAM_FAILURE" and why.startswith(_ANSWERED) else made["message"]
    line = reason_in(last_words)
    return {**made, "message": f"{head}: {with_party(why, owed_by)}{f': {line}' if line else ''}"}


def reason_in(last_words: Sequence[str]) -> str:
    """Return the line of stderr that explains an end best: the last one that is not part of a stack."""
    lines = [each for each in last_words if each.strip()]
    line = next((each for each in reversed(lines) if not _USELESS.match(each)), lines[-1] if lines else "")
    return _cut(" ".join(line.split()))


def with_party(why: str, owed_by: str) -> str:
    """Return *why* with the party in place of ``it`` and ``its``, so that the text stands alone."""
    if why.startswith("it "):
        return _cut(f"the {owed_by} {why.removeprefix('it ')}")
    return _cut(f"the {owed_by}'s {why.removeprefix('its ')}" if why.startswith("its ") else why)


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"

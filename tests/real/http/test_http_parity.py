"""One table of messages: over HTTP the same bytes get the answer that a stream of frames gets, and a status too."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from assay.assets.asset_server import AssetServer
from assay.assets.asset_sources import Catalogue
from assay.assets.mcp_methods import Methods
from assay.base.errors import CanonicalError
from assay.spec.methods import revisions_of
from assay.spec.revisions import LATEST, REVISIONS, handshake
from kit.asset_requests import answer, opened, said
from kit.catalogues import BUNDLED, variables
from kit.http_client import (
    BOTH,
    INITIALIZED,
    JSON,
    Answer,
    Headers,
    Service,
    call,
    frame_of,
    initialize,
    meta,
    modern,
    notification,
    of,
    request,
    serving,
)
from kit.rows import rows

BARE: Final = "bare"
"""The door of specs/001; the others are called by their revisions."""

DOORS: Final = (BARE, *REVISIONS)

RESULT: Final = "RESULT"
SILENCE: Final = "SILENCE"
"""Nothing is said on a stream; over HTTP it is 202, without a body."""
REFUSED: Final = "REFUSED"
"""Nothing is said on a stream, since it cannot be answered; over HTTP the status says it."""

Said = Any
Kind = str | Callable[[str], str | None]


class Row(NamedTuple):
    """One message, and what comes of it on each door: a canonical error, or one of the words above."""

    name: str
    said: bytes | dict[str, Any] | list[Any] | Callable[[str], Said]
    bare: str | None
    """None: not said on this door."""
    mcp: Kind | None
    """The same for every revision, or by revision."""
    text: str | None = None
    """The message of the error, where it is not that of the table."""
    read: bool = True
    """Whether it can be read as a request, so that what is said is the answer to one."""


def mcp(method: str, params: dict[str, Any] | None = None, ident: Any = 1) -> Callable[[str], Said]:
    """A request as the revision wants it."""
    return lambda revision: request(ident, method, params, "" if revision == BARE else revision)


def tool(name: str, arguments: Any) -> Callable[[str], Said]:
    return lambda revision: call(1, name, arguments, revision)


def frame(ident: bytes, method: bytes = b"list_schemas", params: bytes = b"{}") -> bytes:
    return b'{"jsonrpc":"2.0","id":%b,"method":"%b","params":%b}' % (ident, method, params)


def pinged(ident: bytes) -> Callable[[str], bytes]:
    """A request that every door knows, with an id as it is spelt."""

    def said(door: str) -> bytes:
        params = {"_meta": meta()} if door == LATEST else {}
        return frame(ident) if door == BARE else frame(ident, b"tools/list", frame_of(params))

    return said


def by_era(before: str, after: str | None, since: str = LATEST) -> Callable[[str], str | None]:
    return lambda revision: before if revision < since else after


def deep(levels: int) -> Callable[[str], bytes]:
    inside = b'{"base":1,"new":%b}' % (b"[" * levels + b"]" * levels)

    def said(door: str) -> bytes:
        more = b',"_meta":' + frame_of(meta()) if door == LATEST else b""
        params = b'{"name":"diff_assets","arguments":%b%b}' % (inside, more)
        return frame(b"1", b"diff_assets", inside) if door == BARE else frame(b"1", b"tools/call", params)

    return said


ROWS: Final = (
    # ── what cannot be read ──────────────────────────────────────────────────────────────────────────────────────────
    Row("no-json", b"{", "PARSE_ERROR", "PARSE_ERROR", read=False),
    Row("duplicate-key", frame(b'1,"id":2'), "PARSE_ERROR", "PARSE_ERROR", read=False),
    Row("nan", frame(b"NaN"), "PARSE_ERROR", "PARSE_ERROR", read=False),
    Row("not-utf8", frame(b'"\xff"'), "PARSE_ERROR", "PARSE_ERROR", read=False),
    Row("byte-order-mark", b"\xef\xbb\xbf" + frame(b"1"), "PARSE_ERROR", "PARSE_ERROR", read=False),
    Row("too-deep", deep(130), "PARSE_ERROR", "PARSE_ERROR", read=False),
    Row("deep-enough", deep(60), RESULT, RESULT),
    Row("oversized", b" " * (1 << 20) + frame(b"1"), "PAYLOAD_TOO_LARGE", "PAYLOAD_TOO_LARGE", read=False),
    Row("blank", b" \r", SILENCE, SILENCE),
    # ── what is no message ───────────────────────────────────────────────────────────────────────────────────────────
    Row("null", b"null", "INVALID_ENVELOPE", "INVALID_ENVELOPE", read=False),
    Row("empty-object", b"{}", "INVALID_ENVELOPE", "INVALID_ENVELOPE", read=False),
    Row("empty-batch", b"[]", "INVALID_ENVELOPE", "INVALID_ENVELOPE", read=False),
    Row("no-version", {"id": 1, "method": "ping"}, "INVALID_ENVELOPE", "INVALID_ENVELOPE"),
    Row("no-method", {"jsonrpc": "2.0", "id": 1}, "INVALID_ENVELOPE", "INVALID_ENVELOPE", read=False),
    Row("method-empty", {"jsonrpc": "2.0", "id": 1, "method": ""}, "INVALID_ENVELOPE", "INVALID_ENVELOPE"),
    Row("params-array", {**request(1, "ping"), "params": []}, "INVALID_ENVELOPE", "INVALID_ENVELOPE"),
    Row("id-null", pinged(b"null"), "INVALID_ENVELOPE", "INVALID_ENVELOPE"),
    Row("id-true", pinged(b"true"), "INVALID_ENVELOPE", "INVALID_ENVELOPE"),
    Row("id-fraction", pinged(b"1.5"), RESULT, "INVALID_ENVELOPE"),
    Row("id-too-long", pinged(b'"' + b"x" * 1025 + b'"'), "INVALID_ENVELOPE", "INVALID_ENVELOPE"),
    Row("id-2-to-the-70", pinged(b"1180591620717411303424"), RESULT, RESULT),
    Row("id-exponent", pinged(b"1e2"), RESULT, RESULT),
    Row("id-empty", pinged(b'""'), RESULT, RESULT),
    Row("id-escaped", pinged(rb'"\u00e9\n"'), RESULT, RESULT),
    # ── bare methods ─────────────────────────────────────────────────────────────────────────────────────────────────
    Row("list-schemas", request(1, "list_schemas"), RESULT, None),
    Row("get-schema", request(1, "get_schema", {"name": "tone"}), RESULT, None),
    Row("get-schema-of-nothing", request(1, "get_schema"), "INVALID_TOOL_INPUT", None),
    Row("get-example", request(1, "get_example", {"path": "../secret.json"}), RESULT, None),
    Row("no-tool", request(1, "render"), RESULT, None),
    Row("bare-notification", notification("list_schemas"), SILENCE, None),
    # ── MCP, before its time ─────────────────────────────────────────────────────────────────────────────────────────
    Row("tools-list-too-early", request(1, "tools/list"), "INVALID_ENVELOPE", None),
    Row("initialized-too-early", INITIALIZED, REFUSED, None),
    Row("initialize-without-params", request(1, "initialize"), "INVALID_PARAMS", None),
    Row("unknown-revision", request(1, "tools/list", {"_meta": meta("2030-01-01")}), "UNSUPPORTED_REVISION", None),
    # ── MCP ──────────────────────────────────────────────────────────────────────────────────────────────────────────
    Row("ping", mcp("ping"), None, by_era(RESULT, "METHOD_NOT_FOUND")),
    Row("listen", mcp("subscriptions/listen", {"notifications": {}}), None, "METHOD_NOT_FOUND"),
    Row("discover", mcp("server/discover"), None, by_era("METHOD_NOT_FOUND", RESULT)),
    Row("tools-list", mcp("tools/list"), None, RESULT),
    Row("tools-list-cursor", mcp("tools/list", {"cursor": "nope"}), None, "INVALID_PARAMS", "Invalid cursor"),
    Row("unknown-method", mcp("tools/run"), None, "METHOD_NOT_FOUND"),
    Row("bare-method-in-mcp", mcp("list_schemas"), None, "METHOD_NOT_FOUND"),
    Row("servers-method", mcp("sampling/createMessage"), None, "METHOD_NOT_FOUND"),
    Row("unknown-revision-in-meta", mcp("tools/list", {"_meta": meta("2030-01-01")}), None,
        by_era(RESULT, "UNSUPPORTED_REVISION")),
    Row("call", tool("get_schema", {"name": "tone"}), None, RESULT),
    Row("call-that-fails", tool("get_schema", {"name": "nope"}), None, RESULT),
    Row("call-without-name", mcp("tools/call", {"arguments": {}}), None, "INVALID_PARAMS"),
    Row("arguments-array", tool("get_schema", ["tone"]), None, "INVALID_PARAMS"),
    Row("bad-arguments", tool("get_schema", {"name": 5}), None, by_era("INVALID_TOOL_INPUT", RESULT, "2025-11-25")),
    Row("many-faults", tool("validate_asset", {"asset": 1, "schema": [1]}), None,
        by_era("INVALID_TOOL_INPUT", RESULT, "2025-11-25")),
    Row("unknown-tool", tool("nope", {}), None, "UNKNOWN_TOOL", "Unknown tool: nope"),
    Row("resources", mcp("resources/list"), None, RESULT),
    Row("resource", mcp("resources/read", {"uri": "resource://schemas/tone"}), None, RESULT),
    Row("unknown-resource", mcp("resources/read", {"uri": "resource://schemas/nope"}), None,
        by_era("RESOURCE_NOT_FOUND", "INVALID_PARAMS"), "Resource not found"),
    Row("completion", mcp("completion/complete", {
        "ref": {"type": "ref/resource", "uri": "resource://schemas/{name}"}, "argument": {"name": "name", "value": "t"},
    }), None, RESULT),
    Row("initialize-again", lambda revision: initialize(revision, 1), None, by_era("INVALID_ENVELOPE", None)),
    Row("batch", lambda door: [mcp("tools/list")(door), mcp("nope", ident="b")(door)],
        "INVALID_ENVELOPE", lambda door: RESULT if door == "2025-03-26" else "INVALID_ENVELOPE", read=False),
    Row("cancelled", notification("notifications/cancelled", {"requestId": "none"}), None, SILENCE),
    Row("unknown-notification", notification("notifications/nope"), None, SILENCE),
    Row("broken-notification", notification("notifications/cancelled", {"requestId": []}), None, REFUSED),
    Row("answer-to-nothing", {"jsonrpc": "2.0", "id": 7, "result": {}}, None, SILENCE),
)  # fmt: skip


class Different(NamedTuple):
    """What HTTP does otherwise, and why."""

    why: str
    status: int
    error: int | None = None


DIFFERENT: Final = {
    (BARE, "oversized"): Different("specs/001 has a result with id null; HTTP has a status for it", 413, -32600),
    (BARE, "tools-list-too-early"): Different("a request that names no revision is 2025-03-26", 200),
    (BARE, "initialized-too-early"): Different("a message that names no revision is 2025-03-26", 202),
    (BARE, "batch"): Different("an array can only be 2025-03-26, which has batches", 200),
    (BARE, "empty-batch"): Different("it is refused as a batch, not as a message", 400, -32600),
    ("stateless", "method-empty"): Different("the header cannot be empty", 400, -32020),
    (BARE, "unknown-revision"): Different("a revision in the body has to be in a header too", 400, -32020),
    ("header", "unknown-revision-in-meta"): Different("a revision in the body is held to the header", 400, -32020),
    ("header", "initialize-again"): Different("no request knows of another one", 200),
    ("unnamed", "initialize-again"): Different("no request knows of another one", 200),
    ("unnamed", "unknown-revision-in-meta"): Different("a revision in the body has to be in a header", 400, -32020),
    **{
        (door, "blank"): Different("a line may be blank, the body of a request is a message", 400, -32700)
        for door in DOORS
    },
}
"""By door or way, and row."""


# ── as a frame ───────────────────────────────────────────────────────────────────────────────────────────────────────


def rows_of(door: str) -> list[Row]:
    return [row for row in ROWS if kind(row, door) is not None]


def message(row: Row, door: str) -> Said:
    return row.said(door) if callable(row.said) else row.said


def kind(row: Row, door: str) -> str | None:
    if door == BARE:
        return row.bare
    return row.mcp(door) if callable(row.mcp) else row.mcp


def over_stream(methods: Methods, row: Row, door: str) -> list[Any]:
    """What is said to the row as a frame, behind an opening."""
    server = AssetServer(methods) if door == BARE else opened(methods, door)
    if door == LATEST:
        answer(server, request("first", "server/discover", {}, door))
    return said(server, message(row, door))


# ── over HTTP ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("http")) as running:
        yield running


class Way(NamedTuple):
    """How a message of a door is sent over HTTP."""

    name: str
    door: str
    by_table: bool
    """Whether the status is that of the table: not for clients of the handshake era, which would not read on."""
    headers: Callable[[Said], Headers]

    def rows(self) -> list[Row]:
        """What can be sent this way: without a header, only what is plainly MCP's is."""
        every = rows_of(self.door)
        return [row for row in every if _is_known(message(row, self.door))] if self.name == "unnamed" else every


def _is_known(said: Said) -> bool:
    method = said.get("method") if isinstance(said, dict) else None
    return isinstance(method, str) and bool(revisions_of(method)) and said.get("jsonrpc") == "2.0"


def named(door: str) -> Callable[[Said], Headers]:
    return lambda _: of(door)


WAYS: Final = (
    Way("curl", BARE, True, lambda _: JSON),
    *(Way("header", door, False, named(door)) for door in REVISIONS if handshake(door)),
    Way("unnamed", "2025-03-26", False, lambda _: BOTH),
    Way("stateless", LATEST, True, modern),
)


@rows("way", WAYS, ids=lambda way: f"{way.door}-{way.name}")
def test_a_message_gets_the_answer_that_it_gets_as_a_frame(way: Way, service: Service, tmp_path: Path) -> None:
    failed, methods = [], Methods(Catalogue.read(variables(BUNDLED), tmp_path))
    for row in way.rows():
        try:
            compare(way, row, service, over_stream(methods, row, way.door))
        except AssertionError as error:
            failed.append(f"{row.name}: {error}")
    assert failed == []


def compare(way: Way, row: Row, service: Service, expected: list[Any]) -> None:
    sent = message(row, way.door)
    found = service.post(sent, way.headers(sent))
    wanted = kind(row, way.door) or ""
    if (different := DIFFERENT.get((way.door, row.name)) or DIFFERENT.get((way.name, row.name))) is not None:
        assert (found.status, error_code(found)) == (different.status, different.error), different.why
        return
    if wanted == SILENCE:
        assert (expected, found.status, found.body) == ([], 202, b"")
        return
    if wanted == REFUSED:
        # JSON-RPC has null where there is no id; the official schema, from 2025-11-25 on, nothing.
        assert (expected, found.status, found.json().get("id", "none")) == (
            [], 400, None if way.door < "2025-11-25" else "none",
        )  # fmt: skip
        return
    [over] = expected
    assert comparable(found.json()) == comparable(over)
    assert found.status == (200 if wanted == RESULT else status(way, row, wanted))
    if wanted == RESULT:
        assert "error" not in over
    else:
        table = CanonicalError.to_jsonrpc_error(wanted)
        assert over["error"]["code"] == table["code"]
        assert over["error"]["message"] == (row.text or table["message"])


def status(way: Way, row: Row, code: str) -> int:
    # Without the header, what is not JSON-RPC is from no client of that era.
    if not way.by_table and row.read and (way.name, code) != ("unnamed", "INVALID_ENVELOPE"):
        return 200
    return CanonicalError.to_http_status(code)


def error_code(answer: Answer) -> int | None:
    if not answer.body or isinstance(answer.json(), list):
        return None
    code: int | None = answer.json().get("error", {}).get("code")
    return code


def comparable(value: Any) -> Any:
    """*value* without what differs from one answer to the next."""
    if isinstance(value, list):
        return [comparable(each) for each in value]
    if not isinstance(value, dict):
        return value
    if value.get("type") == "text" and value.get("text", "").startswith("{"):
        return {**value, "text": comparable(json.loads(value["text"]))}
    return {name: comparable(each) for name, each in value.items() if name not in {"request_id", "duration_ms"}}

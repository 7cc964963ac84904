"""A line of the journal: what it says of a verdict, and that the quick way says what the plain one does."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.edges.recorder import Recorder, Records
from assay.guard.connection_name import ConnectionName
from assay.judge.conversation import Conversation
from assay.model.verdict import Party, Verdict, verdict
from assay.records import journal as journals
from assay.records import line_templates
from assay.records.journal import Journal
from assay.records.moments import trace_of
from kit.laws import law
from kit.records import open_journal, record_verdict
from kit.rows import rows
from kit.talk import HITS, SEARCH, Talk, call, error, frame_of, notification, request, result

TRACE = "0af7651916cd43dd8448eb211c80319c"


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    opened = open_journal(tmp_path)
    yield opened
    opened.close()


def record(line: bytes) -> dict[str, Any]:
    """The record in *line*, which is exactly one."""
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    found = orjson.loads(line)
    assert isinstance(found, dict)
    return found


def recorded_as(journal: Journal, said: Verdict, **more: Any) -> dict[str, Any]:
    moment = journal.moment("stdio", "stdio", said.method, said.frame)
    return record(journal.line(said, moment, 0, **more))


def opened(**options: Any) -> Talk:
    return Talk(**options).opened().listed(SEARCH)


# ── the quick way and the plain one ──────────────────────────────────────────────────────────────────────────────────


def timeless(line: bytes) -> bytes:
    """*line* without what differs from one moment to the next."""
    line = re.sub(rb'"ts":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z"', b"", line, count=1)
    return re.sub(rb'"durationMs":\d+\.\d+', b"", line, count=1)


def test_what_a_stranger_calls_its_methods_fills_no_memory(journal: Journal) -> None:
    for number in range(5000):
        recorded_as(journal, verdict(Party.CLIENT, b"{}", "notification", {"method": f"m{number}"}, None, None))
    made = journal.templates("stdio", "stdio")
    assert made is not None
    assert len(made._kept) <= 1024


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda below: st.lists(below, max_size=4) | st.dictionaries(st.text(max_size=8), below, max_size=4),
    max_leaves=12,
)
MEMBER = st.sampled_from(["jsonrpc", "id", "method", "params", "result", "error", "code", "message", "isError", "name"])
MESSAGE = st.dictionaries(MEMBER, JSON | st.sampled_from(["2.0", "ping", "tools/call", 1, True]), max_size=6)
FRAME = st.binary(max_size=40) | (MESSAGE | JSON).map(lambda value: json.dumps(value).encode())
IDENT = st.sampled_from([5, 0, "x" * 200, '"quoted" – é', 2**53, 2**70])
GOOD = st.one_of(
    IDENT.map(lambda ident: call(ident, "search", {"words": "a"})),
    IDENT.map(lambda ident: result(ident, HITS)),
    IDENT.map(lambda ident: request(ident, "ping")),
    IDENT.map(lambda ident: result(ident, {})),
    st.sampled_from(["notifications/roots/list_changed", "x" * 300]).map(notification),
).map(lambda message: json.dumps(message).encode())
SESSION = st.sampled_from(["", "a session", ConnectionName("a session", "alice"), ConnectionName("", 'ä"%d"')])
OPTIONS = st.sampled_from([{}, {"server": "assets"}, {"deterministic": True}, {"payloads": True}])


@law(300)
@given(st.lists(st.tuples(st.sampled_from(Party), FRAME | GOOD), max_size=6), SESSION, OPTIONS, st.booleans())
def test_whatever_is_said_gets_one_line(
    tmp_path_factory: pytest.TempPathFactory,
    frames: list[tuple[Party, bytes]],
    session: str,
    options: dict[str, Any],
    enforces: bool,
) -> None:
    """That of the plain way, also where the quick one writes it, alone or with the request that it answers."""
    mode: Any = "enforce" if enforces else "audit"
    journal = open_journal(tmp_path_factory.getbasetemp() / "law", keep=1, mode=mode, **options)
    templates = journal.templates("http", "/möp")
    conversation = Conversation(mode=mode, revision="2025-11-25")
    asked: dict[Any, Verdict] = {}
    for party, frame in frames:
        said = conversation.hear(party, frame)
        moment = journal.moment("http", "/möp", said.method, frame, session=session)
        line, plain = journal.line(said, moment, len(frame)), journal._record(said, moment, len(frame))
        found = record(line)
        assert (found["error"] is None) == (found["status"] == "ok")
        assert (found["status"] == "refused") == (not said.accepted)
        assert timeless(line) == timeless(plain)
        if said.kind == "request" and said.findings is None:
            asked[said.exchange] = said
        elif said.kind == "result" and found["status"] == "ok" and said.exchange in asked and templates is not None:
            # The asset server knows both at once.
            pair = templates.pair(asked[said.exchange], said, moment)
            assert pair is None or timeless(pair.splitlines(keepends=True)[1]) == timeless(plain)
    journal.close()


# ── through a recorder ───────────────────────────────────────────────────────────────────────────────────────────────


def recorded(directory: Path, *messages: tuple[Party, Any]) -> list[dict[str, Any]]:
    """The records of what is said after a list of tools."""
    journal = open_journal(directory)
    recorder = Recorder("stdio", "stdio", Records(journal), holding=True)
    talk = opened()
    for party, message in messages:
        said = talk.conversation.hear(party, frame_of(message))
        record_verdict(recorder, said, journal.clock(), len(said.frame))
    recorder.flush()
    journal.close()
    return [orjson.loads(line) for line in Path(journal.path).read_bytes().splitlines()]


def test_an_answer_has_the_ids_of_its_request_whatever_it_is(tmp_path: Path) -> None:
    found = recorded(
        tmp_path,
        (Party.CLIENT, call(1, "search", {"words": "a"})),
        (Party.CLIENT, call(2, "search", {"words": "b"})),
        (Party.CLIENT, call(3, "search", {"words": "c"})),
        (Party.SERVER, result(2, HITS)),
        (Party.SERVER, result(1, {"content": "no list"})),
        (Party.SERVER, {"jsonrpc": "2.0", "id": 3, "reslt": {}}),
    )
    shown = [(each["metadata"]["id"], each["metadata"]["kind"], each["status"]) for each in found]
    assert shown == [
        *((number, "request", "ok") for number in (1, 2, 3)),
        (2, "result", "ok"), (1, "result", "refused"), (3, "unreadable", "refused"),
    ]  # fmt: skip
    known = [(each["requestId"], each["traceId"], each["spanId"]) for each in found]
    assert known[3:] == [known[1], known[0], known[2]]
    assert len(set(known)) == 3


# ── status and error ─────────────────────────────────────────────────────────────────────────────────────────────────


def shown(found: dict[str, Any]) -> tuple[Any, ...]:
    """Status, code, number and rules."""
    wrong = found["error"]
    if wrong is None:
        return (found["status"],)
    return found["status"], wrong["code"], wrong["jsonrpcCode"], [each["rule"] for each in wrong["violations"]]


SEARCHED = call(1, "search", {"words": "a"})
BAD_ANSWER = ("refused", "UPSTREAM_INVALID", -31010)


@rows(
    ("asked", "message", "expected"),
    [
        (None, request(1, "ping"), ("ok",)),
        (None, b" ", ("ok",)),
        (None, b"{", ("refused", "PARSE_ERROR", -32700, ["syntax/json"])),
        (None, b"[]", ("refused", "INVALID_ENVELOPE", -32600, ["envelope/batch"])),
        (None, request(None, "ping"), ("refused", "INVALID_ENVELOPE", -32600, ["envelope/id"])),
        (None, request(1, "nope"), ("refused", "METHOD_NOT_FOUND", -32601, ["protocol/method"])),
        (None, call(1, "search", {}), ("refused", "INVALID_TOOL_INPUT", -32602, ["contract/input"])),
        (None, call(1, "nope", {}), ("reported", None, None, ["contract/unknown-tool"])),
        (None, result(9, {}), ("refused", "INVALID_ENVELOPE", -32600, ["protocol/unsolicited"])),
        (SEARCHED, result(1, HITS), ("ok",)),
        (SEARCHED, result(1, {"content": [], "isError": True}), ("failed", None, None, [])),
        (SEARCHED, result(1, {"content": []}), (*BAD_ANSWER, ["contract/output"])),
        (SEARCHED, result(1, {}), (*BAD_ANSWER, ["protocol/result"])),
        (SEARCHED, error(1, -32603), ("failed", "INTERNAL_ERROR", -32603, [])),
        (SEARCHED, error(1, -31999), ("failed", None, -31999, [])),
        (
            SEARCHED,
            error(1, -32042, data={"elicitations": 1}),
            (*BAD_ANSWER, ["protocol/error", "protocol/capability"]),
        ),
    ],
)
@rows("mode", ["audit", "enforce"])
def test_a_message_is_recorded_with_its_error_and_the_mode(
    tmp_path: Path, mode: Any, asked: Any, message: Any, expected: tuple[Any, ...]
) -> None:
    """The same in both modes: where all passes, what would be refused is marked."""
    journal = open_journal(tmp_path, mode=mode, keep=1)
    talk = opened(mode=mode)
    if asked is not None:
        talk.client(asked)
    said = talk.client(message) if asked is None else talk.server(message)
    found = recorded_as(journal, said)
    metadata = found["metadata"]
    if mode == "enforce" or asked is None:
        assert shown(found) == expected
    assert (metadata["mode"], metadata.get("passed", False)) == (mode, mode == "audit" and expected[0] == "refused")
    if asked is not None:
        assert (metadata["tool"], metadata["id"]) == ("search", 1)
    journal.close()


def test_an_answer_that_never_came_has_failed(journal: Journal) -> None:
    talk = opened()
    talk.client(request("slow", "ping"))
    late = talk.conversation.give_up(Party.CLIENT, "slow")
    assert late is not None
    found = recorded_as(journal, late, code="TIMEOUT")
    assert shown(found) == ("failed", "TIMEOUT", -31012, ["protocol/unanswered"])
    assert (found["method"], found["metadata"]["id"], found["metadata"]["kind"]) == ("ping", "slow", "missing")
    assert shown(recorded_as(journal, late))[1] == "UPSTREAM_FAILURE"


def test_a_result_that_nobody_read_fails_if_the_caller_says_so(journal: Journal) -> None:
    talk = opened()
    asked = talk.client(call(1, "search", {"words": "a"}))
    assert asked.exchange is not None
    answer = talk.conversation.vouch(asked.exchange, b"...")
    assert shown(recorded_as(journal, answer)) == ("ok",)
    assert shown(recorded_as(journal, answer, failed=True)) == ("failed", None, None, [])
    assert shown(recorded_as(journal, answer, code="TOOL_NOT_FOUND")) == ("failed", "TOOL_NOT_FOUND", -32001, [])
    with pytest.raises(KeyError):
        recorded_as(journal, answer, code="NO_SUCH_CODE")


def test_names_ids_and_findings_of_strangers_are_cut_short(journal: Journal) -> None:
    talk = opened()
    talk.client(SEARCHED)
    wrong = recorded_as(journal, talk.server(result(1, {"content": [{"type": "text"}] * 200})))["error"]
    assert (len(wrong["violations"]), wrong["more"] >= 1) == (20, True)
    found = recorded_as(journal, opened().client(request("i" * 900, "m" * 5000)))
    assert len(found["method"]) == 100
    assert len(found["metadata"]["id"]) == 64
    assert found["metadata"]["id"].endswith("…")
    quick = recorded_as(journal, verdict(Party.CLIENT, b"{}", "notification", {"method": "m" * 5000}, None, None))
    assert len(quick["method"]) == 100


# ── payloads ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@rows(
    ("frame", "expected"),
    [
        (b'{ "jsonrpc":"2.0", "id":1,\t"method":"ping"}', {"frame": '{ "jsonrpc":"2.0", "id":1,\t"method":"ping"}'}),
        (b"no \x01 JSON", {"frame": "no \x01 JSON"}),
        (b"\xff{", {"frameBase64": "/3s="}),
        (
            b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"password":"x"}}',
            {"frame": '{"jsonrpc":"2.0","id":1,"method":"ping","params":{"password":"[redacted]"}}', "redacted": True},
        ),
        (b'{"a":1,"a":{"password":"x"}', {"frame": '{"a":1,"a":{"password":"[redacted]"}', "redacted": True}),
        (
            b'{"x":{"pass\\u0077ord":"x"},"x":1}',
            {"frame": '{"x":{"password":"[redacted]"},"x":1}', "redacted": True},
        ),
        (
            b'{"id":1,"params":{"customer":7,"note":"for C-123"}}',
            {"frame": '{"id":1,"params":{"customer":0,"note":"[redacted]"}}', "redacted": True},
        ),
        (b"\xff password=x", {"frameBase64": "/yBwYXNzd29yZD1bcmVkYWN0ZWRd", "redacted": True}),
    ],
)
def test_a_frame_is_written_as_it_came_but_for_its_secrets(
    tmp_path: Path, frame: bytes, expected: dict[str, Any]
) -> None:
    for payloads in (True, False):
        journal = open_journal(tmp_path, payloads=payloads, redact=["^customer$", "C-[0-9]+"])
        metadata = recorded_as(journal, opened().client(frame))["metadata"]
        journal.close()
        found = {name: value for name, value in metadata.items() if name in {"frame", "frameBase64", "redacted"}}
        assert found == (expected if payloads else {})
    with pytest.raises(ValueError, match="not a valid regular expression"):
        Journal.open(tmp_path, redact=["("])


LOGIN = {"pin": {"type": "integer"}, "pass_word": {"type": "integer"}}


@rows(
    ("arguments", "secret"),
    [
        ({"note": "Bearer abcdefghijkl"}, b"abcdefghijkl"),
        ({"pin": "48391"}, b"48391"),
        ({"pass_word": "hunter2"}, b"hunter2"),
    ],
)
def test_what_was_found_and_hinted_is_recorded_without_secrets(
    journal: Journal, arguments: dict[str, str], secret: bytes
) -> None:
    """The hint for a number in quotes has the number."""
    schema = {"type": "object", "properties": LOGIN, "additionalProperties": {"type": "integer"}}
    said = Talk().opened().listed({"name": "login", "inputSchema": schema}).client(call(1, "login", arguments))
    line = journal.line(said, journal.moment("stdio", "stdio", None, b""), 0)
    [wrong] = said.violations
    assert secret in f"{wrong.found} {wrong.hint}".encode()
    assert secret not in line
    assert b"contract/input" in line


def test_a_principal_is_redacted_and_cut_and_a_session_is_a_digest(tmp_path: Path) -> None:
    journal = open_journal(tmp_path, redact=["[a-z]+@example"])
    said = opened().client(request(1, "ping"))
    for principal, shown in {"bob@example": "[redacted]", "b" * 300: "b" * 255 + "…", "\ud800": "?"}.items():
        moment = journal.moment("http", "/mcp", "ping", said.frame, session=ConnectionName("", principal))
        for metadata in (record(journal.line(said, moment, 9, failed=failed))["metadata"] for failed in (False, True)):
            assert (metadata["principal"], "session" in metadata) == (shown, False)
    names = []
    for session in ("secret-1", "secret-2", "secret-1"):
        line = journal.line(said, journal.moment("http", "/mcp", "ping", b"", session=session), 0)
        assert b"secret" not in line
        names.append(record(line)["metadata"]["session"])
    assert names[0] == names[2] != names[1]
    journal.close()


# ── moments ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@rows(
    ("given", "trace"),
    [
        (f"00-{TRACE}-b7ad6b7169203331-01", TRACE),
        (f"cc-{TRACE}-b7ad6b7169203331-01-what-the-future-will-be-like", TRACE),
        (f"cc-{TRACE}-b7ad6b7169203331-01", TRACE),
        (f"00-{TRACE}-b7ad6b7169203331-01-more", None),
        (f"ff-{TRACE}-b7ad6b7169203331-01", None),
        (f"00-{TRACE.upper()}-b7ad6b7169203331-01", None),
        (f"00-{'0' * 32}-b7ad6b7169203331-01", None),
        (f"00-{TRACE}-{'0' * 16}-01", None),
        (f"00-{TRACE}-b7ad6b7169203331", None),
        (f"00-{TRACE}-b7ad6b7169203331-1", None),
        (f"0-{TRACE}-b7ad6b7169203331-01", None),
        (f"00-{TRACE[1:]}-b7ad6b7169203331-01", None),
        (f" 00-{TRACE}-b7ad6b7169203331-01", None),
        ("", None),
        ("-" * 1000, None),
    ],
)
def test_a_trace_is_taken_over_if_it_is_one(journal: Journal, given: str, trace: str | None) -> None:
    """W3C Trace Context, 3.2."""
    assert trace_of(given) == trace
    moment = journal.moment("http", "/mcp", "ping", b"", given)
    assert (moment.trace_id == TRACE) is (trace is not None)
    assert re.fullmatch(r"[0-9a-f]{32}", moment.trace_id)
    assert re.fullmatch(r"[0-9a-f]{16}", moment.span_id)


def test_no_two_messages_have_the_same_ids(journal: Journal) -> None:
    moments = [journal.moment("stdio", "stdio", None, b"") for _ in range(10_000)]
    for name in ("request_id", "trace_id", "span_id"):
        assert len({getattr(each, name) for each in moments}) == len(moments)
    uuid = r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}"
    assert all(re.fullmatch(uuid, each.request_id) for each in moments)


def test_time_goes_on_from_second_to_second(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    said = opened().client(request(1, "ping"))
    found = []
    for now in (1_794_782_344_000_000_999, 1_794_782_344_999_998_500, 1_794_782_345_000_001_000):
        for module in (line_templates, journals):
            monkeypatch.setattr(module, "time_ns", lambda now=now: now)
            monkeypatch.setattr(module, "perf_counter", lambda now=now: (now - 1_794_782_000_000_000_000) / 1e9)
        found.append(recorded_as(journal, said)["ts"])
        assert recorded_as(journal, said, failed=True)["ts"] == found[-1]
    assert found == ["2026-11-15T22:39:04.000000Z", "2026-11-15T22:39:04.999998Z", "2026-11-15T22:39:05.000001Z"]

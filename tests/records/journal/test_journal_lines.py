"""A line of the journal: what it says of a verdict, and that the quick way says what the plain one does."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.base.errors import CanonicalError
from assay.base.verdict import Party, Verdict, verdict
from assay.core.conversation import Conversation
from assay.edges.recorder import Recorder, Records
from assay.guard.connection_name import ConnectionName
from assay.records.journal import line_templates, writer
from assay.records.journal.record_ids import trace_of
from assay.records.journal.writer import Journal
from kit.laws import law
from kit.records import record_verdict
from kit.rows import rows
from kit.talk import HITS, SEARCH, Talk, call, error, notification, request, result

TRACE = "0af7651916cd43dd8448eb211c80319c"


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    opened = Journal.open(tmp_path)
    assert opened is not None
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
    return re.sub(rb'"durationMs":\d+\.\d{3}', b"", line, count=1)


def variants() -> Iterator[Verdict]:
    """Good messages of every kind: those that the quick way is for."""
    talk = opened()
    asked = talk.client(call(5, "search", {"words": "a"}))
    yield asked
    assert asked.exchange is not None
    yield talk.conversation.vouch(asked.exchange, b"{}")
    yield talk.client(call('"quoted" – é', "search", {"words": "a"}))
    yield talk.client(call("x" * 200, "search", {"words": "a"}))
    yield talk.client(request(0, "ping"))
    yield talk.client(request(2**53, "resources/list"))
    yield talk.server(request("server", "ping"))
    yield talk.client(result("server", {}))
    yield talk.client(b'{"jsonrpc":"2.0","id":7.0,"method":"ping"}')
    yield talk.client(b'{"jsonrpc":"2.0","id":1180591620717411303424,"method":"ping"}')
    yield talk.client(notification("notifications/roots/list_changed"))
    bare = {"jsonrpc": "2.0", "id": 1, "method": "get_schema"}
    yield verdict(Party.CLIENT, b"{}", "request", bare, None, None)
    yield verdict(Party.CLIENT, b"{}", "notification", {"jsonrpc": "2.0", "method": "x" * 300}, None, None)
    yield verdict(Party.SERVER, b"{}", "result", None, None, None)
    yield verdict(Party.SERVER, b"{}", "result", {"id": "é", "result": {}}, None, None)


@rows("session", ["", "a session", ConnectionName("a session", "alice"), ConnectionName("", 'ä"%d"')])
@rows("server", ["", "assets"])
@rows("mode", ["", "enforce"])
def test_good_messages_go_the_quick_way_to_the_same_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, session: str, server: str, mode: str
) -> None:
    journal = Journal.open(tmp_path, server=server, mode=mode)
    assert journal is not None
    said = list(variants())
    moments = [journal.moment("http", "/möp", each.method, each.frame, session=session) for each in said]
    pairs = list(zip(said, moments, strict=True))
    plain = [journal._thorough(each, moment, 9, False, None) for each, moment in pairs]
    with monkeypatch.context() as patch:
        patch.setattr(writer, "record", None)
        # Twice: the second time with what was kept of the first.
        for _ in range(2):
            quick = [journal.line(each, moment, 9) for each, moment in pairs]
            assert list(map(timeless, quick)) == list(map(timeless, plain))
    journal.close()


def test_a_principal_is_redacted_and_cut(tmp_path: Path) -> None:
    journal = Journal.open(tmp_path, redact=["[a-z]+@example"])
    assert journal is not None
    said = next(variants())
    names = {"bob@example": "[redacted]", "b" * 300: "b" * 255 + "…", "\ud800": "?"}
    for principal, shown in names.items():
        moment = journal.moment("http", "/mcp", said.method, said.frame, session=ConnectionName("", principal))
        quick, plain = journal.line(said, moment, 9), journal._thorough(said, moment, 9, False, None)
        for line in (quick, plain):
            metadata = record(line)["metadata"]
            assert (metadata["principal"], "session" in metadata) == (shown, False)
    journal.close()


def exchanges() -> Iterator[tuple[Verdict, Verdict]]:
    """Good requests and their good answers, of every kind."""
    for ident in (5, 0, "x", '"quoted" – é', 2**53, 7.0):
        # A conversation for each request: within one an id is used once.
        asked = (talk := opened()).client(call(ident, "search", {"words": "a"}))
        assert asked.exchange is not None
        yield asked, talk.conversation.vouch(asked.exchange, b"{...}")
        talk = opened()
        yield talk.client(request(ident, "ping")), talk.server(result(ident, {}))
        talk = opened()
        yield (
            talk.client(request(ident, "resources/list", {"cursor": "2"})),
            talk.server(result(ident, {"resources": []})),
        )
        talk = opened()
        yield talk.client(call(ident, "unlisted", {})), talk.server(result(ident, {"content": []}))
    bare = {"jsonrpc": "2.0", "id": 1, "method": "get_schema"}
    asked = verdict(Party.CLIENT, b"{}", "request", bare, None, None)
    yield asked, verdict(Party.SERVER, b"{....}", "result", None, None, None)


@rows("options", [{}, {"deterministic": True}, {"payloads": True}, {"server": "assets"}, {"mode": "audit"}])
@rows("session", ["", "a session"])
def test_a_request_and_its_answer_have_the_lines_of_their_records(
    tmp_path: Path, session: str, options: dict[str, Any]
) -> None:
    journal = Journal.open(tmp_path, **options)
    assert journal is not None
    for _ in range(2):
        for both in exchanges():
            moment = journal.moment("http", "/möp", both[0].method, both[0].frame, session=session)
            plain = [timeless(journal._thorough(said, moment, len(said.frame), False, None)) for said in both]
            assert [timeless(journal.line(said, moment, len(said.frame))) for said in both] == plain
            templates = journal.templates("http", "/möp")
            pair = templates.pair(*both, moment) if templates is not None else None
            if pair is not None and both[0].findings is None:
                assert list(map(timeless, pair.splitlines(keepends=True))) == plain
    journal.close()


def passed(journal: Journal, said: Verdict, began: float = 1.0, session: str = "", route: str = "/möp") -> bytes | None:
    """The line of a message that passes, which finds its moment itself; None if it is to be given one."""
    made = journal.templates("http", route)
    return None if made is None else made.line(said, None, began, session, len(said.frame))


@rows("options", [{}, {"server": "assets"}, {"mode": "audit"}])
@rows("session", ["", "a session"])
def test_a_message_that_passes_has_the_line_of_its_record(
    tmp_path: Path, session: str, options: dict[str, Any]
) -> None:
    journal = Journal.open(tmp_path, **options)
    assert journal is not None
    quick = 0
    for _ in range(2):
        for said in (each for both in exchanges() for each in both if each.findings is None):
            line = passed(journal, said, 1.0, session)
            if line is not None:
                quick += 1
                assert said.exchange is not None
                moment = said.exchange.moment
                assert moment[3:] == (1.0, session, said.exchange.method)
                assert timeless(line) == timeless(journal._thorough(said, moment, len(said.frame), False, None))
    # All but bare methods, which have no exchange, and what has findings.
    assert quick == 2 * 6 * 6
    journal.close()


def test_messages_that_pass_share_nothing_that_is_not_theirs(journal: Journal) -> None:
    talk = opened()
    asked = [talk.client(call(number, "search", {"words": "a"})) for number in (1, 2)]
    answers = [talk.server(result(number, HITS)) for number in (2, 1)]
    order = [asked[0], asked[1], answers[0], answers[1]]
    said = [
        passed(journal, said, float(number), "other" if number == 3 else "session") for number, said in enumerate(order)
    ]
    found = [orjson.loads(line or b"") for line in said]
    assert [each["metadata"]["id"] for each in found] == [1, 2, 2, 1]
    assert [each["metadata"]["kind"] for each in found] == ["request", "request", "result", "result"]
    known = [(each["requestId"], each["traceId"], each["spanId"]) for each in found]
    assert known[0] == known[3]
    assert known[1] == known[2]
    assert known[0] != known[1]
    sessions = [each["metadata"]["session"] for each in found]
    assert sessions[0] == sessions[1] == sessions[2] != sessions[3]


def test_a_bad_answer_has_the_ids_of_its_request(tmp_path: Path) -> None:
    journal = Journal.open(tmp_path)
    assert journal is not None
    recorder = Recorder("stdio", "stdio", Records(journal), holding=True)
    talk = opened()
    for said in (
        talk.client(call(1, "search", {"words": "a"})),
        talk.client(call(2, "search", {"words": "b"})),
        talk.server(result(1, {"content": "no list"})),
        talk.server(result(2, HITS)),
    ):
        record_verdict(recorder, said, journal.clock(), len(said.frame))
    recorder.flush()
    journal.close()
    found = [orjson.loads(line) for line in Path(journal.path).read_bytes().splitlines()]
    assert [(each["metadata"]["id"], each["status"]) for each in found] == [
        (1, "ok"), (2, "ok"), (1, "refused"), (2, "ok"),
    ]  # fmt: skip
    assert found[0]["requestId"] == found[2]["requestId"]
    assert found[1]["requestId"] == found[3]["requestId"] != found[0]["requestId"]


def test_what_fails_a_request_without_being_a_message_has_its_ids(tmp_path: Path) -> None:
    found = recorded(tmp_path, {"jsonrpc": "2.0", "id": 1, "reslt": {}})
    assert [each["metadata"]["kind"] for each in found] == ["request", "unreadable"]
    assert found[0]["requestId"] == found[1]["requestId"]


def test_what_was_said_to_a_server_that_ended_is_not_counted_to_the_next(tmp_path: Path) -> None:
    asked, restarted = recorded(tmp_path, restarts=1)
    assert "restarts" not in asked["metadata"]
    assert (restarted["event"], restarted["restarts"]) == ("restart", 1)


def recorded(directory: Path, *answers: Any, restarts: int = 0) -> list[dict[str, Any]]:
    """The records of a good call, and of what a server says to it, written after so many restarts."""
    journal = Journal.open(directory)
    assert journal is not None
    recorder = Recorder("stdio", "stdio", Records(journal), holding=True)
    talk = opened()
    for said in (talk.client(call(1, "search", {"words": "a"})), *map(talk.server, answers)):
        record_verdict(recorder, said, journal.clock(), len(said.frame))
    if restarts:
        recorder.sinks[0].event("restart", b"%d" % restarts, "")
    recorder.flush()
    journal.close()
    return [orjson.loads(line) for line in Path(journal.path).read_bytes().splitlines()]


@rows("name", ["100%", "%b%d%s", "%%", "{0}", '"\\', "möp\n\x7f"])
def test_a_tool_may_have_any_name(journal: Journal, name: str) -> None:
    talk = Talk().opened().listed({"name": name, "inputSchema": {"type": "object"}})
    asked = talk.client(call(1, name, {}))
    line = passed(journal, asked, route="/100%s")
    assert line is not None
    assert orjson.loads(line)["metadata"]["tool"] == name
    assert asked.exchange is not None
    plain = journal._thorough(asked, asked.exchange.moment, len(asked.frame), False, None)
    assert timeless(line) == timeless(plain)


def test_a_trace_and_a_failure_do_not_go_the_quick_way(journal: Journal) -> None:
    talk = opened()
    traced = {
        "name": "search",
        "arguments": {"words": "a"},
        "_meta": {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"},
    }
    asked = talk.client(request(1, "tools/call", traced))
    assert asked.findings is None
    assert passed(journal, asked) is None
    good = talk.client(call(2, "search", {"words": "a"}))
    assert passed(journal, good) is not None
    failed = talk.server(result(2, {"content": [], "isError": True}))
    assert failed.findings is None
    assert passed(journal, failed) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda below: st.lists(below, max_size=4) | st.dictionaries(st.text(max_size=8), below, max_size=4),
    max_leaves=12,
)
MEMBER = st.sampled_from(["jsonrpc", "id", "method", "params", "result", "error", "code", "message", "isError", "name"])
MESSAGE = st.dictionaries(MEMBER, JSON | st.sampled_from(["2.0", "ping", "tools/call", 1, True]), max_size=6)


def encodable(value: Any) -> bool:
    try:
        orjson.dumps(value)
    except (TypeError, orjson.JSONEncodeError):
        return False
    return True


@law(300)
@given(
    frames=st.lists(
        st.tuples(
            st.sampled_from(Party), st.binary(max_size=40) | (MESSAGE | JSON).filter(encodable).map(orjson.dumps)
        ),
        max_size=4,
    ),
    payloads=st.booleans(),
    mode=st.sampled_from(["enforce", "audit"]),
)
def test_whatever_is_said_gets_one_line(
    tmp_path_factory: pytest.TempPathFactory, frames: list[tuple[Party, bytes]], payloads: bool, mode: Any
) -> None:
    journal = Journal.open(tmp_path_factory.mktemp("runs"), payloads=payloads)
    assert journal is not None
    conversation = Conversation(mode=mode, revision="2025-11-25")
    for party, frame in frames:
        said = conversation.hear(party, frame)
        moment = journal.moment("stdio", "stdio", said.method, frame)
        line = journal.line(said, moment, 1)
        found = record(line)
        assert (found["error"] is None) == (found["status"] == "ok")
        assert (found["status"] == "refused") == (not said.accepted)
        assert timeless(line) == timeless(journal._thorough(said, moment, 1, False, None))
    journal.close()


# ── status and error ─────────────────────────────────────────────────────────────────────────────────────────────────


def shown(found: dict[str, Any]) -> tuple[Any, ...]:
    """Status, code, number and rules."""
    wrong = found["error"]
    if wrong is None:
        return (found["status"],)
    return found["status"], wrong["code"], wrong["jsonrpcCode"], [each["rule"] for each in wrong["violations"]]


@rows(
    ("message", "expected"),
    [
        (request(1, "ping"), ("ok",)),
        (b"{", ("refused", "PARSE_ERROR", -32700, ["syntax/json"])),
        (b"[]", ("refused", "INVALID_ENVELOPE", -32600, ["envelope/batch"])),
        (request(None, "ping"), ("refused", "INVALID_ENVELOPE", -32600, ["envelope/id"])),
        (request(1, "nope"), ("refused", "METHOD_NOT_FOUND", -32601, ["protocol/method"])),
        (call(1, "search", {}), ("refused", "INVALID_TOOL_INPUT", -32602, ["contract/input"])),
        (call(1, "nope", {}), ("reported", None, None, ["contract/unknown-tool"])),
        (result(9, {}), ("refused", "INVALID_ENVELOPE", -32600, ["protocol/unsolicited"])),
        (b" ", ("ok",)),
    ],
)
def test_a_message_is_recorded_with_its_error(journal: Journal, message: Any, expected: tuple[Any, ...]) -> None:
    assert shown(recorded_as(journal, opened().client(message))) == expected


@rows(
    ("answer", "expected"),
    [
        (result(1, HITS), ("ok",)),
        (result(1, {"content": [], "isError": True}), ("failed", None, None, [])),
        (result(1, {"content": []}), ("refused", "UPSTREAM_INVALID", -31010, ["contract/output"])),
        (result(1, {}), ("refused", "UPSTREAM_INVALID", -31010, ["protocol/result"])),
        (error(1, -32603), ("failed", "INTERNAL_ERROR", -32603, [])),
        (error(1, -32602), ("failed", "INVALID_PARAMS", -32602, [])),
        (error(1, -31999), ("failed", None, -31999, [])),
        (
            error(1, -32042, data={"elicitations": 1}),
            ("refused", "UPSTREAM_INVALID", -31010, ["protocol/error", "protocol/capability"]),
        ),
    ],
)
def test_an_answer_is_recorded_with_its_error(journal: Journal, answer: Any, expected: tuple[Any, ...]) -> None:
    talk = opened()
    talk.client(call(1, "search", {"words": "a"}))
    found = recorded_as(journal, talk.server(answer))
    assert shown(found) == expected
    assert found["metadata"]["tool"] == "search"
    assert found["metadata"]["id"] == 1


def test_where_all_passes_what_would_be_refused_is_marked(journal: Journal) -> None:
    found = recorded_as(journal, opened(mode="audit").client(call(1, "search", {})))
    assert shown(found) == ("refused", "INVALID_TOOL_INPUT", -32602, ["contract/input"])
    assert found["metadata"]["passed"] is True
    assert "passed" not in recorded_as(journal, opened().client(call(1, "search", {})))["metadata"]


@rows("mode", ["audit", "enforce"])
def test_every_record_of_a_guard_has_its_mode(tmp_path: Path, mode: Any) -> None:
    journal = Journal.open(tmp_path, mode=mode)
    assert journal is not None
    talk = opened(mode=mode)
    for said in (talk.client(call(1, "search", {"words": "a"})), talk.client(call(2, "search", {})), talk.client(b"{")):
        assert recorded_as(journal, said)["metadata"]["mode"] == mode
    asked = talk.client(call(3, "search", {"words": "a"}))
    moment = journal.moment("stdio", "stdio", asked.method, asked.frame)
    journal.restarted(2)
    pair = [journal.line(said, moment, 0) for said in (asked, talk.server(result(3, HITS)))]
    assert [record(line)["metadata"]["mode"] for line in pair] == [mode, mode]
    assert [record(line)["metadata"]["restarts"] for line in pair] == [2, 2]
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


@rows("code", CanonicalError.codes())
def test_every_canonical_error_can_be_recorded(journal: Journal, code: str) -> None:
    found = recorded_as(journal, opened().client(request(1, "ping")), code=code)
    row = CanonicalError.to_jsonrpc_error(code)
    assert found["error"] == {
        "code": code,
        "jsonrpcCode": row["code"],
        "httpStatus": CanonicalError.to_http_status(code),
        "message": row["message"],
        "violations": [],
    }


def test_what_is_beyond_the_listed_violations_is_counted(journal: Journal) -> None:
    many = [{"type": "text"}] * 200
    talk = opened()
    talk.client(call(1, "search", {"words": "a"}))
    found = recorded_as(journal, talk.server(result(1, {"content": many})))
    assert len(found["error"]["violations"]) == 20
    assert found["error"]["more"] >= 1


def test_names_and_ids_of_strangers_are_cut_short(journal: Journal) -> None:
    found = recorded_as(journal, opened().client(request("i" * 900, "m" * 5000)))
    assert len(found["method"]) == 100
    assert len(found["metadata"]["id"]) == 64
    assert found["metadata"]["id"].endswith("…")
    quick = recorded_as(journal, verdict(Party.CLIENT, b"{}", "notification", {"method": "m" * 5000}, None, None))
    assert len(quick["method"]) == 100


def test_what_a_stranger_calls_its_methods_fills_no_memory(journal: Journal) -> None:
    for number in range(5000):
        recorded_as(journal, verdict(Party.CLIENT, b"{}", "notification", {"method": f"m{number}"}, None, None))
    made = journal.templates("stdio", "stdio")
    assert made is not None
    assert len(made._kept) <= 1024


# ── payloads ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def payload(directory: Path, frame: bytes, **options: Any) -> dict[str, Any]:
    journal = Journal.open(directory, payloads=True, **options)
    assert journal is not None
    found = recorded_as(journal, opened().client(frame))
    journal.close()
    return {name: value for name, value in found["metadata"].items() if name in {"frame", "frameBase64", "redacted"}}


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
        (b"\xff password=x", {"frameBase64": "/yBwYXNzd29yZD1bcmVkYWN0ZWRd", "redacted": True}),
    ],
)
def test_a_frame_is_written_as_it_came_but_for_its_secrets(
    tmp_path: Path, frame: bytes, expected: dict[str, Any]
) -> None:
    assert payload(tmp_path, frame) == expected


def test_patterns_of_ones_own_hide_what_they_match(tmp_path: Path) -> None:
    frame = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"customer":7,"note":"for C-123"}}'
    assert '"customer":0,"note":"[redacted]"' in payload(tmp_path, frame, redact=["^customer$", "C-[0-9]+"])["frame"]
    with pytest.raises(ValueError, match="not a valid regular expression"):
        Journal.open(tmp_path, redact=["("])


def test_without_being_asked_no_frame_is_written(journal: Journal) -> None:
    assert not {"frame", "frameBase64"} & set(recorded_as(journal, opened().client(b"{"))["metadata"])


@rows(
    ("arguments", "found"),
    [
        ({"words": 5}, "5"),
        ({"words": "a", "limit": "Bearer abcdefghijkl"}, 'the string "Bearer [redacted]"'),
    ],
)
def test_what_was_found_is_recorded_without_secrets(journal: Journal, arguments: Any, found: str) -> None:
    [wrong] = recorded_as(journal, opened().client(call(1, "search", arguments)))["error"]["violations"]
    assert wrong["found"] == found


def test_a_hint_does_not_repeat_a_secret(journal: Journal) -> None:
    """The hint for a number in quotes has the number."""
    login = {"name": "login", "inputSchema": {"type": "object", "properties": {"pin": {"type": "integer"}}}}
    said = Talk().opened().listed(login).client(call(1, "login", {"pin": "48391"}))
    assert "48391" in said.violations[0].hint
    assert b"48391" not in journal.line(said, journal.moment("stdio", "stdio", None, b""), 0)


def test_what_was_found_under_a_secret_name_is_not_recorded(journal: Journal) -> None:
    login = {"name": "login", "inputSchema": {"type": "object", "properties": {"pass_word": {"type": "integer"}}}}
    said = Talk().opened().listed(login).client(call(1, "login", {"pass_word": "hunter2"}))
    line = journal.line(said, journal.moment("stdio", "stdio", None, b""), 0)
    assert b"hunter2" in b"".join(each.found.encode() for each in said.violations)
    assert b"hunter2" not in line


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


def test_an_answer_that_does_not_know_its_method_has_that_of_the_moment(journal: Journal) -> None:
    answer = verdict(Party.SERVER, b"{}", "result", None, None, None)
    moment = journal.moment("stdio", "stdio", "get_schema", b"{}")
    assert record(journal.line(answer, moment, 2))["method"] == "get_schema"


def test_time_goes_on_from_second_to_second(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    said = opened().client(request(1, "ping"))
    found = []
    for now in (1_794_782_344_000_000_999, 1_794_782_344_999_998_500, 1_794_782_345_000_001_000):
        for module in (line_templates, writer):
            monkeypatch.setattr(module, "time_ns", lambda now=now: now)
            monkeypatch.setattr(module, "perf_counter", lambda now=now: (now - 1_794_782_000_000_000_000) / 1e9)
        found.append(recorded_as(journal, said)["ts"])
        assert recorded_as(journal, said, failed=True)["ts"] == found[-1]
    assert found == ["2026-11-15T22:39:04.000000Z", "2026-11-15T22:39:04.999998Z", "2026-11-15T22:39:05.000001Z"]


def test_a_session_is_recorded_by_a_digest(journal: Journal) -> None:
    said = opened().client(request(1, "ping"))
    names = []
    for session in ("secret-1", "secret-2", "secret-1"):
        line = journal.line(said, journal.moment("http", "/mcp", "ping", b"", session=session), 0)
        assert b"secret" not in line
        names.append(record(line)["metadata"]["session"])
    assert names[0] == names[2] != names[1]

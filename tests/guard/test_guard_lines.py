"""The guard between two streams of lines, without any process: what each side gets, and that all else goes on."""

import random
import re
from itertools import pairwise
from typing import Any

import pytest

from assay.base.verdict import Party
from assay.spec.revisions import REVISIONS
from kit.guard_process import call, frame_of, notification, request, result, tool
from kit.guarded_session import GuardedLines
from kit.rows import rows
from kit.valid_traffic import exchanges, opening

CLIENT, SERVER = Party.CLIENT, Party.SERVER
SEARCH = tool(
    "search", inputSchema={"type": "object", "properties": {"words": {"type": "string"}}, "required": ["words"]}
)


@pytest.fixture
def guard() -> GuardedLines:
    """A guard under enforce, after the handshake."""
    made = GuardedLines()
    made.open(SEARCH)
    return made


# ── what a client gets wrong ─────────────────────────────────────────────────────────────────────────────────────────


def test_bad_arguments_are_a_result_that_a_model_can_see(guard: GuardedLines) -> None:
    """2025-11-25, server/tools, Error Handling."""
    [refused] = guard.client(call(8, words=5))
    assert refused["result"]["isError"] is True
    assert "/params/arguments/words" in refused["result"]["content"][0]["text"]
    assert guard.client(call(9)) == []
    assert guard.messages(SERVER) == [call(9)]


@rows("said", [b"hello?", b"\xff\xfe", b"[]", b"5"])
def test_what_has_no_id_is_answered_without_one(guard: GuardedLines, said: bytes) -> None:
    [refused] = guard.client(said)
    assert "id" not in refused
    assert refused["error"]["code"] in {-32700, -32600}
    assert guard.got(SERVER) == b""


@rows("said", [b"", b" \t", b"\r", b'{"jsonrpc":"2.0","method":"notifications/nope"}'])
def test_blank_lines_and_bad_notifications_stop_without_an_answer(guard: GuardedLines, said: bytes) -> None:
    assert guard.client(said, request("next", "ping")) == []
    assert guard.messages(SERVER) == [request("next", "ping")]
    guard.server(result("next", {}))


# ── what a server gets wrong ─────────────────────────────────────────────────────────────────────────────────────────

TEXT = [{"type": "text", "text": "x"}]
PROMISE = {"type": "object", "properties": {"hits": {"type": "integer"}}, "required": ["hits"]}
GOOD = {"content": TEXT, "structuredContent": {"hits": 3}}
OUTPUT, RESULT = "contract/output", "protocol/result"


@rows(
    ("answer", "rule", "at"),
    [
        (result(1, {"content": TEXT, "structuredContent": {"hits": "3"}}), OUTPUT, "/result/structuredContent/hits"),
        (result(1, {"content": TEXT}), OUTPUT, "/result"),
        (result(1, {"content": [{"type": "text"}]}), RESULT, "/result/content/0"),
        (result(1, "fine"), "envelope/result", "/result"),
        ({"jsonrpc": "2.0", "id": 1, "result": {}, "error": {}}, "envelope/members", "/error"),
        ({"jsonrpc": "2.0", "id": 1, "error": {"code": "1"}}, "envelope/error", "/error/code"),
        (b'{"jsonrpc":"2.0","id":1,"result":{"content":[],"x":NaN}}', "syntax/number", ""),
        (b'{"jsonrpc":"2.0","id":1,"result":{"a":1,"a":1}}', "syntax/duplicate-key", "/result/a"),
        (b'{"jsonrpc":"2.0","id":1,"result":{"cont', "syntax/json", ""),
        ([result(1, {"content": TEXT})], "envelope/batch", ""),
    ],
)
def test_a_bad_answer_fails_the_request_and_says_what_is_wrong(answer: Any, rule: str, at: str) -> None:
    guard = GuardedLines()
    guard.open(tool("search", outputSchema=PROMISE))
    guard.client(call(1))
    [failed] = guard.server(answer)
    assert failed["id"] == 1
    if rule in {OUTPUT, RESULT}:
        first, second = failed["result"]["content"][0]["text"].splitlines()[:2]
        assert first == "The result of search broke its contract and was withheld."
        assert second.startswith(f"{at}: expected ")
        assert f"[{rule}]" in second
    else:
        assert failed["error"]["code"] == -31010
        violation = failed["error"]["data"]["violations"][0]
        assert (violation["rule"], violation["at"]) == (rule, at)
    guard.client(call(2))
    assert guard.server(result(2, GOOD)) == [result(2, GOOD)]


@rows(
    "stray",
    [
        result("unknown", {}),
        result([1], {}),
        result("11", {}),
        {"jsonrpc": "2.0", "id": 77, "error": {"code": 1, "message": "no"}},
        b'{"jsonrpc":"2.0","id":1.5,"result":{}}',
    ],
)
def test_an_answer_without_a_request_is_not_delivered(guard: GuardedLines, stray: Any) -> None:
    guard.client(request(1, "ping"))
    assert guard.server(stray, result(1, {}), result(1, {})) == [result(1, {})]


PRINTED = ["banner v0.3", '{"level":"info","msg":"started"}', "   * * *", "caf\xe9 \xff", "null"]


def test_what_a_server_prints_is_shown_and_never_reaches_the_client(guard: GuardedLines) -> None:
    """With every kind of line end; a batch of no messages is one message too many, and no line of a log."""
    guard.client(request(1, "ping"))
    printed = "".join(f"{line}\n" for line in [*PRINTED, "[1, 2]"])
    guard.write(SERVER, b"\n \r\n" + printed.encode("latin-1") + b"\n\r\n" + frame_of(result(1, {})) + b"\nx\r\n")
    assert guard.messages(CLIENT) == [result(1, {})]
    shown = [line.removeprefix("assay: the server sent: ") for line in guard.printed]
    assert shown == [*(line.encode("latin-1").decode(errors="replace") for line in PRINTED), "x"]


# ── lists ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@rows(
    ("entry", "rule"),
    [
        ({"name": "no-schema"}, "protocol/result"),
        (tool("cycle", outputSchema={"type": "object", "$ref": "#"}), "contract/"),
        (tool("typo", outputSchema={"type": "object", "properties": {"a": {"type": "strnig"}}}), "contract/"),
        (tool("good"), "contract/duplicate-tool"),
    ],
)
def test_one_bad_entry_of_a_list_is_taken_out_and_the_others_stay(entry: dict[str, Any], rule: str) -> None:
    guard = GuardedLines()
    assert guard.open(tool("good"), entry, tool("last")) == [tool("good"), tool("last")]
    assert guard.client(call(2, "good"), call(3, "last")) == []
    assert guard.messages(SERVER) == [call(2, "good"), call(3, "last")]
    assert guard.log.count(f'assay: quarantined 1 tool in tools/list #"list": {entry["name"]}') == 1
    assert any(line.startswith("assay:     /result/tools/1") and rule in line for line in guard.log)
    assert f"assay: quarantined: {entry['name']} (1 tool)" in [line.rstrip() for line in guard.watch.summary()]


def bomb(levels: int) -> dict[str, Any]:
    """A schema whose judging takes twice as long with every level."""
    twice = {str(level): {"allOf": [{"$ref": f"#/$defs/{level + 1}"}] * 2} for level in range(levels)}
    return {"type": "object", "$ref": "#/$defs/0", "$defs": {**twice, str(levels): {"type": "object"}}}


@rows(
    ("schema", "rule"),
    [
        ({"type": "object", "$ref": "https://example.com/x"}, "contract/remote-ref"),
        ({"type": "object", "$ref": "file:///etc/passwd"}, "contract/remote-ref"),
        (bomb(40), "contract/schema-cost"),
    ],
)
def test_a_tool_that_cannot_be_judged_lives_and_is_reported_once(schema: dict[str, Any], rule: str) -> None:
    guard = GuardedLines()
    odd = tool("odd", outputSchema=schema)
    assert guard.open(odd) == [odd]
    for number in (2, 3, 4):
        guard.client(call(number, "odd"))
        assert guard.server(result(number, GOOD)) == [result(number, GOOD)]
    reported = [line for line in guard.log if line.startswith("assay: reported: server result of")]
    assert [rule in line for line in reported] == [True]


# ── what a server asks, and says unasked ─────────────────────────────────────────────────────────────────────────────


@rows(
    ("method", "params", "good", "bad"),
    [
        ("roots/list", None, {"roots": [{"uri": "file:///a"}]}, {"roots": [{"uri": 5}]}),
        (
            "sampling/createMessage",
            {"messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}], "maxTokens": 5},
            {"role": "assistant", "content": {"type": "text", "text": "ho"}, "model": "m"},
            {"role": "assistant"},
        ),
        (
            "elicitation/create",
            {"message": "which?", "requestedSchema": {"type": "object", "properties": {"a": {"type": "string"}}}},
            {"action": "accept", "content": {"a": "b"}},
            {"action": "perhaps"},
        ),
    ],
)
def test_a_server_asks_and_the_client_answers(method: str, params: Any, good: Any, bad: Any) -> None:
    """Ids of either side count for themselves. For a bad answer the server gets an error."""
    guard = GuardedLines()
    guard.open(SEARCH)
    guard.client(call("1"), call("2"))
    guard.got(SERVER)
    assert guard.server(request("1", method, params)) == [request("1", method, params)]
    guard.client(result("1", good))
    assert guard.messages(SERVER) == [result("1", good)]
    guard.server(request("2", method, params))
    guard.client(result("2", bad))
    [got] = guard.messages(SERVER)
    assert (got["id"], got["error"]["code"]) == ("2", -31010)
    assert got["error"]["data"]["violations"][0]["rule"] == "protocol/result"


def test_a_bad_request_of_a_server_is_answered_here_and_the_client_never_sees_it(guard: GuardedLines) -> None:
    assert guard.server(request("s", "sampling/createMessage", {"messages": "hi"})) == []
    [refused] = guard.messages(SERVER)
    assert refused["id"] == "s"
    assert refused["error"]["data"]["violations"][0]["rule"] == "protocol/params"


def test_notifications_of_a_server_pass_and_bad_ones_do_not(guard: GuardedLines) -> None:
    good = [
        notification("notifications/message", {"level": "info", "data": {"a": 1}}),
        notification("notifications/progress", {"progressToken": "p", "progress": 1, "total": 2}),
        notification("notifications/tools/list_changed"),
    ]
    bad = [
        notification("notifications/message", {"level": "loud", "data": 1}),
        notification("notifications/initialized"),
        notification("notifications/nope"),
    ]
    guard.client(
        request(1, "tools/call", {"name": "search", "arguments": {"words": "a"}, "_meta": {"progressToken": "p"}})
    )
    assert guard.server(*(each for pair in zip(bad, good, strict=True) for each in pair)) == good


# ── size ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

LIMIT = 20_000
NESTED = b'"items":[{"id":2,"x":"'
ANSWER_FIRST = b'{"jsonrpc":"2.0","id":1,"result":{"content":[],' + NESTED
ANSWER_LAST = b'{"result":{"content":[],' + NESTED


def cut(data: bytes, chance: random.Random, longest: int = 5000) -> list[bytes]:
    """*data* in pieces, as a pipe may give it."""
    ends = [0]
    while ends[-1] < len(data):
        ends.append(ends[-1] + chance.randint(1, longest))
    return [data[start:end] for start, end in pairwise(ends)]


@rows(
    ("before", "size", "after"),
    [
        (ANSWER_FIRST, 30_000, b'"}]}}\n'),
        (ANSWER_LAST, 30_000, b'"}]},"jsonrpc":"2.0","id":1}\n'),
        (ANSWER_LAST, 300_000, b'"}]},"id":1,"jsonrpc":"2.0"}\r\n'),
        (b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"', 30_000, b'"}}\n'),
    ],
)
def test_an_answer_that_is_too_long_fails_its_request_and_no_other(before: bytes, size: int, after: bytes) -> None:
    """Whichever end its id is at; ids in what it carries mean nothing."""
    guard = GuardedLines(frame_bytes=LIMIT)
    guard.open(SEARCH)
    guard.client(request(2, "ping"), call(1))
    for each in cut(before + b"x" * size + after, random.Random(1)):  # noqa: S311 - no secret
        guard.write(SERVER, each)
    [failed] = guard.messages(CLIENT)
    assert (failed["id"], failed["error"]["code"]) == (1, -31010)
    assert failed["error"]["data"]["violations"][0]["rule"] == "framing/size"
    assert guard.server(result(2, {})) == [result(2, {})]


def test_an_answer_that_is_too_long_and_never_ends_fails_with_the_server() -> None:
    guard = GuardedLines(frame_bytes=LIMIT)
    guard.open(SEARCH)
    guard.client(call(1))
    guard.write(SERVER, ANSWER_LAST + b"x" * 30_000)
    guard.lost()
    assert [(each["id"], each["error"]["code"]) for each in guard.messages(CLIENT)] == [(1, -31011)]


@rows("party", Party)
@rows(("head", "tail"), [(b"", b',"jsonrpc":"2.0","id":9}'), (b'"jsonrpc":"2.0","id":9,', b"}")])
def test_a_request_that_is_too_long_is_answered_by_its_id(party: Party, head: bytes, tail: bytes) -> None:
    """From either side: also that of a server, which the client never sees."""
    guard = GuardedLines(frame_bytes=LIMIT)
    guard.open(SEARCH)
    guard.write(party, b"{" + head + b'"method":"roots/list","params":{"_meta":{"x":"' + b"x" * 30_000)
    guard.write(party, b'"}}' + tail + b"\n")
    [refused] = guard.messages(party)
    assert (refused["id"], refused["error"]["code"]) == (9, -32600)
    assert guard.got(party.other) == b""


def test_notifications_that_are_too_long_stop_without_an_answer() -> None:
    guard = GuardedLines(frame_bytes=LIMIT)
    guard.open(SEARCH)
    guard.say(SERVER, notification("notifications/message", {"level": "info", "data": "x" * 30_000}), b"x" * 30_000)
    assert (guard.got(CLIENT), guard.got(SERVER)) == (b"", b"")


# ── bytes ────────────────────────────────────────────────────────────────────────────────────────────────────────────

LONG = b"y" * 30_000
NOISE = [
    *(b"\n", b"\r\n", b" \t \n", b"hello?\n", b"caf\xe9\xff\xfe\x00\n", b"[]\n", b"null\r\n", LONG + b"\n"),
    b'{"jsonrpc":"2.0","id":1,"method":"ping"}\r\n',
    b' {"jsonrpc" : "2.0", "id":1, "method":"ping"}  \n',
    b'{"jsonrpc":"2.0","id":true,"method":"ping"}\n',
    b'{"jsonrpc":"2.0","id":2,"result":{}}\n',
    b'{"jsonrpc":"2.0","id":2,"id":3,"method":"ping"}\n',
    b'{"jsonrpc":"2.0","id":9,"result":{"x":NaN}}\n',
    b'{"jsonrpc":"2.0","method":"nope"}\n',
    frame_of(call(7, words=5)) + b"\n",
    frame_of(call(8)) + b"\n",
    b'{"jsonrpc":"2.0","id":9,"method":"ping","params":{"x":"' + LONG + b'"}}\r\n',
    b'{"result":{"x":"' + LONG + b'"},"jsonrpc":"2.0","id":9}\n',
]


@rows("seed", range(6))
def test_under_audit_any_noise_passes_as_it_came(seed: int) -> None:
    """Whatever either side says, in whatever order, and however the bytes come."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    guard = GuardedLines("audit", frame_bytes=LIMIT)
    guard.open(SEARCH)
    said = {
        party: b"".join(chance.choice([*NOISE, chance.randbytes(40) + b"\n"]) for _ in range(300))
        + chance.choice([b"", b"x", b"{", b"\r", LONG, b'{"jsonrpc":"2.0","method":"nope"}'])
        for party in Party
    }
    pieces = [(party, each) for party in Party for each in cut(said[party], chance)]
    order = [party for party, _ in pieces]
    chance.shuffle(order)
    left = {party: iter([each for whose, each in pieces if whose is party]) for party in Party}
    for party in order:
        guard.write(party, next(left[party]))
    for party in Party:
        guard.end(party)
        assert guard.got(party.other) == said[party]


@rows("revision", REVISIONS)
def test_under_enforce_good_traffic_passes_byte_for_byte_and_in_order(revision: str) -> None:
    """However it is spelt."""
    chance = random.Random(revision)  # noqa: S311 - no secret
    guard = GuardedLines()
    for each in [*opening(revision), *exchanges(revision, 300, seed=f"{revision} 1")]:
        for party, said in ((CLIENT, each.asked), (SERVER, b"".join(each.answered)), (CLIENT, b"".join(each.replies))):
            for piece in cut(said, chance, 200):
                guard.write(party, piece)
            assert guard.got(party.other) == said
            assert guard.got(party) == b""
    # Arguments that the schema does not name are reported, and pass.
    assert {rule for line in guard.log for rule in re.findall(r"\[([a-z]+/[a-z-]+)\]", line)} <= {
        "contract/unknown-argument"
    }
    assert any(line.endswith(", 0 blocked") for line in guard.watch.summary())

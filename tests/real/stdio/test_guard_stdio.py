"""The guard under enforce, in front of a server that lies: what each side gets, and that the conversation goes on."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kit.guard_process import Guarded, call, enforcing, notification, request, result, tool

# ── what a client gets wrong ─────────────────────────────────────────────────────────────────────────────────────────


BAD_REQUESTS = [
    pytest.param(request(7, "tools/call", {"name": "search", "arguments": []}), -32602, "protocol/params", id="params"),
    pytest.param(request(7, "tools/nope"), -32601, "protocol/method", id="method"),
    pytest.param({"jsonrpc": "1.0", "id": 7, "method": "ping"}, -32600, "envelope/jsonrpc", id="version"),
    pytest.param(b'{"jsonrpc":"2.0","id":7,"method":"ping","method":"ping"}', -32700, "syntax/duplicate-key", id="key"),
    pytest.param(b'{"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":NaN}}', -32700, "syntax/number", id="nan"),
    pytest.param(b'\xef\xbb\xbf{"jsonrpc":"2.0","id":7,"method":"ping"}', -32700, "syntax/bom", id="bom"),
    pytest.param(b'{"params":{"a":\xff},"method":"ping","jsonrpc":"2.0","id":7}', -32700, "syntax/utf8", id="utf8"),
]


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """One conversation, in which every bad request is made."""
    with enforcing(tmp_path_factory.mktemp("strict"), received=True) as one:
        one.open()
        for _ in range(3):
            one.received.next()
        yield one


@pytest.mark.parametrize(("said", "code", "rule"), BAD_REQUESTS)
def test_a_bad_request_is_answered_here_and_the_server_never_sees_it(
    strict: Guarded, said: Any, code: int, rule: str
) -> None:
    """By its id, even where the message as a whole cannot be read: a client waits for that."""
    refused = strict.ask(said)
    assert refused["id"] == 7
    assert refused["error"]["code"] == code
    assert refused["error"]["data"]["violations"][0]["rule"] == rule
    assert strict.ask(request("next", "ping")) == result("next", {})
    assert json.loads(strict.received.next()) == request("next", "ping")


def test_bad_arguments_are_a_result_that_a_model_can_see(strict: Guarded) -> None:
    """2025-11-25, server/tools, Error Handling."""
    refused = strict.ask(call(8, words=5))
    assert refused["result"]["isError"] is True
    assert "/params/arguments/words" in refused["result"]["content"][0]["text"]
    assert "result" in strict.ask(call(9))
    assert json.loads(strict.received.next()) == call(9)


@pytest.mark.parametrize("said", [b"hello?", b"\xff\xfe", b"[]", b"5"])
def test_what_has_no_id_is_answered_without_one(strict: Guarded, said: bytes) -> None:
    refused = strict.ask(said)
    assert "id" not in refused
    assert refused["error"]["code"] in {-32700, -32600}
    assert strict.ask(request("next", "ping")) == result("next", {})
    assert json.loads(strict.received.next()) == request("next", "ping")


@pytest.mark.parametrize("said", [b"", b" \t", b"\r", b'{"jsonrpc":"2.0","method":"notifications/nope"}'])
def test_blank_lines_and_bad_notifications_stop_without_a_word(strict: Guarded, said: bytes) -> None:
    strict.say(said)
    assert strict.ask(request("next", "ping")) == result("next", {})
    assert json.loads(strict.received.next()) == request("next", "ping")


# ── what a server gets wrong ─────────────────────────────────────────────────────────────────────────────────────────

TEXT = [{"type": "text", "text": "x"}]
BAD_ANSWERS: dict[str, tuple[list[Any], str, str]] = {
    "breaks-output": (
        ["result", {"content": TEXT, "structuredContent": {"hits": "3"}}],
        "contract/output",
        "/result/structuredContent/hits",
    ),
    "no-structure": (["result", {"content": TEXT}], "contract/output", "/result"),
    "wrong-shape": (["result", {"contents": TEXT}], "protocol/result", "/result"),
    "bad-content": (["result", {"content": [{"type": "text"}]}], "protocol/result", "/result/content/0"),
    "no-object": (["result", "fine"], "envelope/result", "/result"),
    "no-result": (["say", {"jsonrpc": "2.0", "id": "$id"}], "envelope/members", ""),
    "no-version": (["say", {"id": "$id", "result": {"content": TEXT}}], "envelope/jsonrpc", ""),
    "both": (["say", {"jsonrpc": "2.0", "id": "$id", "result": {}, "error": {}}], "envelope/members", "/error"),
    "bad-error": (["say", {"jsonrpc": "2.0", "id": "$id", "error": {"code": "1"}}], "envelope/error", "/error/code"),
    "nan": (["raw", '{"jsonrpc":"2.0","id":$id,"result":{"content":[],"x":NaN}}\n'], "syntax/number", ""),
    "nan-id-last": (["raw", '{"result":{"content":[],"x":NaN},"jsonrpc":"2.0","id":$id}\n'], "syntax/number", ""),
    "not-utf8": (["raw", '{"jsonrpc":"2.0","id":$id,"result":{"content":[],"x":"\xff"}}\n'], "syntax/utf8", ""),
    "twice-a-key": (
        ["raw", '{"jsonrpc":"2.0","id":$id,"result":{"a":1,"a":1}}\n'],
        "syntax/duplicate-key",
        "/result/a",
    ),
    "marked": (["raw", '\xef\xbb\xbf{"jsonrpc":"2.0","id":$id,"result":{"content":[]}}\n'], "syntax/bom", ""),
    "half": (["raw", '{"jsonrpc":"2.0","id":$id,"result":{"cont\n'], "syntax/json", ""),
    "batch": (["say", [{"jsonrpc": "2.0", "id": "$id", "result": {"content": TEXT}}]], "envelope/batch", ""),
}
"""By the tool that is called for it: what the server says, and what is wrong with that."""


PROMISE = {"type": "object", "properties": {"hits": {"type": "integer"}}, "required": ["hits"]}


@pytest.fixture(scope="module")
def wrong(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """One conversation, in which the server gives every bad answer."""
    tools = [tool(name, outputSchema=PROMISE) for name in (*BAD_ANSWERS, "good")]
    lies = {f"tools/call:{name}": [["log", f"now {name}\n"], lie] for name, (lie, _, _) in BAD_ANSWERS.items()}
    with enforcing(tmp_path_factory.mktemp("wrong"), tools=tools, on=lies) as one:
        one.open()
        yield one


@pytest.mark.parametrize("lie", BAD_ANSWERS)
def test_a_bad_answer_fails_the_request_and_says_what_is_wrong(wrong: Guarded, lie: str) -> None:
    _, rule, at = BAD_ANSWERS[lie]
    failed = wrong.ask(call(lie, lie))
    assert failed["id"] == lie
    if "result" in failed:
        assert rule in {"contract/output", "protocol/result"}
        first, told = failed["result"]["content"][0]["text"].splitlines()[:2]
        assert first == f"The result of {lie} broke its contract and was withheld."
        assert told.startswith(f"{at}: expected ")
        assert f"[{rule}]" in told
    else:
        assert failed["error"]["code"] == -31010
        first = failed["error"]["data"]["violations"][0]
        assert (first["rule"], first["at"]) == (rule, at)
    assert wrong.ask(call("next", "good"))["result"]["structuredContent"]["hits"] > 0


STRAY_ANSWERS: dict[str, list[Any]] = {
    "twice": [["good"], ["good"]],
    "never-asked": [["say", result("nobody", {})], ["good"]],
    "wrong-id": [["say", result([1], {})], ["say", result("$id$id", {})], ["good"]],
    "unasked-error": [["say", {"jsonrpc": "2.0", "id": 77, "error": {"code": 1, "message": "no"}}], ["good"]],
    "another-type": [["raw", '{"jsonrpc":"2.0","id":1.5,"result":{}}\n'], ["good"]],
}


@pytest.fixture(scope="module")
def stray(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """One conversation, in which the server answers what nobody asked."""
    lies = {f"tools/call:{name}": lie for name, lie in STRAY_ANSWERS.items()}
    tools = [tool(name) for name in (*STRAY_ANSWERS, "good")]
    with enforcing(tmp_path_factory.mktemp("stray"), tools=tools, on=lies) as one:
        one.open()
        yield one


@pytest.mark.parametrize("lie", STRAY_ANSWERS)
def test_an_answer_that_nobody_waits_for_is_not_delivered(stray: Guarded, lie: str) -> None:
    stray.say(call(lie, lie), call("next", "good"))
    assert [stray.answer()["id"], stray.answer()["id"]] == [lie, "next"]


# ── what a server prints ─────────────────────────────────────────────────────────────────────────────────────────────

PRINTED = ["banner v0.3", '{"level":"info","msg":"started"}', "[1, 2]", "   * * *", "caf\xe9 \xff", "null"]


def test_what_a_server_prints_goes_to_stderr_and_never_to_the_client(tmp_path: Path) -> None:
    """At the start, in the middle of the stream, with every kind of line end."""
    printing = [["raw", f"{line}\n"] for line in PRINTED]
    on = {"ping": [["raw", "\n \r\n"], *printing, ["raw", "\n\r\n"], ["good"], ["raw", "x\r\n"]]}
    with enforcing(tmp_path, "--quiet", start=printing, on=on) as one:
        one.open()
        assert [one.ask(request(number, "ping")) for number in range(3)] == [result(number, {}) for number in range(3)]
        one.close()
        assert one.out.rest() == []
        assert one.ended() == 0
        printed = one.log.rest()
    # A batch of no messages is one message too many, and no line of a log.
    expected = [line.encode("latin-1").decode(errors="replace") for line in PRINTED if line != "[1, 2]"]
    shown = [line.decode().removeprefix("assay: the server sent: ") for line in printed]
    assert shown == [*expected, *(3 * [*expected, "x"])]


def test_line_ends_of_either_kind_are_passed_on(tmp_path: Path) -> None:
    with enforcing(
        tmp_path, received=True, on={"ping": [["raw", '{"jsonrpc":"2.0","id":$id,"result":{}}\r\n']]}
    ) as one:
        one.open()
        one.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\r\n')
        assert one.out.next() == b'{"jsonrpc":"2.0","id":1,"result":{}}\r'
        assert [one.received.next() for _ in range(4)][3] == b'{"jsonrpc":"2.0","id":1,"method":"ping"}\r'


# ── lists ────────────────────────────────────────────────────────────────────────────────────────────────────────────


BAD_TOOLS: dict[str, tuple[dict[str, Any], str]] = {
    "no-schema": ({"name": "no-schema"}, "protocol/result"),
    "cycle": (tool("cycle", outputSchema={"type": "object", "$ref": "#"}), "contract/"),
    "typo": (tool("typo", outputSchema={"type": "object", "properties": {"a": {"type": "strnig"}}}), "contract/"),
    "good": (tool("good"), "contract/duplicate-tool"),
}


@pytest.mark.parametrize("bad", BAD_TOOLS)
def test_one_bad_entry_of_a_list_is_taken_out_and_the_others_stay(tmp_path: Path, bad: str) -> None:
    entry, rule = BAD_TOOLS[bad]
    with enforcing(tmp_path, tools=[tool("good"), entry, tool("last")]) as one:
        assert one.open() == {"tools": [tool("good"), tool("last")]}
        assert "result" in one.ask(call(2, "good"))
        assert "result" in one.ask(call(3, "last"))
        one.close()
        assert one.ended() == 0
        log = one.log.rest()
        assert log.count(f'assay: quarantined 1 tool in tools/list #"list": {bad}'.encode()) == 1
        assert any(line.startswith(b"assay:     /result/tools/1") and rule.encode() in line for line in log)
        assert f"assay: quarantined: {bad} (1 tool)".encode() in [line.rstrip() for line in log]


def bomb(levels: int) -> dict[str, Any]:
    """A schema whose judging takes twice as long with every level."""
    twice = {str(level): {"allOf": [{"$ref": f"#/$defs/{level + 1}"}] * 2} for level in range(levels)}
    return {"type": "object", "$ref": "#/$defs/0", "$defs": {**twice, str(levels): {"type": "object"}}}


@pytest.mark.parametrize(
    ("schema", "rule"),
    [
        ({"type": "object", "$ref": "https://example.com/x"}, "contract/remote-ref"),
        ({"type": "object", "$ref": "file:///etc/passwd"}, "contract/remote-ref"),
        (bomb(40), "contract/schema-cost"),
    ],
)
def test_a_tool_that_cannot_be_judged_lives_and_is_reported_once(
    tmp_path: Path, schema: dict[str, Any], rule: str
) -> None:
    odd = tool("odd", outputSchema=schema)
    with enforcing(tmp_path, tools=[tool("good"), odd]) as one:
        assert one.open() == {"tools": [tool("good"), odd]}
        for number in (2, 3, 4):
            assert "result" in one.ask(call(number, "odd"))
        one.close()
        assert one.ended() == 0
        told = [line for line in one.log.rest() if line.startswith(b"assay: reported: server result of")]
        assert [rule.encode() in line for line in told] == [True]


# ── what a server asks, and says unasked ─────────────────────────────────────────────────────────────────────────────

MESSAGES = [{"role": "user", "content": {"type": "text", "text": "hi"}}]
ASKED = {
    "roots/list": (None, {"roots": [{"uri": "file:///a"}]}, {"roots": [{"uri": 5}]}),
    "sampling/createMessage": (
        {"messages": MESSAGES, "maxTokens": 5},
        {"role": "assistant", "content": {"type": "text", "text": "ho"}, "model": "m"},
        {"role": "assistant"},
    ),
    "elicitation/create": (
        {"message": "which?", "requestedSchema": {"type": "object", "properties": {"a": {"type": "string"}}}},
        {"action": "accept", "content": {"a": "b"}},
        {"action": "perhaps"},
    ),
}


@pytest.fixture(scope="module")
def asking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """One conversation, in which the server asks back what it is called for."""
    asks = {
        f"tools/call:{method}": [["say", request("$id", method, params)]] for method, (params, _, _) in ASKED.items()
    }
    tools = [tool(method) for method in ASKED]
    with enforcing(tmp_path_factory.mktemp("asking"), received=True, tools=tools, on=asks) as one:
        one.open()
        for _ in range(3):
            one.received.next()
        yield one


@pytest.mark.parametrize("method", ASKED)
def test_a_server_asks_and_the_client_answers(asking: Guarded, method: str) -> None:
    """Ids of either side count for themselves. Of a bad answer the server is told that it is one."""
    params, good, bad = ASKED[method]
    for answered in (good, bad):
        ident = f"{method} {answered}"
        assert asking.ask(call(ident, method)) == request(ident, method, params)
        assert json.loads(asking.received.next()) == call(ident, method)
        asking.say(result(ident, answered))
        got = json.loads(asking.received.next())
        if answered is good:
            assert got == result(ident, good)
        else:
            assert (got["id"], got["error"]["code"]) == (ident, -31010)
            assert got["error"]["data"]["violations"][0]["rule"] == "protocol/result"


def test_a_bad_request_of_a_server_is_answered_here_and_the_client_never_sees_it(tmp_path: Path) -> None:
    bad = request("s", "sampling/createMessage", {"messages": "hi"})
    with enforcing(tmp_path, received=True, on={"ping": [["say", bad], ["good"]]}) as one:
        one.open()
        assert one.ask(request(1, "ping")) == result(1, {})
        received = [json.loads(one.received.next()) for _ in range(5)]
    assert received[4]["id"] == "s"
    assert received[4]["error"]["data"]["violations"][0]["rule"] == "protocol/params"


def test_notifications_of_a_server_pass_and_bad_ones_do_not(tmp_path: Path) -> None:
    progress = {"progressToken": "p", "progress": 1, "total": 2}
    good = [
        notification("notifications/message", {"level": "info", "data": {"a": 1}}),
        notification("notifications/progress", progress),
        notification("notifications/tools/list_changed"),
    ]
    bad = [
        notification("notifications/message", {"level": "loud", "data": 1}),
        notification("notifications/initialized"),
        notification("notifications/nope"),
    ]
    saying = [["say", each] for pair in zip(bad, good, strict=True) for each in pair]
    with enforcing(tmp_path, on={"tools/call": [*saying, ["good"]]}) as one:
        one.open()
        one.say(
            request(1, "tools/call", {"name": "search", "arguments": {"words": "a"}, "_meta": {"progressToken": "p"}})
        )
        assert [one.answer() for _ in good] == good
        assert "result" in one.answer()


# ── size ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

LIMIT = ("--set", "guard.frame_bytes=20000")
NESTED = '"items":[{"id":2,"x":"'
TOO_LONG = {
    "id-first": ["long", '{"jsonrpc":"2.0","id":1,"result":{"content":[],' + NESTED, 30_000, '"}]}}\n'],
    "id-last": ["long", '{"result":{"content":[],' + NESTED, 30_000, '"}]},"jsonrpc":"2.0","id":1}\n'],
    "id-last-far": ["long", '{"result":{"content":[],' + NESTED, 3_000_000, '"}]},"id":1,"jsonrpc":"2.0"}\r\n'],
    "error": ["long", '{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"', 30_000, '"}}\n'],
}


@pytest.mark.parametrize("how", TOO_LONG)
def test_an_answer_that_is_too_long_fails_its_request_and_no_other(tmp_path: Path, how: str) -> None:
    """Whichever end its id is at; ids in what it carries mean nothing."""
    with enforcing(tmp_path, *LIMIT, on={"tools/call": [TOO_LONG[how]]}) as one:
        one.open()
        one.say(request(2, "ping"), call(1))
        assert one.answer() == result(2, {})
        failed = one.answer()
        assert (failed["id"], failed["error"]["code"]) == (1, -31010)
        assert failed["error"]["data"]["violations"][0]["rule"] == "framing/size"
        assert one.ask(request(2, "ping")) == result(2, {})


def test_an_answer_that_is_too_long_and_never_ends_fails_with_the_server(tmp_path: Path) -> None:
    endless = [["long", '{"result":{"content":[],' + NESTED, 30_000, ""], ["exit", 0]]
    with enforcing(tmp_path, *LIMIT, on={"tools/call": endless}) as one:
        one.open()
        one.say(request(2, "ping"), call(1))
        assert one.answer() == result(2, {})
        assert one.answer()["error"]["code"] == -31011
        assert one.out.rest() == []
        assert one.ended() == 3


@pytest.mark.parametrize("last", [False, True])
def test_a_request_that_is_too_long_is_answered_by_its_id(tmp_path: Path, last: bool) -> None:
    """From either side: also that of a server, which the client never sees."""
    head, tail = ("", ',"jsonrpc":"2.0","id":9}') if last else ('"jsonrpc":"2.0","id":9,', "}")
    begun = "{" + head + '"method":"roots/list","params":{"_meta":{"x":"'
    asks = [["long", begun, 30_000, '"}}' + tail + "\n"], ["good"]]
    with enforcing(tmp_path, *LIMIT, received=True, on={"ping": asks}) as one:
        one.open()
        for _ in range(3):
            one.received.next()
        one.write(begun.encode() + b"x" * 30_000 + b'"}}' + tail.encode() + b"\n")
        refused = one.answer()
        assert (refused["id"], refused["error"]["code"]) == (9, -32600)
        assert one.ask(request(1, "ping")) == result(1, {})
        assert json.loads(one.received.next()) == request(1, "ping")
        refused = json.loads(one.received.next())
        assert (refused["id"], refused["error"]["code"]) == (9, -32600)


def test_notifications_that_are_too_long_stop_without_a_word(tmp_path: Path) -> None:
    begun = '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"'
    long = [["long", begun, 30_000, '"}}\n'], ["long", "", 30_000, "\n"], ["good"]]
    with enforcing(tmp_path, *LIMIT, on={"ping": long}) as one:
        one.open()
        assert one.ask(request(1, "ping")) == result(1, {})

"""Requests without a session (2026-07-28), which all share one child: what reaches it, and who gets what it says."""

import json
from typing import Any

import pytest

from assay.edges.child_backend import PROBED
from assay.edges.stateless_requests import NoResponse
from assay.guard.terms import Mode
from assay.rules.policy import Policy
from assay.spec.revisions import LATEST
from kit.hosted import Hosted, host, hosting
from kit.http_client import (
    BOTH,
    REVISION_KEY,
    Answer,
    call,
    frame_of,
    initialize,
    listen,
    meta,
    modern,
    notification,
    request,
)
from kit.rows import rows

SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
GOOD = call(1, "search", {"words": "sea"}, LATEST)
LISTING = request(1, "tools/list", {}, LATEST)
ANY = {"name": "any", "inputSchema": {"type": "object"}}
BOTH_MODES = rows("mode", ["audit", "enforce"])


# ── what reaches the child ───────────────────────────────────────────────────────────────────────────────────────────

CITY = {"type": "string", "x-mcp-header": "City"}
MARKED = {"name": "marked", "inputSchema": {"type": "object", "properties": {"city": CITY}}}
MARKS = call(1, "marked", {"city": "Oslo"}, LATEST)
NO_META = request(1, "tools/list", {})
STAMPED = initialize("2025-11-25") | {"params": {**initialize("2025-11-25")["params"], "_meta": meta()}}

REFUSED: dict[str, tuple[Any, dict[str, str | bytes], int, int | None]] = {
    "name": (call(1, "any", {}, LATEST), {"mcp-name": "other"}, 400, -32020),
    "encoding": (call(1, "any", {}, LATEST), {"mcp-name": "=?base64?????="}, 400, -32020),
    "method": (LISTING, {"mcp-method": "tools/call"}, 400, -32020),
    "version": (LISTING, {"mcp-protocol-version": "2031-01-01"}, 400, -32020),
    "argument": (MARKS, {"mcp-param-city": "Rome"}, 400, -32020),
    "no-argument": (MARKS, {}, 400, -32020),
    "no-meta": (NO_META, {}, 400, -32602),
    "no-params": ({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, {}, 400, -32602),
    "no-revision": (request(1, "tools/list", {"_meta": {"progressToken": 1}}), {}, 400, -32602),
    "odd-revision": (
        request(1, "tools/list", {"_meta": meta() | {REVISION_KEY: 5}}), {"mcp-protocol-version": LATEST}, 400, -32602,
    ),
    "old-revision": (
        request(1, "tools/list", {"_meta": meta("2025-11-25")}), {"mcp-protocol-version": LATEST}, 400, -32020,
    ),
    "unknown-header": (NO_META, {"mcp-protocol-version": "2031-01-01"}, 400, -32022),
    "unknown-method": (request(1, "acme/search", {}), {}, 400, -32602),
    "removed-method": (request(1, "ping", {}), {}, 404, -32601),
    "initialize": (initialize("2025-11-25"), {}, 404, -32601),
    "initialize-with-meta": (STAMPED, {}, 404, -32601),
    "no-json": (b"{", {}, 400, -32700),
    "no-json-rpc": ({"id": 1, "method": "tools/list", "params": {}}, {}, 400, -32600),
    "no-object": (b"5", {}, 400, -32600),
    "batch": ([NO_META, request(2, "tools/list", {}, LATEST)], {}, 400, -32600),
    "notification": (notification("notifications/initialized"), {}, 202, None),
    "unknown-notification": (notification("acme/changed", {}), {}, 202, None),
    "answer": ({"jsonrpc": "2.0", "id": 1, "result": {}}, {}, 202, None),
    "notification-of-another-method": (
        notification("notifications/cancelled", {"requestId": 1}), {"mcp-method": "tools/call"}, 400, -32020,
    ),
}  # fmt: skip
"""Messages that an HTTP server of this era does not act upon, with headers that differ, the status and the code."""


async def refused(hosted: Hosted, *but: str) -> None:
    """Every row comes to what it says."""
    found = {}
    for name in REFUSED.keys() - set(but):
        message, more, *_ = REFUSED[name]
        answer = await hosted.post(message, {**modern(message), **more})
        found[name] = answer.status, answer.error()["code"] if answer.body else None
    assert found == {name: REFUSED[name][2:] for name in found}


@BOTH_MODES
@rows("policy", [None, Policy({"protocol/params": "pass"})])
def test_what_an_http_server_refuses_reaches_no_child_in_either_mode(mode: Mode, policy: Policy | None) -> None:
    """A child settles its era by its first message, and sees no header: no one behind the guard could refuse these."""

    async def scenario(hosted: Hosted) -> None:
        await refused(hosted, "argument", "no-argument")
        assert not hosted.children
        assert (await hosted.ask(LISTING)).status == 200
        await refused(hosted)
        assert (await hosted.ask(call(1, "any", {}, LATEST))).status == 200
        assert hosted.children[0].methods == ["tools/list", "tools/call"]

    log = host(scenario, mode, policy=policy, tools=[ANY, MARKED], quiet=False).log
    assert any("blocked: client " in each for each in log)


@rows(("mode", "statuses"), [("audit", [200, 200]), ("enforce", [404, 400])])
@hosting()
async def test_a_removed_method_and_an_unknown_revision_reach_the_child_under_audit_only(
    hosted: Hosted, mode: Mode, statuses: list[int]
) -> None:
    later = request(1, "tools/list", {"_meta": meta("2031-01-01")})
    assert [(await hosted.ask(each)).status for each in (request(1, "ping", {}, LATEST), later)] == statuses
    assert bool(hosted.children) == (mode == "audit")


@rows(("named", "status"), [("2031-01-01", 200), ("2032-01-01", 400)])
def test_a_revision_that_the_child_does_not_declare_never_reaches_it(named: str, status: int) -> None:
    """A child that has settled its era need not look at the revision of each message; one may be newer than we are."""
    speaks = {"resultType": "complete", "supportedVersions": [LATEST, "2031-01-01"], "capabilities": {"tools": {}}}
    on = {"server/discover": [["result", {**speaks, "ttlMs": 0, "cacheScope": "private"}]]}

    async def scenario(hosted: Hosted) -> None:
        assert (await hosted.ask(request(1, "server/discover", {}, LATEST))).status == 200
        answer = await hosted.ask(request(2, "tools/list", {"_meta": meta(named)}))
        assert answer.status == status
        assert status == 200 or answer.error()["code"] == -32022
        assert len(hosted.children[0].methods) == (2 if status == 200 else 1)

    host(scenario, "audit", on=on, quiet=False)


@hosting()
async def test_the_id_of_a_session_leads_nowhere_and_the_methods_of_sessions_are_not_allowed(hosted: Hosted) -> None:
    session = await hosted.open("alice")
    mine = {"mcp-session-id": session["mcp-session-id"], "mcp-protocol-version": LATEST}
    answer = await hosted.post(LISTING, {**modern(LISTING), **mine, "x-principal": "mallory"})
    assert answer.status == 200
    assert len(hosted.children) == 2, "not that of the session"
    for headers in (mine, {"mcp-protocol-version": LATEST}):
        asked = [hosted.begin(None, {**BOTH, **headers}, method) for method in ("GET", "DELETE")]
        assert [(await each.answer()).status for each in asked] == [405, 405]
    assert (await hosted.post(request(2, "ping"), session)).status == 200


@rows("ident", [b"1", b'"1"', b"1.0", b"-0", b"1e2", b'"\\u0061"', b"123456789012345678901234567890"])
@hosting()
async def test_an_answer_has_the_id_as_it_was_spelt_and_no_other_byte_of_a_request_changes(
    hosted: Hosted, ident: bytes
) -> None:
    frame = frame_of(call("$", "search", {"words": "é\u2028"}, LATEST)).replace(b'"id":"$"', b'"id" :  ' + ident)
    answer = await hosted.ask(frame)
    assert b'"id":' + ident + b"," in answer.body
    # The first request was that of the guard for the tools.
    assert hosted.children[0].frames == [frame.replace(b'"id" :  ' + ident, b'"id" :  2')]


# ── who gets what the child says ─────────────────────────────────────────────────────────────────────────────────────


def test_a_subscription_with_the_same_id_gets_its_own_news() -> None:
    def note(method: str, **params: Any) -> list[Any]:
        return ["say", {"jsonrpc": "2.0", "method": method, "params": {**params, "_meta": {SUBSCRIPTION: "$id"}}}]

    acknowledged = note("notifications/subscriptions/acknowledged", notifications={"toolsListChanged": True})

    async def scenario(hosted: Hosted) -> None:
        for asking in [hosted.asking(listen("mine")) for _ in range(2)]:
            body = await asking.until(b"tools/list_changed")
            assert (await asking.head()).header("content-type") == "text/event-stream"
            assert body.count(b'"mine"') == 2
            assert body.count(b"tools/list_changed") == 1

    host(scenario, on={"subscriptions/listen": [acknowledged, note("notifications/tools/list_changed")]})


@hosting(on={"tools/call:mute": []})
async def test_a_cancelled_request_is_known_by_principal_and_id(hosted: Hosted) -> None:
    """Without authentication no client is known, so no request is."""
    waiting = [
        hosted.asking(call(7, "mute", {"of": who}, LATEST), x_principal=who) for who in ("ann", "bob", "anonymous")
    ]
    cancelled = notification("notifications/cancelled", {"requestId": 7, "_meta": meta()})
    assert (await hosted.ask(GOOD)).status == 200
    for who in ("anonymous", "carl", "bob"):
        assert (await hosted.ask(cancelled, x_principal=who)).status == 202
    sent = [json.loads(each) for each in hosted.children[0].frames]
    [only] = [each for each in sent if each["method"] == "notifications/cancelled"]
    [of_bob] = [each for each in sent if each["params"].get("arguments") == {"of": "bob"}]
    assert only["params"]["requestId"] == of_bob["id"]
    assert all(each.is_silent for each in waiting)


LOGS = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "secret"}}


def logging(message: dict[str, Any]) -> dict[str, Any]:
    """A request that asks for logs."""
    meta_of = {**message["params"]["_meta"], "io.modelcontextprotocol/logLevel": "debug"}
    return {**message, "params": {**message["params"], "_meta": meta_of}}


@hosting(on={"tools/call:mute": [], "tools/call:logs": [["say", LOGS], ["good"]]})
async def test_logs_go_to_a_request_that_asks_for_them_if_no_other_is_open(hosted: Hosted) -> None:
    plain = call(1, "logs", {}, LATEST)
    assert b"secret" in (await hosted.ask(logging(plain))).body
    assert b"secret" not in (await hosted.ask(plain)).body
    other = hosted.asking(call(1, "mute", {}, LATEST))
    assert b"secret" not in (await hosted.ask(logging(plain))).body
    assert other.is_silent


@hosting(
    on={
        "tools/call:logs": [["say", LOGS], ["good"], ["say", LOGS]],
        "tools/call:leaves": [],
        "notifications/cancelled": [["say", LOGS]],
        "subscriptions/listen": [],
    }
)
async def test_no_client_gets_what_the_child_logs_about_the_calls_of_others(hosted: Hosted) -> None:
    """Neither while their request is open, nor after it was answered or cancelled: servers log late."""
    bob = hosted.asking(logging(listen("b")), x_principal="bob")
    assert (await hosted.ask(call(1, "logs", {}, LATEST), x_principal="alice")).status == 200
    leaving = hosted.asking(call(2, "leaves", {}, LATEST), x_principal="alice")
    assert (await hosted.ask(GOOD, x_principal="alice")).status == 200
    await leaving.leave()
    assert hosted.children[0].methods[-1] == "notifications/cancelled"
    # Whatever was said before this answer has been handled when it comes.
    assert (await hosted.ask(GOOD, x_principal="alice")).status == 200
    assert b"secret" not in bob.body


def test_what_answers_no_open_request_reaches_no_client() -> None:
    """Also if the second answer to a request comes when another one with the same id is open."""
    again = {"content": [], "resultType": "complete"}
    late = [["say", {"jsonrpc": "2.0", "id": ident, "result": again}] for ident in (2, 3, 999)]
    on = {"tools/call:next": [["raw", "Loading...\n"], *late, ["good"]]}

    async def scenario(hosted: Hosted) -> None:
        # The guard lists the tools with its request 1.
        assert (await hosted.ask(call(1, "first", {}, LATEST))).status == 200
        assert (await hosted.ask(GOOD)).status == 200
        answer = (await hosted.ask(call(1, "next", {"words": "a"}, LATEST))).json()
        assert (answer["id"], answer["result"]["structuredContent"]["hits"]) == (1, len(str({"words": "a"})))

    log = "\n".join(host(scenario, on=on).log)
    assert "protocol/unsolicited" in log
    assert "protocol/answered-twice" in log


def test_an_answer_that_never_comes_is_given_up_and_a_late_one_reaches_no_client() -> None:
    late = '{"jsonrpc":"2.0","id":2,"result":{"content":[],"resultType":"complete"}}\n'
    on = {"tools/call:mute": [], "notifications/cancelled": [["raw", late]]}

    async def scenario(hosted: Hosted) -> None:
        assert (await hosted.ask(LISTING)).status == 200
        answer = await hosted.ask(call(5, "mute", {}, LATEST))
        assert (answer.status, answer.error()["code"], answer.json()["id"]) == (504, -31012, 5)
        assert (await hosted.ask(call(5, "search", {"words": "a"}, LATEST))).json()["id"] == 5

    assert any("protocol/answered-twice" in each for each in host(scenario, timeout=0.05, on=on).log)


CUT_OFF = '{"jsonrpc":"2.0","id":$id,"result":{"content":['
BROKEN = [
    CUT_OFF,
    '{"result":[}],"jsonrpc":"2.0","id":$id}',
    '{"jsonrpc":"2.0","id":$id,"result":' + "[" * 600 + "]" * 600 + "}",
    '{"jsonrpc":"2.0","id":$id,"result":{},"result":{}}',
    '{"jsonrpc":"2.0","id":$id}',
    '{"jsonrpc":"2.0","id":$id,"method":"tools/call","result":{}}',
]


@rows("text", BROKEN)
@BOTH_MODES
def test_a_broken_answer_ends_the_request_whose_id_it_shows(mode: Mode, text: str) -> None:
    """Nothing else comes for it. Its number is ours, and what the client gets has the client's own id."""

    async def scenario(hosted: Hosted) -> None:
        answer = await hosted.ask(call("mine", "search", {"words": "a"}, LATEST))
        if mode == "audit":
            assert answer.body == text.replace("$id", '"mine"').encode()
        else:
            assert (answer.status, answer.json()["id"], answer.error()["code"]) == (502, "mine", -31010)
        assert (await hosted.ask({**LISTING, "id": "b"})).json()["id"] == "b"

    host(scenario, mode, on={"tools/call": [["raw", text + "\n"]]})


# ── a client that does not read ──────────────────────────────────────────────────────────────────────────────────────


def test_late_answers_to_a_client_that_is_gone_are_not_kept() -> None:
    """Every request that is over shares this response, so what it kept would stay for ever."""
    gone = NoResponse()
    gone.say(b'{"jsonrpc":"2.0","method":"notifications/message"}')
    gone.answer(b'{"jsonrpc":"2.0","id":1,"result":{}}', 1)
    assert gone.waiting == 0


# ── its end ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@rows("shown", [False, True])
def test_no_client_reads_the_stderr_of_a_child_that_others_use_and_another_starts_after_a_pause(shown: bool) -> None:
    """Neither those who wait when it ends, nor those who come in the pause before the next start."""
    on = {"tools/call:mute": [], "tools/call:end": [["log", "API_KEY=s3cret\n"], ["exit", 1]]}

    async def scenario(hosted: Hosted) -> None:
        waits = hosted.asking(call(1, "mute", {}, LATEST), x_principal="alice")
        first = await hosted.ask(call(1, "end", {}, LATEST), x_principal="bob")
        in_pause = await hosted.ask(GOOD, x_principal="bob")
        for answer in (first, await waits.answer(), in_pause):
            assert (answer.status, answer.json()["id"], answer.error()["code"]) == (502, 1, -31011)
            assert answer.error()["data"]["violations"][0]["found"] == "none: the server exited with status 1"
            assert answer.error()["message"] == "No answer came: the server exited with status 1"
            assert "s3cret" not in answer.body.decode()
            assert "stderr" not in answer.error()["data"]
        hosted.now += 0.2
        assert (await hosted.ask(GOOD)).status == 200

    assert b"[python] API_KEY=s3cret" in host(scenario, on=on, options={"stderr_in_errors": shown}).stderr


@hosting(on={"prompts/list": [["exit", 1]]})
async def test_calls_are_held_to_the_tools_of_a_child_that_was_lost(hosted: Hosted) -> None:
    """Until the next one lists its own: no child gets a bad call just because the last one has ended."""
    assert (await hosted.ask(LISTING)).json()["result"]["tools"]
    assert (await hosted.ask(request(2, "prompts/list", {}, LATEST))).error()["code"] == -31011
    result = (await hosted.ask(call(3, "search", {"words": 5}, LATEST))).json()["result"]
    assert result["isError"]
    assert "/params/arguments/words: expected a string, found 5" in result["content"][0]["text"]


@hosting(unstartable="cannot start it")
async def test_a_command_that_cannot_be_run_fails_every_request(hosted: Hosted) -> None:
    for _ in range(3):
        answer: Answer = await hosted.ask(GOOD)
        assert (answer.status, answer.error()["code"]) == (502, -31011)
        assert answer.error()["data"]["violations"][0]["found"] == "none: cannot start it"


NO = {"jsonrpc": "2.0", "id": "$id", "error": {"code": -32601, "message": "no such method"}}


@rows(
    ("methods", "seconds"),
    [
        pytest.param(["server/discover"], PROBED, id="refused-probe"),
        pytest.param(["tools/list"], 1800.0, id="result"),
        pytest.param(["tools/list", "server/discover"], 1800.0, id="result-and-refusal"),
    ],
)
@hosting(on={"server/discover": [["say", NO]]})
async def test_a_child_that_no_client_needs_ends_and_one_that_only_refuses_soon(
    hosted: Hosted, methods: list[str], seconds: float
) -> None:
    """A client that probes for 2026-07-28 goes on with a session, if that is refused."""
    for each in methods:
        await hosted.ask(request(1, each, {}, LATEST))
    hosted.now += seconds
    hosted.backend.sweep()
    # Whatever ends is ended in a task of its own, before this is answered.
    assert (await hosted.post(initialize("2025-11-25"))).status == 200
    assert [each.is_over for each in hosted.children[:1]] == [False]
    hosted.now += 0.1
    hosted.backend.sweep()
    assert (await hosted.post(initialize("2025-11-25"))).status == 200
    assert [each.is_over for each in hosted.children[:1]] == [True]
    assert (await hosted.ask(GOOD)).status == 200

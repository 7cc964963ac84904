"""Sessions of the handshake revisions, each with a child of its own: who may use them, and what goes either way."""

import json
from typing import Any

import pytest

from assay.guard.terms import Mode
from assay.settings.http_section import Http
from assay.spec.revisions import REVISIONS, handshake
from kit.guard_process import result
from kit.hosted import NEWEST, Hosted, host, hosting
from kit.http_client import BOTH, call, initialize, notification, request
from kit.rows import rows

SESSIONS = [each for each in REVISIONS if handshake(each)]
NOTE = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}}
CALL = call(1, "search", {"words": "sea"})
BOTH_MODES = rows("mode", ["audit", "enforce"])
JSON = "application/json"
LOST = -31011


# ── who may use a session ────────────────────────────────────────────────────────────────────────────────────────────


@BOTH_MODES
@hosting()
async def test_the_session_of_another_principal_does_not_exist(hosted: Hosted, mode: Mode) -> None:
    """Whatever is asked of it, in whatever revision: 404, as for one that never was."""
    for revision in SESSIONS:
        headers = await hosted.open("alice", revision)
        theirs = {**headers, "x-principal": "mallory", "mcp-protocol-version": revision}
        asks = [request(1, "ping"), CALL, notification("notifications/cancelled", {}), result(5, {})]
        found = [(await hosted.post(each, theirs)).status for each in [*asks, initialize(revision)]]
        found += [(await hosted.get(theirs, **each)).status for each in ({}, {"last_event_id": "1-0"})]
        found.append(await hosted.delete(theirs))
        assert found == [404] * 8, revision
        assert (await hosted.post(request(1, "ping"), headers)).status == 200


@rows(
    ("message", "headers", "status", "code"),
    [
        pytest.param(request(1, "tools/list"), {}, 400, -32600, id="no-session"),
        pytest.param(request(1, "tools/list"), {"mcp-session-id": "none"}, 404, -32601, id="unknown-session"),
        pytest.param(initialize(NEWEST) | {"id": None}, {}, 400, -32600, id="bad-initialize"),
        pytest.param(b"{", {}, 400, -32700, id="no-json"),
        pytest.param(b"[]", {}, 400, -32600, id="empty-batch"),
        pytest.param(b" ", {}, 400, -32700, id="blank"),
    ],
)
@hosting()
async def test_what_opens_no_session_starts_no_child(
    hosted: Hosted, message: Any, headers: dict[str, str], status: int, code: int
) -> None:
    answer = await hosted.post(message, {**BOTH, **headers})
    assert (answer.status, answer.error()["code"]) == (status, code)
    assert answer.header("mcp-session-id") is None
    assert not hosted.children


@hosting()
async def test_an_unknown_revision_or_event_id_in_a_session_is_refused(hosted: Hosted) -> None:
    headers = await hosted.open()
    assert hosted.backend.sessions == 1
    answer = await hosted.post(request(1, "ping"), headers, mcp_protocol_version="1999-01-01")
    assert (answer.status, answer.error()["code"]) == (400, -32022)
    assert (await hosted.get(headers, last_event_id="99-1")).status == 400


@hosting(http=Http(session_seconds=100.0), on={"tools/call:mute": []})
async def test_a_session_that_no_client_uses_ends_with_its_child_and_not_while_a_request_is_open(
    hosted: Hosted,
) -> None:
    headers = await hosted.open()
    child = hosted.children[0]
    waits = hosted.begin(call(1, "mute", {}), headers)
    await waits.head()
    hosted.now += 150
    hosted.backend.sweep()
    child.say(result(1, {"content": []}))
    assert (await waits.messages())[-1]["id"] == 1
    hosted.now += 90
    assert (await hosted.post(request(2, "ping"), headers)).status == 200
    hosted.now += 101
    hosted.backend.sweep()
    assert (await hosted.post(request(3, "ping"), headers)).status == 404
    assert child.is_over


# ── streams ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@rows(
    ("accept", "kind"),
    [(JSON, JSON), ("text/event-stream", "text/event-stream"), ("*/*", "text/event-stream")],
)
@hosting(on={"tools/call": [["say", NOTE], ["good"]]})
async def test_a_client_gets_the_kind_of_answer_that_it_accepts(hosted: Hosted, accept: str, kind: str) -> None:
    headers = await hosted.open()
    answer = await hosted.post(CALL, {**headers, "accept": accept})
    assert answer.header("content-type") == kind
    if kind == "application/json":
        assert answer.json()["id"] == 1
        await hosted.listen(headers).until(b'"notifications/message"')


@hosting(on={"tools/call": []})
async def test_a_client_that_resumes_gets_its_answer_on_the_last_connection_and_again(hosted: Hosted) -> None:
    """Also while the connection before still seems to be open."""
    headers = await hosted.open()
    calling = hosted.begin(call(1, "mute", {}), headers)
    last = await calling.first_event()
    await calling.leave()
    before = hosted.listen(headers, last_event_id=last)
    await before.until(b":\r\n\r\n")
    back = hosted.listen(headers, last_event_id=last)
    await back.until(b":\r\n\r\n")
    hosted.children[0].say(result(1, {"content": []}))
    assert [each["id"] for each in await back.messages()] == [1]
    assert await before.messages() == []
    again = hosted.listen(headers, last_event_id=last)
    assert [each["id"] for each in await again.messages()] == [1]


@hosting(on={"resources/read": [["say", NOTE], ["good"]]})
async def test_a_client_that_listens_anew_gets_everything_although_the_last_connection_seems_to_be_open(
    hosted: Hosted,
) -> None:
    headers = await hosted.open()
    first = hosted.listen(headers)
    last = await first.first_event()
    await first.leave()
    await hosted.listen(headers, last_event_id=last).until(b":\r\n\r\n")
    back = hosted.listen(headers, last_event_id=last)
    await back.until(b":\r\n\r\n")
    for number in range(3):
        message = request(number, "resources/read", {"uri": "file:///a"})
        assert (await hosted.post(message, {**headers, "accept": "application/json"})).status == 200
    await back.until(b'"data":"x"')
    assert back.body.count(b"notifications/message") == 3


@hosting(on={"tools/call": []})
async def test_an_answer_that_is_too_large_to_keep_is_an_error_for_a_client_that_resumes(hosted: Hosted) -> None:
    """Of two that are too large together, the first one."""
    headers = await hosted.open()
    for sizes, kept in (([2 << 20], [False]), ([700_000, 700_000], [False, True])):
        lasts = []
        for number, _ in enumerate(sizes):
            calling = hosted.begin(call(number, "mute", {}), headers)
            lasts.append(await calling.first_event())
            await calling.leave()
        for number, size in enumerate(sizes):
            hosted.children[0].say(result(number, {"content": [{"type": "text", "text": "x" * size}]}))
        assert (await hosted.post(request("p", "ping"), headers)).status == 200
        for number, (last, whole) in enumerate(zip(lasts, kept, strict=True)):
            [answer] = await hosted.listen(headers, last_event_id=last).messages()
            assert answer["id"] == number
            assert ("result" in answer) is whole
            if not whole:
                assert answer["error"]["code"] == LOST
                assert "could not be kept until the client resumed" in answer["error"]["message"]


@rows("accept", [BOTH["accept"], "application/json", "text/event-stream"])
@hosting(on={"tools/call": []})
async def test_after_an_answer_of_some_megabytes_the_server_goes_on(hosted: Hosted, accept: str) -> None:
    headers = {**await hosted.open(), "accept": accept}
    child = hosted.children[0]
    calling = hosted.begin(call(1, "mute", {}), headers)
    assert (await hosted.post(request(2, "ping"), headers)).status == 200
    calling.reads.clear()
    child.say(result(1, {"content": [{"type": "text", "text": "x" * (3 << 20)}]}))
    assert (await hosted.post(request(2, "ping"), await hosted.open())).status == 200
    was_held = child.is_held
    calling.reads.set()
    assert len((await calling.messages())[0]["result"]["content"][0]["text"]) == 3 << 20
    assert was_held
    assert not child.is_held


@hosting(on={"tools/call": []})
async def test_a_flood_for_a_client_that_has_gone_before_it_began_holds_up_no_one(hosted: Hosted) -> None:
    headers = await hosted.open(revision="2025-06-18")
    child = hosted.children[0]
    calling = hosted.begin(call(1, "mute", {}), headers)
    assert (await hosted.post(request(2, "ping"), headers)).status == 200
    await calling.leave()
    child.do_notes({}, 300, 10_000)
    child.say(result(1, {"content": []}))
    assert (await hosted.post(request(3, "ping"), headers)).json()["id"] == 3
    assert not child.is_held


# ── messages ─────────────────────────────────────────────────────────────────────────────────────────────────────────


BREAKS = "\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
"""The characters beside CR and LF at which `str.splitlines` splits."""


@rows(
    ("mode", "content"),
    [
        ("enforce", '[{"type":"text","text":"a\x85b\u2028id: 9-9\u2029retry: 1\u2028\u2028c"}]'),
        ("enforce", "\r[]\r"),
        ("audit", f'"{BREAKS}"'),
    ],
)
def test_no_character_of_an_answer_ends_a_line_of_its_event(mode: Mode, content: str) -> None:
    """httpx-sse before 0.4.2 splits events with `str.splitlines`."""
    answer = f'{{"jsonrpc":"2.0","id":1,"result":{{"content":{content}}}}}\n'

    async def scenario(hosted: Hosted) -> None:
        headers = {**await hosted.open(), "accept": "text/event-stream"}
        body = (await hosted.post(call(1, "any", {}), headers)).body.decode()
        assert body.splitlines() == body.split("\r\n")[:-1]
        [line] = [each for each in body.splitlines() if each.startswith("data: {")]
        assert '"id":1,"result"' in line
        if mode == "enforce":
            assert json.loads(line.removeprefix("data: ")) == json.loads(answer)

    host(scenario, mode, on={"tools/call": [["raw", answer.encode().decode("latin-1")]]}, tools=[])


ANSWERED = [["say", result(1, {"content": [], "structuredContent": {"hits": 1}})]]


@BOTH_MODES
@rows("listed", [True, False])
@hosting(on={"tools/call": [], "notifications/cancelled": ANSWERED})
async def test_a_call_that_is_cancelled_may_still_be_answered(hosted: Hosted, mode: Mode, listed: bool) -> None:
    """The cancellation is accepted, whether the guard knows the contract of the cancelled call or not."""
    headers = await hosted.open()
    if listed:
        assert "result" in (await hosted.post(request(0, "tools/list"), headers)).json()
    calling = hosted.begin(CALL, headers)
    await calling.head()
    assert (await hosted.post(notification("notifications/cancelled", {"requestId": 1}), headers)).status == 202
    assert [each["id"] for each in await calling.messages()] == [1], mode


@rows("accept", ["application/json", "application/json, text/event-stream"])
@hosting(on={"nope/nope": []})
async def test_a_batch_is_answered_as_one_and_its_calls_are_judged_by_the_list(hosted: Hosted, accept: str) -> None:
    """2025-03-26, the one revision that has batches. The guard requests the list first."""
    batch = [call(1, "search", {"words": 5}), call(2, "search", {"words": "sea"}), request(3, "nope/nope")]
    headers = {**await hosted.open(revision="2025-03-26"), "accept": accept}
    answer = await hosted.post([*batch, request(4, "ping")], headers)
    assert answer.status == 200
    assert {each["id"]: "error" in each for each in answer.json()} == {1: True, 2: False, 3: True, 4: False}
    assert not any(b'"words":5' in each for each in hosted.children[0].frames)


@rows("ident", ["1e300", "1e2", "1.5", "7"])
def test_an_invalid_request_is_answered_under_audit_however_its_id_is_written(ident: str) -> None:
    """One with the id 1e300 waited forever: it is read as another number than the one that the answer has."""
    answer = f'{{"jsonrpc":"2.0","id":{ident},"result":{{}}}}'

    async def scenario(hosted: Hosted) -> None:
        headers = await hosted.open()
        said = await hosted.post(f'{{"id":{ident},"method":"ping"}}'.encode(), headers)
        assert (said.status, said.body.decode().count(answer)) == (200, 1)

    host(scenario, "audit", on={"ping": [["raw", f"{answer}\n"]]}, quiet=False)


# ── a child that ends ────────────────────────────────────────────────────────────────────────────────────────────────


@hosting(on={"initialize": [["log", "no key\n"], ["exit", 1]]})
async def test_a_child_that_ends_before_it_is_opened_makes_the_next_wait_but_not_that_of_another_principal(
    hosted: Hosted,
) -> None:
    """Each attempt has the reason, and nothing of what the child wrote to stderr."""
    for _ in range(3):
        answer = await hosted.post(initialize(NEWEST), x_principal="bob")
        assert answer.header("mcp-session-id") is None
        assert answer.error()["code"] == LOST
        assert answer.error()["message"] == "No answer came: the server exited with status 1"
        assert answer.error()["data"]["violations"][0]["found"] == "none: the server exited with status 1"
        assert b"no key" not in answer.body
    assert len(hosted.children) == 1
    hosted.script = {}
    await hosted.open("alice")
    hosted.now += 0.2
    await hosted.open("bob")


@hosting(on={"initialize": [["log", "no key\nAPI_KEY=s3cret\n"], ["exit", 1]]}, options={"stderr_in_errors": True})
async def test_where_that_is_allowed_a_session_reads_the_stderr_of_its_own_child_without_secrets(
    hosted: Hosted,
) -> None:
    error = (await hosted.post(initialize(NEWEST))).error()
    assert error["data"]["stderr"][0] == "no key"
    assert error["message"].startswith("No answer came: the server exited with status 1: API_KEY=")
    assert "s3cret" not in json.dumps(error)
    assert "stderr" not in (await hosted.post(initialize(NEWEST))).error()["data"], "it is of another session"

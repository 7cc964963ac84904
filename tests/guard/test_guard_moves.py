"""What the guard makes of verdicts, without any process: time, what cannot be read, what the ends of a message show."""

import json
from math import inf
from typing import Any

import pytest

from assay.guard.deadlines import DISCOVER_SECONDS
from assay.guard.deliveries import Loss, LossReason
from assay.guard.judged_session import JudgedSession
from assay.guard.terms import Mode
from assay.judge.conversation import Conversation
from assay.judge.partial_frame import outline
from assay.model.verdict import Party
from assay.spec.revisions import REVISIONS, handshake
from kit.guard_process import call, frame_of, notification, request, result
from kit.guarded_session import LOST, Guard, read
from kit.rows import rows
from kit.stateless_talk import META
from kit.talk import HITS, SEARCH

CLIENT, SERVER = Party.CLIENT, Party.SERVER
NAN = b'{"jsonrpc":"2.0","id":1,"result":{"x":NaN}}'


def opened(mode: Mode = "enforce", revision: str = "2025-11-25", **options: Any) -> Guard:
    """A guard after the handshake, with a server that has no tools: no call waits for a list of them."""
    return Guard(mode, **options).opened(revision, logging={})


def after(guard: Guard, seconds: float) -> list[Any]:
    """The ids of the requests that have waited too long by then."""
    return [json.loads(each.answer)["id"] for each in guard.later(seconds).failed]


def patience(guard: Guard) -> float | None:
    """How long nothing is overdue."""
    guard.session.tick()
    return None if guard.session.deadline == inf else guard.session.deadline - guard.now


def lost(guard: Guard, *stderr: str) -> list[Any]:
    """The answers to the requests that fail with the server."""
    return [json.loads(each.answer) for each in guard.session.server_lost(Loss("exited", "it is gone", stderr)).failed]


# ── time ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_each_request_has_its_own_time() -> None:
    guard = opened()
    assert patience(guard) is None
    guard.client(call(1))
    assert patience(guard) == 10
    assert after(guard, 4) == []
    guard.client(call(2))
    assert patience(guard) == 6
    guard.client(call(3))
    guard.server(result(2, {"content": []}))
    assert after(guard, 6) == [1]
    assert patience(guard) == 4
    assert after(guard, 100) == [3]
    assert patience(guard) is None


def progress(token: Any, step: float) -> dict[str, Any]:
    return notification("notifications/progress", {"progressToken": token, "progress": step})


@rows("token", ["t", 7])
def test_progress_gives_a_request_its_time_anew(token: Any) -> None:
    """That of its own token only, and only if there is some."""
    guard = opened()
    guard.client(request(1, "tools/call", {"name": "slow", "_meta": {"progressToken": token}}))
    guard.client(call(2))
    assert after(guard, 9) == []
    guard.server(progress(token, 1))
    guard.server(progress("another", 1))
    assert after(guard, 9) == [2]
    assert after(guard, 1) == [1]


def test_what_is_cancelled_or_refused_or_asked_by_a_server_is_not_waited_for() -> None:
    guard = opened()
    guard.client(call(1))
    guard.client(notification("notifications/cancelled", {"requestId": 1}))
    guard.client(request(2, "tools/call", {}))
    guard.server(request(3, "roots/list"))
    assert after(guard, 1000) == []


def test_each_request_of_a_batch_has_its_time() -> None:
    """2025-03-26 alone has batches."""
    guard = opened(revision="2025-03-26")
    guard.client([call(1), call(2), call(3)])
    assert after(guard, 5) == []
    guard.server([result(2, {"content": []})])
    assert after(guard, 5) == [1, 3]


def test_a_subscription_lasts_as_long_as_it_likes() -> None:
    guard = Guard()
    guard.client(request(1, "subscriptions/listen", {"_meta": META, "notifications": {"toolsListChanged": True}}))
    guard.client(request(2, "tools/list", {"_meta": META}))
    owed = [guard.session.owed, after(guard, 1000), guard.session.owed]
    assert owed == [True, [2], False]
    assert [each.method for each in guard.session.conversation.open_requests(CLIENT)] == ["subscriptions/listen"]


@rows("revision", REVISIONS)
@rows("spelt", [b"1", b"-0", b"1e2", b'"\\u0061"'])
def test_a_cancellation_is_one_that_the_revision_of_the_server_knows(revision: str, spelt: bytes) -> None:
    """By the id as the client has spelt it."""
    guard = opened(revision=revision)
    asked = {} if handshake(revision) else {"_meta": META}
    frame = frame_of(request("ID", "tools/list", asked)).replace(b'"ID"', spelt)
    guard.client(frame)
    outcome = guard.later(10)
    [settled], [cancelled] = outcome.failed, [each.frame for each in outcome.to_server]
    if spelt != b'"\\u0061"':
        assert b'"id":' + spelt in settled.answer
        assert b'"requestId":' + spelt in cancelled
    judge = Conversation(revision=revision)
    judge.hear(CLIENT, frame)
    assert judge.hear(CLIENT, cancelled).violations == ()


@rows(("mode", "timeout"), [("audit", 10.0), ("enforce", 0.0)])
def test_nothing_is_ever_overdue_under_audit_or_without_a_limit(mode: Mode, timeout: float) -> None:
    guard = opened(mode, timeout=timeout)
    guard.client(call(1))
    assert patience(guard) is None
    assert after(guard, 1e6) == []


@rows(("timeout", "limit"), [(600.0, DISCOVER_SECONDS), (4.0, 4.0), (0.0, None)])
def test_discovery_times_out_early_so_that_a_client_can_fall_back(timeout: float, limit: float | None) -> None:
    """A request that waits already has its own time."""
    guard = Guard(timeout=timeout)
    guard.client(request("d", "server/discover", {"_meta": META}))
    assert patience(guard) == limit
    guard.client(request(1, "tools/list", {"_meta": META}))
    if limit is not None:
        found = {each["id"]: each["error"]["message"] for each in read(guard.later(limit).to_client)}
        assert found["d"] == f"No answer came within {limit:g} s"
        assert (1 in found) is (timeout == limit)
    assert guard.opened().session.conversation.revision == "2025-11-25"


# ── what cannot be read ──────────────────────────────────────────────────────────────────────────────────────────────


def test_an_unreadable_answer_fails_its_request_once() -> None:
    guard = opened()
    guard.client(call(1))
    made = guard.server(NAN)
    [failed], [answer] = made.failed, made.to_client
    assert (failed.answer, json.loads(answer.frame)["error"]["code"]) == (answer.frame, -31010)
    assert (made.to_server, made.stray) == ((), ())
    again = guard.server(NAN)
    assert (again.failed, len(again.stray)) == ((), 1)
    assert after(guard, 100) == []


def test_an_unreadable_message_with_the_id_of_a_request_of_the_other_side_fails_and_answers_nothing() -> None:
    """Both sides count their ids for themselves."""
    guard = opened()
    guard.client(call(1))
    assert guard.server(b'{"jsonrpc":"2.0","id":1,"method":"roots/list","params":{"x":NaN}}').failed == ()
    assert guard.server(b'{"params":{"result":NaN},"method":"roots/list","jsonrpc":"2.0","id":1}').failed == ()
    [answer] = read(guard.client(b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":NaN}}').to_client)
    assert "id" not in answer, "it would be taken for the answer to the call"
    assert after(guard, 10) == [1]


def test_under_audit_what_cannot_be_read_passes_and_counts_as_an_answer() -> None:
    """Otherwise the end would show that none came. So does an answer in a batch."""
    guard = opened("audit")
    for ident in (1, 2, 3):
        guard.client(call(ident))
    batch = frame_of([result(2, {"content": []})])
    assert [[each.frame for each in guard.server(frame).to_client] for frame in (NAN, batch)] == [[NAN], [batch]]
    [failed] = guard.session.server_lost(LOST).failed
    assert failed.exchange is not None
    assert (failed.exchange.id, failed.answer) == (3, b"")


# ── an end, and faults ───────────────────────────────────────────────────────────────────────────────────────────────


@rows(("open_requests", "lines"), [(1000, ["first", "last"]), (1001, ["last"])])
def test_a_crowd_gets_the_last_line_only(open_requests: int, lines: list[str]) -> None:
    """Ten thousand may wait, and the last words of a server are some kilobytes."""
    guard = opened()
    for ident in range(open_requests):
        guard.client(request(ident, "ping"))
    failed = lost(guard, "first", "last")
    assert len(failed) == open_requests
    assert all(each["error"]["data"]["stderr"] == lines for each in failed)


@rows("reason", ["closed", "stopped", "slow_client", "internal", "exited", "broken", "timeout", "unstartable"])
def test_only_the_server_is_blamed_for_its_own_end(reason: LossReason) -> None:
    """Not for a client that left, nor for a guard that was stopped."""
    guard = opened()
    guard.client(request(1, "ping"))
    [failed] = guard.session.close(Loss(reason, "something happened")).failed
    error = json.loads(failed.answer)["error"]
    excused = reason in {"closed", "stopped", "slow_client", "internal"}
    assert "something happened" in error["message"]
    assert (("violations" not in error["data"]), failed.verdict.violations == ()) == (excused, excused)


def test_a_call_of_a_listed_tool_is_recorded_once_and_times_out_unless_it_is_answered() -> None:
    guard = Guard().opened().listed(SEARCH)
    assert len(guard.records.passes) == 5
    guard.client(call(1))
    guard.now += 9
    guard.client(call(2))
    guard.server(result(2, HITS))
    guard.client(call(3, words=5))
    assert (len(guard.records.passes), guard.records.rules) == (8, ["contract/input"])
    assert [after(guard, seconds) for seconds in (2, 100)] == [[1], []]


@rows("mode", ["enforce", "audit"])
def test_a_message_that_the_session_fails_on_is_not_forwarded_as_a_good_one(mode: Mode) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError

    guard = Guard(mode).opened().listed(SEARCH)
    frame = frame_of(notification("notifications/roots/list_changed"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(JudgedSession, "_note", fail)
        made = guard.client(frame)
    assert guard.records.rules == ["guard/failure"]
    assert [each.frame for each in made.to_server] == ([] if mode == "enforce" else [frame])


# ── outlines ─────────────────────────────────────────────────────────────────────────────────────────────────────────

OUTLINES = [
    pytest.param(b'{"jsonrpc":"2.0","id":1,"result":{"a":[{"id":7', b"", (1, False, True), id="first"),
    pytest.param(b'{ "id" : "a" , "error" :', b"", ("a", False, True), id="spaced"),
    pytest.param(b'{"result":{"id":9', b'"}]},"jsonrpc":"2.0","id":"x"}\r', ("x", False, True), id="last"),
    pytest.param(b'{"result":{"id":9', b'"}]},"id":-4,"jsonrpc":"2.0"} ', (-4, False, True), id="last-but-one"),
    pytest.param(b'{"jsonrpc":"2.0","result":{', b'},"id":3}', (3, False, True), id="in-between"),
    pytest.param(b'{"method":"m","params":{', b'},"jsonrpc":"2.0","id":5}\n', (5, True, False), id="request-last"),
    pytest.param(b'{"jsonrpc":"2.0","id":5,"method":"m","params":', b"", (5, True, False), id="request-first"),
    pytest.param(b'{"jsonrpc":"2.0","id":5,"params":{', b'},"method":"m"}', (5, True, False), id="method-last"),
    pytest.param(b'{"jsonrpc":"2.0","method":"m","params":{"id":5', b"}}", (None, True, False), id="notification"),
    pytest.param(b'{"result":{"a":{"x":1', b',"id":5}}}', (None, False, True), id="not-its-own-at-the-end"),
    pytest.param(b'{"result":{"a":[{"id":5,"result":', b"}]}}", (None, False, True), id="not-its-own-at-the-beginning"),
    pytest.param(b'{"a":1,"id":5,"result":{', b"}}", (None, False, False), id="after-something-else"),
    pytest.param(b'{"jsonrpc":"2.0","id":1.5,"result":', b"", (None, False, False), id="no-integer"),
    pytest.param(b'{"jsonrpc":"2.0","id":true,"result":', b"", (None, False, False), id="a-boolean"),
    pytest.param(b'{"jsonrpc":"2.0","id":null,"result":', b"", (None, False, False), id="null"),
    pytest.param(b'log {"id":1,"result":{}}', b'log {"id":1,"result":{}}', (None, False, False), id="a-log"),
    pytest.param(b"", b"", (None, False, False), id="nothing"),
    pytest.param(b'{"id":"' + b"x" * 5000 + b'","result":', b"", (None, False, False), id="endless"),
    *(
        pytest.param(b"{" + end, end, (None, False, False), id=f"made to take long: {end[:7]!r}")
        for end in (b',"id":"' * 700, b"," * 4096, b',"id":1' * 585, b" " * 4096, b'{"a":{' * 682, b'"\\' * 2048)
    ),
]


@rows(("head", "tail", "shown"), OUTLINES)
def test_the_ends_of_a_message_show_its_own_id(
    head: bytes, tail: bytes, shown: tuple[str | int | None, bool, bool]
) -> None:
    """And never one of something that it carries."""
    found = outline(head, tail)
    assert (found.id, found.asks, found.answers) == shown
    assert found.settles is (found.id is not None)

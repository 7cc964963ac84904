"""What the guard makes of verdicts, without any process: time, what cannot be read, what the ends of a message show."""

import json
from math import inf
from typing import Any

import pytest

from assay.base.limits import Limits
from assay.base.verdict import Party
from assay.core.conversation import Conversation
from assay.guard.deliveries import ClientTraits, Loss, Outcome, ServerTraits
from assay.guard.routing import Move
from assay.guard.session import GuardedSession, Timing
from assay.guard.sinks import Sinks
from assay.guard.terms import Mode
from assay.ladder.partial_frame import Outline, outline
from assay.spec.revisions import REVISIONS, handshake
from kit.guard_process import CAPABILITIES, INITIALIZED, call, frame_of, initialize, notification, request, result
from kit.rows import rows

CLIENT, SERVER = Party.CLIENT, Party.SERVER
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": CAPABILITIES,
}


class Clock:
    """Shows what it is set to."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


class Talk:
    """A guard, its clock, and who says what."""

    def __init__(self, mode: Mode = "enforce", timeout: float = 10.0, **limits: int) -> None:
        self.clock = Clock()
        self.session = GuardedSession(
            Conversation(mode=mode, limits=Limits(**limits)),
            Sinks(),
            ClientTraits("stdio", sees_loss=True, carries_raw=True),
            ServerTraits("child"),
            timing=Timing(timeout, clock=self.clock),
        )

    def opened(self, revision: str = "2025-11-25") -> "Talk":
        """After the handshake, if there is one."""
        if handshake(revision):
            answer = {
                "protocolVersion": revision,
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "", "version": ""},
            }
            self.client(initialize(revision))
            self.server(result("open", answer))
            self.client(INITIALIZED)
        return self

    def client(self, message: Any) -> Move:
        """What comes of what the client says."""
        return self._said(CLIENT, message)

    def server(self, message: Any) -> Move:
        """What comes of what the server says."""
        return self._said(SERVER, message)

    def _said(self, party: Party, message: Any) -> Move:
        return move_of(self.session.outcome(self.session.judge(party, frame_of(message))))

    def rest(self, part: bytes) -> Move:
        """What comes of more of an over-long message of the server."""
        return move_of(self.session.more(SERVER, part))

    def patience(self) -> float | None:
        """How long nothing is overdue."""
        self.session.tick()
        return None if self.session.deadline == inf else self.session.deadline - self.clock.now

    def lost(self, why: str, *stderr: str) -> list[Any]:
        """The answers to the requests that fail with the server, or None for each that gets none."""
        failed = self.session.server_lost(Loss("exited", why, stderr)).failed
        return [json.loads(each.answer) if each.answer else None for each in failed]

    def after(self, seconds: float) -> list[Any]:
        """The ids of the requests that have waited too long by then."""
        self.clock.now += seconds
        return [json.loads(each.answer)["id"] for each in self.session.tick().failed]


def move_of(outcome: Outcome) -> Move:
    """An outcome as at most one frame for each side, and the requests that fail."""
    answers = {each.answer for each in outcome.failed}
    to_client = next((each.frame for each in outcome.to_client if each.frame not in answers), None)
    to_server = next((each.frame for each in outcome.to_server), None)
    return Move(to_client, to_server, next(iter(outcome.stray), None), outcome.failed)


# ── time ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_each_request_has_its_own_time() -> None:
    talk = Talk().opened()
    assert talk.patience() is None
    talk.client(call(1))
    assert talk.patience() == 10
    assert talk.after(4) == []
    talk.client(call(2))
    assert talk.patience() == 6
    talk.client(call(3))
    talk.server(result(2, {"content": []}))
    assert talk.after(6) == [1]
    assert talk.patience() == 4
    assert talk.after(100) == [3]
    assert talk.patience() is None


def progress(token: Any, step: float) -> dict[str, Any]:
    return notification("notifications/progress", {"progressToken": token, "progress": step})


@rows("token", ["t", 7])
def test_progress_gives_a_request_its_time_anew(token: Any) -> None:
    """That of its own token only, and only if there is some."""
    talk = Talk().opened()
    talk.client(request(1, "tools/call", {"name": "slow", "_meta": {"progressToken": token}}))
    talk.client(call(2))
    assert talk.after(9) == []
    talk.server(progress(token, 1))
    talk.server(progress("another", 1))
    assert talk.after(9) == [2]
    assert talk.after(1) == [1]


def test_what_is_cancelled_is_not_waited_for() -> None:
    talk = Talk().opened()
    talk.client(call(1))
    talk.client(notification("notifications/cancelled", {"requestId": 1}))
    assert talk.after(100) == []


def test_a_refused_request_is_not_waited_for() -> None:
    talk = Talk().opened()
    talk.client(request(1, "tools/call", {}))
    assert talk.after(100) == []


def test_requests_of_a_server_have_all_the_time_of_the_world() -> None:
    talk = Talk().opened()
    talk.server(request(1, "roots/list"))
    assert talk.after(1000) == []


def test_each_request_of_a_batch_has_its_time() -> None:
    """2025-03-26 alone has batches."""
    talk = Talk().opened("2025-03-26")
    talk.client([call(1), call(2), call(3)])
    assert talk.after(5) == []
    talk.server([result(2, {"content": []})])
    assert talk.after(5) == [1, 3]


def test_a_subscription_lasts_as_long_as_it_likes() -> None:
    talk = Talk()
    talk.client(request(1, "subscriptions/listen", {"_meta": META, "notifications": {"toolsListChanged": True}}))
    talk.client(request(2, "tools/list", {"_meta": META}))
    owed = [talk.session.owed, talk.after(1000), talk.session.owed]
    assert owed == [True, [2], False]
    assert [each.method for each in talk.session.conversation.open_requests(CLIENT)] == ["subscriptions/listen"]


@rows("revision", REVISIONS)
@rows("spelt", [b"1", b"-0", b"1e2", b'"\\u0061"'])
def test_a_cancellation_is_one_that_the_revision_of_the_server_knows(revision: str, spelt: bytes) -> None:
    """By the id as the client has spelt it."""
    talk = Talk().opened(revision)
    asked = {} if handshake(revision) else {"_meta": META}
    frame = frame_of(request("ID", "tools/list", asked)).replace(b'"ID"', spelt)
    talk.client(frame)
    talk.clock.now += 10
    outcome = talk.session.tick()
    [settled], [cancelled] = outcome.failed, [each.frame for each in outcome.to_server]
    if spelt != b'"\\u0061"':
        assert b'"id":' + spelt in settled.answer
        assert b'"requestId":' + spelt in cancelled
    judge = Conversation(revision=revision)
    judge.hear(CLIENT, frame)
    assert judge.hear(CLIENT, cancelled).violations == ()


@rows(("mode", "timeout"), [("audit", 10.0), ("enforce", 0.0)])
def test_nothing_is_ever_overdue_under_audit_or_without_a_limit(mode: Mode, timeout: float) -> None:
    talk = Talk(mode, timeout).opened()
    talk.client(call(1))
    assert talk.patience() is None
    assert talk.after(1e6) == []


# ── what cannot be read ──────────────────────────────────────────────────────────────────────────────────────────────


def test_an_unreadable_answer_fails_its_request_once() -> None:
    talk = Talk().opened()
    talk.client(call(1))
    move = talk.server(b'{"jsonrpc":"2.0","id":1,"result":{"x":NaN}}')
    [settled] = move.settled
    assert json.loads(settled.answer)["error"]["code"] == -31010
    assert (move.to_client, move.to_server, move.aside) == (None, None, None)
    again = talk.server(b'{"jsonrpc":"2.0","id":1,"result":{"x":NaN}}')
    assert again.settled == ()
    assert again.aside is not None
    assert talk.after(100) == []


def test_an_unreadable_message_that_names_a_method_fails_nothing() -> None:
    """Both sides count their ids for themselves."""
    talk = Talk().opened()
    talk.client(call(1))
    assert talk.server(b'{"jsonrpc":"2.0","id":1,"method":"roots/list","params":{"x":NaN}}').settled == ()
    assert talk.server(b'{"params":{"result":NaN},"method":"roots/list","jsonrpc":"2.0","id":1}').settled == ()
    assert talk.after(10) == [1]


def test_an_unreadable_request_with_the_id_of_another_gets_no_answer_by_that_id() -> None:
    """It would be taken for the answer to the other one."""
    talk = Talk().opened()
    talk.client(call(1))
    answer = talk.client(b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":NaN}}').to_client
    assert answer is not None
    assert "id" not in json.loads(answer)


def test_under_audit_what_cannot_be_read_passes_and_counts_as_an_answer() -> None:
    """Otherwise the end would show that none came."""
    talk = Talk("audit").opened()
    for ident in (1, 2, 3):
        talk.client(call(ident))
    broken = b'{"jsonrpc":"2.0","id":1,"result":{"x":NaN}}'
    assert talk.server(broken) == Move(to_client=broken)
    failed = talk.session.server_lost(Loss("exited")).failed
    assert [each.exchange.id for each in failed if each.exchange] == [2, 3]
    assert [each.answer for each in failed] == [b"", b""]


def test_under_audit_an_answer_in_a_batch_passes_and_counts_as_one() -> None:
    """The client has it, for better or worse, and waits for no other."""
    talk = Talk("audit").opened()
    talk.client(request(7, "ping"))
    assert talk.server([result(7, {})]) == Move(to_client=frame_of([result(7, {})]))
    assert not talk.session.owed


@rows("mode", ["audit", "enforce"])
def test_the_end_of_a_message_that_is_too_long_tells_which_request_it_answers(mode: Mode) -> None:
    talk = Talk(mode, frame_bytes=300).opened()
    talk.client(call(1))
    head, *parts, tail = b'{"result":{"x":"' + b"y" * 285, b"y" * 5000, b"y" * 5000, b'"},"jsonrpc":"2.0","id":1}\n'
    move = talk.server(head)
    assert move == (Move() if mode == "enforce" else Move(to_client=head))
    assert [talk.rest(part) for part in parts] == [Move(), Move()]
    settled = talk.rest(tail).settled
    assert [json.loads(each.answer)["id"] for each in settled] == ([1] if mode == "enforce" else [])
    assert talk.lost("") == []


def test_every_request_fails_once_when_the_server_ends() -> None:
    talk = Talk().opened()
    talk.client(call(1))
    talk.client(call(2))
    talk.server(result(1, {"content": []}))
    talk.server(request(1, "roots/list"))
    [failed] = talk.lost("it is gone", "last words")
    assert failed["id"] == 2
    assert failed["error"]["data"]["stderr"] == ["last words"]
    assert talk.lost("it is gone") == []
    assert talk.after(100) == []


@rows(("open_requests", "lines"), [(1000, ["first", "last"]), (1001, ["last"])])
def test_a_crowd_gets_the_last_line_only(open_requests: int, lines: list[str]) -> None:
    """Ten thousand may wait, and the last words of a server are some kilobytes."""
    talk = Talk().opened()
    for ident in range(open_requests):
        talk.client(request(ident, "ping"))
    failed = talk.lost("it is gone", "first", "last")
    assert len(failed) == open_requests
    assert all(each["error"]["data"]["stderr"] == lines for each in failed)


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
]


@rows(("head", "tail", "shown"), OUTLINES)
def test_the_ends_of_a_message_show_its_own_id(
    head: bytes, tail: bytes, shown: tuple[str | int | None, bool, bool]
) -> None:
    """And never one of something that it carries."""
    found = outline(head, tail)
    assert (found.id, found.asks, found.answers) == shown
    assert found.settles is (found.id is not None)


@rows(
    "end", [b',"id":"' * 700, b"," * 4096, b',"id":1' * 585, b" " * 4096, b'{"a":{' * 682, b'"\\' * 2048, b'","' * 1365]
)
def test_looking_takes_no_longer_for_what_is_made_to_make_it(end: bytes) -> None:
    assert outline(b"{" + end, end) == Outline()

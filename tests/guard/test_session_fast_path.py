"""The session where nearly all traffic goes: calls of listed tools, records, and messages that wait. No process."""

from typing import Any

import pytest

from assay.base.limits import Limits
from assay.base.verdict import Party, Verdict
from assay.core.conversation import Conversation
from assay.guard import session as sessions
from assay.guard.deliveries import ClientTraits, Loss, Outcome, ServerTraits
from assay.guard.judged_session import CROWDED, JudgedSession
from assay.guard.restore import SessionState
from assay.guard.session import GuardedSession, Timing
from assay.guard.sinks import Sink, Sinks
from assay.guard.terms import Mode
from kit.guard_process import INITIALIZED, call, frame_of, initialize, notification, request, result
from kit.talk import HITS, SEARCH

CAPABILITIES: dict[str, Any] = {"tools": {}, "resources": {}}


def answer(capabilities: dict[str, Any]) -> dict[str, Any]:
    server = {"name": "a", "version": "1"}
    return {"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": server}


class Records(Sink):
    """What is recorded."""

    def __init__(self) -> None:
        self.passes: list[bytes] = []
        self.finds: list[str] = []

    def passed(self, verdict: Verdict, _: float, __: str, /) -> None:
        self.passes.append(verdict.frame)

    def found(self, verdict: Verdict, _: float, __: str, ___: int, /) -> None:
        self.finds += [each.rule for each in verdict.violations]


class Guard:
    """A session after the handshake, with a clock that is set by hand."""

    def __init__(self, mode: Mode = "enforce", *, lists: bool = True) -> None:
        self.now = 1000.0
        self.records = Records()
        self.session = GuardedSession(
            Conversation(mode=mode, limits=Limits()),
            Sinks([self.records]),
            ClientTraits("stdio", sees_loss=True, carries_raw=True),
            ServerTraits("child"),
            timing=Timing(10.0, clock=lambda: self.now),
        )
        self.said = [
            *(self.client(initialize()), self.server(result("open", answer(CAPABILITIES))), self.client(INITIALIZED)),
            *((self.client(request("list", "tools/list")), self.listed()) if lists else ()),
        ]

    def listed(self) -> Outcome:
        return self.server(result("list", {"tools": [SEARCH]}))

    def client(self, message: Any) -> Outcome:
        return self.session.from_client(message if isinstance(message, bytes) else frame_of(message))

    def server(self, message: Any) -> Outcome:
        return self.session.from_server(frame_of(message))


def search(ident: Any, words: Any = "sea", name: str = "search") -> dict[str, Any]:
    return request(ident, "tools/call", {"name": name, "arguments": {"words": words}})


def test_a_call_of_a_listed_tool_times_out_unless_it_is_answered() -> None:
    guard = Guard()
    guard.client(search(1))
    guard.now += 9
    guard.client(search(2))
    guard.server(result(2, HITS))
    guard.now += 2
    assert [each.verdict.exchange.id for each in guard.session.tick().failed if each.verdict.exchange] == [1]
    guard.now += 100
    assert guard.session.tick().failed == ()


def test_every_message_is_recorded_once() -> None:
    guard = Guard()
    assert len(guard.records.passes) == 5
    guard.client(search(1))
    guard.server(result(1, HITS))
    guard.client(search(2, 5))
    assert len(guard.records.passes) == 7
    assert guard.records.finds == ["contract/input"]


@pytest.mark.parametrize("mode", ["enforce", "audit"])
def test_a_message_that_the_session_fails_on_is_not_forwarded_as_a_good_one(
    mode: Mode, monkeypatch: pytest.MonkeyPatch
) -> None:
    guard = Guard(mode)

    def fail(*_: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(JudgedSession, "_note", fail)
    frame = frame_of(notification("notifications/roots/list_changed"))
    outcome = guard.client(frame)
    assert guard.records.finds == ["guard/failure"]
    assert [each.frame for each in outcome.to_server] == ([] if mode == "enforce" else [frame])


def test_a_request_fails_at_once_where_too_much_waits_for_the_next_server() -> None:
    guard = Guard()
    guard.session.suspend()
    assert guard.client(search(1, "x" * CROWDED)).failed == ()
    assert [each.code for each in guard.client(search(2)).failed] == ["UPSTREAM_FAILURE"]


def test_calls_wait_for_the_list_within_a_bound_of_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "HELD_BYTES", 400)
    guard = Guard(lists=False)
    first = guard.client(search(1))
    assert first.held is not None
    assert b"tools/list" in first.to_server[0].frame
    beyond = guard.client(search(2, "x" * 400))
    assert (beyond.held, len(beyond.to_server)) == (None, 1)
    assert guard.records.finds == ["contract/not-judged"]


def test_a_call_that_is_refused_anyway_does_not_make_the_guard_request_the_list() -> None:
    guard = Guard(lists=False)
    outcome = guard.client(request(1, "tools/call", {"name": "search", "arguments": 5}))
    assert (outcome.held, outcome.to_server) == (None, ())
    assert guard.records.finds == ["protocol/params"]


@pytest.mark.parametrize(("mode", "forwarded"), [("enforce", []), ("audit", [b" \t"])])
def test_blank_lines_are_forwarded_under_audit_alone(mode: Mode, forwarded: list[bytes]) -> None:
    assert [each.frame for each in Guard(mode).client(b" \t").to_server] == forwarded


@pytest.mark.parametrize(
    ("now", "refusal"),
    [
        (answer(CAPABILITIES), ""),
        (answer({"tools": {}}), "it answered initialize with other capabilities than before"),
    ],
)
def test_the_next_server_needs_the_capabilities_of_the_one_before(now: dict[str, Any], refusal: str) -> None:
    conversation, state = Conversation(), SessionState()
    state.note(conversation.hear(Party.CLIENT, frame_of(initialize())))
    state.note(conversation.hear(Party.SERVER, frame_of(result("open", answer(CAPABILITIES)))))
    restore = state.restore(Limits())
    assert restore is not None
    restore.hear(frame_of(result("open", now)))
    assert restore.refusal == refusal


def test_a_lost_server_fails_the_call_that_is_open() -> None:
    guard = Guard()
    guard.client(call(1))
    failed = guard.session.server_lost(Loss("exited", "it exited with status 1", ())).failed
    assert [each.code for each in failed] == ["UPSTREAM_FAILURE"]

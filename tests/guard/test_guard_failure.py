"""A fault of our own while a message is judged: all are answered, nothing passes that should not."""

import json
import logging
from collections.abc import Iterator
from typing import Any, Literal

import pytest

from assay.base.verdict import Party, Verdict, Violation
from assay.contracts.tool_contracts import Tools
from assay.core.conversation import NO_FACTS, Conversation, Facts
from assay.core.policy import Policy
from assay.guard.deliveries import ClientTraits, ServerTraits
from assay.guard.routing import Move
from assay.guard.session import GuardedSession, Timing
from assay.guard.sinks import Sink, Sinks
from assay.ladder import framing
from kit.rows import rows
from kit.talk import error, frame_of, notification, request, result

CLIENT, SERVER = Party.CLIENT, Party.SERVER


class Faulty(Conversation):
    """A judge that fails where a message has a certain word in it, before or after it was taken in."""

    late = False
    hopeless = False

    def hear(self, party: Party, frame: framing.Text, facts: Facts = NO_FACTS) -> Verdict:
        """As always, but for that."""
        frame = framing.as_frame(frame)
        if b"fault" not in frame:
            return super().hear(party, frame, facts)
        if self.late:
            super().hear(party, frame, facts)
        raise ZeroDivisionError("secret details")

    def unjudged(self, party: Party, frame: bytes, why: str, heard: Verdict | None = None) -> Verdict:
        """As always, unless nothing helps."""
        if self.hopeless:
            raise RecursionError
        return super().unjudged(party, frame, why, heard)


def guarded(
    mode: Literal["audit", "enforce"] = "enforce",
    *,
    policy: Policy | None = None,
    late: bool = False,
    hopeless: bool = False,
    revision: str = "2025-11-25",
) -> GuardedSession:
    """A session with such a judge."""
    judge = Faulty(mode=mode, revision=revision, policy=policy)
    judge.late, judge.hopeless = late, hopeless
    return session_of(judge)


def session_of(judge: Conversation) -> GuardedSession:
    """A session with that judge, and a clock that stands still."""
    client = ClientTraits("stdio", sees_loss=True, carries_raw=True)
    return GuardedSession(judge, Sinks(), client, ServerTraits("child"), timing=Timing(10.0, clock=lambda: 0.0))


def heard(session: GuardedSession, party: Party, message: Any) -> tuple[Verdict, Move]:
    """The verdict on a message, and the frames that are sent for it."""
    verdict = session.judge(party, frame_of(message))
    outcome = session.outcome(verdict)
    to_client, to_server = ([each.frame for each in side] for side in (outcome.to_client, outcome.to_server))
    return verdict, Move(to_client[0] if to_client else None, to_server[0] if to_server else None)


def code_and_id(frame: bytes | None) -> tuple[int, Any]:
    assert frame is not None
    assert b"secret" not in frame
    made = json.loads(frame)
    assert made["error"]["data"]["violations"][0]["rule"] == "guard/failure"
    return made["error"]["code"], made["id"]


FAULT = {"_meta": {"fault": 1}}


@rows("late", [False, True])
def test_a_request_of_either_side_that_cannot_be_judged_is_answered_here(late: bool) -> None:
    guard = guarded(late=late)
    for party in Party:
        method = "ping"
        _, move = heard(guard, party, request(7, method, FAULT))
        back, on = (move.to_client, move.to_server) if party is CLIENT else (move.to_server, move.to_client)
        assert code_and_id(back) == (-32603, 7)
        assert on is None
        assert guard.conversation.open_requests(party) == ()
    assert guard.tick(1000.0).failed == ()


class Unlearned(Tools):
    """Tools that cannot be learned."""

    def learn(self, *_: Any, **__: Any) -> Iterator[Violation]:
        """Fails."""
        raise ZeroDivisionError


def test_an_answer_that_is_lost_half_way_fails_its_request_once() -> None:
    guard = session_of(Conversation(revision="2025-11-25", tools=Unlearned(10)))
    heard(guard, CLIENT, request(7, "tools/list"))
    _, move = heard(guard, SERVER, result(7, {"tools": []}))
    assert code_and_id(move.to_client) == (-32603, 7)
    verdict, move = heard(guard, SERVER, result(7, {"tools": []}))
    assert [each.rule for each in verdict.violations] == ["protocol/answered-twice"]
    assert move.to_client is None


@rows("answer", [result(7, FAULT), error(7, -1, "fault")], ids=["result", "error"])
def test_an_answer_that_cannot_be_judged_fails_its_request(answer: Any) -> None:
    guard = guarded()
    heard(guard, CLIENT, request(7, "ping"))
    _, move = heard(guard, SERVER, answer)
    assert code_and_id(move.to_client) == (-32603, 7)
    assert not guard.owed
    assert guard.tick(1000.0).failed == ()


def test_a_notification_that_cannot_be_judged_stops() -> None:
    verdict, move = heard(guarded(), SERVER, notification("notifications/message", {"level": "info", "data": "fault"}))
    assert [each.rule for each in verdict.violations] == ["guard/failure"]
    assert move == Move()


def test_each_request_of_a_batch_that_cannot_be_judged_is_answered() -> None:
    guard = guarded(revision="2025-03-26")
    _, move = heard(
        guard, CLIENT, [request(1, "ping", FAULT), notification("notifications/none"), request("2", "ping")]
    )
    assert move.to_client is not None
    assert [code_and_id(json.dumps(each).encode()) for each in json.loads(move.to_client)] == [
        (-32603, 1),
        (-32603, "2"),
    ]
    assert move.to_server is None


@rows("mode", ["audit", "enforce"])
def test_where_it_is_to_fail_open_or_under_audit_it_passes_and_so_does_its_answer(
    mode: Literal["audit", "enforce"],
) -> None:
    guard = guarded(mode, policy=Policy(fail_open=True) if mode == "enforce" else None)
    frame = frame_of(request(7, "tools/list", FAULT))
    verdict, move = heard(guard, CLIENT, frame)
    assert move.to_server is frame
    assert move.to_client is None
    assert [each.action for each in verdict.violations] == ["report" if mode == "enforce" else "refuse"]
    reply = frame_of(result(7, {"tools": "anything"}))
    _, move = heard(guard, SERVER, reply)
    assert move.to_client is reply
    assert not guard.owed
    for party in Party:
        for said in (notification("notifications/none", FAULT), b"fault \xff", result(9, FAULT)):
            spoken = frame_of(said)
            _, move = heard(guard, party, spoken)
            assert (move.to_server if party is CLIENT else move.to_client) is spoken


@rows("mode", ["audit", "enforce"])
def test_even_if_nothing_helps_the_guard_goes_on(mode: Literal["audit", "enforce"]) -> None:
    guard = guarded(mode, hopeless=True)
    verdict, move = heard(guard, CLIENT, request(7, "ping", FAULT))
    assert [each.rule for each in verdict.violations] == ["guard/failure"]
    if mode == "audit":
        assert move.to_server is verdict.frame
    else:
        assert move.to_server is None
        assert code_and_id(move.to_client) == (-32603, 7)
    assert heard(guard, CLIENT, request(8, "ping"))[0].findings is None


def test_a_fault_is_logged_once_with_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    class Other(Faulty):
        def hear(self, *_: Any, **__: Any) -> Verdict:
            raise LookupError("another")

    guard = session_of(Other(revision="2025-11-25"))
    with caplog.at_level(logging.ERROR, "assay.guard"):
        for ident in range(3):
            heard(guard, CLIENT, request(ident, "ping"))
    [record] = [each for each in caplog.records if each.name == "assay.guard"]
    assert record.exc_info is not None
    assert record.exc_info[0] is LookupError


class Failing(Sink):
    """A sink that cannot record anything."""

    def passed(self, *_: Any) -> None:
        """Fail."""
        raise OSError("no space")

    def found(self, *_: Any) -> None:
        """Fail."""
        raise OSError("no space")

    def commit(self) -> None:
        """Fail."""
        raise OSError("no space")


def test_a_sink_that_fails_is_counted_and_affects_no_message() -> None:
    sinks = Sinks((Failing(),))
    session = GuardedSession(Conversation(revision="2025-11-25"), sinks, ClientTraits("stdio"), ServerTraits("child"))
    asked = frame_of(request(1, "ping"))
    assert [each.frame for each in session.from_client(asked).to_server] == [asked]
    assert session.from_client(b"{").refusal == "PARSE_ERROR"
    sinks.commit()
    assert session.records.failures == 3

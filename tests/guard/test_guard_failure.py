"""A fault of our own while a message is judged: all are answered, nothing passes that should not."""

import json
import logging
from typing import Any

import pytest

from assay.guard.deliveries import Outcome
from assay.guard.sinks import Sink, Sinks
from assay.guard.terms import Mode
from assay.judge import framing
from assay.judge.conversation import NO_FACTS, Conversation, Facts
from assay.model.verdict import Party, Verdict
from assay.rules.policy import Policy
from assay.schema.tool_contracts import Tools
from kit.guarded_session import Guard
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


def guarded(mode: Mode = "enforce", *, late: bool = False, hopeless: bool = False, **options: Any) -> Guard:
    """A session with such a judge."""
    judge = Faulty(mode=mode, **{"revision": "2025-11-25", **options})
    judge.late, judge.hopeless = late, hopeless
    return Guard(mode, judge=judge)


def frames(guard: Guard, party: Party, message: Any) -> tuple[list[bytes], list[bytes]]:
    """What the speaker and the other side get for a message."""
    made: Outcome = guard.client(message) if party is CLIENT else guard.server(message)
    sides = [[each.frame for each in side] for side in (made.to_client, made.to_server)]
    return (sides[0], sides[1]) if party is CLIENT else (sides[1], sides[0])


def code_and_id(frame: bytes) -> tuple[int, Any]:
    assert b"secret" not in frame
    made = json.loads(frame)
    assert made["error"]["data"]["violations"][0]["rule"] == "guard/failure"
    return made["error"]["code"], made["id"]


FAULT = {"_meta": {"fault": 1}}


@rows("late", [False, True])
def test_a_request_of_either_side_that_cannot_be_judged_is_answered_here(late: bool) -> None:
    guard = guarded(late=late)
    for party in Party:
        [back], on = frames(guard, party, request(7, "ping", FAULT))
        assert (code_and_id(back), on) == ((-32603, 7), [])
        assert guard.session.conversation.open_requests(party) == ()
    assert guard.later(1000.0).failed == ()


class Unlearned(Tools):
    """Tools that cannot be learned."""

    def learn(self, *_: Any, **__: Any) -> None:
        """Fails."""
        raise ZeroDivisionError


def test_an_answer_that_is_lost_half_way_fails_its_request_once() -> None:
    guard = Guard(judge=Conversation(revision="2025-11-25", tools=Unlearned(10)))
    guard.client(request(7, "tools/list"))
    _, [failed] = frames(guard, SERVER, result(7, {"tools": []}))
    assert code_and_id(failed) == (-32603, 7)
    assert frames(guard, SERVER, result(7, {"tools": []})) == ([], [])
    assert guard.records.rules[-1] == "protocol/answered-twice"


@rows("answer", [result(7, FAULT), error(7, -1, "fault")], ids=["result", "error"])
def test_an_answer_that_cannot_be_judged_fails_its_request(answer: Any) -> None:
    guard = guarded()
    guard.client(request(7, "ping"))
    _, [failed] = frames(guard, SERVER, answer)
    assert code_and_id(failed) == (-32603, 7)
    assert not guard.session.owed
    assert guard.later(1000.0).failed == ()


def test_a_notification_that_cannot_be_judged_stops_and_each_request_of_a_batch_is_answered() -> None:
    guard = guarded(revision="2025-03-26")
    note = notification("notifications/message", {"level": "info", "data": "fault"})
    assert frames(guard, SERVER, note) == ([], [])
    assert guard.records.rules == ["guard/failure"]
    [back], on = frames(guard, CLIENT, [request(1, "ping", FAULT), note, request("2", "ping")])
    answers = [code_and_id(json.dumps(each).encode()) for each in json.loads(back)]
    assert (answers, on) == ([(-32603, 1), (-32603, "2")], [])


@rows("mode", ["audit", "enforce"])
def test_where_it_is_to_fail_open_or_under_audit_it_passes_and_so_does_its_answer(mode: Mode) -> None:
    guard = guarded(mode, policy=Policy(fail_open=True) if mode == "enforce" else None)
    frame = frame_of(request(7, "tools/list", FAULT))
    assert frames(guard, CLIENT, frame) == ([], [frame])
    assert guard.records.rules == ["guard/failure"]
    reply = frame_of(result(7, {"tools": "anything"}))
    assert frames(guard, SERVER, reply) == ([], [reply])
    assert not guard.session.owed
    for party in Party:
        for said in (notification("notifications/none", FAULT), b"fault \xff", result(9, FAULT)):
            assert frames(guard, party, said)[1] == [frame_of(said)]


@rows("mode", ["audit", "enforce"])
def test_even_if_nothing_helps_the_guard_goes_on(mode: Mode) -> None:
    guard = guarded(mode, hopeless=True)
    frame = frame_of(request(7, "ping", FAULT))
    back, on = frames(guard, CLIENT, frame)
    assert guard.records.rules == ["guard/failure"]
    assert ([code_and_id(each) for each in back], on) == (([], [frame]) if mode == "audit" else ([(-32603, 7)], []))
    assert len(guard.client(request(8, "ping")).to_server) == 1
    assert guard.records.rules == ["guard/failure"]


def test_a_fault_is_logged_once_with_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    class Other(Faulty):
        def hear(self, *_: Any, **__: Any) -> Verdict:
            raise LookupError("another")

    guard = Guard(judge=Other(revision="2025-11-25"))
    with caplog.at_level(logging.ERROR, "assay.guard"):
        for ident in range(3):
            guard.client(request(ident, "ping"))
    [record] = [each for each in caplog.records if each.name == "assay.guard"]
    assert record.exc_info is not None
    assert record.exc_info[0] is LookupError


class Failing(Sink):
    """A sink that cannot record anything."""

    def passed(self, *_: Any) -> None:
        """Fail."""
        raise OSError("no space")

    found = guard_frame = commit = passed


def test_a_sink_that_fails_is_counted_and_affects_no_message() -> None:
    sinks = Sinks((Failing(),))
    guard = Guard(revision="2025-11-25", sinks=sinks)
    assert [each.frame for each in guard.client(request(1, "ping")).to_server] == [frame_of(request(1, "ping"))]
    assert guard.client(b"{").refusal == "PARSE_ERROR"
    late = guard.later(1000.0)
    assert (len(late.to_client), len(late.to_server)) == (1, 1), "an error, and a cancellation by the guard"
    sinks.commit()
    assert guard.session.records.failures + sinks.failures == 5

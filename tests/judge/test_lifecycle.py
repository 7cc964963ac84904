"""How a conversation opens, in both eras, and what may be said when."""

from typing import Any

import orjson

from assay.judge.conversation import Conversation, Facts
from assay.model.json_values import REVISION_KEY
from assay.model.verdict import Party
from assay.rules.policy import Policy
from assay.spec.revisions import LATEST
from kit.rows import rows
from kit.stateless_talk import asks
from kit.talk import Talk, error, frame_of, good, notification, request, result, rules

MODES = ("enforce", "audit")
INFO = {"name": "a", "version": "1"}


def opening(talk: Talk, revision: str = "2025-11-25") -> None:
    """The client says initialize."""
    params = {"protocolVersion": revision, "capabilities": {"roots": {}}, "clientInfo": INFO}
    good(talk.client(request(1, "initialize", params)))


def opened(talk: Talk) -> None:
    """The server answers initialize."""
    answer = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": INFO}
    good(talk.server(result(1, answer)))


@rows(
    ("answered", "judged_by"),
    [("2025-05-05", "2025-03-26"), ("1.0", "2024-11-05"), ("2026-07-28", "2025-11-25"), ("draft", "2025-11-25")],
)
def test_a_revision_without_a_handshake_we_know_is_reported_and_the_nearest_taken(
    answered: str, judged_by: str
) -> None:
    talk = Talk()
    opening(talk, answered)
    verdict = talk.server(result(1, {"protocolVersion": answered, "capabilities": {}, "serverInfo": INFO}))
    assert rules(verdict) == ["protocol/unknown-revision"]
    assert verdict.accepted
    assert talk.conversation.revision == judged_by


TOO_EARLY = "/method: expected {}, found {} [protocol/before-initialized]"


@rows("mode", MODES)
@rows(
    ("answered", "message", "expected"),
    [
        (False, request(2, "tools/list"), "only ping before the initialize result"),
        (True, request(2, "tools/list"), "only ping before notifications/initialized"),
        # It counts once the result is there.
        (False, notification("notifications/initialized"), "the initialize result before it"),
    ],
)
def test_what_comes_before_initialized_is_reported_only_and_once(
    mode: str, answered: bool, message: dict[str, Any], expected: str
) -> None:
    """A SHOULD NOT of the specification."""
    talk = Talk(mode=mode)
    opening(talk)
    if answered:
        opened(talk)
    verdict = talk.client(message)
    assert [str(each) for each in verdict.violations] == [TOO_EARLY.format(expected, message["method"])]
    assert verdict.onward is verdict.frame
    good(talk.client(request(3, "tools/list")))
    if not answered:
        opened(talk)
    for ident in range(4, 9):
        good(talk.client(request(ident, "tools/list")))
    good(talk.server(request("s", "roots/list")))


def test_under_audit_an_initialized_before_initialize_counts_once_the_result_is_there() -> None:
    talk = Talk(mode="audit")
    assert rules(talk.client(notification("notifications/initialized"))) == ["protocol/before-initialize"]
    opening(talk)
    opened(talk)
    good(talk.client(request(2, "tools/list")))


def test_a_handshake_that_failed_needs_another_initialized() -> None:
    talk = Talk()
    opening(talk)
    talk.client(notification("notifications/initialized"))
    good(talk.server(error(1, -32603)))
    opening(talk)
    opened(talk)
    assert talk.conversation._state.lifecycle.phase == "negotiated"


def test_initialized_from_the_server_opens_nothing() -> None:
    talk = Talk(mode="audit")
    opening(talk)
    opened(talk)
    assert rules(talk.server(notification("notifications/initialized"))) == ["protocol/direction"]
    assert talk.conversation._state.lifecycle.phase == "negotiated"


def test_a_policy_that_refuses_what_comes_too_early_refuses_it_every_time() -> None:
    talk = Talk(policy=Policy({"protocol/before-initialized": "refuse"}))
    opening(talk)
    for ident in range(2, 5):
        assert talk.client(request(ident, "tools/list")).onward is None
    assert talk.client(notification("notifications/initialized")).onward is None


@rows("message", [request(1, "roots/list"), notification("notifications/message")])
def test_a_server_that_speaks_first_is_asked_to_wait(message: dict[str, Any]) -> None:
    verdict = Talk().server(message)
    wrong = verdict.violations[0]
    assert str(wrong) == (
        f"/method: expected no message before the client's initialize, found {message['method']} "
        "[protocol/before-initialize]"
    )
    assert wrong.hint == "Wait for the client's initialize."


def test_a_refused_revision_is_answered_with_those_that_the_server_supports() -> None:
    """A client picks one of the listed revisions, so each of them has to work."""
    asked = asks(1, "tools/list", {REVISION_KEY: "1999-01-01"})
    heard = Conversation(revision=LATEST).hear(Party.CLIENT, frame_of(asked), Facts("http", spoken={LATEST}))
    data = orjson.loads(heard.back or b"")["error"]["data"]
    assert (data["requested"], data["supported"]) == ("1999-01-01", [LATEST])

"""Log messages of 2026-07-28 are asked for by each request (server/utilities/logging, Per-request log level)."""

from typing import Any

import pytest

from assay.base.verdict import Party, Verdict
from assay.core.history.log_levels import LEVELS
from assay.core.policy import Policy
from assay.spec.revisions import REVISIONS, handshake
from kit.rows import rows
from kit.stateless_talk import COMPLETE, HINTS, LEVEL_KEY, asks, calls
from kit.talk import HITS, SEARCH, Talk, error, frame_of, good, notification, request, result, rules

WRONG = ["protocol/log"]
SUBSCRIPTION_KEY = "io.modelcontextprotocol/subscriptionId"


def log(level: str = "info", **more: Any) -> dict[str, Any]:
    """A log message."""
    return notification("notifications/message", {"level": level, "data": 1, **more})


def asking(level: str | None, ident: int = 1, **options: Any) -> Talk:
    """A conversation in which a call is open that asks for *level*."""
    talk = Talk(**options)
    good(talk.client(calls(ident, {LEVEL_KEY: level} if level else None)))
    return talk


def reported(verdict: Verdict) -> list[str]:
    """The rules that a message breaks which is forwarded as it came."""
    assert verdict.onward is verdict.frame
    return rules(verdict)


@pytest.mark.parametrize("options", [{}, {"revision": "2026-07-28"}, {"mode": "audit"}])
def test_a_log_message_for_a_request_that_did_not_ask_is_reported(options: dict[str, Any]) -> None:
    """The server MUST NOT emit notifications/message for a request that does not include this field."""
    verdict = asking(None, **options).server(log())
    assert reported(verdict) == WRONG
    assert verdict.violations[0].at == "/method"


@rows("asked", LEVELS)
@rows("sent", LEVELS)
def test_a_log_message_has_the_level_asked_for_or_above(asked: str, sent: str) -> None:
    """When the field is present, the server MAY send messages at or above the requested level."""
    verdict = asking(asked).server(log(sent))
    if LEVELS.index(sent) >= LEVELS.index(asked):
        good(verdict)
    else:
        assert reported(verdict) == WRONG
        assert verdict.violations[0].at == "/params/level"
        assert verdict.violations[0].expected.startswith(f"{asked} or above")


def test_a_log_message_may_be_about_any_open_request() -> None:
    """Over one stream of lines nothing says which request it is about."""
    talk = asking("error")
    good(talk.client(calls(2)))
    good(talk.client(calls(3, {LEVEL_KEY: "warning"})))
    good(talk.server(log("warning")))
    assert reported(talk.server(log("info"))) == WRONG


def test_nothing_more_is_logged_for_a_request_that_was_answered() -> None:
    """... on the response stream of that request, before the final response."""
    talk = asking("debug")
    good(talk.client(calls(2)))
    good(talk.server(log()))
    good(talk.server(error(1, -32603)))
    assert reported(talk.server(log())) == WRONG


@pytest.mark.parametrize("end", ["cancelled", "timed-out"])
def test_a_request_that_nobody_waits_for_may_still_be_at_work(end: str) -> None:
    talk = asking("info")
    if end == "cancelled":
        good(talk.client(notification("notifications/cancelled", {"requestId": 1})))
    else:
        talk.conversation.give_up(Party.CLIENT, 1)
    good(talk.server(log("info")))
    assert reported(talk.server(log("debug"))) == WRONG


def test_a_log_message_is_never_sent_on_a_subscription() -> None:
    """The server MUST NOT deliver it on a subscriptions/listen stream."""
    talk = asking("debug")
    good(talk.client(asks(2, "subscriptions/listen", notifications={})))
    verdict = talk.server(log(_meta={SUBSCRIPTION_KEY: 2}))
    assert reported(verdict) == WRONG
    assert verdict.violations[0].at == "/params/_meta/io.modelcontextprotocol~1subscriptionId"
    good(talk.server(log()))


def test_a_subscription_cannot_ask_for_log_messages() -> None:
    talk = Talk()
    good(talk.client(asks(1, "subscriptions/listen", {LEVEL_KEY: "debug"}, notifications={})))
    assert reported(talk.server(log())) == WRONG


def test_a_call_on_the_quick_way_asks_for_log_messages_too() -> None:
    talk = Talk()
    good(talk.client(asks(1, "tools/list")))
    good(talk.server(result(1, {"tools": [SEARCH], **COMPLETE, **HINTS})))
    good(talk.client(calls(2, {LEVEL_KEY: "error"})))
    good(talk.server(log("error")))
    assert reported(talk.server(log("info"))) == WRONG
    good(talk.server(result(2, {**COMPLETE, **HITS})))
    assert reported(talk.server(log("error"))) == WRONG


def test_what_was_asked_elsewhere_is_not_known() -> None:
    good(Talk(revision="2026-07-28").server(log()))


def test_a_request_that_passes_although_it_is_wrong_may_ask_for_log_messages() -> None:
    talk = Talk(mode="audit")
    assert talk.client(asks(1, "tools/call", {LEVEL_KEY: "loud"}, name=5)).violations
    good(talk.server(log("debug")))


@pytest.mark.parametrize("head", [{"jsonrpc": "2.0"}, {"jsonrpc": "2"}])
def test_a_refused_request_that_passes_may_have_asked_for_log_messages(head: dict[str, Any]) -> None:
    """Its id is in use, or it is no good JSON-RPC; the server may answer it all the same."""
    talk = Talk(mode="audit")
    good(talk.client(calls(1)))
    assert talk.client({**calls(1, {LEVEL_KEY: "debug"}), **head}).violations
    good(talk.server(log("debug")))


def test_a_request_that_was_not_judged_may_have_asked_for_anything() -> None:
    talk = Talk(mode="audit")
    good(talk.client(asks(1, "tools/list")))
    talk.conversation.unjudged(Party.CLIENT, frame_of(calls(2, {LEVEL_KEY: "debug"})), "KeyError")
    good(talk.server(log("debug")))


def test_with_very_many_open_requests_log_messages_are_not_judged() -> None:
    talk = Talk()
    for ident in range(300):
        good(talk.client(calls(ident)))
    good(talk.server(log()))


@pytest.mark.parametrize("word", ["refuse", "drop"])
def test_a_policy_can_stop_them(word: str) -> None:
    verdict = asking(None, policy=Policy({"protocol/log": word})).server(log())
    assert (verdict.onward, verdict.back) == (None, None)
    assert asking(None, policy=Policy({"contract/not-judged": "pass"}, strict=True)).server(log()).onward is None


@rows("revision", [each for each in REVISIONS if handshake(each)])
def test_older_revisions_ask_once_for_all(revision: str) -> None:
    talk = Talk().opened(revision)
    good(talk.client(request(1, "tools/list")))
    good(talk.server(log("debug")))

"""Log messages of 2026-07-28 are asked for by each request (server/utilities/logging, Per-request log level)."""

from typing import Any

from assay.judge.topics.logs import LEVELS
from assay.model.verdict import Party
from assay.spec.revisions import REVISIONS, handshake
from kit.rows import rows
from kit.stateless_talk import COMPLETE, HINTS, LEVEL_KEY, asks, calls
from kit.talk import HITS, SEARCH, Talk, client, error, frame_of, good, notification, played, request, result, server

WRONG = "protocol/log"
SUBSCRIPTION_KEY = "io.modelcontextprotocol/subscriptionId"


def log(level: str = "info", **more: Any) -> dict[str, Any]:
    """A log message."""
    return notification("notifications/message", {"level": level, "data": 1, **more})


def asked(ident: int, level: str | None = None) -> dict[str, Any]:
    """A call that asks for *level*."""
    return calls(ident, {LEVEL_KEY: level} if level else None)


@rows("wanted", LEVELS)
@rows("sent", LEVELS)
def test_a_log_message_has_the_level_asked_for_or_above(wanted: str, sent: str) -> None:
    """When the field is present, the server MAY send messages at or above the requested level."""
    enough = LEVELS.index(sent) >= LEVELS.index(wanted)
    verdict = played(Talk(), client(asked(1, wanted)), server(log(sent), *([] if enough else [WRONG])))
    assert [(each.at, each.expected.startswith(f"{wanted} or above")) for each in verdict.violations] == (
        [] if enough else [("/params/level", True)]
    )


CASES = {
    "over one stream of lines a message may be about any open request": [
        *(client(asked(1, "error")), client(asked(2)), client(asked(3, "warning"))),
        *(server(log("warning")), server(log("info"), WRONG)),
    ],
    "nothing more is logged for a request that was answered": [
        *(client(asked(1, "debug")), client(asked(2)), server(log()), server(error(1, -32603)), server(log(), WRONG))
    ],
    "a request that was cancelled may still be at work": [
        *(client(asked(1, "info")), client(notification("notifications/cancelled", {"requestId": 1}))),
        *(server(log("info")), server(log("debug"), WRONG)),
    ],
    "a subscription cannot ask for log messages": [
        client(asks(1, "subscriptions/listen", {LEVEL_KEY: "debug"}, notifications={})),
        server(log(), WRONG),
    ],
    "the server MUST NOT deliver it on a subscriptions/listen stream": [
        *(client(asked(1, "debug")), client(asks(2, "subscriptions/listen", notifications={}))),
        *(server(log(_meta={SUBSCRIPTION_KEY: 2}), WRONG), server(log())),
    ],
    "a call on the quick way asks too": [
        client(asks(1, "tools/list")),
        server(result(1, {"tools": [SEARCH], **COMPLETE, **HINTS})),
        *(client(asked(2, "error")), server(log("error")), server(log("info"), WRONG)),
        *(server(result(2, {**COMPLETE, **HITS})), server(log("error"), WRONG)),
    ],
    "with very many open requests log messages are not judged": [
        *(client(asked(ident)) for ident in range(300)),
        server(log()),
    ],
}


@rows("steps", CASES.values(), ids=CASES)
def test_which_log_messages_are_asked_for(steps: Any) -> None:
    played(Talk(), *steps)


def test_a_request_that_timed_out_may_still_be_at_work() -> None:
    talk = Talk()
    good(talk.client(asked(1, "info")))
    talk.conversation.give_up(Party.CLIENT, 1)
    played(talk, server(log("info")), server(log("debug"), WRONG))


def test_what_was_asked_in_another_conversation_is_not_known() -> None:
    good(Talk(revision="2026-07-28").server(log()))


@rows(
    "wrong",
    [
        asks(1, "tools/call", {LEVEL_KEY: "loud"}, name=5),
        {**asked(0, "debug"), "jsonrpc": "2.0"},
        {**asked(1, "debug"), "jsonrpc": "2"},
    ],
)
def test_a_refused_request_that_passes_may_have_asked_for_log_messages(wrong: dict[str, Any]) -> None:
    """Its level is unknown, its id is in use, or it is no good JSON-RPC; the server may answer it all the same."""
    talk = Talk(mode="audit")
    good(talk.client(asked(0)))
    assert talk.client(wrong).violations
    good(talk.server(log("debug")))


def test_a_request_that_was_not_judged_may_have_asked_for_anything() -> None:
    talk = Talk(mode="audit")
    good(talk.client(asks(1, "tools/list")))
    talk.conversation.unjudged(Party.CLIENT, frame_of(asked(2, "debug")), "KeyError")
    good(talk.server(log("debug")))


@rows("revision", [each for each in REVISIONS if handshake(each)])
def test_older_revisions_ask_once_for_all(revision: str) -> None:
    played(Talk().opened(revision), client(request(1, "tools/list")), server(log("debug")))

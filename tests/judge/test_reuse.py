"""Ids and progress tokens that are used again: what is reported, and what is not."""

from typing import Any

from assay.model.limits import Limits
from assay.model.verdict import Party
from assay.rules.policy import Policy
from kit.rows import rows
from kit.stateless_talk import META
from kit.talk import Talk, client, error, good, notification, played, request, result, rules, server

HANDSHAKES = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
LIST = request(1, "tools/list")
NEXT, REUSED = request(1, "prompts/list"), "protocol/id-reused"
SHARED = "protocol/progress-token"


def asking(ident: Any, token: Any, **meta: Any) -> dict[str, Any]:
    """A request with a progress token."""
    return request(ident, "tools/call", {"name": "slow", "_meta": {**meta, "progressToken": token}})


def progress(token: Any, done: float) -> dict[str, Any]:
    return notification("notifications/progress", {"progressToken": token, "progress": done})


CASES = {
    "an id whose request failed": [client(LIST), server(error(1, -32603)), client(NEXT, REUSED)],
    "an id whose request was cancelled": [
        *(client(LIST), client(notification("notifications/cancelled", {"requestId": 1})), client(NEXT, REUSED))
    ],
    "the id of initialize": [client(request("init", "ping"), REUSED)],
    "a request that was refused": [client(request(1, "tools/list", {"cursor": 5}), "protocol/params"), client(LIST)],
    "a number and its text are two tokens": [client(asking(1, 1)), client(asking(2, "1"))],
    "the values of a shared token need not rise, and go on after one of the two has ended": [
        *(client(asking(1, "p")), client(asking(2, "p"), SHARED), server(progress("p", 5)), server(progress("p", 1))),
        *(server(result(1, {"content": []})), server(progress("p", 2))),
    ],
}


@rows("steps", CASES.values(), ids=CASES)
@rows("revision", HANDSHAKES)
def test_what_is_used_again_is_reported_and_passes(steps: Any, revision: str) -> None:
    """
    basic: "The request ID MUST NOT have been previously used by the requestor within the same session".
    basic/utilities/progress: "Progress tokens MUST be unique across all active requests".
    """
    last = played(Talk().opened(revision), *steps)
    assert last.onward is last.frame


def test_a_request_that_timed_out_has_used_its_id_and_one_that_never_arrived_has_not() -> None:
    """A client that is sent away with 401 sends the same request once more, with a new token."""
    talk = Talk().opened()
    good(talk.client(LIST))
    assert talk.conversation.give_up(Party.CLIENT, 1, "UPSTREAM_FAILURE", "status 401") is not None
    good(talk.client(LIST))
    assert talk.conversation.give_up(Party.CLIENT, 1) is not None
    assert rules(talk.client(NEXT)) == [REUSED]


def test_without_sessions_an_answered_id_may_be_used_again_and_an_open_token_may_not() -> None:
    """2026-07-28, basic: only the id of a request that is still in flight is taken."""
    talk = Talk(revision="2026-07-28")
    for _ in range(2):
        good(talk.client(request(1, "tools/list", {"_meta": META})))
        good(talk.server(result(1, {"tools": [], "resultType": "complete", "ttlMs": 0, "cacheScope": "public"})))
    asked = [asking(ident, "p", **META) for ident in (1, 2)]
    played(Talk(revision="2026-07-28"), client(asked[0]), client(asked[1], SHARED))


def test_what_was_asked_before_the_session_does_not_count() -> None:
    """A ping may come before initialize, and a client may try server/discover, or initialize, more than once."""
    talk = Talk()
    played(talk, client(request("init", "ping")), server(result("init", {})))
    played(talk, client(request("a", "server/discover", {"_meta": META})), server(error("a", -32601)))
    good(talk.opened().client(request("a", "ping")))


def test_a_refused_request_does_not_take_the_token_of_another() -> None:
    talk = Talk(policy=Policy({"contract/not-judged": "pass"}, strict=True)).opened()
    played(talk, client(asking(1, "p")), client(asking(2, "p"), SHARED), server(progress("p", 5)))


def test_what_is_remembered_of_ids_and_shared_tokens_is_bounded() -> None:
    talk = Talk(limits=Limits(settled=4)).opened()
    for ident in range(100):
        played(talk, client(request(ident, "ping")), server(result(ident, {})))
    played(talk, client(request(1, "ping")), client(request(99, "ping"), REUSED))
    talk = Talk().opened()
    for number in range(1500):
        talk.client(asking(2 * number, number))
        talk.client(asking(2 * number + 1, number))
    assert len(talk.conversation._parties[Party.CLIENT].shared) == 1000


def test_under_audit_both_are_reported_and_pass() -> None:
    talk = Talk(mode="audit").opened()
    last = played(talk, client(asking("init", "p"), REUSED), client(asking(2, "p"), SHARED))
    assert last.onward is last.frame

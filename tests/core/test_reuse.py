"""Ids and progress tokens that are used again: what is reported, and what is not."""

from typing import Any

import pytest

from assay.base.limits import Limits
from assay.base.verdict import Party
from assay.core.policy import Policy
from kit.rows import rows
from kit.talk import HITS, SEARCH, Talk, call, error, good, notification, request, result, rules

HANDSHAKES = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
META: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
every_handshake = pytest.mark.parametrize("revision", HANDSHAKES)

# ── ids ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


@every_handshake
def test_an_id_that_was_answered_before_is_reported(revision: str) -> None:
    """basic: "The request ID MUST NOT have been previously used by the requestor within the same session"."""
    talk = Talk().opened(revision)
    good(talk.client(request(1, "tools/list")))
    good(talk.server(result(1, {"tools": []})))
    again = talk.client(request(1, "prompts/list"))
    assert rules(again) == ["protocol/id-reused"]
    assert again.onward is again.frame
    good(talk.server(result(1, {"prompts": []})))


def test_the_quick_look_reports_it_too() -> None:
    talk = Talk().opened().listed(SEARCH)
    for _ in range(2):
        verdict = talk.client(call(7, "search", {"words": "sea"}))
        talk.server(result(7, HITS))
    assert rules(verdict) == ["protocol/id-reused"]


@pytest.mark.parametrize("first", ["error", "cancelled", "timed-out"])
def test_it_does_not_matter_how_the_first_request_ended(first: str) -> None:
    talk = Talk().opened()
    good(talk.client(request(1, "tools/list")))
    if first == "error":
        good(talk.server(error(1, -32603)))
    elif first == "cancelled":
        good(talk.client(notification("notifications/cancelled", {"requestId": 1})))
    else:
        assert talk.conversation.give_up(Party.CLIENT, 1) is not None
    assert rules(talk.client(request(1, "prompts/list"))) == ["protocol/id-reused"]


def test_the_id_of_initialize_counts() -> None:
    talk = Talk().opened()
    assert rules(talk.client(request("init", "ping"))) == ["protocol/id-reused"]


def test_the_server_is_held_to_it_as_well() -> None:
    talk = Talk().opened()
    for _ in range(2):
        verdict = talk.server(request("s", "ping"))
        good(talk.client(result("s", {})))
    assert rules(verdict) == ["protocol/id-reused"]


def test_each_party_has_ids_of_its_own() -> None:
    talk = Talk().opened()
    good(talk.client(request(1, "ping")))
    good(talk.server(result(1, {})))
    good(talk.server(request(1, "ping")))


def test_a_number_and_its_text_are_two_ids() -> None:
    talk = Talk().opened()
    good(talk.client(request(1, "ping")))
    good(talk.server(result(1, {})))
    good(talk.client(request("1", "ping")))


def test_without_sessions_an_answered_id_may_be_used_again() -> None:
    """2026-07-28, basic: only the id of a request that is still in flight is taken."""
    talk = Talk(revision="2026-07-28")
    for _ in range(2):
        good(talk.client(request(1, "tools/list", {"_meta": META})))
        good(talk.server(result(1, {"tools": [], "resultType": "complete", "ttlMs": 0, "cacheScope": "public"})))


def test_what_was_asked_before_the_session_does_not_count() -> None:
    """A ping may come before initialize, and a client may try server/discover, or initialize, more than once."""
    talk = Talk()
    good(talk.client(request("init", "ping")))
    good(talk.server(result("init", {})))
    good(talk.client(request("a", "server/discover", {"_meta": META})))
    good(talk.server(error("a", -32601)))
    talk.opened()
    good(talk.client(request("a", "ping")))


def test_a_request_that_never_arrived_may_be_sent_again() -> None:
    """A client that is sent away with 401 sends the same request once more, with a new token."""
    talk = Talk().opened()
    good(talk.client(request(1, "tools/list")))
    assert talk.conversation.give_up(Party.CLIENT, 1, "UPSTREAM_FAILURE", "status 401") is not None
    good(talk.client(request(1, "tools/list")))


def test_a_refused_request_may_be_sent_again() -> None:
    talk = Talk().opened()
    assert not talk.client(request(1, "tools/list", {"cursor": 5})).accepted
    good(talk.client(request(1, "tools/list")))


def test_what_is_remembered_of_ids_is_bounded() -> None:
    talk = Talk(limits=Limits(settled=4)).opened()
    for ident in range(100):
        good(talk.client(request(ident, "ping")))
        good(talk.server(result(ident, {})))
    good(talk.client(request(1, "ping")))
    assert rules(talk.client(request(99, "ping"))) == ["protocol/id-reused"]


def test_a_strict_policy_refuses_an_id_that_is_used_again() -> None:
    talk = Talk(policy=Policy(strict=True)).opened()
    assert talk.client(request("init", "ping")).onward is None


# ── progress tokens ──────────────────────────────────────────────────────────────────────────────────────────────────


def asking(ident: Any, token: Any, **meta: Any) -> dict[str, Any]:
    """A request with a progress token."""
    return request(ident, "tools/call", {"name": "slow", "_meta": {**meta, "progressToken": token}})


def progress(token: Any, done: float) -> dict[str, Any]:
    return notification("notifications/progress", {"progressToken": token, "progress": done})


@rows("revision", [*HANDSHAKES, "2026-07-28"])
def test_a_token_of_another_open_request_is_reported(revision: str) -> None:
    """basic/utilities/progress: "Progress tokens MUST be unique across all active requests"."""
    talk = Talk(revision=revision)
    meta = META if revision == "2026-07-28" else {}
    good(talk.client(asking(1, "p", **meta)))
    again = talk.client(asking(2, "p", **meta))
    assert rules(again) == ["protocol/progress-token"]
    assert again.onward is again.frame


def test_a_token_may_be_used_again_once_its_request_is_answered() -> None:
    talk = Talk().opened()
    good(talk.client(asking(1, "p")))
    good(talk.server(result(1, {"content": []})))
    good(talk.client(asking(2, "p")))


def test_one_and_its_text_are_two_tokens() -> None:
    talk = Talk().opened()
    good(talk.client(asking(1, 1)))
    good(talk.client(asking(2, "1")))


def test_the_server_is_not_blamed_for_progress_of_a_shared_token() -> None:
    """It tells of two requests with one token: the values need not rise, and go on after one of them has ended."""
    talk = Talk().opened()
    good(talk.client(asking(1, "p")))
    talk.client(asking(2, "p"))
    good(talk.server(progress("p", 5)))
    good(talk.server(progress("p", 1)))
    good(talk.server(result(1, {"content": []})))
    good(talk.server(progress("p", 2)))


def test_a_refused_request_does_not_take_the_token_of_another() -> None:
    talk = Talk(policy=Policy({"contract/not-judged": "pass"}, strict=True)).opened()
    good(talk.client(asking(1, "p")))
    assert talk.client(asking(2, "p")).onward is None
    good(talk.server(progress("p", 5)))


def test_what_is_remembered_of_shared_tokens_is_bounded() -> None:
    talk = Talk().opened()
    for number in range(1500):
        talk.client(asking(2 * number, number))
        talk.client(asking(2 * number + 1, number))
    assert len(talk.conversation._sides[Party.CLIENT].shared) == 1000


def test_under_audit_both_are_told_and_pass() -> None:
    talk = Talk(mode="audit").opened()
    first, second = talk.client(asking("init", "p")), talk.client(asking(2, "p"))
    assert [rules(first), rules(second)] == [["protocol/id-reused"], ["protocol/progress-token"]]
    assert first.onward is first.frame
    assert second.onward is second.frame

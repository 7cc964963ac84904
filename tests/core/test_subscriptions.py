"""Notifications on subscriptions of 2026-07-28 (basic/patterns/subscriptions)."""

from typing import Any

import pytest

from assay.base.verdict import Party, Verdict
from assay.core.conversation import Facts
from assay.core.history import subscriptions
from assay.core.policy import Policy
from assay.spec.revisions import REVISIONS, handshake
from kit.rows import rows
from kit.stateless_talk import asks
from kit.talk import Talk, error, frame_of, good, notification, result, rules

KEY = "io.modelcontextprotocol/subscriptionId"
AT = "/params/_meta/io.modelcontextprotocol~1subscriptionId"
WRONG = ["protocol/subscription"]
FLAGS = {
    "notifications/tools/list_changed": "toolsListChanged",
    "notifications/prompts/list_changed": "promptsListChanged",
    "notifications/resources/list_changed": "resourcesListChanged",
}
UPDATED = "notifications/resources/updated"


def told(method: str, ident: Any, **params: Any) -> dict[str, Any]:
    """A notification on the subscription *ident*."""
    return notification(method, {"_meta": {KEY: ident}, **params})


def acknowledged(ident: Any, **agreed: Any) -> dict[str, Any]:
    """The acknowledgement of a subscription."""
    return told("notifications/subscriptions/acknowledged", ident, notifications=agreed)


def listening(ident: Any = 1, **wanted: Any) -> Talk:
    """A conversation with a subscription that is acknowledged."""
    return also_listening(Talk(), ident, **wanted)


def also_listening(talk: Talk, ident: Any, **wanted: Any) -> Talk:
    """The same with one subscription more."""
    good(talk.client(asks(ident, "subscriptions/listen", notifications=wanted)))
    good(talk.server(acknowledged(ident, **wanted)))
    return talk


def reported(verdict: Verdict) -> str:
    """The place of the one rule that a message breaks which is forwarded as it came."""
    assert verdict.onward is verdict.frame
    assert rules(verdict) == WRONG
    return verdict.violations[0].at


# ── what was asked for ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("method", FLAGS)
def test_a_change_is_told_to_a_subscription_that_asked_for_it(method: str) -> None:
    """The server MUST NOT send notification types the client has not explicitly requested."""
    good(listening(**{FLAGS[method]: True}).server(told(method, 1)))
    others = {flag: True for flag in FLAGS.values() if flag != FLAGS[method]}
    assert reported(listening(**others).server(told(method, 1))) == "/method"
    assert reported(listening(**others, **{FLAGS[method]: False}).server(told(method, 1))) == "/method"
    assert reported(listening(resourceSubscriptions=["file:///a"]).server(told(method, 1))) == "/method"


@rows(
    ("wanted", "uri"),
    [
        ("file:///a.txt", "file:///a.txt"),
        ("file:///a", "file:///a/b.txt"),
        ("file:///a/", "file:///a/b.txt"),
        ("file:///a.md", "file:///a.md#part"),
        ("db://table", "db://table?row=1"),
        ("http://a.example", "http://a.example/"),
        ("http://a.example/", "http://a.example"),
        ("HTTP://A.example/x", "http://a.example/x"),
        ("file:///a%20b", "file:///a b"),
        ("file:///{path}", "file:///x"),
        ("file:///logs/*", "file:///logs/x"),
    ],
)
def test_a_resource_that_was_asked_for_or_is_below_it_may_be_told_of(wanted: str, uri: str) -> None:
    """ResourceUpdatedNotificationParams: this might be a sub-resource of the one that the client subscribed to."""
    verdict = listening(resourceSubscriptions=["x:other", wanted]).server(told(UPDATED, 1, uri=uri))
    assert set(rules(verdict)) <= {"protocol/format"}


@rows(
    ("wanted", "uri"),
    [(["file:///a"], "file:///b"), (["file:///a"], "file:///ab"), (["file:///a/b"], "file:///a"), ([], "file:///a")],
)
def test_a_resource_that_was_not_asked_for_is_reported(wanted: list[str], uri: str) -> None:
    verdict = listening(resourceSubscriptions=wanted).server(told(UPDATED, 1, uri=uri))
    assert reported(verdict) == "/params/uri"
    assert verdict.violations[0].found == f'"{uri}"'
    assert reported(listening(toolsListChanged=True).server(told(UPDATED, 1, uri=uri))) == "/params/uri"


def test_each_subscription_is_held_to_what_it_asked_for_itself() -> None:
    talk = also_listening(listening(toolsListChanged=True), "other", promptsListChanged=True)
    good(talk.server(told("notifications/tools/list_changed", 1)))
    good(talk.server(told("notifications/prompts/list_changed", "other")))
    assert reported(talk.server(told("notifications/tools/list_changed", "other"))) == "/method"


# ── which subscription ───────────────────────────────────────────────────────────────────────────────────────────────


@rows("method", [*FLAGS, UPDATED])
@rows("options", [{}, {"revision": "2026-07-28"}])
def test_a_change_that_names_no_subscription_is_reported(method: str, options: dict[str, Any]) -> None:
    """The server MUST include this key on every notification delivered via a subscriptions/listen stream."""
    talk = Talk(**options)
    good(talk.client(asks(1, "subscriptions/listen", notifications={})))
    uri = {"uri": "file:///a"} if method == UPDATED else {}
    assert reported(talk.server(notification(method, uri))) == AT
    if not uri:
        assert reported(talk.server(notification(method))) == AT


@rows("ident", [2, "1", "x", "call"])
def test_a_change_on_a_subscription_that_nobody_opened_is_reported(ident: Any) -> None:
    talk = listening(toolsListChanged=True)
    good(talk.client(asks("call", "tools/call", name="a")))
    assert reported(talk.server(told("notifications/tools/list_changed", ident))) == AT
    assert reported(talk.server(acknowledged(ident))) == AT


def test_a_subscription_that_was_opened_elsewhere_is_not_known() -> None:
    talk = Talk(revision="2026-07-28")
    good(talk.server(told("notifications/tools/list_changed", 7)))
    good(talk.server(acknowledged(7, toolsListChanged=True)))
    also_listening(talk, 1, promptsListChanged=True)
    good(talk.server(told("notifications/tools/list_changed", 7)))
    assert reported(talk.server(told("notifications/tools/list_changed", 1))) == "/method"


def test_over_http_a_stream_has_one_subscription() -> None:
    talk = Talk(revision="2026-07-28")
    listen = frame_of(asks(1, "subscriptions/listen", notifications={"toolsListChanged": True}))
    good(talk.conversation.hear(Party.CLIENT, listen, Facts("http", "2026-07-28")))
    good(talk.server(acknowledged(1)))
    assert reported(talk.server(told("notifications/tools/list_changed", 7))) == AT
    good(talk.server(told("notifications/tools/list_changed", 1)))


def test_the_id_of_a_subscription_is_a_number_however_it_is_spelt() -> None:
    talk = listening(toolsListChanged=True)
    good(talk.server(told("notifications/tools/list_changed", 1.0)))


# ── when ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_change_before_the_acknowledgement_is_reported() -> None:
    """The server MUST NOT send any notification on the subscription before acknowledging it."""
    talk = Talk()
    good(talk.client(asks(1, "subscriptions/listen", notifications={"toolsListChanged": True})))
    also_listening(talk, 2, toolsListChanged=True)
    good(talk.server(told("notifications/tools/list_changed", 2)))
    assert reported(talk.server(told("notifications/tools/list_changed", 1))) == "/method"
    good(talk.server(acknowledged(1, toolsListChanged=True)))
    good(talk.server(told("notifications/tools/list_changed", 1)))


@pytest.mark.parametrize("end", [result(1, {"resultType": "complete", "_meta": {KEY: 1}}), error(1, -32603)])
def test_a_change_after_the_end_of_the_subscription_is_reported(end: dict[str, Any]) -> None:
    talk = listening(toolsListChanged=True)
    good(talk.server(end))
    assert reported(talk.server(told("notifications/tools/list_changed", 1))) == AT


@pytest.mark.parametrize("party", Party)
def test_a_change_may_cross_with_the_cancellation(party: Party) -> None:
    talk = listening(toolsListChanged=True)
    say = talk.client if party is Party.CLIENT else talk.server
    good(say(notification("notifications/cancelled", {"requestId": 1})))
    good(talk.server(told("notifications/tools/list_changed", 1)))


# ── the acknowledgement ──────────────────────────────────────────────────────────────────────────────────────────────


def test_a_part_of_what_was_asked_for_may_be_acknowledged() -> None:
    talk = Talk()
    wanted = {"toolsListChanged": True, "resourceSubscriptions": ["file:///a", "file:///b"], "acmeIds": ["t"]}
    good(talk.client(asks(1, "subscriptions/listen", notifications=wanted)))
    good(talk.server(acknowledged(1, resourceSubscriptions=["file:///b"], promptsListChanged=False, acmeIds=["t"])))


@pytest.mark.parametrize("more", [{"promptsListChanged": True}, {"resourceSubscriptions": ["file:///a", "file:///c"]}])
def test_more_than_was_asked_for_cannot_be_acknowledged(more: dict[str, Any]) -> None:
    """SubscriptionsAcknowledgedNotificationParams: the subset of requested notification types."""
    talk = Talk()
    wanted = {"toolsListChanged": True, "resourceSubscriptions": ["file:///a"]}
    good(talk.client(asks(1, "subscriptions/listen", notifications=wanted)))
    assert reported(talk.server(acknowledged(1, **more))) == f"/params/notifications/{next(iter(more))}"


# ── what is not judged ───────────────────────────────────────────────────────────────────────────────────────────────


def test_kinds_of_unknown_extensions_are_not_judged() -> None:
    declared: dict[str, Any] = {"io.modelcontextprotocol/clientCapabilities": {"extensions": {"com.example/acme": {}}}}
    talk = Talk()
    good(talk.client(asks(1, "subscriptions/listen", declared, notifications={"acmeIds": ["t"]})))
    good(talk.server(acknowledged(1, acmeIds=["t", "u"])))
    assert rules(talk.server(told("notifications/acme", 1, acmeId="v"))) == ["protocol/extension"]


def test_a_broken_request_to_listen_that_passes_may_have_asked_for_anything() -> None:
    talk = Talk(mode="audit")
    assert talk.client(asks(1, "subscriptions/listen", notifications=[])).violations
    good(talk.server(acknowledged(1)))
    good(talk.server(told("notifications/tools/list_changed", 1)))
    good(talk.server(told(UPDATED, 1, uri="file:///a")))


def test_a_malformed_request_to_listen_that_passes_is_not_known() -> None:
    talk = Talk(mode="audit")
    assert talk.client({**asks(1, "subscriptions/listen", notifications={}), "jsonrpc": "2"}).violations
    good(talk.client(asks(2, "tools/list")))
    good(talk.server(told("notifications/tools/list_changed", 1)))


def test_what_is_remembered_of_subscriptions_is_bounded() -> None:
    talk = Talk()
    for ident in range(1001):
        also_listening(talk, ident, toolsListChanged=True)
    # The first is forgotten, so one that is not known may be that.
    good(talk.server(told("notifications/prompts/list_changed", 0)))
    assert reported(talk.server(told("notifications/prompts/list_changed", 1000))) == "/method"


def test_subscriptions_that_were_ended_are_forgotten_first() -> None:
    talk = listening("kept", toolsListChanged=True)
    for ident in range(1100):
        also_listening(talk, ident)
        good(talk.server(error(ident, -32603)))
    assert reported(talk.server(told("notifications/prompts/list_changed", "kept"))) == "/method"
    assert reported(talk.server(told("notifications/prompts/list_changed", 0))) == AT


@pytest.mark.parametrize("uri", ["b:{}", "a:{}/x"])
def test_an_acknowledgement_takes_few_comparisons(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """200,000 URIs, each compared with the 1,000 that were asked for, took 28 s."""
    compared: list[str] = []

    def counted(uri: str, other: str) -> bool:
        compared.append(uri)
        return uri.startswith(other)

    talk = listening(resourceSubscriptions=[f"a:{number}" for number in range(500)])
    monkeypatch.setattr(subscriptions, "_is_below", counted)
    monkeypatch.setattr(subscriptions, "_MOST_COMPARED", 5_000)
    talk.server(acknowledged(1, resourceSubscriptions=[uri.format(number) for number in range(500)]))
    assert len(compared) <= 6_000


@pytest.mark.parametrize("uris", [["a:" + "%41" * 100_000], ["a:%41"] * 60_000])
def test_very_long_lists_of_uris_are_not_read(uris: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """What escapes stand for is found out slowly: 15 MB of them took 5 s."""
    read: list[str] = []

    def counted(uri: str) -> str:
        read.append(uri)
        return uri

    monkeypatch.setattr(subscriptions, "unquote", counted)
    talk = Talk()
    good(talk.client(asks(1, "subscriptions/listen", notifications={"resourceSubscriptions": uris})))
    assert read == []
    talk = listening(resourceSubscriptions=["a:"])
    talk.server(acknowledged(1, resourceSubscriptions=[f"a:/{'%41' * 1_000}{number}" for number in range(200)]))
    assert len(read) < 100


def test_an_acknowledgement_of_what_is_no_uri_is_judged() -> None:
    talk = Talk(mode="audit")
    talk.client(asks(1, "subscriptions/listen", notifications={"resourceSubscriptions": ["a:1"]}))
    assert "assay/fault" not in rules(talk.server(acknowledged(1, resourceSubscriptions=[{}, [], 1, "a:1"])))


def test_too_many_uris_are_not_remembered() -> None:
    talk = listening(resourceSubscriptions=[f"file:///{number:0100}" for number in range(3000)])
    good(talk.server(told(UPDATED, 1, uri="file:///else")))
    also_listening(talk, 2, resourceSubscriptions=["file:///a"])
    assert reported(talk.server(told(UPDATED, 2, uri="file:///b"))) == "/params/uri"
    good(talk.server(told(UPDATED, 2, uri="file:///" + "b" * 5000)))


@pytest.mark.parametrize("word", ["refuse", "drop"])
def test_a_policy_can_stop_them(word: str) -> None:
    talk = Talk(policy=Policy({"protocol/subscription": word}))
    good(talk.client(asks(1, "tools/list")))
    verdict = talk.server(notification("notifications/tools/list_changed"))
    assert (verdict.onward, verdict.back) == (None, None)


def test_a_strict_policy_stops_them() -> None:
    talk = Talk(policy=Policy(strict=True))
    good(talk.client(asks(1, "tools/list")))
    assert talk.server(notification("notifications/tools/list_changed")).onward is None


@rows("revision", [each for each in REVISIONS if handshake(each)])
def test_older_revisions_have_no_such_subscriptions(revision: str) -> None:
    talk = Talk().opened(revision)
    for method in FLAGS:
        good(talk.server(notification(method)))
    good(talk.server(notification(UPDATED, {"uri": "file:///a"})))

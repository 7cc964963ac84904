"""Notifications on subscriptions of 2026-07-28 (basic/patterns/subscriptions)."""

from typing import Any

import pytest

from assay.judge.conversation import Facts
from assay.judge.topics import subscriptions
from assay.model.verdict import Party, Verdict
from kit.rows import rows
from kit.stateless_talk import asks
from kit.talk import Talk, client, error, frame_of, good, notification, played, result, rules, server

KEY = "io.modelcontextprotocol/subscriptionId"
AT = "/params/_meta/io.modelcontextprotocol~1subscriptionId"
WRONG = "protocol/subscription"
FLAGS = {
    "notifications/tools/list_changed": "toolsListChanged",
    "notifications/prompts/list_changed": "promptsListChanged",
    "notifications/resources/list_changed": "resourcesListChanged",
}
UPDATED = "notifications/resources/updated"
TOOLS, PROMPTS = "notifications/tools/list_changed", "notifications/prompts/list_changed"


def sent(method: str, ident: Any, **params: Any) -> dict[str, Any]:
    """A notification on the subscription *ident*."""
    return notification(method, {"_meta": {KEY: ident}, **params})


def acknowledged(ident: Any, **agreed: Any) -> dict[str, Any]:
    """The acknowledgement of a subscription."""
    return sent("notifications/subscriptions/acknowledged", ident, notifications=agreed)


def listen(ident: Any, **wanted: Any) -> dict[str, Any]:
    """A request to listen."""
    return asks(ident, "subscriptions/listen", notifications=wanted)


def listening(ident: Any = 1, talk: Talk | None = None, **wanted: Any) -> Talk:
    """A conversation with one more subscription, which is acknowledged."""
    talk = talk or Talk()
    played(talk, client(listen(ident, **wanted)), server(acknowledged(ident, **wanted)))
    return talk


def reported(verdict: Verdict) -> str:
    """The place of the one rule that a message breaks which is forwarded as it came."""
    assert verdict.onward is verdict.frame
    assert rules(verdict) == [WRONG]
    return verdict.violations[0].at


@rows("method", FLAGS)
def test_a_change_is_sent_to_a_subscription_that_asked_for_it(method: str) -> None:
    """The server MUST NOT send notification types the client has not explicitly requested."""
    wanted: dict[str, Any] = {FLAGS[method]: True}
    good(listening(**wanted).server(sent(method, 1)))
    others = {flag: True for flag in FLAGS.values() if flag != FLAGS[method]}
    unwanted: list[dict[str, Any]] = [
        others,
        {**others, FLAGS[method]: False},
        {"resourceSubscriptions": ["file:///a"]},
    ]
    for wanted in unwanted:
        assert reported(listening(**wanted).server(sent(method, 1))) == "/method"


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
def test_an_update_of_a_resource_that_was_asked_for_or_is_below_it_is_good(wanted: str, uri: str) -> None:
    """ResourceUpdatedNotificationParams: this might be a sub-resource of the one that the client subscribed to."""
    verdict = listening(resourceSubscriptions=["x:other", wanted]).server(sent(UPDATED, 1, uri=uri))
    assert set(rules(verdict)) <= {"protocol/format"}


@rows(
    ("wanted", "uri"),
    [(["file:///a"], "file:///b"), (["file:///a"], "file:///ab"), (["file:///a/b"], "file:///a"), ([], "file:///a")],
)
def test_a_resource_that_was_not_asked_for_is_reported(wanted: list[str], uri: str) -> None:
    verdict = listening(resourceSubscriptions=wanted).server(sent(UPDATED, 1, uri=uri))
    assert reported(verdict) == "/params/uri"
    assert verdict.violations[0].found == f'"{uri}"'
    assert reported(listening(toolsListChanged=True).server(sent(UPDATED, 1, uri=uri))) == "/params/uri"


def test_a_subscription_of_another_conversation_is_not_known() -> None:
    talk = Talk(revision="2026-07-28")
    played(talk, server(sent(TOOLS, 7)), server(acknowledged(7, toolsListChanged=True)))
    listening(1, talk, promptsListChanged=True)
    good(talk.server(sent(TOOLS, 7)))
    assert reported(talk.server(sent(TOOLS, 1))) == "/method"


def test_over_http_a_stream_has_one_subscription() -> None:
    talk = Talk(revision="2026-07-28")
    asked = frame_of(listen(1, toolsListChanged=True))
    good(talk.conversation.hear(Party.CLIENT, asked, Facts("http", "2026-07-28")))
    good(talk.server(acknowledged(1)))
    assert reported(talk.server(sent(TOOLS, 7))) == AT
    good(talk.server(sent(TOOLS, 1)))


CANCELLED = notification("notifications/cancelled", {"requestId": 1})
ASKED, AGREED = listen(1, toolsListChanged=True), acknowledged(1, toolsListChanged=True)


@rows(
    "steps",
    [
        # The server MUST NOT send any notification on the subscription before acknowledging it.
        [client(ASKED), server(sent(TOOLS, 1), WRONG), server(AGREED), server(sent(TOOLS, 1))],
        [*(client(ASKED), client(listen(2, toolsListChanged=True)), server(acknowledged(2, toolsListChanged=True))),
         *(server(sent(TOOLS, 2)), server(sent(TOOLS, 1), WRONG))],
        # Nor after its end, but a change may cross with the cancellation.
        [*(client(ASKED), server(AGREED), server(result(1, {"resultType": "complete", "_meta": {KEY: 1}}))),
         server(sent(TOOLS, 1), WRONG)],
        [client(ASKED), server(AGREED), server(error(1, -32603)), server(sent(TOOLS, 1), WRONG)],
        [client(ASKED), server(AGREED), client(CANCELLED), server(sent(TOOLS, 1))],
        [client(ASKED), server(AGREED), server(CANCELLED), server(sent(TOOLS, 1))],
    ],
)  # fmt: skip
def test_changes_are_sent_between_the_acknowledgement_and_the_end(steps: Any) -> None:
    played(Talk(), *steps)


@rows(
    ("agreed", "wrong"),
    [
        ({"resourceSubscriptions": ["file:///b"], "promptsListChanged": False, "acmeIds": ["t"]}, None),
        ({"promptsListChanged": True}, "promptsListChanged"),
        ({"resourceSubscriptions": ["file:///a", "file:///c"]}, "resourceSubscriptions"),
    ],
)
def test_what_was_asked_for_or_a_part_of_it_is_acknowledged(agreed: dict[str, Any], wrong: str | None) -> None:
    """SubscriptionsAcknowledgedNotificationParams: the subset of requested notification types."""
    talk = Talk()
    wanted = {"toolsListChanged": True, "resourceSubscriptions": ["file:///a", "file:///b"], "acmeIds": ["t"]}
    good(talk.client(listen(1, **wanted)))
    verdict = talk.server(acknowledged(1, **agreed))
    assert verdict.violations == () if wrong is None else reported(verdict) == f"/params/notifications/{wrong}"


def test_kinds_of_unknown_extensions_are_not_judged() -> None:
    declared: dict[str, Any] = {"io.modelcontextprotocol/clientCapabilities": {"extensions": {"com.example/acme": {}}}}
    played(
        Talk(),
        client(asks(1, "subscriptions/listen", declared, notifications={"acmeIds": ["t"]})),
        server(acknowledged(1, acmeIds=["t", "u"])),
        server(sent("notifications/acme", 1, acmeId="v"), "protocol/extension"),
    )


def test_a_wrong_request_to_listen_that_passes_may_have_asked_for_anything() -> None:
    talk = Talk(mode="audit")
    assert talk.client(asks(1, "subscriptions/listen", notifications=[])).violations
    played(talk, server(acknowledged(1)), server(sent(TOOLS, 1)), server(sent(UPDATED, 1, uri="file:///a")))
    talk = Talk(mode="audit")
    assert talk.client({**listen(1), "jsonrpc": "2"}).violations
    played(talk, client(asks(2, "tools/list")), server(sent(TOOLS, 1)))


def test_what_is_remembered_of_subscriptions_is_bounded() -> None:
    talk = Talk()
    for ident in range(1001):
        listening(ident, talk, toolsListChanged=True)
    # The first is forgotten, so one that is not known may be that.
    good(talk.server(sent(PROMPTS, 0)))
    assert reported(talk.server(sent(PROMPTS, 1000))) == "/method"


def test_subscriptions_that_were_ended_are_forgotten_first() -> None:
    talk = listening("kept", toolsListChanged=True)
    for ident in range(1100):
        listening(ident, talk)
        good(talk.server(error(ident, -32603)))
    assert reported(talk.server(sent(PROMPTS, "kept"))) == "/method"
    assert reported(talk.server(sent(PROMPTS, 0))) == AT


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
    good(talk.client(listen(1, resourceSubscriptions=uris)))
    assert read == []
    talk = listening(resourceSubscriptions=["a:"])
    talk.server(acknowledged(1, resourceSubscriptions=[f"a:/{'%41' * 1_000}{number}" for number in range(200)]))
    assert len(read) < 100


def test_too_many_uris_are_not_remembered() -> None:
    talk = listening(resourceSubscriptions=[f"file:///{number:0100}" for number in range(3000)])
    good(talk.server(sent(UPDATED, 1, uri="file:///else")))
    listening(2, talk, resourceSubscriptions=["file:///a"])
    assert reported(talk.server(sent(UPDATED, 2, uri="file:///b"))) == "/params/uri"
    good(talk.server(sent(UPDATED, 2, uri="file:///" + "b" * 5000)))

"""A client that sends `server/discover` first, and servers that do not know the method."""

from typing import Any

from kit.rows import rows
from kit.stateless_talk import COMPLETE, HINTS, asks
from kit.talk import Talk, good, replacement, request, result

HINT = "Answer an unknown method with error -32601; server/discover exists from 2026-07-28 on."
INFO = {"name": "a", "version": "1"}
OPENING: dict[str, Any] = {"protocolVersion": "2025-06-18", "capabilities": {}}
DISCOVERED: dict[str, Any] = {**COMPLETE, **HINTS, "supportedVersions": ["2026-07-28"], "capabilities": {}}


@rows(
    ("value", "found"),
    [
        ({}, "an empty object"),
        ({"tools": []}, "an object with `tools`"),
        ({**OPENING, "serverInfo": INFO}, "an object with `protocolVersion`, `capabilities` and `serverInfo`"),
    ],
    ids=["empty", "list", "initialize-result"],
)
def test_a_server_that_does_not_know_the_probe_gets_one_finding(value: dict[str, Any], found: str) -> None:
    talk = Talk()
    good(talk.client(asks(1, "server/discover")))
    verdict = talk.server(result(1, value))
    [wrong] = verdict.violations
    assert (wrong.rule, wrong.at, wrong.action, wrong.found) == ("protocol/result", "/result", "refuse", found)
    assert wrong.hint == HINT
    assert replacement(verdict)["error"]["code"] == -31010
    assert talk.conversation.revision is None
    assert talk.opened("2025-06-18").conversation.revision == "2025-06-18"


def test_a_finding_describes_the_result_as_it_was_sent() -> None:
    """Absent members are filled in before the result is judged; the finding must not list them."""
    talk = Talk()
    good(talk.client(asks(1, "tools/list")))
    found = [each for each in talk.server(result(1, {})).violations if each.rule == "protocol/result"]
    assert [(each.expected, each.found) for each in found] == [("the property `tools`", "an empty object")]


@rows("versions", [["2026-07-28", "2025-11-25"], ["1.0"], [], [5], "2026-07-28", None])
def test_initialize_is_allowed_if_the_list_of_the_server_does_not_exclude_it(versions: Any) -> None:
    talk = Talk(mode="audit")
    talk.client(asks(1, "server/discover"))
    talk.server(result(1, {**DISCOVERED, "supportedVersions": versions}))
    good(talk.client(request(2, "initialize", {**OPENING, "clientInfo": INFO})))


def test_a_list_for_one_client_says_nothing_about_the_next() -> None:
    talk = Talk()
    good(talk.client(asks(1, "server/discover")))
    good(talk.server(result(1, DISCOVERED)))
    talk.conversation.forget_settled()
    good(talk.client(request(2, "initialize", {**OPENING, "clientInfo": INFO})))

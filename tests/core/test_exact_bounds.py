"""Limits and declarations at their edges: one more, or one word less, changes the verdict."""

from typing import Any

import orjson

from assay.base.limits import Limits
from assay.base.printable import MASK
from assay.base.verdict import Party
from assay.contracts.tool_lists import MOST_QUARANTINED, page_of
from assay.core.conversation import Conversation, Facts
from assay.core.redaction import Redactor
from assay.rules import violation
from kit.rows import rows
from kit.stateless_talk import COMPLETE, HINTS, asks
from kit.talk import ALL_SERVER, Talk, good, replacement, request, result, rules


@rows(
    ("declared", "found"),
    [({"subscribe": True}, []), ({"subscribe": False}, ["protocol/capability"]), ({}, ["protocol/capability"])],
)
def test_a_capability_that_is_declared_as_false_is_not_declared(declared: dict[str, Any], found: list[str]) -> None:
    talk = Talk().opened(server={**ALL_SERVER, "resources": declared})
    assert rules(talk.client(request(1, "resources/subscribe", {"uri": "file:///a"}))) == found


@rows("wrong", [MOST_QUARANTINED, MOST_QUARANTINED + 1])
def test_a_list_fails_as_a_whole_beyond_the_limit_of_quarantined_entries(wrong: int) -> None:
    talk = Talk().opened()
    good(talk.client(request(1, "prompts/list")))
    listed = [{"name": "good"}, *({"name": number} for number in range(wrong))]
    sent = replacement(talk.server(result(1, {"prompts": listed})))
    if wrong > MOST_QUARANTINED:
        assert "error" in sent
    else:
        assert sent["result"]["prompts"] == [{"name": "good"}]


@rows(("length", "found"), [(8, []), (9, ["envelope/id"])])
def test_an_id_is_as_long_as_its_limit_and_no_longer(length: int, found: list[str]) -> None:
    talk = Talk(limits=Limits(id_bytes=8)).opened()
    assert rules(talk.client(request("i" * length, "ping"))) == found


def test_a_secret_is_hidden_by_the_name_of_its_member_and_by_that_of_its_place() -> None:
    redactor = Redactor()
    said = {"user": "ada", "password": "hunter2", "inside": [{"apiKey": 5}]}
    hidden = {"user": "ada", "password": MASK, "inside": [{"apiKey": 0}]}
    assert redactor.value(said) == hidden
    assert orjson.loads(redactor.frame(orjson.dumps(said).decode())) == hidden
    at = "/params/arguments/password"
    assert redactor.found(violation("contract/input", at, expected="a number", found='"hunter2"')) == MASK
    assert redactor.found(violation("contract/input", "/params/arguments/user", expected="x", found='"ada"')) == '"ada"'


def test_a_request_without_a_revision_is_refused_where_the_guard_itself_serves_it() -> None:
    """The server behind it would not know by which revision to answer."""
    facts = Facts(transport="http", served=True)
    frame = orjson.dumps(request(1, "ping"))
    assert Conversation().hear(Party.CLIENT, frame).accepted
    assert not Conversation().hear(Party.CLIENT, frame, facts).accepted
    assert Conversation().hear(Party.CLIENT, orjson.dumps(asks(2, "tools/list")), facts).accepted


def test_the_same_tools_in_another_order_are_reported() -> None:
    talk = Talk(revision="2026-07-28")
    tools = [{"name": name, "inputSchema": {"type": "object"}} for name in ("a", "b", "c")]
    found = []
    for number, listed in enumerate((tools, tools, tools[::-1], tools[:2])):
        good(talk.client(asks(number, "tools/list")))
        found.append(rules(talk.server(result(number, {"tools": listed, **HINTS, **COMPLETE}))))
    assert found == [[], [], ["protocol/list-order"], []]


def test_contracts_with_another_output_schema_are_different() -> None:
    """Sessions share the contracts of equal tools."""
    tool = {"name": "a", "inputSchema": {"type": "object"}, "outputSchema": {"type": "object"}}
    others = [{**tool, "outputSchema": {"type": "object", "maxProperties": 1}}, {**tool, "name": "b"}, dict(tool)]
    page, *pages = (page_of([each], outputs=True, owner="") for each in (tool, *others))
    assert page is not None
    key = page.entries[0][1].key
    assert [each is not None and each.entries[0][1].key == key for each in pages] == [False, False, True]

"""Limits and declarations at their edges: one more, or one word less, changes the verdict."""

from typing import Any

import orjson
import pytest

from assay.judge.conversation import Conversation, Facts
from assay.judge.redaction import Redactor
from assay.model.limits import Limits
from assay.model.printable import MASK
from assay.model.verdict import Party
from assay.rules import violation
from assay.schema.tool_contract import Contract
from assay.schema.tool_contracts import MOST_QUARANTINED
from kit.rows import rows
from kit.stateless_talk import COMPLETE, HINTS, REVISION, asks, calls
from kit.talk import ALL_SERVER, HITS, SEARCH, Talk, call, good, replacement, request, result, rules


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
    first, *rest = (Contract(each) for each in (tool, *others))
    assert [each.key == first.key for each in rest] == [False, False, True]


CALL = call(1, "search", {"words": "sea"})


def called(**options: Any) -> Talk:
    """A conversation in which one call of a listed tool is open."""
    talk = Talk(**options).opened().listed(SEARCH)
    good(talk.client(CALL))
    return talk


def test_a_carriage_return_inside_a_line_is_refused_where_frames_are_lines() -> None:
    frame = orjson.dumps(CALL).replace(b'"params":', b'"params":\r')
    apart, lines = (Talk(lines=lines).opened().listed(SEARCH) for lines in (False, True))
    good(apart.client(frame))
    assert rules(lines.client(frame)) == ["framing/carriage-return"]
    good(lines.client(orjson.dumps(CALL) + b"\r"))


@rows("ident", [b"true", b"1.5", b'"1"'])
def test_an_id_that_python_finds_equal_answers_nothing(ident: bytes) -> None:
    """True is 1 in Python, and finds the same entry of a table."""
    talk = called()
    verdict = talk.server(b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (ident, orjson.dumps(HITS)))
    assert not verdict.accepted
    assert verdict.onward is None
    good(talk.server({"jsonrpc": "2.0", "id": 1, "result": HITS}))


def test_a_call_beyond_the_limit_of_open_requests_or_with_a_used_id_is_reported() -> None:
    talk = called(limits=Limits(open_requests=1))
    assert rules(talk.client(call(2, "search", {"words": "sea"}))) == ["protocol/too-many-open"]
    good(talk.server(result(1, HITS)))
    good(talk.client(call(3, "search", {"words": "sea"})))
    good(talk.server(result(3, HITS)))
    assert rules(talk.client(CALL)) == ["protocol/id-reused"]


def test_an_argument_whose_name_looks_like_a_defined_one_is_refused() -> None:
    verdict = called().client(call(2, "search", {"words": "sea", "Words": "lake"}))
    assert [each for each in rules(verdict) if each.startswith("contract/look")] == ["contract/look-alike-key"]
    assert verdict.onward is None


def test_a_call_whose_headers_differ_is_refused() -> None:
    """Over HTTP, in the revision without a handshake, the headers repeat the method and the tool."""
    talk = Talk(revision=REVISION)
    good(talk.client(asks(1, "tools/list")))
    good(talk.server(result(1, {"tools": [SEARCH], **COMPLETE, **HINTS})))
    headers = {b"mcp-protocol-version": REVISION.encode(), b"mcp-method": b"tools/call", b"mcp-name": b"search"}
    for ident, changed in ((2, {}), (3, {b"mcp-name": b"find"}), (4, {b"mcp-method": b"tools/list"})):
        facts = Facts(transport="http", revision=REVISION, headers={**headers, **changed})
        verdict = talk.conversation.hear(Party.CLIENT, orjson.dumps(calls(ident)), facts)
        assert rules(verdict) == ["protocol/header-mismatch"] * len(changed)


def test_a_conversation_needs_a_known_party() -> None:
    with pytest.raises(ValueError, match="none"):
        Conversation().hear("none", b"{}")  # type: ignore[arg-type]  # that is the mistake

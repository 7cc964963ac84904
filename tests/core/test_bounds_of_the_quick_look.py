"""What the fast path for calls must leave to the thorough one, and the first looks at a frame."""

from typing import Any

import orjson
import pytest

from assay.base.limits import Limits
from assay.base.verdict import Party
from assay.core.conversation import Conversation, Facts
from kit.rows import rows
from kit.talk import HITS, SEARCH, Talk, call, good, rules

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


def test_a_call_beyond_the_limit_of_open_requests_is_refused() -> None:
    talk = called(limits=Limits(open_requests=1))
    assert rules(talk.client(call(2, "search", {"words": "sea"}))) == ["protocol/too-many-open"]
    good(talk.server({"jsonrpc": "2.0", "id": 1, "result": HITS}))
    good(talk.client(call(3, "search", {"words": "sea"})))


@rows("ident", [b"true", b"1.5", b'"1"'])
def test_an_id_that_python_finds_equal_answers_nothing(ident: bytes) -> None:
    """True is 1 in Python, and finds the same entry of a table."""
    talk = called()
    verdict = talk.server(b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (ident, orjson.dumps(HITS)))
    assert not verdict.accepted
    assert verdict.onward is None
    good(talk.server({"jsonrpc": "2.0", "id": 1, "result": HITS}))


def test_an_argument_whose_name_looks_like_a_defined_one_is_refused() -> None:
    verdict = called().client(call(2, "search", {"words": "sea", "Words": "lake"}))
    assert [each for each in rules(verdict) if each.startswith("contract/look")] == ["contract/look-alike-key"]
    assert verdict.onward is None


def test_a_call_whose_headers_differ_is_refused() -> None:
    """Over HTTP, in the revision without a handshake, the headers repeat the method and the tool."""
    tools = Talk(revision="2026-07-28")
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
    listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}}
    good(tools.client(listing))
    hints = {"ttlMs": 0, "cacheScope": "private", "resultType": "complete"}
    good(tools.server({"jsonrpc": "2.0", "id": 1, "result": {"tools": [SEARCH], **hints}}))
    params = {"name": "search", "arguments": {"words": "sea"}, "_meta": meta}
    frame = orjson.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params})
    headers = {b"mcp-protocol-version": b"2026-07-28", b"mcp-method": b"tools/call", b"mcp-name": b"search"}

    def judged(ident: int, **changed: bytes) -> list[str]:
        said = {name: changed.get(name[4:].decode().replace("-", "_"), value) for name, value in headers.items()}
        spelt = frame.replace(b'"id":2', b'"id":%d' % ident)
        facts = Facts(transport="http", revision="2026-07-28", headers=said)
        return [each.rule for each in tools.conversation.hear(Party.CLIENT, spelt, facts).violations]

    assert judged(2) == []
    assert judged(3, name=b"find") == ["protocol/header-mismatch"]
    assert judged(4, method=b"tools/list") == ["protocol/header-mismatch"]


def test_a_conversation_needs_a_known_party() -> None:
    with pytest.raises(ValueError, match="none"):
        Conversation().hear("none", b"{}")  # type: ignore[arg-type]  # that is the mistake

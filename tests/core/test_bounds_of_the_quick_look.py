"""What the fast path for calls must leave to the thorough one, and the first looks at a frame."""

from typing import Any

import orjson
import pytest

from assay.base.verdict import Party
from assay.core.conversation import Conversation, Facts
from kit.rows import rows
from kit.stateless_talk import COMPLETE, HINTS, REVISION, asks, calls
from kit.talk import HITS, SEARCH, Talk, call, good, result, rules

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

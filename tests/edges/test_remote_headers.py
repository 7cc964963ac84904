"""The headers of a frame on its way out: what we write, the check accepts; what people give is taken, or refused."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.cli.options import HeaderError, given_headers
from assay.judge.headers import check_headers, is_stateless, stateless_headers
from assay.schema.header_arguments import param_headers
from assay.spec.methods import methods
from assay.spec.revisions import LATEST
from kit.http_client import meta
from kit.laws import law
from kit.rows import rows
from kit.talk import request

SCHEMA = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "limit": {"type": "integer", "x-mcp-header": "Limit"},
        "dry": {"type": "boolean", "x-mcp-header": "Dry-Run"},
        "where": {"type": "object", "properties": {"a/b": {"type": "string", "x-mcp-header": "Tenant"}}},
    },
}
PARAMS = param_headers(SCHEMA)
META = meta()
SAFE = (1 << 53) - 1

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
values = (
    st.none() | texts | st.booleans() | st.integers(-SAFE, SAFE) | st.floats(-1e6, 1e6) | st.lists(texts, max_size=2)
)
arguments = st.dictionaries(
    st.sampled_from(["region", "limit", "dry", "other"]), values, max_size=4
) | st.fixed_dictionaries({"where": st.dictionaries(st.just("a/b"), values)})
requests: st.SearchStrategy[tuple[str, dict[str, Any]]] = st.one_of(
    st.tuples(st.just("tools/call"), st.fixed_dictionaries({"name": texts, "arguments": arguments})),
    st.tuples(st.just("prompts/get"), st.fixed_dictionaries({"name": texts})),
    st.tuples(st.just("resources/read"), st.fixed_dictionaries({"uri": texts})),
    st.tuples(st.sampled_from([name for name, each in methods(LATEST).items() if each.kind == "request"]), st.just({})),
)


def as_received(pairs: list[tuple[bytes, bytes]]) -> dict[bytes, bytes | tuple[bytes, ...]]:
    """Headers as an edge has them, after a journey: names in lower case, no white space around values."""
    received = {name.lower(): value.strip(b" \t") for name, value in pairs}
    assert len(received) == len(pairs), "one was written twice"
    return dict(received)


@law(300)
@given(requests)
def test_what_is_written_is_accepted(asked: tuple[str, dict[str, Any]]) -> None:
    """The mirror image of the check: any name, any marked argument."""
    assert isinstance(PARAMS, tuple)
    method, params = asked
    message = request(1, method, {**params, "_meta": META})
    headers = as_received(stateless_headers(message, PARAMS))
    assert list(check_headers(message, headers, LATEST, PARAMS)) == []


@rows("method", ["tasks/get", "tasks/update", "tasks/cancel"])
@rows(("task", "spelt"), [("t-1", b"t-1"), ("süd", b"=?base64?c8O8ZA==?=")])
def test_a_task_is_named_by_its_id(method: str, task: str, spelt: bytes) -> None:
    """The tasks extension, Streamable HTTP: Mcp-Name is params.taskId, in Base64 where a header needs that."""
    headers = as_received(stateless_headers(request(1, method, {"taskId": task, "_meta": META})))
    assert (headers[b"mcp-method"], headers[b"mcp-name"]) == (method.encode(), spelt)


def test_what_no_header_can_carry_is_left_out() -> None:
    """2026-07-28: integers beyond 2^53 are not sent; the server says what is wrong with them."""
    assert isinstance(PARAMS, tuple)
    message = request(1, "tools/call", {"name": "find", "arguments": {"limit": 1 << 53}, "_meta": META})
    assert b"mcp-param-limit" not in as_received(stateless_headers(message, PARAMS))


@rows("message", [{}, {"method": 7}, {"method": "ä"}, {"method": "tools/call", "params": []}])
def test_anything_that_passes_under_audit_gets_headers_that_can_be_sent(message: dict[str, Any]) -> None:
    """Ours: the server is to say what is wrong."""
    for name, value in stateless_headers(message, ()):
        assert name.isascii()
        assert b"\n" not in value


@rows(
    ("message", "revision", "stateless"),
    [
        ({"method": "tools/list", "params": {"_meta": META}}, "2025-11-25", True),
        ({"method": "tools/list"}, "2025-11-25", False),
        ({"method": "tools/list"}, "2026-07-28", True),
        ({"method": "initialize", "params": {"_meta": META}}, "2025-11-25", False),
        ({"result": {}}, "2025-06-18", False),
        ({"method": "x"}, None, False),
    ],
)
def test_the_era_of_a_message_is_what_it_names_or_what_is_in_force(
    message: dict[str, Any], revision: str | None, stateless: bool
) -> None:
    """2026-07-28, basic/versioning: each request names its revision; before, the handshake has."""
    assert is_stateless(message, revision) is stateless


# ── what people give ─────────────────────────────────────────────────────────────────────────────────────────────────

VARIABLES = {"TOKEN": "s3cret", "EMPTY": "", "LINES": "a\nb", "SPACED": " s3cret\n"}


@rows(
    ("option", "header"),
    [
        ("X-Key: abc", ("X-Key", "abc")),
        ("X-Key:abc:def", ("X-Key", "abc:def")),
        ("Authorization: env:TOKEN", ("Authorization", "s3cret")),
        ("Authorization: Bearer env:TOKEN", ("Authorization", "Bearer s3cret")),
        ("Authorization: Bearer env:SPACED", ("Authorization", "Bearer s3cret")),
        ("X-Path: /env:TOKEN", ("X-Path", "/env:TOKEN")),
        ("X-Empty:", ("X-Empty", "")),
    ],
)
def test_a_header_is_given_as_it_stands_or_from_the_environment(option: str, header: tuple[str, str]) -> None:
    """Ours: so that secrets are not on the command line."""
    assert given_headers([option], VARIABLES) == [header]


@rows("option", ["Mcp-Session-Id: s3cret", "CONTENT-TYPE: text/plain", "accept: application/json"])
def test_what_follows_from_each_message_is_left_out(option: str) -> None:
    """Ours: clients have such headers in their configurations, and `assay wrap` makes options of them."""
    assert given_headers([option, "X: y"], VARIABLES) == [("X", "y")]


@rows(
    ("option", "words"),
    [
        ("Bearer s3cret", "expected 'Name: value'"),
        ("X Y: s3cret", "expected 'Name: value'"),
        (": s3cret", "expected 'Name: value'"),
        ("X: env:NOWHERE", "the variable NOWHERE is not set"),
        ("X: env:EMPTY", "the variable EMPTY is not set"),
        ("X: env:LINES", "its value has characters that are invalid in a header"),
        ("X: s3cret\x00", "its value has characters that are invalid in a header"),
    ],
)
def test_a_header_that_cannot_be_given_is_refused_without_its_value(option: str, words: str) -> None:
    """Ours: a value may be a secret."""
    with pytest.raises(HeaderError) as refused:
        given_headers([option], VARIABLES)
    assert words in str(refused.value)
    assert "s3cret" not in str(refused.value)

"""What a request says in its headers, held against what it says in its body."""

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.judge.headers import Headers, check_headers, check_version, decode, encode, keeps_headers
from assay.model.errors import CanonicalError
from assay.rules import RULES
from assay.schema.fault import SchemaRefusal
from assay.schema.header_arguments import ParamHeaders, param_headers
from assay.spec.revisions import LATEST, REVISIONS, handshake
from kit.generated_messages import values
from kit.laws import law
from kit.rows import rows

KEY = "io.modelcontextprotocol/protocolVersion"
META = {KEY: "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
REVISION_AT = "/params/_meta/io.modelcontextprotocol~1protocolVersion"
VERSION, METHOD, NAME = b"mcp-protocol-version", b"mcp-method", b"mcp-name"

SCHEMA = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "limit": {"type": "integer", "x-mcp-header": "Limit"},
        "dry": {"type": "boolean", "x-mcp-header": "Dry-Run"},
        "query": {"type": "string"},
        "where": {"type": "object", "properties": {"a/b": {"type": "string", "x-mcp-header": "Tenant"}}},
    },
}


Sent = dict[bytes, bytes | tuple[bytes, ...]]


def known(schema: Any) -> ParamHeaders:
    found = param_headers(schema)
    assert isinstance(found, tuple)
    return found


PARAMS = known(SCHEMA)


def request(method: str, /, *, meta: Any = META, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}


def call(**arguments: Any) -> dict[str, Any]:
    return request("tools/call", name="run", arguments=arguments)


def sent(method: str, name: str | None = None, /, **params: bytes) -> Sent:
    """The headers of a request that is well made; *params* by the names of their headers."""
    headers: Sent = {VERSION: b"2026-07-28", METHOD: method.encode()}
    if name is not None:
        headers[NAME] = name.encode()
    return headers | {f"mcp-param-{key.replace('_', '-')}".encode(): value for key, value in params.items()}


def broken(message: dict[str, Any], headers: Headers, revision: str = LATEST) -> list[tuple[str, str]]:
    """The rules that are broken, without their rung, and where."""
    found = list(check_headers(message, headers, revision, PARAMS))
    assert not (found and keeps_headers(message, headers, revision, PARAMS))
    assert all(RULES[each.rule].rung == "protocol" and each.action == "refuse" for each in found)
    return [(each.rule.removeprefix("protocol/"), each.at) for each in found]


# ── values ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@rows(
    ("value", "header"),
    [
        pytest.param("us-west1", b"us-west1", id="plain"),
        pytest.param("Hello, 世界", b"=?base64?SGVsbG8sIOS4lueVjA==?=", id="not-ascii"),
        pytest.param(" padded ", b"=?base64?IHBhZGRlZCA=?=", id="padded"),
        pytest.param("line1\nline2", b"=?base64?bGluZTEKbGluZTI=?=", id="newline"),
        pytest.param("=?base64?literal?=", b"=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=", id="looks-encoded"),
        pytest.param("a\tb", b"=?base64?YQli?=", id="tab-inside"),
        pytest.param("", b"=?base64??=", id="empty"),
        pytest.param("=?base64?open", b"=?base64?open", id="prefix-only"),
        pytest.param("=?BASE64?YQ==?=", b"=?BASE64?YQ==?=", id="upper-case-is-no-marker"),
    ],
)
def test_a_value_is_encoded_where_a_header_cannot_carry_it(value: str, header: bytes) -> None:
    """The first five are the specification's own examples."""
    assert encode(value) == header
    assert decode(header) == value


@rows(
    ("header", "value"),
    [
        pytest.param(b"  us-west1\t ", "us-west1", id="white-space-around"),
        pytest.param(b"=?base64?dXMtd2VzdDE=?=", "us-west1", id="encoded-without-need"),
        pytest.param(b"a\tb", "a\tb", id="tab-inside"),
        pytest.param(b"", "", id="empty"),
        pytest.param(b"=?base64?=", "=?base64?=", id="markers-overlap"),
        pytest.param(b"=?base64?SGVsbG8?=", None, id="no-padding"),
        pytest.param(b"=?base64?SGVsbG8==?=", None, id="too-much-padding"),
        pytest.param(b"=?base64?SGVs!!!bG8=?=", None, id="no-base64"),
        pytest.param(b"=?base64?SGVsbG9=?=", None, id="loose-bits"),
        pytest.param(b"=?base64?-_-_?=", None, id="url-alphabet"),
        pytest.param(b"=?base64?/w==?=", None, id="no-utf8"),
        pytest.param(b"=?base64?7aCA?=", None, id="half-a-surrogate-pair"),
        pytest.param(b"caf\xe9", None, id="latin-1"),
        pytest.param(b"a\x00b", None, id="nul"),
        pytest.param(b"a\r\nX-Evil: 1", None, id="line-break"),
    ],
)
def test_a_header_is_read_only_as_the_specification_spells_it(header: bytes, value: str | None) -> None:
    assert decode(header) == value


@law(300)
@given(st.text() | st.text("=?base64 \t\n"))
def test_decoding_undoes_encoding(value: str) -> None:
    header = encode(value)
    assert decode(header) == value
    assert all(0x20 <= each < 0x7F for each in header)
    assert header == header.strip()


# ── requests ─────────────────────────────────────────────────────────────────────────────────────────────────────────

LIST = request("tools/list")
READ = request("resources/read", uri="file:///a b")
US = call(region="us")
GET, UPDATE = request("tasks/get", taskId="t"), request("tasks/update", taskId="t")

GOOD = [
    pytest.param(LIST, sent("tools/list") | {NAME: b"any"}, id="name-where-none-is-asked"),
    pytest.param(LIST, sent("tools/list", region=b"us"), id="param-where-no-tool-is-called"),
    pytest.param(call(query="x"), sent("tools/call", "run", query=b"y", other=b"z"), id="unknown-param-headers"),
    pytest.param(US, sent("tools/call", "run", region=b"=?base64?dXM=?="), id="encoded-without-need"),
    pytest.param(US, sent("tools/call", "  run  ", region=b" us\t"), id="white-space-around"),
    pytest.param(call(limit=42), sent("tools/call", "run", limit=b"42.0"), id="integer-as-decimal"),
    pytest.param(call(limit=42.0), sent("tools/call", "run", limit=b"42"), id="decimal-as-integer"),
    pytest.param(call(limit=0), sent("tools/call", "run", limit=b"-0"), id="minus-nought"),
    pytest.param(call(where="no object"), sent("tools/call", "run"), id="nothing-to-descend-into"),
    pytest.param(call(region=["us"]), sent("tools/call", "run"), id="array-for-a-string"),
    # What is wrong with these is found by other rules; here it only must not hurt.
    pytest.param(request("tools/call", name=5), sent("tools/call"), id="name-is-no-string"),
    pytest.param(request("tools/call"), sent("tools/call", "run"), id="no-name"),
    pytest.param(request("tools/call", name="run", arguments=[1]), sent("tools/call", "run"), id="no-object"),
    pytest.param(request("tools/list", meta=None), sent("tools/list"), id="no-meta"),
    pytest.param(request("tools/list", meta={KEY: 5}), sent("tools/list"), id="revision-is-no-string"),
    pytest.param({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, sent("tools/list"), id="no-params"),
    pytest.param(GET, sent("tasks/get", "t"), id="task"),
]


@rows(("message", "headers"), GOOD)
def test_headers_that_say_what_the_body_says_are_good(message: dict[str, Any], headers: Headers) -> None:
    assert broken(message, headers) == []


BAD = [
    (LIST, {}, [("header-missing", REVISION_AT), ("header-missing", "/method")]),
    (request("tools/list", meta={}), {METHOD: b"tools/list"}, [("header-missing", REVISION_AT)]),
    (GET, sent("tasks/get", "u"), [("header-mismatch", "/params/taskId")]),
    # The tasks extension asks for it.
    (GET, sent("tasks/get"), [("header-missing", "/params/taskId")]),
    (UPDATE, sent("tasks/update"), [("header-missing", "/params/taskId")]),
    (LIST, sent("prompts/list"), [("header-mismatch", "/method")]),
    (LIST, sent("TOOLS/LIST"), [("header-mismatch", "/method")]),
    (LIST, sent("=?base64?dG9vbHMvbGlzdA==?="), [("header-mismatch", "/method")]),
    (request("é"), sent("é"), [("header-encoding", "/method")]),
    (US, sent("tools/call", region=b"us"), [("header-missing", "/params/name")]),
    (US, sent("tools/call", "Run", region=b"us"), [("header-mismatch", "/params/name")]),
    (US, sent("tools/call", "=?base64?cnVu?", region=b"us"), [("header-mismatch", "/params/name")]),
    (US, sent("tools/call", "=?base64?cnV?=", region=b"us"), [("header-encoding", "/params/name")]),
    (READ, sent("resources/read", "file:///a%20b"), [("header-mismatch", "/params/uri")]),
    (request("prompts/get", name="é"), sent("prompts/get", "é"), [("header-encoding", "/params/name")]),
    (request("prompts/get", name=" p "), sent("prompts/get", " p "), [("header-mismatch", "/params/name")]),
    (call(), sent("tools/call", "run", region=b"us"), [("header-mismatch", "/params/arguments/region")]),
    (call(region=None), sent("tools/call", "run", region=b"null"), [("header-mismatch", "/params/arguments/region")]),
    (call(region=["us"]), sent("tools/call", "run", region=b'["us"]'),
     [("header-mismatch", "/params/arguments/region")]),
    # A boolean is true or false in lower case.
    *((call(dry=True), sent("tools/call", "run", dry_run=each), [("header-mismatch", "/params/arguments/dry")])
      for each in (b"True", b"1", b"yes", b"false")),
    (call(limit=1.5), sent("tools/call", "run", limit=b"1.5"), [("header-mismatch", "/params/arguments/limit")]),
    (call(where={"a/b": "t"}), sent("tools/call", "run", tenant=b"u"),
     [("header-mismatch", "/params/arguments/where/a~1b")]),
    (call(region="us", limit=3), sent("tools/call", "walk", region=b"eu"),
     [("header-mismatch", "/params/name"), ("header-mismatch", "/params/arguments/region"),
     ("header-missing", "/params/arguments/limit")]),
]  # fmt: skip


@rows(("message", "headers", "faults"), BAD)
def test_headers_that_say_something_else_are_refused(
    message: dict[str, Any], headers: Headers, faults: list[tuple[str, str]]
) -> None:
    assert broken(message, headers) == faults


@rows(
    ("value", "header", "rule"),
    [
        (42, b"4.2e1", "header-mismatch"),
        (42, b"42.00001", "header-mismatch"),
        (42, b"+42", "header-mismatch"),
        (42, b"4_2", "header-mismatch"),
        (42, b"", "header-mismatch"),
        (42, b"=?base64?2aTZog==?=", "header-mismatch"),  # 42 in Arabic digits, which `int` would take
        (42, b"9" * 100_000, "header-mismatch"),
        (9007199254740991, b"9007199254740990.6", "header-mismatch"),
        (1, b"true", "header-mismatch"),
        (2**53, b"9007199254740992", "header-encoding"),
        (-(2**53), None, "header-encoding"),
        (1e300, b"1", "header-encoding"),
    ],
)
def test_integers_are_compared_as_numbers(value: float, header: bytes | None, rule: str) -> None:
    """The specification allows none beyond 2^53-1: there a reader in JavaScript has another number."""
    headers = sent("tools/call", "run") if header is None else sent("tools/call", "run", limit=header)
    assert broken(call(limit=value), headers) == [(rule, "/params/arguments/limit")]


def test_a_violation_names_the_header_and_quotes_little() -> None:
    headers = sent("tools/call", "x" * 5000, region=b"\x1b[2J\xff")
    name, region = check_headers(call(region="us"), headers, LATEST, PARAMS)
    assert str(name) == (
        f'/params/name: expected "run" in the header Mcp-Name, found "{"x" * 40}…" [protocol/header-mismatch]'
    )
    assert region.expected == "the header Mcp-Param-Region in visible ASCII, or UTF-8 as =?base64?…?="
    assert region.found == '"\\u001b[2Jÿ"'
    assert region.source == "MCP 2026-07-28, basic/transports/streamable-http"


@rows("rule", ["header-missing", "header-mismatch", "header-encoding"])
def test_all_of_it_is_the_error_that_the_specification_defines(rule: str) -> None:
    code = RULES[f"protocol/{rule}"].code
    assert (CanonicalError.to_jsonrpc_error(code)["code"], CanonicalError.to_http_status(code)) == (-32020, 400)


@rows(
    ("headers", "faults"),
    [
        ({}, []),
        ({METHOD: b"notifications/cancelled"}, []),
        ({METHOD: b"notifications/other"}, [("header-mismatch", "/method")]),
        ({METHOD: (b"a", b"b")}, [("header-mismatch", "/method")]),
        ({VERSION: b"2026-07-28"}, []),
        ({VERSION: b"2030-01-01"}, [("unsupported-revision", REVISION_AT)]),
        ({NAME: b"run", b"mcp-param-region": b"us"}, []),
    ],
)
def test_of_a_notification_only_the_headers_that_are_there_are_judged(
    headers: Headers, faults: list[tuple[str, str]]
) -> None:
    """Which it has to have is not defined by 2026-07-28."""
    message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    assert broken(message, headers) == faults


@rows("revision", [each for each in REVISIONS if handshake(each)])
def test_before_2026_07_28_only_the_revision_is_judged(revision: str) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "run"}}
    assert broken(message, {}, revision) == []
    assert broken(message, {VERSION: revision.encode(), METHOD: b"x", NAME: b"y"}, revision) == []
    assert broken(message, {VERSION: b"1.0"}, revision) == [("unsupported-revision", REVISION_AT)]


# ── the revision ─────────────────────────────────────────────────────────────────────────────────────────────────────


@rows(
    ("header", "named", "rule"),
    [
        (None, None, None),
        (None, "2026-07-28", "header-missing"),
        # A revision with a handshake, named where one without would name itself, means nothing there.
        (None, "2025-11-25", None),
        (b"2025-11-25", None, None),
        (b"2026-07-28", None, None),
        (b"2026-07-28", "2026-07-28", None),
        (b" 2026-07-28 ", "2026-07-28", None),
        (b"2025-11-25", "2026-07-28", "header-mismatch"),
        (b"2026-07-28", "2025-11-25", "header-mismatch"),
        (b"2026-07-28", "2030-01-01", "header-mismatch"),
        (b"2030-01-01", "2026-07-28", "header-mismatch"),
        (b"2030-01-01", None, "unsupported-revision"),
        (b"2030-01-01", "2030-01-01", "unsupported-revision"),
        (b"", None, "unsupported-revision"),
        (b"2026-07-28\xff", None, "header-encoding"),
        (b"=?base64?MjAyNi0wNy0yOA==?=", "2026-07-28", "header-mismatch"),
        ((b"2026-07-28", b"2026-07-28"), "2026-07-28", "header-mismatch"),
        ((b"2025-11-25", b"2026-07-28"), None, "header-mismatch"),
    ],
)
def test_header_and_body_name_one_revision_that_is_known(
    header: bytes | tuple[bytes, ...] | None, named: str | None, rule: str | None
) -> None:
    """That they disagree comes before whether one of them is known."""
    message = request("tools/list", meta={} if named is None else {KEY: named})
    found = check_version(message, {} if header is None else {VERSION: header})
    assert (found and found.rule) == (rule and f"protocol/{rule}")
    assert found is None or found.at == REVISION_AT


# ── laws ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def spelt(value: str | int) -> bytes:
    """A value as a header, written without the code under test."""
    if not isinstance(value, str):
        return str(value).lower().encode()
    plain = value.isascii() and value.isprintable() and value.strip() == value
    if plain and value and not (value.startswith("=?base64?") and value.endswith("?=")):
        return value.encode()
    return b"=?base64?" + base64.b64encode(value.encode()) + b"?="


texts = st.sampled_from(["", " ", "a", " a ", "=", "=?base64?YQ==?=", "=?base64?", "é", "\n", "\t", "1"]) | st.text(
    max_size=9
)
arguments = st.fixed_dictionaries(
    {},
    optional={
        "region": st.none() | texts,
        "limit": st.none() | st.integers(-(2**53) + 1, 2**53 - 1),
        "dry": st.none() | st.booleans(),
        "query": texts,
        "where": st.fixed_dictionaries({}, optional={"a/b": st.none() | texts}),
    },
)


@st.composite
def made(draw: st.DrawFn) -> tuple[dict[str, Any], Sent]:
    """A request, and the headers that belong to it."""
    method = draw(st.sampled_from(["tools/list", "server/discover", "tools/call", "prompts/get", "resources/read"]))
    headers: Sent = {VERSION: b"2026-07-28", METHOD: method.encode()}
    if method in {"tools/list", "server/discover"}:
        return request(method), headers
    name = draw(texts)
    headers[NAME] = spelt(name)
    if method != "tools/call":
        return request(method, **{"uri" if method == "resources/read" else "name": name}), headers
    given_arguments = draw(arguments)
    for param in PARAMS:
        value: Any = given_arguments
        for key in param.path:
            value = value.get(key) if value is not None else None
        if value is not None:
            headers[param.field] = spelt(value)
    return request(method, name=name, arguments=given_arguments), headers


@law(300)
@given(made())
def test_the_right_headers_are_never_refused(of: tuple[dict[str, Any], Sent]) -> None:
    message, headers = of
    assert keeps_headers(message, headers, LATEST, PARAMS)
    assert not list(check_headers(message, headers, LATEST, PARAMS))


@law(300)
@given(made(), st.data())
def test_one_wrong_header_is_one_violation(of: tuple[dict[str, Any], Sent], data: st.DataObject) -> None:
    message, headers = of
    expected = dict(headers)
    for param in PARAMS if message["method"] == "tools/call" else ():
        # What must not be there can be wrong too.
        expected.setdefault(param.field, b"")
    field = data.draw(st.sampled_from(sorted(expected)))
    value = expected[field]
    assert isinstance(value, bytes)
    ways: dict[str, bytes | tuple[bytes, ...] | None] = {
        "longer": spelt((decode(value) or "") + "x"),
        "raw": b"\xff" + value,
        "broken": b"=?base64?!?=",
        "twice": (value, value),
        "gone": None,
    }
    way = data.draw(st.sampled_from([each for each in ways if each != "gone" or field in headers]))
    changed = {**headers, field: ways[way]}
    wrong: Headers = {key: each for key, each in changed.items() if each is not None}
    assert not keeps_headers(message, wrong, LATEST, PARAMS)
    found = list(check_headers(message, wrong, LATEST, PARAMS))
    assert len(found) == 1
    assert RULES[found[0].rule].code == "HEADER_MISMATCH"


@law(300)
@given(
    st.fixed_dictionaries(
        {"method": st.sampled_from(["tools/call", "prompts/get", "resources/read", "tools/list"]) | texts},
        optional={
            "id": st.just(1),
            "params": st.fixed_dictionaries(
                {}, optional={"name": values(), "uri": values(), "arguments": arguments | values(), "_meta": values()}
            ),
        },
    ),
    st.dictionaries(
        st.sampled_from([VERSION, METHOD, NAME, *(param.field for param in PARAMS)]),
        st.binary(max_size=12) | st.just(b"tools/call") | st.tuples(st.binary(max_size=3), st.binary(max_size=3)),
    ),
    st.sampled_from(REVISIONS),
)
def test_nothing_that_comes_raises_and_the_quick_look_agrees(
    message: dict[str, Any], headers: Headers, revision: str
) -> None:
    found = list(check_headers(message, headers, revision, PARAMS))
    assert not found or not keeps_headers(message, headers, revision, PARAMS)


# ── definitions ──────────────────────────────────────────────────────────────────────────────────────────────────────


def properties(**schemas: Any) -> dict[str, Any]:
    return {"type": "object", "properties": schemas}


MARKED = {"type": "string", "x-mcp-header": "A"}


@rows(
    "schema",
    [
        pytest.param({"type": "object"}, id="no-properties"),
        pytest.param(properties(a={"type": "string"}, b=True), id="nothing-marked"),
        pytest.param({"properties": {"x-mcp-header": {"type": "string"}}}, id="a-property-of-that-name"),
        pytest.param(properties(a={"type": "object", "default": MARKED, "examples": [MARKED]}), id="in-a-value"),
        pytest.param(properties(a={"const": MARKED}, b={"enum": [MARKED]}), id="in-a-constant"),
        pytest.param({"properties": [MARKED][:0]}, id="no-object"),
        pytest.param({"additionalProperties": True, "items": False}, id="boolean-schemas"),
        pytest.param(None, id="none"),
    ],
)
def test_a_schema_without_the_annotation_marks_nothing(schema: Any) -> None:
    assert param_headers(schema) == ()


def test_every_character_of_a_token_may_be_in_the_name() -> None:
    every = "!#$%&'*+-.^_`|~09AZaz"
    (param,) = known(properties(a=MARKED | {"x-mcp-header": every}))
    assert (param.field, param.name) == (b"mcp-param-" + every.lower().encode(), f"Mcp-Param-{every}")


@rows(
    ("schema", "at"),
    [
        pytest.param(MARKED | {"type": "object"}, "", id="root"),
        pytest.param(properties(a={"type": "array", "items": MARKED}), "/properties/a/items", id="items"),
        pytest.param(properties(a={"prefixItems": [True, MARKED]}), "/properties/a/prefixItems/1", id="prefixItems"),
        pytest.param(properties(a={"items": [MARKED]}), "/properties/a/items/0", id="items-of-an-older-draft"),
        pytest.param(properties(a={"anyOf": [{}, MARKED]}), "/properties/a/anyOf/1", id="anyOf"),
        pytest.param({"oneOf": [properties(a=MARKED)]}, "/oneOf/0/properties/a", id="oneOf"),
        pytest.param({"not": properties(a=MARKED)}, "/not/properties/a", id="not"),
        pytest.param({"if": {}, "then": properties(a=MARKED)}, "/then/properties/a", id="then"),
        pytest.param({"$defs": {"A": MARKED}}, "/$defs/A", id="defs"),
        pytest.param({"patternProperties": {"^a": MARKED}}, "/patternProperties/^a", id="patternProperties"),
        pytest.param({"additionalProperties": MARKED}, "/additionalProperties", id="additionalProperties"),
        pytest.param({"dependentSchemas": {"a": properties(b=MARKED)}}, "/dependentSchemas/a/properties/b", id="dep"),
        pytest.param(properties(**{"a/b~c": {"not": MARKED}}), "/properties/a~1b~0c/not", id="escaped"),
        pytest.param(properties(a=MARKED | {"x-mcp-header": ""}), "/properties/a", id="empty"),
        pytest.param(properties(a=MARKED | {"x-mcp-header": "a b"}), "/properties/a", id="space"),
        pytest.param(properties(a=MARKED | {"x-mcp-header": "é"}), "/properties/a", id="not-ascii"),
        pytest.param(properties(a=MARKED | {"x-mcp-header": "a\r\nX: 1"}), "/properties/a", id="line-break"),
        pytest.param(properties(a=MARKED | {"x-mcp-header": 5}), "/properties/a", id="number-for-a-name"),
        pytest.param(properties(a=MARKED | {"type": "number"}), "/properties/a", id="number"),
        pytest.param(properties(a=MARKED | {"type": ["string", "null"]}), "/properties/a", id="two-types"),
        pytest.param(properties(a={"x-mcp-header": "A"}), "/properties/a", id="no-type"),
        pytest.param(properties(a=MARKED, b=MARKED | {"x-mcp-header": "a"}), "/properties/b", id="same-but-for-case"),
        pytest.param(properties(a=MARKED, b=properties(c=MARKED)), "/properties/b/properties/c", id="same-below"),
    ],
)
def test_an_annotation_that_clients_must_reject_is_a_fault(schema: Any, at: str) -> None:
    found = param_headers(schema)
    assert isinstance(found, list)
    assert [(each.rule, each.at) for each in found] == [("contract/header", f"{at}/x-mcp-header")]
    assert RULES["contract/header"].action == "quarantine"


@rows(
    ("schema", "expected", "has"),
    [
        (MARKED | {"type": "number"}, "a property of the type string, integer or boolean", 'the type "number"'),
        ({"x-mcp-header": "A"}, "a property of the type string, integer or boolean", "no type"),
        ({"items": MARKED}, "a property reached through `properties` alone", "one under `items`"),
        (MARKED | {"x-mcp-header": "a b"}, "a header name of letters, digits and !#$%&'*+-.^_`|~",
         'the string "a b"'),
    ],
)  # fmt: skip
def test_a_fault_says_what_is_wrong(schema: Any, expected: str, has: str) -> None:
    (found,) = param_headers(properties(a=schema))
    assert isinstance(found, SchemaRefusal)
    assert (found.expected, found.found) == (expected, has)


def test_all_faults_of_a_schema_are_reported_within_bounds() -> None:
    bad = MARKED | {"type": "number"}
    assert len(param_headers(properties(a=bad, b=bad, c=MARKED))) == 2
    assert len(param_headers(properties(**{f"p{number}": bad for number in range(1000)}))) == 20


def test_more_marked_properties_than_any_server_takes_headers_are_a_fault() -> None:
    def marked(number: int) -> dict[str, Any]:
        return properties(**{f"p{each}": MARKED | {"x-mcp-header": f"H{each}"} for each in range(number)})

    assert len(known(marked(100))) == 100
    (fault,) = param_headers(marked(101))
    assert isinstance(fault, SchemaRefusal)
    assert (fault.rule, fault.at) == ("contract/header", "")


def nested(levels: int, inside: Any) -> Any:
    for _ in range(levels):
        inside = properties(a=inside)
    return inside


@rows(
    "schema",
    [
        pytest.param(properties(**{str(each): {} for each in range(100_000)}, last=MARKED), id="wide"),
        pytest.param({"anyOf": [MARKED] * 100_000}, id="all-of-them-wrong"),
        pytest.param(properties(**{"k" * 500_000: properties(**{str(n): MARKED for n in range(4000)})}), id="long-key"),
        pytest.param({"$defs": {"k" * 500_000: {"anyOf": [MARKED] * 4000}}}, id="long-name"),
        pytest.param(nested(100_000, MARKED), id="deep"),
        pytest.param(MARKED | {"x-mcp-header": "a b" * 300_000}, id="long-header"),
        pytest.param(properties(a=MARKED | {"type": 10**5000}), id="long-number"),
    ],
)
def test_a_hostile_schema_is_refused_at_little_cost(schema: Any) -> None:
    found = param_headers(schema)
    assert isinstance(found, list)
    assert 1 <= len(found) <= 20

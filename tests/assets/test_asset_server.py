"""The asset server's two doors: a frame in, frames out."""

import json
from typing import Any

import pytest

from assay.assets.asset_server import AssetServer
from assay.assets.asset_sources import Catalogue
from assay.assets.mcp_methods import Methods
from assay.assets.response import ResponseEnvelope, Tiers
from assay.assets.response.enveloper import REQUEST_IDS
from assay.base.limits import Limits
from assay.base.verdict import Party
from assay.core.conversation import Conversation, Facts
from assay.spec.revisions import LATEST, REVISIONS, handshake
from kit.asset_requests import (
    answer,
    bundled_methods,
    call,
    cancelled,
    frame_of,
    meta,
    opened,
    opening,
    request,
    said,
)
from kit.catalogues import variables, written
from kit.rows import rows
from kit.talk import found

TOO_LARGE = {"ok": False, "reason": "validation_failed", "errors": [{"path": "", "msg": "payload_too_large"}]}
MEBIBYTE = 1 << 20

every_revision = rows("revision", REVISIONS)


@pytest.fixture(scope="module")
def methods() -> Methods:
    return bundled_methods()


@pytest.fixture
def server(methods: Methods) -> AssetServer:
    return AssetServer(methods)


# ── the bare door (specs/001) ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("ident", [b"1", b'"a"', b"1.5", b"1e2", b"-0", b"1180591620717411303424"])
def test_a_bare_method_is_answered_with_its_bare_result_and_its_id(server: AssetServer, ident: bytes) -> None:
    [answer] = server.respond(b'{"jsonrpc":"2.0","id":' + ident + b',"method":"list_schemas","params":{}}')
    assert answer.startswith(b'{"jsonrpc":"2.0","id":' + ident + b',"result":{"ok":true,"schemas":[')
    assert b"\n" not in answer


@rows(
    ("frame", "answer"),
    [
        pytest.param(
            b'{"jsonrpc":"2.0","id":1,"method":"render","params":{}}',
            {"id": 1, "result": {"ok": False, "reason": "unsupported", "detail": "tool not implemented"}},
            id="no-tool",
        ),
        pytest.param(b"x" * 300, {"id": None, "result": TOO_LARGE}, id="too-large"),
        pytest.param(b"{", {"id": None, "error": -32700}, id="no-json"),
        pytest.param(b'[{"jsonrpc":"2.0","id":1,"method":"list_schemas"}]', {"id": None, "error": -32600}, id="batch"),
        pytest.param(b'{"id":1,"method":"list_schemas"}', {"id": 1, "error": -32600}, id="no-version"),
        pytest.param(b'{"jsonrpc":"2.0","id":true,"method":"list_schemas"}', {"id": None, "error": -32600}, id="true"),
        pytest.param(b'{"jsonrpc":"2.0","id":1,"method":"get_schema"}', {"id": 1, "error": -32602}, id="no-name"),
        pytest.param(b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}', {"id": 1, "error": -32600}, id="mcp-too-early"),
    ],
)
def test_bad_input_gets_one_clear_answer_and_the_next_line_is_served(
    methods: Methods, frame: bytes, answer: dict[str, Any]
) -> None:
    server = AssetServer(methods, limits=Limits(frame_bytes=200))
    [found] = said(server, frame)
    assert found["id"] == answer["id"]
    assert found.get("result") == answer.get("result")
    assert found.get("error", {}).get("code") == answer.get("error")
    assert said(server, request(2, "list_schemas"))[0]["result"]["ok"]


@pytest.mark.parametrize("frame", [b"", b"  \r", b'{"jsonrpc":"2.0","method":"list_schemas"}'])
def test_blank_lines_and_notifications_are_not_answered(server: AssetServer, frame: bytes) -> None:
    assert list(server.respond(frame)) == []


@rows("garbage", [b"}", b"[]", b"5", b'{"jsonrpc":"2.0","id":true,"method":"list_schemas"}'])
@rows("revision", [None, "2025-11-25"])
def test_garbage_is_answered_only_so_often_in_a_row(methods: Methods, garbage: bytes, revision: str | None) -> None:
    server = opened(methods, revision) if revision else AssetServer(methods)
    assert [len(server.respond(garbage)) for _ in range(20)] == [1] * 16 + [0] * 4
    good = request(7, "ping" if revision else "list_schemas")
    assert said(server, good)[0]["id"] == 7
    assert len(server.respond(garbage)) == 1


def test_what_has_an_id_is_answered_amid_garbage(methods: Methods) -> None:
    server = AssetServer(methods, limits=Limits(garbage_answers=1, frame_bytes=200))
    assert [len(server.respond(b"}")) for _ in range(2)] == [1, 0]
    for _ in range(3):
        assert said(server, b'{"id":1,"method":"list_schemas"}')[0]["id"] == 1
        assert said(server, b"x" * 300)[0]["result"] == TOO_LARGE
    assert list(server.respond(b"}")) == []


def test_garbage_over_http_is_always_answered(methods: Methods) -> None:
    server = AssetServer(methods, limits=Limits(garbage_answers=1))
    assert [len(server.hear(b"}", Facts("http")).said) for _ in range(3)] == [1, 1, 1]


# ── opening an MCP conversation ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("method", "revision", "code"),
    [
        pytest.param("render", LATEST, -32601, id="unknown-method"),
        pytest.param("list_schemas", LATEST, -32601, id="bare-method"),
        pytest.param("tools/list", "2030-01-01", -32022, id="unknown-revision"),
        pytest.param("render", "2030-01-01", -32022, id="unknown-method-of-an-unknown-revision"),
        pytest.param("list_schemas", "2030-01-01", -32022, id="bare-method-of-an-unknown-revision"),
        pytest.param("server/discover", "2030-01-01", -32022, id="discovery-of-an-unknown-revision"),
        *(
            pytest.param("server/discover", each, -32022, id=f"discovery-of-{each}")
            for each in REVISIONS
            if handshake(each)
        ),
    ],
)
def test_a_first_request_that_names_a_revision_is_mcps(
    server: AssetServer, method: str, revision: str, code: int
) -> None:
    """2026-07-28, basic/versioning: -32022 says which revisions there are. A refused client can still fall back."""
    error = answer(server, request(1, method, {"_meta": meta(revision)}))["error"]
    assert error["code"] == code
    if code == -32022:
        assert error["data"]["supported"] == list(REVISIONS)
        assert error["data"]["requested"] == revision
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
    assert answer(server, request(2, "initialize", params))["result"]["protocolVersion"] == "2025-11-25"


@pytest.mark.parametrize("revision", ["2025-11-25", "2024-11-05"])
def test_once_stateless_a_request_cannot_name_a_revision_with_a_handshake(server: AssetServer, revision: str) -> None:
    assert "result" in answer(server, request(1, "tools/list", revision=LATEST))
    error = answer(server, request(2, "tools/list", {"_meta": meta(revision)}))["error"]
    assert error["code"] == -32022
    assert error["data"]["supported"] == list(REVISIONS)
    assert "result" in answer(server, request(3, "tools/list", revision=LATEST))


# ── batches (2025-03-26) ─────────────────────────────────────────────────────────────────────────────────────────────


def test_a_batch_is_answered_by_one_array(methods: Methods) -> None:
    """JSON-RPC, "Batch": results and errors together, in any order, nothing for notifications."""
    server = opened(methods, "2025-03-26")
    batch = [
        request(1, "tools/list"),
        cancelled("none"),
        request("b", "render"),
        call(3, "get_schema", {}),
        call(4, "get_schema", {"name": "nope"}),
        {"id": 5},
        request(6, "ping"),
    ]
    [answers] = said(server, batch)
    assert isinstance(answers, list)
    found = {each["id"]: each.get("error", {}).get("code") for each in answers}
    assert found == {1: None, "b": -32601, 3: -32602, 4: None, 5: -32600, 6: None}
    assert len(answers) == len(found)
    # Every id has been answered, and can be used again.
    assert sorted(str(each["id"]) for each in said(server, batch)[0]) == ["1", "3", "4", "5", "6", "b"]


def test_a_batch_that_is_refused_whole_is_answered_by_one_error(methods: Methods) -> None:
    [found] = said(opened(methods, "2025-03-26"), b"[]")
    assert found["error"]["code"] == -32600


def test_a_batch_of_notifications_gets_nothing(methods: Methods) -> None:
    server = opened(methods, "2025-03-26")
    assert said(server, [cancelled("none"), cancelled("none")]) == []


@rows("revision", [each for each in REVISIONS if each != "2025-03-26"])
def test_other_revisions_have_no_batches(methods: Methods, revision: str) -> None:
    server = opened(methods, revision)
    said(server, request(1, "tools/list", revision=revision))
    [found] = said(server, [request(2, "tools/list", revision=revision)])
    assert found["error"]["code"] == -32600


# ── calls ────────────────────────────────────────────────────────────────────────────────────────────────────────────


SENT = "hunter2-hunter2"
BROKEN: list[Any] = [
    pytest.param("get_schema", {"name": {"text": SENT}}, "/name", "a string", id="type"),
    pytest.param("get_schema", {}, "", "the property `name`", id="missing"),
    pytest.param("list_examples", {"component": None}, "/component", "a string", id="null"),
    pytest.param("validate_asset", {"asset": SENT, "schema": [SENT]}, "/schema", "a string", id="array"),
    pytest.param(
        "populate_backend", {"asset": {SENT: SENT}, "validate_first": SENT}, "/validate_first", "a boolean",
        id="text",
    ),
]  # fmt: skip


@rows(("tool", "arguments", "at", "expected"), BROKEN)
@rows("revision", [each for each in REVISIONS if each >= "2025-11-25"])
def test_arguments_that_break_the_contract_are_a_failure_in_an_envelope(
    methods: Methods, tool: str, arguments: Any, at: str, expected: str, revision: str
) -> None:
    """2025-11-25, server/tools: a result, so that a model can mend it; specs/004: nothing of what was sent in."""
    message = call(1, tool, arguments, revision, request_id="theirs")
    server = opened(methods, revision)
    [frame] = server.respond(frame_of(message))
    result = json.loads(frame)["result"]
    assert result["isError"] is True
    envelope = result["structuredContent"]
    assert json.loads(result["content"][0]["text"]) == envelope
    assert ResponseEnvelope.from_dict(envelope).tool_id == tool
    assert envelope["request_id"] == "theirs"
    assert envelope["data"] is None
    assert envelope["error"]["error_code"] == "invalid_argument"
    [broken] = envelope["error"]["error_details"]["violations"]
    assert broken.keys() == {"at", "expected", "rule", "hint"}
    assert broken["at"] == f"/params/arguments{at}"
    assert broken["expected"].startswith(expected)
    assert broken["rule"] == "contract/input"
    assert broken["hint"]
    assert SENT.encode() not in frame
    judge = Conversation(revision=revision)
    assert found(judge.hear(Party.CLIENT, frame_of(message))) == []
    assert judge.hear(Party.SERVER, frame).violations == ()
    # The id has been answered.
    assert answer(server, call(1, "list_schemas", {}, revision))["result"]["isError"] is False


@rows(("tool", "arguments", "at", "expected"), BROKEN)
@rows("revision", [each for each in REVISIONS if each < "2025-11-25"])
def test_before_2025_11_25_arguments_that_break_the_contract_are_invalid_params(
    methods: Methods, tool: str, arguments: Any, at: str, expected: str, revision: str
) -> None:
    error = answer(opened(methods, revision), call(1, tool, arguments))["error"]
    assert error["code"] == -32602
    [broken] = error["data"]["violations"]
    assert broken["at"] == f"/params/arguments{at}"
    assert broken["expected"].startswith(expected)


@rows("revision", ["2025-06-18", "2025-11-25", LATEST])
def test_a_tool_above_the_callers_tier_is_refused_with_a_hint(revision: str) -> None:
    methods = bundled_methods(tiers=Tiers({"populate_backend": "pro"}))
    message = call(1, "populate_backend", {"asset": {}}, revision)
    result = answer(opened(methods, revision), message)["result"]
    assert result["isError"] is True
    envelope = result["structuredContent"]
    assert envelope["error"]["error_code"] == "upgrade_required"
    assert [(each["feature"], each["tier"]) for each in envelope["upgrade_hints"]] == [("populate_backend", "pro")]
    assert envelope["data"] is None
    for tier in ("pro", "enterprise"):
        allowed = answer(opened(methods, revision, tier=tier), message)["result"]["structuredContent"]
        assert (allowed["tier"], allowed["data"]["detail"]) == (tier, "SYN_BACKEND_URL is not set")
    assert answer(opened(methods, revision), call(1, "list_schemas", {}, revision))["result"]["isError"] is False


def test_on_the_bare_door_a_tool_above_the_tier_is_unsupported() -> None:
    """specs/001 has no other word for it."""
    methods = bundled_methods(tiers=Tiers({"populate_backend": "pro"}))
    message = request(1, "populate_backend", {"asset": {}})
    refused = {"ok": False, "reason": "unsupported", "detail": "populate_backend needs the pro tier"}
    assert answer(AssetServer(methods), message)["result"] == refused
    for tier in ("pro", "enterprise"):
        detail = answer(AssetServer(methods, tier=tier), message)["result"]["detail"]
        assert detail == "SYN_BACKEND_URL is not set"


@rows("name", REQUEST_IDS)
@rows("arguments", [{"name": "tone"}, {"name": "nope"}, {}])
@rows("revision", ["2025-11-25", LATEST])
def test_a_request_id_in_meta_is_kept(methods: Methods, name: str, arguments: Any, revision: str) -> None:
    """specs/004: caller-provided or server-generated. In good answers, failures and refusals alike."""
    theirs = 'a-1 "é" \\'
    found = answer(opened(methods, revision), call(1, "get_schema", arguments, revision, **{name: theirs}))
    assert found["result"]["structuredContent"]["request_id"] == theirs
    assert json.loads(found["result"]["content"][0]["text"])["request_id"] == theirs


@rows(
    "ident",
    ["", "a\nb", "\x00", "\x1b[2J", "a\u202eb", "\u2028", "x" * 201, 5, None, True, ["a"], {"a": "b"}],
    ids=ascii,
)
@rows("arguments", [{"name": "tone"}, {}])
def test_a_request_id_that_cannot_stand_in_a_log_is_ignored(methods: Methods, ident: Any, arguments: Any) -> None:
    """Ours: a line of a log must not be forged. Another id beside it counts; else there is one of the server's."""
    server = opened(methods, "2025-11-25")
    found = answer(server, call(1, "get_schema", arguments, request_id=ident))
    made = found["result"]["structuredContent"]["request_id"]
    assert len(made) == 32
    assert made.isalnum()
    found = answer(server, call(1, "get_schema", arguments, request_id=ident, correlationId="next"))
    assert found["result"]["structuredContent"]["request_id"] == "next"


# ── long answers ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Methods:
    """A catalogue with one schema of 1.2 MB."""
    directory = tmp_path_factory.mktemp("long")
    written(directory, {"jsonschema/long.schema.json": {"description": "x" * 1_200_000}})
    return Methods(Catalogue.read(variables(directory), directory))


@every_revision
@rows(
    ("method", "params"),
    [
        pytest.param("resources/read", {"uri": "resource://schemas/long"}, id="resource"),
        pytest.param("tools/call", {"name": "get_schema", "arguments": {"name": "long"}}, id="schema"),
        pytest.param(
            "tools/call", {"name": "diff_assets", "arguments": {"base": "", "new": "x" * 600_000}}, id="patch"
        ),
    ],
)
def test_an_answer_may_be_longer_than_a_request(long: Methods, method: str, params: Any, revision: str) -> None:
    """specs/001 §3 limits requests; and the id is free again afterwards."""
    server = opened(long, revision)
    for _ in range(2):
        [frame] = server.respond(frame_of(request(1, method, params, revision)))
        result = json.loads(frame)["result"]
        assert b"x" * 600_000 in frame
        assert len(frame) > MEBIBYTE or (method == "tools/call" and revision < "2025-06-18")
        assert result.get("isError", False) is False


# ── long numbers ─────────────────────────────────────────────────────────────────────────────────────────────────────

NUMBERS = [2**63, 2**64 - 1, 2**64, 2**70 + 1, -(2**63) - 1, -(2**70) - 1, 10**300 + 1]


@pytest.fixture(scope="module")
def exact(tmp_path_factory: pytest.TempPathFactory) -> Methods:
    """A catalogue whose files have integers beyond 64 bits."""
    directory = tmp_path_factory.mktemp("exact")
    written(directory, {"jsonschema/n.schema.json": {"enum": NUMBERS}, "examples/n.json": {"numbers": NUMBERS}})
    return Methods(Catalogue.read(variables(directory), directory))


@rows("number", NUMBERS)
def test_a_patch_has_integers_to_the_last_digit(exact: Methods, number: int) -> None:
    """As doubles, each of these would be the same as its neighbour."""
    arguments = {"base": {"a": number, "b": 1}, "new": {"a": number + 1, "b": [number]}}
    patch = [
        {"op": "replace", "path": "/a", "value": number + 1},
        {"op": "replace", "path": "/b", "value": [number]},
    ]
    assert answer(AssetServer(exact), request(1, "diff_assets", arguments))["result"]["patch"] == patch
    for revision in REVISIONS:
        result = answer(opened(exact, revision), call(1, "diff_assets", arguments, revision))["result"]
        assert json.loads(result["content"][0]["text"])["data"]["patch"] == patch
        if revision >= "2025-06-18":
            assert result["structuredContent"]["data"]["patch"] == patch


@rows(
    ("tool", "arguments", "uri", "member", "value"),
    [
        ("get_schema", {"name": "n"}, "resource://schemas/n", "schema", {"enum": NUMBERS}),
        ("get_example", {"path": "n.json"}, "resource://examples/n.json", "example", {"numbers": NUMBERS}),
    ],
)
def test_files_are_served_with_integers_to_the_last_digit(
    exact: Methods, tool: str, arguments: Any, uri: str, member: str, value: Any
) -> None:
    assert answer(AssetServer(exact), request(1, tool, arguments))["result"][member] == value
    for revision in REVISIONS:
        server = opened(exact, revision)
        result = answer(server, call(1, tool, arguments, revision))["result"]
        assert json.loads(result["content"][0]["text"])["data"][member] == value
        [contents] = answer(server, request(2, "resources/read", {"uri": uri}, revision))["result"]["contents"]
        assert json.loads(contents["text"]) == value


@pytest.mark.parametrize(
    ("frame", "code"),
    [(b"{", -32700), (b"x" * (MEBIBYTE + 1), -32600), (frame_of(request(1, "list_schemas")), None)],
    ids=["garbage", "too-large", "bare"],
)
@pytest.mark.parametrize("revision", ["2025-11-25", LATEST])
def test_the_bare_door_is_closed_as_soon_as_the_opening_is_answered(
    server: AssetServer, frame: bytes, code: int | None, revision: str
) -> None:
    first = opening(revision)[0] if handshake(revision) else request(0, "server/discover", {}, revision)
    assert "result" in answer(server, first)
    found = answer(server, frame)
    assert "error" in found
    if code is not None:
        assert found["error"]["code"] == code
        assert "id" not in found


@rows("revision", ["2025-11-25", LATEST])
def test_the_name_of_an_unknown_argument_is_not_repeated_either(methods: Methods, revision: str) -> None:
    arguments = {"name": "tone", "import os; os.system('true')": 1}
    [frame] = opened(methods, revision).respond(frame_of(call(1, "get_schema", arguments, revision)))
    assert b"invalid_argument" in frame
    assert b"os.system" not in frame

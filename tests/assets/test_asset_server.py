"""The asset server's two doors: a frame in, frames out."""

import json
from typing import Any

import pytest

from assay.assets.asset_server import AssetServer
from assay.assets.asset_sources import Catalogue
from assay.assets.enveloper import REQUEST_IDS
from assay.assets.mcp_methods import Methods
from assay.assets.response_envelope import ResponseEnvelope, Tiers
from assay.judge.conversation import Facts
from assay.model.limits import Limits
from assay.spec.revisions import LATEST, REVISIONS, handshake
from kit.asset_requests import answer, bundled_methods, opened, opening, said
from kit.catalogues import variables, written
from kit.http_client import call, frame_of, meta, notification, request
from kit.rows import rows

TOO_LARGE = {"ok": False, "reason": "validation_failed", "errors": [{"path": "", "msg": "payload_too_large"}]}
MEBIBYTE = 1 << 20
CANCELLED = notification("notifications/cancelled", {"requestId": "none"})

every_revision = rows("revision", REVISIONS)


@pytest.fixture(scope="module")
def methods() -> Methods:
    return bundled_methods()


# ── the bare door (specs/001) ────────────────────────────────────────────────────────────────────────────────────────


@rows("ident", [b"1", b'"a"', b"1.5", b"1e2", b"-0", b"1180591620717411303424"])
def test_a_bare_method_is_answered_with_its_bare_result_and_its_id(methods: Methods, ident: bytes) -> None:
    [answer] = AssetServer(methods).respond(
        b'{"jsonrpc":"2.0","id":' + ident + b',"method":"list_schemas","params":{}}'
    )
    assert answer.startswith(b'{"jsonrpc":"2.0","id":' + ident + b',"result":{"ok":true,"schemas":[')
    assert b"\n" not in answer


UNSUPPORTED = {"ok": False, "reason": "unsupported", "detail": "tool not implemented"}


@rows(
    ("frame", "answer"),
    [
        (b'{"jsonrpc":"2.0","id":1,"method":"render","params":{}}', {"id": 1, "result": UNSUPPORTED}),
        (b"x" * 300, {"id": None, "result": TOO_LARGE}),
        (b"{", {"id": None, "error": -32700}),
        (b'[{"jsonrpc":"2.0","id":1,"method":"list_schemas"}]', {"id": None, "error": -32600}),
        (b'{"id":1,"method":"list_schemas"}', {"id": 1, "error": -32600}),
        (b'{"jsonrpc":"2.0","id":true,"method":"list_schemas"}', {"id": None, "error": -32600}),
        (b'{"jsonrpc":"2.0","id":1,"method":"get_schema"}', {"id": 1, "error": -32602}),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}', {"id": 1, "error": -32600}),
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
    for silent in (b"", b"  \r", b'{"jsonrpc":"2.0","method":"list_schemas"}'):
        assert list(server.respond(silent)) == []
    assert said(server, request(2, "list_schemas"))[0]["result"]["ok"]


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
    # Over HTTP every request has an answer.
    assert [len(server.hear(b"}", Facts("http")).said) for _ in range(3)] == [1, 1, 1]


# ── opening an MCP conversation ──────────────────────────────────────────────────────────────────────────────────────


@rows(
    ("method", "revision", "code"),
    [
        ("render", LATEST, -32601),
        ("list_schemas", LATEST, -32601),
        *((method, "2030-01-01", -32022) for method in ("tools/list", "render", "list_schemas", "server/discover")),
        *(("server/discover", each, -32022) for each in REVISIONS if handshake(each)),
    ],
)
def test_a_first_request_that_names_a_revision_is_mcps(methods: Methods, method: str, revision: str, code: int) -> None:
    """2026-07-28, basic/versioning: -32022 says which revisions there are. A refused client can still fall back."""
    server = AssetServer(methods)
    error = answer(server, request(1, method, {"_meta": meta(revision)}))["error"]
    assert error["code"] == code
    if code == -32022:
        assert (error["data"]["supported"], error["data"]["requested"]) == (list(REVISIONS), revision)
    # A revision without a handshake that is known gets the newest that has one.
    asked, _ = opening("2025-11-25")
    asked["params"]["protocolVersion"] = revision
    agreed = revision if revision in REVISIONS and handshake(revision) else "2025-11-25"
    assert answer(server, asked)["result"]["protocolVersion"] == agreed


# ── batches (2025-03-26) ─────────────────────────────────────────────────────────────────────────────────────────────


def test_a_batch_is_answered_by_one_array(methods: Methods) -> None:
    """JSON-RPC, "Batch": results and errors together, in any order, nothing for notifications."""
    server = opened(methods, "2025-03-26")
    batch = [
        request(1, "tools/list"),
        CANCELLED,
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


def test_a_batch_may_be_refused_whole_get_nothing_or_not_be_known(methods: Methods) -> None:
    server = opened(methods, "2025-03-26")
    [found] = said(server, b"[]")
    assert found["error"]["code"] == -32600
    assert said(server, [CANCELLED, CANCELLED]) == []
    for revision in REVISIONS:
        if revision != "2025-03-26":
            server = opened(methods, revision)
            said(server, request(1, "tools/list", revision=revision))
            [found] = said(server, [request(2, "tools/list", revision=revision)])
            assert found["error"]["code"] == -32600


# ── calls ────────────────────────────────────────────────────────────────────────────────────────────────────────────


SENT = "hunter2-hunter2"
BROKEN: list[tuple[str, Any, str, str]] = [
    ("get_schema", {"name": {"text": SENT}}, "/name", "a string"),
    ("get_schema", {}, "", "the property `name`"),
    ("list_examples", {"component": None}, "/component", "a string"),
    ("validate_asset", {"asset": SENT, "schema": [SENT]}, "/schema", "a string"),
    ("populate_backend", {"asset": {SENT: SENT}, "validate_first": SENT}, "/validate_first", "a boolean"),
]


@every_revision
@rows(("tool", "arguments", "at", "expected"), BROKEN)
def test_arguments_that_break_the_contract_are_a_failure_that_repeats_nothing_of_them(
    methods: Methods, tool: str, arguments: Any, at: str, expected: str, revision: str
) -> None:
    """2025-11-25, server/tools: a result, so that a model can mend it; specs/004: nothing of what was sent in."""
    server = opened(methods, revision)
    [frame] = server.respond(frame_of(call(1, tool, arguments, revision, request_id="theirs")))
    found = json.loads(frame)
    if revision < "2025-11-25":
        assert found["error"]["code"] == -32602
        [broken] = found["error"]["data"]["violations"]
    else:
        assert found["result"]["isError"] is True
        envelope = ResponseEnvelope.from_dict(found["result"]["structuredContent"])
        assert (envelope.tool_id, envelope.request_id, envelope.data) == (tool, "theirs", None)
        assert envelope.error is not None
        assert envelope.error.error_code == "invalid_argument"
        [broken] = (envelope.error.error_details or {})["violations"]
        assert (broken.keys(), broken["rule"]) == ({"at", "expected", "rule", "hint"}, "contract/input")
        assert broken["hint"]
        unknown = server.respond(frame_of(call(2, tool, {**arguments, SENT: 1}, revision)))[0]
        assert (b"invalid_argument" in unknown, SENT.encode() in frame + unknown) == (True, False)
    assert broken["at"] == f"/params/arguments{at}"
    assert broken["expected"].startswith(expected)
    # The id has been answered.
    assert "result" in answer(server, call(1, "list_schemas", {}, revision))


@rows("revision", ["2025-06-18", "2025-11-25", LATEST])
def test_a_tool_above_the_callers_tier_is_refused_with_a_hint(revision: str) -> None:
    methods = bundled_methods(tiers=Tiers({"populate_backend": "pro"}))
    message = call(1, "populate_backend", {"asset": {}}, revision)
    result = answer(opened(methods, revision), message)["result"]
    envelope = result["structuredContent"]
    assert (result["isError"], envelope["data"]) == (True, None)
    assert envelope["error"]["error_code"] == "upgrade_required"
    assert [(each["feature"], each["tier"]) for each in envelope["upgrade_hints"]] == [("populate_backend", "pro")]
    # On the bare door specs/001 has no other word for it.
    bare = request(1, "populate_backend", {"asset": {}})
    refused = {"ok": False, "reason": "unsupported", "detail": "populate_backend needs the pro tier"}
    assert answer(AssetServer(methods), bare)["result"] == refused
    for tier in ("pro", "enterprise"):
        allowed = answer(opened(methods, revision, tier=tier), message)["result"]["structuredContent"]
        assert (allowed["tier"], allowed["data"]["detail"]) == (tier, "SYN_BACKEND_URL is not set")
        assert answer(AssetServer(methods, tier=tier), bare)["result"]["detail"] == "SYN_BACKEND_URL is not set"
    assert answer(opened(methods, revision), call(1, "list_schemas", {}, revision))["result"]["isError"] is False


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


# ── long answers and long numbers ────────────────────────────────────────────────────────────────────────────────────

NUMBERS = [2**63, 2**64 - 1, 2**64, 2**70 + 1, -(2**63) - 1, -(2**70) - 1, 10**300 + 1]
"""As doubles, each of these would be the same as its neighbour."""


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Methods:
    """A catalogue with a schema of 1.2 MB, and with integers beyond 64 bits."""
    files = {
        "jsonschema/long.schema.json": {"description": "x" * 1_200_000},
        "jsonschema/n.schema.json": {"enum": NUMBERS},
        "examples/n.json": {"numbers": NUMBERS},
    }
    directory = written(tmp_path_factory.mktemp("long"), files)
    return Methods(Catalogue.read(variables(directory), directory))


@every_revision
def test_an_answer_may_be_longer_than_a_request(long: Methods, revision: str) -> None:
    """specs/001 §3 limits requests; and the id is free again afterwards."""
    server = opened(long, revision)
    for _ in range(2):
        for message in (
            request(1, "resources/read", {"uri": "resource://schemas/long"}, revision),
            call(1, "get_schema", {"name": "long"}, revision),
            call(1, "diff_assets", {"base": "", "new": "x" * 600_000}, revision),
        ):
            [frame] = server.respond(frame_of(message))
            assert b"x" * 600_000 in frame
            assert len(frame) > MEBIBYTE or (message["method"] == "tools/call" and revision < "2025-06-18")
            assert json.loads(frame)["result"].get("isError", False) is False


@rows(
    ("tool", "arguments", "member", "value"),
    [
        ("get_schema", {"name": "n"}, "schema", {"enum": NUMBERS}),
        ("get_example", {"path": "n.json"}, "example", {"numbers": NUMBERS}),
        *(
            (
                "diff_assets",
                {"base": number, "new": [number + 1]},
                "patch",
                [{"op": "replace", "path": "", "value": [number + 1]}],
            )
            for number in NUMBERS
        ),
    ],
)
def test_integers_are_kept_to_the_last_digit(long: Methods, tool: str, arguments: Any, member: str, value: Any) -> None:
    assert answer(AssetServer(long), request(1, tool, arguments))["result"][member] == value
    for revision in REVISIONS:
        server = opened(long, revision)
        result = answer(server, call(1, tool, arguments, revision))["result"]
        assert json.loads(result["content"][0]["text"])["data"][member] == value
        if revision >= "2025-06-18":
            assert result["structuredContent"]["data"][member] == value
        if member != "patch":
            uri = f"resource://{member}s/{arguments.get('name') or arguments.get('path')}"
            [contents] = answer(server, request(2, "resources/read", {"uri": uri}, revision))["result"]["contents"]
            assert json.loads(contents["text"]) == value


@rows("revision", ["2025-11-25", LATEST])
def test_the_bare_door_is_closed_as_soon_as_the_opening_is_answered(methods: Methods, revision: str) -> None:
    server = AssetServer(methods)
    first = opening(revision)[0] if handshake(revision) else request(0, "server/discover", {}, revision)
    assert "result" in answer(server, first)
    for frame, code in ((b"{", -32700), (b"x" * (MEBIBYTE + 1), -32600)):
        found = answer(server, frame)
        assert (found["error"]["code"], "id" in found) == (code, False)
    assert "error" in answer(server, request(1, "list_schemas"))

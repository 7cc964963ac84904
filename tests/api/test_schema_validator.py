"""specs/003, the schema validator: which definition a message has to meet, and where the definitions come from."""

import logging
import os
import pickle
from collections.abc import Callable
from http.client import HTTPConnection
from io import BytesIO
from pathlib import Path
from typing import Any

import orjson
import pytest

from assay.api.exceptions import ValidationError
from assay.api.schema_validator import SchemaValidator
from assay.spec.methods import methods
from assay.spec.revisions import REVISIONS
from assay.spec.schema import protocol_schema
from kit.rows import rows

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}},
}
CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "t", "arguments": {}}}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
RESULT = {"jsonrpc": "2.0", "id": 1, "result": {}}
ERROR = {"jsonrpc": "2.0", "id": 1, "error": {"code": -1, "message": "no"}}


def without(message: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in message.items() if key != name}


@rows(
    ("message_type", "message"),
    [
        ("initialize", INITIALIZE),
        ("tools/call", CALL),
        ("request", CALL),
        ("request", {"jsonrpc": "2.0", "id": 1, "method": "acme/search"}),
        ("notification", INITIALIZED),
        ("response", RESULT),
        ("CallToolResult", {"content": []}),
        ("Tool", {"name": "t", "inputSchema": {"type": "object"}}),
    ],
)
def test_a_message_that_is_right_passes(message_type: str, message: Any) -> None:
    validator = SchemaValidator()
    validator.initialize()
    validator.validate(message_type, orjson.dumps(message))
    assert validator.knows(message_type)


@rows(
    ("message_type", "message", "found"),
    [
        ("tools/call", CALL | {"params": {}}, [("protocol/params", "/params")]),
        (
            "tools/call",
            CALL | {"params": {"name": 1, "arguments": []}},
            [("protocol/params", "/params/name"), ("protocol/params", "/params/arguments")],
        ),
        ("tools/call", without(CALL, "id"), [("envelope/id", "")]),
        (
            "tools/call",
            {"jsonrpc": "1.0", "id": 1, "method": "tools/call", "params": {"name": 1}},
            [("envelope/jsonrpc", "/jsonrpc"), ("protocol/params", "/params/name")],
        ),
        ("tools/call", CALL | {"method": "ping"}, [("protocol/method", "/method")]),
        ("tools/call", [CALL], [("envelope/message", "")]),
        ("notifications/initialized", INITIALIZED | {"id": 1}, [("envelope/id", "/id")]),
        ("request", INITIALIZED, [("envelope/id", "")]),
        ("response", RESULT | ERROR, [("envelope/members", "/error")]),
        ("error", ERROR | {"error": {"code": "x"}}, [("envelope/error", "/error"), ("envelope/error", "/error/code")]),
        ("CallToolResult", {}, [("protocol/result", "")]),
        ("CallToolRequest", {}, [("protocol/params", "")] * 4),
    ],
)
def test_what_is_wrong_is_named_with_rule_and_place(message_type: str, message: Any, found: Any) -> None:
    """Source: specs/003; the envelope and the schema are judged by the rungs that judge them everywhere."""
    with pytest.raises(ValidationError) as raised:
        SchemaValidator().validate(message_type, orjson.dumps(message))
    assert sorted((each.rule, each.at) for each in raised.value.violations) == sorted(found)
    assert all(each.schema_at for each in raised.value.violations if each.rule.startswith("protocol/"))


@rows(
    ("data", "rule"),
    [
        (b"{", "syntax/json"),
        (b'"' + b"x" * (16 << 20) + b'"', "framing/size"),
    ],
)
def test_what_cannot_be_read_is_refused_by_the_rungs_below(data: bytes, rule: str) -> None:
    with pytest.raises(ValidationError, match=rule) as raised:
        SchemaValidator().validate("tools/call", data)
    assert [each.rule for each in raised.value.violations] == [rule]


def test_of_very_many_faults_twenty_are_listed_and_the_rest_is_counted() -> None:
    with pytest.raises(ValidationError, match=r"and at least \d+ more") as raised:
        SchemaValidator().validate("CallToolResult", orjson.dumps({"content": [{}] * 1000}))
    assert len(raised.value.violations) == 20
    assert raised.value.more > 0


@rows(
    ("message_type", "hint"),
    [
        ("tools/cal", "did you mean tools/call"),
        ("nothing like it", "unknown message type"),
        ("x" * 100_000, "unknown message type"),
    ],
)
def test_an_unknown_type_is_a_key_error_that_suggests_the_right_one(message_type: str, hint: str) -> None:
    validator = SchemaValidator()
    with pytest.raises(KeyError, match=hint) as raised:
        validator.validate(message_type, b"not even JSON")
    assert len(str(raised.value)) < 400
    assert not validator.knows(message_type)


@rows("revision", ["2025-11-26", "", None])
def test_an_unknown_revision_is_a_value_error_that_names_the_known_ones(revision: Any) -> None:
    with pytest.raises(ValueError, match=r"2024-11-05, .*2026-07-28"):
        SchemaValidator(revision=revision)


@rows("revision", REVISIONS[:3])
def test_before_2025_11_25_the_head_and_the_meta_are_judged_too(revision: str) -> None:
    """Source: there, a method's own definition leaves them out; JSONRPCRequest has them."""
    validator = SchemaValidator(revision=revision)
    validator.validate("tools/call", orjson.dumps(CALL))
    wrong = CALL | {"params": {"name": "t", "_meta": 3}}
    with pytest.raises(ValidationError) as raised:
        validator.validate("tools/call", orjson.dumps(wrong))
    assert [(each.rule, each.at) for each in raised.value.violations] == [("protocol/params", "/params/_meta")]


def test_errata_can_be_switched_off() -> None:
    """Source: design; the official file of 2025-11-25 refuses fractions in ElicitResult.content."""
    fraction = orjson.dumps({"action": "accept", "content": {"score": 0.5}})
    SchemaValidator().validate("ElicitResult", fraction)
    with pytest.raises(ValidationError):
        SchemaValidator(errata=False).validate("ElicitResult", fraction)


def test_an_error_can_be_sent_between_processes() -> None:
    with pytest.raises(ValidationError) as raised:
        SchemaValidator().validate("CallToolResult", b"{}")
    again = pickle.loads(pickle.dumps(raised.value))  # noqa: S301 - our own
    assert (again.violations, again.more, str(again)) == (raised.value.violations, 0, str(raised.value))


# ── an operator's own schema ─────────────────────────────────────────────────────────────────────────────────────────

# Like the protocol's, with one method of its own and one change: every tool call needs a ticket.
OWN: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$defs": {
        "CallToolRequest": {
            "type": "object",
            "properties": {"method": {"const": "tools/call"}, "params": {"$ref": "#/$defs/Params"}},
            "required": ["method", "params"],
        },
        "Params": {"type": "object", "required": ["ticket"]},
        "SearchRequest": {"type": "object", "properties": {"method": {"const": "acme/search"}}},
        "odd ~/% name": {"type": "integer"},
        "anything": True,
    },
}
# The same in the older spelling, with the keywords at the top that official files of that time do not have.
OLD = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "$ref": "#/definitions/anything",
    "definitions": orjson.loads(orjson.dumps(OWN["$defs"]).replace(b"#/$defs", b"#/definitions")),
}


def holds(validator: SchemaValidator) -> bool:
    """Whether OWN is what *validator* judges by."""
    validator.validate("odd ~/% name", b"5")
    validator.validate("acme/search", b'{"jsonrpc":"2.0","id":1,"method":"acme/search"}')
    validator.validate("tools/call", orjson.dumps(CALL | {"params": {"ticket": 1}}))
    # A schema without the generic definitions leaves them to the envelope's own rung.
    for generic, message in (("request", CALL), ("notification", INITIALIZED), ("response", RESULT), ("error", ERROR)):
        validator.validate(generic, orjson.dumps(message))
    with pytest.raises(ValidationError) as raised:
        validator.validate("tools/call", orjson.dumps(CALL))
    assert [(each.rule, each.at) for each in raised.value.violations] == [("protocol/params", "/params")]
    with pytest.raises(ValidationError):
        validator.validate("odd ~/% name", b'"5"')
    return validator.overridden and not validator.knows("Tool")


def bundled(validator: SchemaValidator) -> bool:
    """Whether the bundled schema is what *validator* judges by."""
    validator.validate("tools/call", orjson.dumps(CALL))
    return not validator.overridden and validator.knows("Tool")


class Wire:
    """A connection that has been made: what is asked for, and the bytes of an answer."""

    def __init__(self, answer: bytes, asked: list[str]) -> None:
        self._answer, self._asked = answer, asked

    def sendall(self, data: bytes) -> None:
        self._asked.append(data.decode().split()[1])

    def makefile(self, *_: Any) -> BytesIO:
        return BytesIO(self._answer)

    def close(self) -> None:
        pass


Serving = Callable[[bytes | None], list[str]]


@pytest.fixture
def serving(monkeypatch: pytest.MonkeyPatch) -> Serving:
    """Let a server give these bytes to each request, or refuse each connection; the paths that it was asked for."""
    for name in [each for each in os.environ if each.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)

    def serve(answer: bytes | None) -> list[str]:
        asked: list[str] = []

        def connect(connection: HTTPConnection) -> None:
            if answer is None:
                raise ConnectionRefusedError
            connection.sock = Wire(answer, asked)

        monkeypatch.setattr(HTTPConnection, "connect", connect)
        return asked

    return serve


def http(body: bytes, status: str = "200 OK", *headers: str) -> bytes:
    """An answer as it is sent."""
    lines = [f"HTTP/1.1 {status}", *headers, f"Content-Length: {len(body)}", "", ""]
    return "\r\n".join(lines).encode() + body


ADDRESS = "http://schemas.example/schema.json"


@rows("document", [OWN, OLD])
@rows("spelling", ["path", "text", "uri", "address", "uninitialized"])
def test_a_file_or_an_address_replaces_the_bundled_schema_and_is_read_once(
    tmp_path: Path, serving: Serving, document: Any, spelling: str
) -> None:
    file = tmp_path / "own schema.json"
    file.write_bytes(orjson.dumps(document))
    asked = serving(http(orjson.dumps(document)))
    uri: Any = {"text": str(file), "uri": file.as_uri(), "address": ADDRESS}.get(spelling, file)
    validator = SchemaValidator(schema_override_uri=uri)
    assert asked == []
    if spelling == "uninitialized":
        assert holds(validator)  # the first judgement loads it
        return
    validator.initialize()
    # What becomes of the file afterwards does not matter, and neither does asking again.
    file.unlink()
    validator.initialize()
    assert holds(validator)
    assert asked == ["/schema.json"] * (spelling == "address")


GENERIC: dict[str, Any] = {
    "$defs": {
        "JSONRPCRequest": {
            "type": "object",
            "properties": {"method": {"type": "string"}, "params": {"type": "object", "required": ["ticket"]}},
            "required": ["jsonrpc", "id", "method", "params"],
        },
        "JSONRPCNotification": {"type": "object", "properties": {"params": {"maxProperties": 1}}},
        "JSONRPCResponse": {"type": "object"},
    }
}


@pytest.fixture
def generic(tmp_path: Path) -> SchemaValidator:
    """A validator by a schema that names no method."""
    file = tmp_path / "generic.json"
    file.write_bytes(orjson.dumps(GENERIC))
    return SchemaValidator(schema_override_uri=file)


@rows("method", ["tools/call", "initialize", "acme/search", "list_schemas", "request "])
def test_a_schema_of_generic_messages_judges_every_method_by_them(generic: SchemaValidator, method: str) -> None:
    asked = CALL | {"method": method}
    generic.validate(method, orjson.dumps(asked | {"params": {"ticket": 1}}))
    assert generic.knows(method)
    for broken, rule, at in (
        (asked, "protocol/params", "/params"),
        (without(asked, "params"), "protocol/params", ""),
        (asked | {"method": "ping", "params": {"ticket": 1}}, "protocol/method", "/method"),
        (without(asked | {"params": {"ticket": 1}}, "id"), "envelope/id", ""),
    ):
        with pytest.raises(ValidationError) as raised:
            generic.validate(method, orjson.dumps(broken))
        assert (rule, at) in [(each.rule, each.at) for each in raised.value.violations]
    said = INITIALIZED | {"method": f"notifications/{method}"}
    generic.validate(said["method"], orjson.dumps(said))
    for more, wrong in (({"params": {"a": 1, "b": 2}}, "protocol/params"), ({"id": 1}, "envelope/id")):
        with pytest.raises(ValidationError, match=wrong):
            generic.validate(said["method"], orjson.dumps(said | more))


def test_a_schema_with_one_definition_for_all_messages_judges_by_it(tmp_path: Path) -> None:
    file = tmp_path / "one.json"
    file.write_bytes(orjson.dumps({"$defs": {"JSONRPCMessage": {"maxProperties": 4}}}))
    validator = SchemaValidator(schema_override_uri=file)
    for message_type, message in (("tools/call", CALL), ("response", RESULT), ("error", ERROR)):
        validator.validate(message_type, orjson.dumps(message))
        with pytest.raises(ValidationError):
            validator.validate(message_type, orjson.dumps(message | {"more": 1, "most": 2}))


def test_a_message_may_be_text_or_bytes_and_nothing_else() -> None:
    validator = SchemaValidator()
    for data in (orjson.dumps(CALL), orjson.dumps(CALL).decode(), bytearray(orjson.dumps(CALL))):
        validator.validate("tools/call", data)
    with pytest.raises(ValidationError, match="syntax/utf8"):
        validator.validate("tools/call", '"\ud800"')
    wrong: Any = CALL
    with pytest.raises(TypeError, match=r"str or bytes .*not dict"):
        validator.validate("tools/call", wrong)


def test_a_validator_shows_its_revision_and_schema_without_secrets() -> None:
    assert repr(SchemaValidator()) == "SchemaValidator(revision='2025-11-25')"
    secret = SchemaValidator(errata=False, schema_override_uri="https://me:secret@host.example/a.json?token=1")
    assert repr(secret) == (
        "SchemaValidator(revision='2025-11-25', schema_override_uri='https://…@host.example/a.json', errata=False)"
    )


BROKEN = [
    (b"{", "one JSON value"),
    (b"\xff\xfe", "UTF-8"),
    (b'{"type":"object"}', "neither"),
    (b'{"$defs":[]}', "neither"),
    (b'{"$defs":{"A":{"type":"strnig"}}}', "expected"),
    (b'{"$defs":{"A":{"$ref":"#/$defs/B"}}}', "expected"),
    (b'{"$defs":{"A":{"$ref":"#/$defs/A"}}}', "schema-cycle"),
    (b'{"$schema":"https://example.com/mine","$defs":{"A":{}}}', "dialect"),
    (b'{"$defs":' + b'{"a":' * 200 + b"{}" + b"}" * 201, "levels"),
    (b'{"$defs":{"A":{}}}' + b" " * (16 << 20), "16,777,216 bytes"),
    # Never fetched.
    (b'{"$defs":{"A":{"$ref":"http://schemas.example/other.json"}}}', "contract/remote-ref"),
    # Whether a text matches cannot always be found out in bounded time; a message is judged wholly or not at all.
    (b'{"$defs":{"A":{"pattern":"(?=a)b"}}}', "contract/pattern"),
]


def falls_back(uri: str, caplog: pytest.LogCaptureFixture) -> str:
    """The one line in the log about an override that cannot be used; the bundled schema is in force."""
    caplog.clear()
    validator = SchemaValidator(schema_override_uri=uri)
    validator.initialize()
    validator.initialize()
    assert bundled(validator)
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("assay", logging.CRITICAL)
    assert "\n" not in record.getMessage()
    return record.getMessage()


@rows(("text", "reason"), BROKEN)
def test_a_file_that_is_no_schema_leaves_the_bundled_one_in_force(
    tmp_path: Path, serving: Serving, text: bytes, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Source: specs/003: it MUST fall back, and log a critical error."""
    asked = serving(http(b"true"))
    file = tmp_path / "own.json"
    file.write_bytes(text)
    line = falls_back(str(file), caplog)
    assert reason in line
    assert str(file) in line
    assert asked == []


@rows("uri", ["missing.json", "file:///nowhere/missing.json", "ftp://127.0.0.1/x.json", "", "\0"])
def test_a_file_that_is_not_there_leaves_the_bundled_schema_in_force(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uri: str, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    falls_back(uri, caplog)


@rows(
    ("answer", "reason"),
    [
        (http(b"gone", "404 Not Found"), "404"),
        (http(orjson.dumps(OWN), "500 Internal Server Error"), "500"),
        (http(b"<html>"), "one JSON value"),
        (http(b"", "302 Found", "Location: file:///etc/passwd"), "not allowed"),
        (b"", ""),
        (None, ""),
    ],
)
def test_an_address_that_gives_no_schema_leaves_the_bundled_one_in_force_and_the_log_has_no_secret(
    serving: Serving, answer: bytes | None, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    asked = serving(answer)
    line = falls_back("http://schemas.example:80/a?token=secret", caplog)
    assert reason in line
    assert "secret" not in line
    assert set(asked) <= {"/a?token=secret"}


def test_an_address_with_a_password_is_refused_and_the_log_does_not_have_it(caplog: pytest.LogCaptureFixture) -> None:
    line = falls_back("http://user:secret@schemas.example/a", caplog)
    assert "a user name or password is not supported" in line
    assert "secret" not in line


@rows("revision", REVISIONS)
def test_the_official_file_as_an_override_says_what_the_bundled_schema_says(
    shared: Path, revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Source: the official schema.json; up to 2025-06-18 it has `definitions`, afterwards `$defs`."""
    official = SchemaValidator(
        revision=revision, schema_override_uri=(shared / "mcp-schema" / revision / "schema.json").as_uri()
    )
    official.initialize()
    ours = SchemaValidator(revision=revision, errata=False)
    assert official.overridden
    assert caplog.records == []
    # Some of the definitions: tests/spec compares them all with the official ones.
    definitions = [*protocol_schema(revision).definitions][::5]
    for message_type in (*methods(revision), *definitions, "request", "response", "error"):
        for data in (b"{}", orjson.dumps(CALL)):
            assert verdict(official, message_type, data) == verdict(ours, message_type, data), (message_type, data)


def verdict(validator: SchemaValidator, message_type: str, data: bytes) -> set[tuple[str, str]]:
    try:
        validator.validate(message_type, data)
    except ValidationError as error:
        # A set: where the official file repeats itself with allOf, it says the same thing twice.
        return {(each.rule, each.at) for each in error.violations}
    return set()

"""Canonical errors (specs/000, Canonical Error Mapping), and the message of the one in place of an answer."""

import pytest

from assay.model.errors import CanonicalError, no_answer, reason_in, within
from assay.model.verdict import Party
from kit.rows import rows

# To the letter.
TABLE = [
    ("INVALID_ENVELOPE", 400, -32600, "Invalid MCP envelope"),
    ("INVALID_TOOL_INPUT", 422, -32602, "Invalid tool input"),
    ("TOOL_NOT_FOUND", 404, -32001, "Unknown tool"),
    ("INTERNAL_ERROR", 500, -32603, "Internal error"),
]


@rows(("code", "status", "number", "message"), TABLE)
def test_the_four_codes_of_the_specification_are_as_it_has_them(
    code: str, status: int, number: int, message: str
) -> None:
    assert CanonicalError.to_http_status(code) == status
    assert CanonicalError.to_jsonrpc_error(code) == {"code": number, "message": message}


def test_the_four_come_first_and_no_code_comes_twice() -> None:
    """Source: design: the message of a -32600 is `Invalid MCP envelope`, whichever code it is of."""
    codes = CanonicalError.codes()
    assert list(codes[:4]) == [row[0] for row in TABLE]
    assert len(set(codes)) == len(codes)
    errors = [CanonicalError.to_jsonrpc_error(code) for code in codes]
    assert {error["message"] for error in errors if error["code"] == -32600} == {"Invalid MCP envelope"}


@rows("code", ["", "invalid_envelope", "INVALID", "-32600", None, -32600])
def test_an_unknown_code_is_a_key_error(code: str) -> None:
    """Source: specs/000, MUST raise KeyError to prevent silent fallbacks."""
    with pytest.raises(KeyError):
        CanonicalError.to_http_status(code)
    with pytest.raises(KeyError):
        CanonicalError.to_jsonrpc_error(code)


def test_every_error_is_a_fresh_one() -> None:
    error = CanonicalError.to_jsonrpc_error("INTERNAL_ERROR")
    error["message"] = "changed"
    assert CanonicalError.to_jsonrpc_error("INTERNAL_ERROR") == {"code": -32603, "message": "Internal error"}


@rows("code", CanonicalError.codes())
def test_every_code_has_a_status_and_a_message_and_keeps_out_of_the_reserved_range(code: str) -> None:
    """
    Source: design: none in -32020…-32099 but those the specification defines; JSON-RPC 2.0, 5.1.

    -32001 is that of specs/000, -32002 that of revisions up to 2025-11-25. Drafts of extensions use others of the
    legacy range, so codes of our own keep out of it.
    """
    status = CanonicalError.to_http_status(code)
    error = CanonicalError.to_jsonrpc_error(code)
    assert type(status) is int
    # An unknown tool is an answer over HTTP, not a failed exchange.
    assert 400 <= status < 600 or code == "UNKNOWN_TOOL"
    assert set(error) == {"code", "message"}
    number = error["code"]
    assert isinstance(number, int)
    defined = {-32700, -32603, -32602, -32601, -32600, -32022, -32021, -32020, -32002, -32001}
    assert number in defined or not -32768 <= number <= -32000


@rows(
    ("code", "why", "message"),
    [
        ("UPSTREAM_FAILURE", "", "No answer came"),
        ("UPSTREAM_FAILURE", "it exited with status 1", "No answer came: the server exited with status 1"),
        ("UPSTREAM_FAILURE", "its session is gone", "No answer came: the server's session is gone"),
        ("UPSTREAM_FAILURE", "cannot start no: No such file", "No answer came: cannot start no: No such file"),
        ("UPSTREAM_FAILURE", "it answered 500 Oh", "No usable answer came: the server answered 500 Oh"),
        ("TIMEOUT", "", "No answer came in time"),
        ("TIMEOUT", within(600.0), "No answer came within 600 s"),
        ("TIMEOUT", within(0.5), "No answer came within 0.5 s"),
        ("INTERNAL_ERROR", "the guard failed (KeyError)", "Internal error"),
    ],
)
def test_message_names_the_cause(code: str, why: str, message: str) -> None:
    assert no_answer(code, why)["message"] == message


def test_message_names_the_party_that_owes_the_answer() -> None:
    made = no_answer("UPSTREAM_FAILURE", "it closed its input", owed_by=Party.CLIENT)
    assert made["message"] == "No answer came: the client closed its input"


def test_message_is_short_and_on_one_line() -> None:
    message = str(no_answer("UPSTREAM_FAILURE", "it exited with status 1", ["a\tb" + "x" * 1000])["message"])
    assert message.startswith("No answer came: the server exited with status 1: a bxx")
    assert len(message) < 400
    assert message.endswith("…")
    assert message.isprintable()


PYTHON = ["Traceback (most recent call last):", '  File "a.py", line 1', "    gone()", "RuntimeError: database is gone"]
NODE = ["throw new Error('gone')", "^", "", "Error: database is gone", "    at a.js:1:7", "", "Node.js v20.1.0"]
RUST = ["thread 'main' panicked at src/main.rs:2:5: database is gone", "note: run with `RUST_BACKTRACE=1`"]


@rows(
    ("lines", "reason"),
    [
        ([], ""),
        (PYTHON, "RuntimeError: database is gone"),
        (NODE, "Error: database is gone"),
        (RUST, "thread 'main' panicked at src/main.rs:2:5: database is gone"),
        (["   indented", ""], "indented"),
    ],
)
def test_reason_is_the_last_line_outside_of_a_stack(lines: list[str], reason: str) -> None:
    assert reason_in(lines) == reason

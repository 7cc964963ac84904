"""specs/000, Canonical Error Mapping."""

import pytest

from assay.base.errors import CanonicalError
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

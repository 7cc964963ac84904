"""Frames and lines, JSON values, and envelopes by each profile: one rule at a time."""

from typing import Any

import pytest

from assay.judge import syntax
from assay.judge.envelope import JSONRPC, MCP, STRICT, STRICT_UUID, Profile, check
from assay.judge.framing import Splitter, is_blank
from assay.model.verdict import Violation
from kit.rows import rows


def test_the_nesting_limit_can_be_set() -> None:
    assert isinstance(syntax.read(b"[[[]]]", 2), Violation)
    assert syntax.read(b"[[[]]]", 3) == [[[]]]
    with pytest.raises(ValueError, match="254"):
        syntax.read(b"[" * 300 + b"]" * 300, 255)


def test_a_fault_says_where_and_quotes_little() -> None:
    wrong = syntax.read(b'{"password":"hunter2",}')
    assert isinstance(wrong, Violation)
    assert "character 21" in wrong.found
    assert "hunter2" not in wrong.found
    banner = syntax.read(b"Server running on stdio, with a very long line to say about itself" * 2)
    assert isinstance(banner, Violation)
    assert "Server running" in banner.found
    assert len(banner.found) < 100
    assert "stderr" in banner.hint


PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
DONE = {"jsonrpc": "2.0", "id": 1, "result": {}}


@rows(
    ("profile", "value", "good"),
    [
        (JSONRPC, {**PING, "id": None}, True),
        (JSONRPC, {**PING, "id": 1.5}, True),
        (JSONRPC, {**PING, "id": True}, False),
        (JSONRPC, {**PING, "params": [1]}, True),
        (JSONRPC, {**DONE, "result": "done"}, True),
        (MCP, {**PING, "id": None}, False),
        (MCP, PING, True),
        (STRICT, PING, False),
        (STRICT, {**PING, "id": "1"}, False),
        (STRICT, {**PING, "id": "1", "params": {}}, True),
        (STRICT_UUID, {**PING, "id": "1", "params": {}}, False),
        (STRICT_UUID, {**PING, "id": "8b3e5f6c-0a2f-4ed4-a3fb-9e0b2f8f8d3a", "params": {}}, True),
    ],
)
def test_the_profile_decides_what_an_envelope_may_hold(profile: Profile, value: Any, good: bool) -> None:
    assert (list(check(value, profile)) == []) is good


@rows(("frame", "blank"), [(b"", True), (b" \t\r\n", True), (b"\x0b", False), (b"0", False)])
def test_only_white_space_of_json_is_blank(frame: bytes, blank: bool) -> None:
    assert is_blank(frame) is blank


def test_of_very_many_lines_blank_ones_are_left_out_unless_everything_passes() -> None:
    """Each would be judged only to be skipped."""
    chunk = b"\n \r\n" * 5_000 + b"{}\n" + b"\n" * 5_000
    assert list(Splitter().feed(chunk)) == [b"{}"]
    assert len(list(Splitter(passing=True).feed(chunk))) == 15_001

"""The text of an exception: it silences what was asked for, whatever a peer has called its tool."""

import tomllib
from datetime import date

import pytest

from assay.console.console_posts import exception_text
from kit.rows import rows

TODAY = date(2026, 11, 17)

NAMES = ["look", " ", " look", "*", "look.*", 'a" # b', "a\\", "'''", "[[guard]]", "x = 1", "a\u202eb", "\u00a0"]


@rows("tool", NAMES)
def test_an_exception_is_for_the_named_tool_alone(tool: str) -> None:
    text, _ = exception_text({"rule": "contract/input", "tool": tool}, TODAY)
    [made] = tomllib.loads(text)["guard"]["exceptions"]
    assert (made["rule"], made["tool"], sorted(made)) == ("contract/input", tool, ["reason", "rule", "tool", "until"])


@rows("hidden", ["\u202e", "\u2066", "\u200b", "\u2028", "\x9b", "\ufeff", "\u00a0"])
def test_what_cannot_be_seen_is_escaped(hidden: str) -> None:
    text, _ = exception_text({"rule": "contract/input", "tool": f"a{hidden}b", "reason": f"c{hidden}d"}, TODAY)
    assert hidden not in text
    assert text.count(f"\\U{ord(hidden):08X}") == 2


@rows("tool", ["a\nb", "a\tb", "a\x7fb", "x" * 501, 5, ["look"]])
def test_other_names_get_no_exception(tool: object) -> None:
    with pytest.raises(ValueError, match=r"^tool: expected at most 500 characters"):
        exception_text({"rule": "contract/input", "tool": tool}, TODAY)

"""A frame into a JSON value, or the one rule it breaks."""

import pytest

from assay.base.verdict import Violation
from assay.ladder import syntax
from kit.rows import rows


def long(text: bytes) -> bytes:
    """The same break in a frame that is mostly text, which another parser reads first."""
    return b'{"text":"' + b"lorem ipsum " * 500 + b'","rest":' + text + b"}"


REFUSED = [
    pytest.param(b"\xef\xbb\xbf{}", "syntax/bom", id="byte-order-mark"),
    pytest.param(b'"\xff"', "syntax/utf8", id="not-utf8"),
    pytest.param(b'"\xc0\x80"', "syntax/utf8", id="overlong"),
    pytest.param(b'"\xed\xa0\x80"', "syntax/utf8", id="surrogate-in-utf8"),
    pytest.param(rb'"\ud800\ud800"', "syntax/surrogate", id="two-high-surrogates"),
    pytest.param(b'{"a":1,"a":2}', "syntax/duplicate-key", id="repeated-key"),
    pytest.param(b'{"a":1,"\\u0061":2}', "syntax/duplicate-key", id="repeated-key-spelt-with-an-escape"),
    pytest.param(b'{"a:":1,"a\\u003a":2}', "syntax/duplicate-key", id="a-colon-hidden-in-an-escape"),
]


@rows(("frame", "rule"), REFUSED)
def test_what_has_no_single_reading_is_refused_in_a_long_frame_too(frame: bytes, rule: str) -> None:
    """hostile-input.md, frames and JSON."""
    whole = not frame.startswith(b"\xef") and not frame.endswith(b"}}")
    for each in (frame, long(frame)) if whole else (frame,):
        wrong = syntax.read(each)
        assert isinstance(wrong, Violation)
        assert wrong.rule == rule


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

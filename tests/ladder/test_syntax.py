"""A frame into a JSON value, or the one rule it breaks."""

import pytest

from assay.base.verdict import Violation
from assay.ladder import syntax


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

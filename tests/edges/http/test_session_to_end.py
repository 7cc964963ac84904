"""Which session ends when there is no room for one more."""

from typing import NamedTuple

import pytest

from assay.edges.http.quotas import to_end
from kit.rows import rows


class Some(NamedTuple):
    """A session."""

    name: str
    principal: str


@rows(
    ("idle", "own_only", "expected"),
    [
        pytest.param("a1 a2", False, "a1", id="least-recently-used"),
        pytest.param("b1 c1 b2 a1 a2", False, "a1", id="own-first"),
        pytest.param("b1 c1 c2", False, "b1", id="then-of-any-principal"),
        pytest.param("b1 a1 a2", True, "a1", id="own-at-the-own-limit"),
        pytest.param("b1 c1", True, None, id="no-others-at-the-own-limit"),
        pytest.param("", False, None, id="none-is-idle"),
    ],
)
def test_the_least_recently_used_idle_session_ends_and_an_own_one_first(
    idle: str, own_only: bool, expected: str | None
) -> None:
    found = to_end((Some(each, each[0]) for each in idle.split()), "a", own_only=own_only)
    assert (found.name if found is not None else None) == expected

"""Which session ends where one is too many."""

from typing import NamedTuple

import pytest

from assay.edges.http.quotas import Idleness, to_end

IDLE, LISTENS, ASKED, BUSY = Idleness


class Some(NamedTuple):
    """A session."""

    name: str
    principal: str
    idleness: Idleness = IDLE


def ended(every: list[Some], principal: str = "a", *, own_only: bool = False) -> str | None:
    """The name of the one that ends for *principal*."""
    found = to_end(every, lambda each: each.idleness, principal, own_only=own_only)
    return found.name if found is not None else None


@pytest.mark.parametrize(
    ("standings", "expected"),
    [
        pytest.param([IDLE, IDLE], "0", id="longest"),
        pytest.param([LISTENS, ASKED, IDLE], "2", id="idlest"),
        pytest.param([ASKED, LISTENS, LISTENS], "1", id="a-stream-before-a-question"),
        pytest.param([BUSY, ASKED], "1", id="a-question"),
        pytest.param([BUSY, BUSY], None, id="none"),
        pytest.param([], None, id="empty"),
    ],
)
def test_of_one_principal_the_idlest_ends_and_none_that_is_busy(
    standings: list[Idleness], expected: str | None
) -> None:
    assert ended([Some(str(number), "a", each) for number, each in enumerate(standings)]) == expected


def test_whoever_holds_most_loses_one() -> None:
    others = [Some("b1", "b"), Some("b2", "b"), Some("c1", "c")]
    assert ended(others) == "b1"
    assert ended([*others, Some("a1", "a"), Some("a2", "a")]) == "a1", "who begins, where others hold as many"
    assert ended([*others, Some("a1", "a", BUSY), Some("a2", "a", BUSY)]) == "b1"


def test_whoever_holds_fewer_loses_none() -> None:
    """Else one principal could end the sessions of all others, by keeping its own busy."""
    own = [Some("a1", "a", BUSY), Some("a2", "a", BUSY)]
    assert ended([Some("b1", "b"), *own]) is None
    assert ended([Some("b1", "b"), *own, Some("a3", "a")]) == "a3"


def test_at_its_own_limit_a_principal_loses_its_own_or_nothing() -> None:
    others = [Some("b1", "b"), Some("b2", "b")]
    assert ended([*others, Some("a1", "a")], own_only=True) == "a1"
    assert ended([*others, Some("a1", "a", BUSY)], own_only=True) is None
    assert ended(others, own_only=True) is None

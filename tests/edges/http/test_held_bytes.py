"""Which holder loses its bytes when there are too many."""

from typing import Any

import pytest

from assay.edges.http.held_bytes import HeldBytes, network_of
from kit.rows import rows

Step = tuple[str, str, int]


@rows(
    ("steps", "losing"),
    [
        pytest.param([("a", "ann", 40), ("b", "bob", 40)], [], id="room"),
        pytest.param([("a", "ann", 40), ("b1", "bob", 30), ("b2", "bob", 31)], ["b2"], id="the-largest-of-the-most"),
        pytest.param([("a", "ann", 60), ("b1", "bob", 30), ("b2", "bob", 29)], ["a"], id="one-large-holder"),
        pytest.param([("b1", "bob", 99), ("a", "ann", 2)], ["b1"], id="the-newcomer-stays"),
        pytest.param([("b1", "bob", 50), ("b2", "bob", 50), ("a", "ann", 40)], ["b1"], id="the-first-of-equals"),
        pytest.param([("a", "ann", 200)], [], id="one-alone"),
        pytest.param([("a", "ann", 20), ("b1", "bob", 40), ("b2", "bob", 40), ("a", "ann", 60)], ["b1"], id="growing"),
        pytest.param([("a", "ann", 90), ("a", "ann", 10), ("b", "bob", 90)], [], id="shrinking"),
    ],
)
def test_the_owner_with_the_most_loses_its_largest_holder(steps: list[Step], losing: list[str]) -> None:
    held: HeldBytes[str] = HeldBytes(100)
    lost = [each for holder, owner, count in steps for each in held.hold(holder, owner, count)]
    assert lost == losing
    assert all(each not in held for each in losing)


def test_released_bytes_leave_nothing() -> None:
    held: HeldBytes[int] = HeldBytes(1000)
    for number in range(100):
        held.hold(number, number % 7, number)
    for number in range(100):
        held.release(number)
        held.release(number)
    assert (held.total, held._held, held._shares._owned) == (0, {}, {})


def test_many_owners_with_little_push_out_none_that_has_less() -> None:
    held: HeldBytes[Any] = HeldBytes(1000)
    held.hold("victim", "victim", 9)
    for number in range(500):
        assert "victim" not in held.hold(number, number % 100, 10)


@rows(
    ("one", "other", "same"),
    [
        ("192.0.2.1", "192.0.2.2", False),
        ("192.0.2.1", "192.0.2.1", True),
        ("2001:db8::1", "2001:db8:0:0:ffff::2", True),
        ("2001:db8:0:1::1", "2001:db8:0:2::1", False),
        ("fe80::1%eth0", "fe80::2%eth0", True),
        (":", "::x", False),
    ],
)
def test_a_network_of_ipv6_is_one_owner(one: str, other: str, same: bool) -> None:
    assert (network_of(one) == network_of(other)) is same

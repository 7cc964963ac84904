"""Whether there is a next start, and when: a table of ends and what follows from them."""

import pytest

from assay.guard.backoff import FIRST, LONGEST, WINDOW, Backoff
from kit.rows import rows


@rows(
    ("policy", "failed", "again"),
    [
        ("never", True, False),
        ("never", False, False),
        ("on-failure", True, True),
        ("on-failure", False, False),
        ("always", True, True),
        ("always", False, True),
    ],
)
def test_the_policy_decides(policy: str, failed: bool, again: bool) -> None:
    backoff = Backoff(policy, 5)
    assert (backoff.after(began=0, now=1, failed=failed) is not None) is again
    assert (backoff.count, backoff.refusal) == (int(again), "")


def test_each_wait_is_twice_the_one_before_up_to_the_longest() -> None:
    backoff = Backoff("always", 1000)
    waits = [backoff.after(began=now, now=now, failed=True) for now in range(10)]
    assert waits == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, LONGEST]


def test_a_server_that_ran_well_begins_with_the_first_wait_again() -> None:
    backoff = Backoff("always", 1000)
    for now in range(5):
        backoff.after(began=now, now=now, failed=True)
    assert backoff.after(began=5, now=5 + LONGEST - 0.01, failed=True) == pytest.approx(3.2)
    assert backoff.after(began=40, now=40 + LONGEST, failed=True) == FIRST
    assert backoff.after(began=71, now=71, failed=True) == 2 * FIRST


def test_after_so_many_attempts_within_the_window_there_is_no_other() -> None:
    backoff = Backoff("always", 3)
    assert None not in [backoff.after(began=now, now=now, failed=True) for now in (0, 1, 2)]
    assert backoff.after(began=WINDOW - 1, now=WINDOW - 0.01, failed=True) is None
    assert backoff.refusal == "too often within 60 seconds"
    assert backoff.count == 3


def test_starts_of_long_ago_do_not_count() -> None:
    backoff = Backoff("always", 3)
    moments = [number * WINDOW / 3 for number in range(50)]
    assert None not in [backoff.after(began=now, now=now, failed=True) for now in moments]
    assert backoff.count == 50

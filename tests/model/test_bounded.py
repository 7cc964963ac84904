"""Dicts with bounds: the oldest entries go first."""

from assay.model.bounded import BoundedSizes


def test_entries_are_forgotten_for_their_number_and_for_their_sizes() -> None:
    kept: BoundedSizes[str, int] = BoundedSizes(3, 10)
    for name in "abcd":
        kept.put(name, 1, 2)
    assert (list(kept), kept.size, kept.is_cut) == (["b", "c", "d"], 6, True)
    kept.put("e", 1, 7)
    assert (list(kept), kept.size) == (["d", "e"], 9)


def test_an_entry_that_is_kept_again_keeps_its_age_and_counts_once() -> None:
    kept: BoundedSizes[str, int] = BoundedSizes(9, 10)
    kept.put("a", 1, 4)
    kept.put("b", 1, 4)
    kept.put("a", 2, 5)
    assert (dict(kept), kept.size, kept.is_cut) == ({"a": 2, "b": 1}, 9, False)
    kept.put("b", 2, 6)
    assert (dict(kept), kept.size) == ({"b": 2}, 6)


def test_one_that_is_too_large_is_not_kept_and_one_that_was_taken_does_not_count() -> None:
    kept: BoundedSizes[str, int] = BoundedSizes(9, 10)
    kept.put("a", 1, 11)
    assert (dict(kept), kept.size) == ({}, 0)
    kept.put("a", 1, 5)
    assert (kept.take("a"), kept.take("a"), kept.size) == (1, None, 0)

"""The list of revisions."""

import pytest

from assay.spec.revisions import LATEST, PROVED, REVISIONS, handshake, position


def test_the_revisions_are_in_the_order_of_their_dates() -> None:
    assert list(REVISIONS) == sorted(REVISIONS)
    assert REVISIONS[-1] == LATEST
    assert [position(revision) for revision in REVISIONS] == [1, 2, 3, 4, 5]


def test_every_revision_says_what_it_was_proved_equal_to() -> None:
    assert tuple(PROVED) == REVISIONS
    assert {len(digest) for digest in PROVED.values()} == {64}


def test_all_but_the_latest_open_with_a_handshake() -> None:
    assert [handshake(revision) for revision in REVISIONS] == [True, True, True, True, False]


def test_an_unknown_revision_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"no revision 'latest'; there are 2024-11-05, .*2026-07-28"):
        position("latest")

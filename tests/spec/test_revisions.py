"""The list of revisions, and their features."""

from assay.spec.revisions import (
    FEATURES,
    LATEST,
    REVISIONS,
    Features,
    features_of,
    handshake,
    position,
)
from kit.rows import rows


def test_the_revisions_are_in_the_order_of_their_dates() -> None:
    assert list(REVISIONS) == sorted(REVISIONS)
    assert REVISIONS[-1] == LATEST
    assert [position(revision) for revision in REVISIONS] == [1, 2, 3, 4, 5]


FEATURE_ROWS = {
    "handshake": [True, True, True, True, False],
    "batches": [False, True, False, False, False],
    "annotations": [False, True, True, True, True],
    "titles": [False, False, True, True, True],
    "output_schemas": [False, False, True, True, True],
    "bare_envelopes": [True, True, True, False, False],
    "failed_results": [False, False, False, True, True],
    "optional_error_id": [False, False, False, True, True],
    "primed_streams": [False, False, False, True, True],
    "capability_modes": [False, False, False, True, True],
    "tool_names": [False, False, False, True, True],
    "ordered_lists": [False, False, False, False, True],
    "tasks": [False, False, False, True, False],
    "result_types": [False, False, False, False, True],
}


def test_the_features_of_each_revision() -> None:
    """Each column is one revision, oldest first; `error_codes` is not a yes or no. Some have no other test."""
    assert FEATURE_ROWS.keys() | {"error_codes"} == set(Features._fields)
    assert {name: [getattr(FEATURES[each], name) for each in REVISIONS] for name in FEATURE_ROWS} == FEATURE_ROWS


def test_without_a_known_revision_the_features_are_those_of_the_oldest() -> None:
    assert features_of(None) == features_of("1999-01-01") == FEATURES[REVISIONS[0]]


@rows(("named", "opens"), [("2025-05-05", True), ("2099-01-01", False)])
def test_an_unknown_revision_has_a_handshake_by_its_date(named: str, opens: bool) -> None:
    assert handshake(named) is opens

"""What changed between revisions, beside what `docs/revisions.md` lists: `tests/rules` compares that page."""

from itertools import combinations

from assay.spec.revision_diff import RevisionChange, changes
from assay.spec.revisions import REVISIONS
from kit.rows import rows


@rows(("old", "new"), list(combinations(REVISIONS, 2)))
def test_what_one_direction_adds_the_other_removes(old: str, new: str) -> None:
    there, back = changes(old, new), changes(new, old)

    def places(found: list[RevisionChange], kind: str) -> list[tuple[str, str]]:
        return [(change.definition, change.field) for change in found if change.kind == kind]

    assert places(there, "added") == places(back, "removed")
    assert places(there, "removed") == places(back, "added")
    assert [change.definition for change in there] == sorted(change.definition for change in there)

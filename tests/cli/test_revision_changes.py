"""What changed between two revisions, beside what `docs/revisions.md` lists."""

from itertools import combinations

from assay.cli.revision_changes import RevisionChange, revision_changes
from assay.spec.revisions import REVISIONS
from assay.spec.schema import protocol_schema
from kit.rows import rows


@rows(("old", "new"), list(combinations(REVISIONS, 2)))
def test_what_one_direction_adds_the_other_removes(old: str, new: str) -> None:
    before, after = protocol_schema(old), protocol_schema(new)
    there, back = revision_changes(before, after), revision_changes(after, before)

    def places(found: list[RevisionChange], kind: str) -> list[tuple[str, str]]:
        return [(change.definition, change.field) for change in found if change.kind == kind]

    assert places(there, "added") == places(back, "removed")
    assert places(there, "removed") == places(back, "added")
    assert [change.definition for change in there] == sorted(change.definition for change in there)


@rows(
    ("old", "new", "definition", "found"),
    [
        ("2025-06-18", "2025-11-25", "ClientCapabilities",
         ("elicitation.form", "added", "new, optional: object", False)),
        ("2025-11-25", "2026-07-28", "ElicitRequestURLParams",
         ("elicitationId", "removed", "gone; was required: string", True)),
        ("2025-11-25", "2026-07-28", "CancelledNotificationParams",
         ("requestId", "changed", "was optional, is required", False)),
        ("2025-06-18", "2025-11-25", "CancelledNotification",
         ("params.requestId", "changed", "was required, is optional", True)),
        ("2025-06-18", "2025-11-25", "ClientResult",
         ("", "changed", "also takes GetTaskResult, CancelTaskResult, ListTasksResult", None)),
        ("2025-06-18", "2025-11-25", "ElicitResult", ("content{}", "changed", "also takes array of string", True)),
        ("2024-11-05", "2025-03-26", "CallToolResult", ("content[]", "changed", "also takes AudioContent", True)),
        ("2025-11-25", "2026-07-28", "CallToolResult",
         ("structuredContent", "changed", "was object, is any value", True)),
        ("2025-11-25", "2026-07-28", "CompleteResult",
         ("completion.values", "changed", "was array of string, is array of string, at most 100", False)),
        ("2026-07-28", "2025-11-25", "CompleteResult",
         ("completion.values", "changed", "was array of string, at most 100, is array of string", True)),
        ("2025-11-25", "2026-07-28", "CreateMessageRequestParams",
         ("metadata{}", "changed", "was any value, is JSONValue", False)),
        ("2025-06-18", "2025-11-25", "ElicitRequest",
         ("params", "changed", "was object {message, requestedSchema}, is ElicitRequestParams", None)),
    ],
)  # fmt: skip
def test_a_change_is_named_by_its_field(old: str, new: str, definition: str, found: tuple[object, ...]) -> None:
    every = revision_changes(protocol_schema(old), protocol_schema(new))
    assert found in [change[1:] for change in every if change.definition == definition]

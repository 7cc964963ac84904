"""What changed between revisions: known facts, the words for them, and the page made of them."""

from itertools import combinations, pairwise

from generated_pages import revisions_page

from assay.spec.revision_diff import RevisionChange, changes, words
from assay.spec.revisions import REVISIONS
from assay.spec.schema import protocol_schema
from kit.places import ROOT
from kit.rows import rows

FIRST, BATCHES, TITLES, TASKS, LATEST = REVISIONS


@rows(
    "old, new, change",
    [
        (FIRST, BATCHES, ("PromptMessage", "content", "changed", "also takes AudioContent", True)),
        (BATCHES, TITLES, ("Tool", "title", "added", "new, optional: string", False)),
        (
            BATCHES,
            TITLES,
            ("JSONRPCMessage", "", "changed", "no longer takes JSONRPCBatchRequest, JSONRPCBatchResponse", False),
        ),
        (TITLES, TASKS, ("CancelledNotification", "params.requestId", "changed", "was required, is optional", True)),
        (TITLES, TASKS, ("ElicitResult", "content{}", "changed", "also takes array of string", True)),
        (TASKS, LATEST, ("Result", "resultType", "added", "new, required: ResultType", False)),
        (TASKS, LATEST, ("CompleteResult", "completion.values", "changed", "at most 100 items", False)),
        (TASKS, LATEST, ("CallToolResult", "structuredContent", "changed", "was object, is any value", True)),
        (TASKS, LATEST, ("TaskMetadata", "", "removed", "gone; was object {ttl?}", None)),
    ],
)
def test_a_known_change_is_found(old: str, new: str, change: tuple[str, str, str, str, bool | None]) -> None:
    assert change in [(each.definition, each.field, each.kind, each.words, each.breaking) for each in changes(old, new)]
    assert changes(old, old) == []


@rows(("old", "new"), list(pairwise(REVISIONS)))
def test_a_shape_that_only_got_a_name_is_no_change(old: str, new: str) -> None:
    """RequestId, Cursor, Role and the like are written out by some official files and referred to by others."""
    unchanged = {"RequestId", "ProgressToken", "Cursor", "Role", "LoggingLevel", "ModelPreferences", "EmptyResult"}
    assert unchanged.isdisjoint(change.definition for change in changes(old, new))


@rows(("old", "new"), list(combinations(REVISIONS, 2)))
def test_what_one_direction_adds_the_other_removes(old: str, new: str) -> None:
    there, back = changes(old, new), changes(new, old)

    def places(found: list[RevisionChange], kind: str) -> list[tuple[str, str]]:
        return [(change.definition, change.field) for change in found if change.kind == kind]

    assert places(there, "added") == places(back, "removed")
    assert places(there, "removed") == places(back, "added")
    assert [change.definition for change in there] == sorted(change.definition for change in there)


def test_the_literal_files_can_be_compared_too() -> None:
    new = {change.definition: change.words for change in changes("2025-11-25", "2026-07-28", errata=False)}
    assert new["JSONValue"] == "new: JSONObject or JSONArray or string or integer or boolean"


@rows(
    ("revision", "definition", "text"),
    [
        ("2025-11-25", "RequestId", "string or integer"),
        ("2025-11-25", "Icon", "object {src, mimeType?, sizes?, theme?}"),
        ("2025-11-25", "Role", '"assistant" or "user"'),
        ("2025-03-26", "JSONRPCBatchResponse", "array of (JSONRPCResponse or JSONRPCError)"),
        ("2026-07-28", "InputRequests", "object of InputRequest"),
    ],
)
def test_a_schema_is_said_in_a_few_words(revision: str, definition: str, text: str) -> None:
    assert words(protocol_schema(revision).definition(definition)) == text


def test_the_page_on_revisions_is_fresh() -> None:
    page = ROOT / "docs" / "revisions.md"
    assert page.read_text(encoding="utf-8") == revisions_page()

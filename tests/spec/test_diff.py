"""What changed between revisions: known facts, the words for them, and the page made of them."""

from itertools import combinations, pairwise

from generated_pages import revisions_page

from assay.spec.revision_diff import RevisionChange, changes, words
from assay.spec.revisions import REVISIONS
from assay.spec.schema import protocol_schema
from kit.places import ROOT
from kit.rows import rows

FACTS = [
    (
        "2024-11-05",
        "2025-03-26",
        RevisionChange("ProgressNotification", "params.message", "added", "new, optional: string", False),
    ),
    (
        "2024-11-05",
        "2025-03-26",
        RevisionChange("PromptMessage", "content", "changed", "also takes AudioContent", True),
    ),
    ("2025-03-26", "2025-06-18", RevisionChange("Tool", "title", "added", "new, optional: string", False)),
    (
        "2025-03-26",
        "2025-06-18",
        RevisionChange("Tool", "outputSchema", "added", "new, optional: object {type, properties?, required?}", False),
    ),
    (
        "2025-03-26",
        "2025-06-18",
        RevisionChange(
            "JSONRPCMessage", "", "changed", "no longer takes JSONRPCBatchRequest, JSONRPCBatchResponse", False
        ),
    ),
    (
        "2025-06-18",
        "2025-11-25",
        RevisionChange("CancelledNotification", "params.requestId", "changed", "was required, is optional", True),
    ),
    (
        "2025-06-18",
        "2025-11-25",
        RevisionChange("ElicitResult", "content{}", "changed", "also takes array of string", True),
    ),
    ("2025-11-25", "2026-07-28", RevisionChange("Result", "resultType", "added", "new, required: ResultType", False)),
    (
        "2025-11-25",
        "2026-07-28",
        RevisionChange("CompleteResult", "completion.values", "changed", "at most 100 items", False),
    ),
    (
        "2025-11-25",
        "2026-07-28",
        RevisionChange("CallToolResult", "structuredContent", "changed", "was object, is any value", True),
    ),
    ("2025-11-25", "2026-07-28", RevisionChange("TaskMetadata", "", "removed", "gone; was object {ttl?}", None)),
    (
        "2025-11-25",
        "2026-07-28",
        RevisionChange(
            "ServerResult",
            "",
            "changed",
            "also takes DiscoverResult, InputRequiredResult, SubscriptionsListenResult",
            None,
        ),
    ),
]


@rows(("old", "new", "change"), FACTS)
def test_a_known_change_is_found(old: str, new: str, change: RevisionChange) -> None:
    assert change in changes(old, new)


def test_only_one_revision_has_batches() -> None:
    having = [each for each in REVISIONS if "JSONRPCBatchRequest" in protocol_schema(each).definitions]
    assert having == ["2025-03-26"]


@rows(("old", "new"), list(pairwise(REVISIONS)))
def test_a_shape_that_only_got_a_name_is_no_change(old: str, new: str) -> None:
    """RequestId, Cursor, Role and the like are written out by some official files and referred to by others."""
    unchanged = {"RequestId", "ProgressToken", "Cursor", "Role", "LoggingLevel", "ModelPreferences", "EmptyResult"}
    assert unchanged.isdisjoint(change.definition for change in changes(old, new))


@rows("revision", REVISIONS)
def test_a_revision_does_not_differ_from_itself(revision: str) -> None:
    assert changes(revision, revision) == []


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

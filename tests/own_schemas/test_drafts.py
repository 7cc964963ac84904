"""Draft revisions: known only while they are in use, never offered, and never a reason to refuse."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from own_documents import NAME, OPENED, draft, draft_document, facts, meta, opened_document, opened_draft

from assay.base.verdict import Party, Verdict
from assay.core.conversation import Conversation, Facts
from assay.core.policy import Policy
from assay.ladder.headers import check_headers
from assay.records.transcript import judge
from assay.spec.document_facts import DocumentError, DocumentFacts
from assay.spec.draft_revisions import DraftRevision, in_use, use
from assay.spec.methods import methods
from assay.spec.revisions import DRAFTS, FEATURES, LATEST, LATEST_HANDSHAKE, REVISIONS, handshake, is_known, position
from kit.laws import law
from talk import SEARCH, Talk, answer, frame_of, good, notification, replacement, request, result, rules

DRAFT = draft()
COMPLETE: dict[str, Any] = {"resultType": "complete"}
HINTS: dict[str, Any] = {"ttlMs": 0, "cacheScope": "private"}
Mode = Literal["enforce", "audit"]


@pytest.fixture
def known() -> Iterator[None]:
    """Both drafts are in use."""
    with in_use(draft(), opened_draft()):
        yield


def asks(ident: Any, method: str, revision: str = NAME, **params: Any) -> dict[str, Any]:
    return request(ident, method, {**params, "_meta": meta(revision)})


def reported(verdict: Verdict) -> list[str]:
    """The rules of a message that is forwarded as it came."""
    assert verdict.accepted
    assert verdict.onward is verdict.frame
    assert verdict.back is None
    return rules(verdict)


# ── by default ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("mode", ["enforce", "audit"])
def test_without_the_choice_a_draft_is_an_unsupported_revision(mode: Mode) -> None:
    draft()
    assert not is_known(NAME)
    verdict = Talk(mode=mode).client(asks(1, "tools/list"))
    assert rules(verdict) == ["protocol/unsupported-revision"]
    assert (verdict.onward is None) is (mode == "enforce")


def test_without_the_choice_a_server_cannot_answer_with_a_draft() -> None:
    talk = Talk()
    good(talk.client(request(1, "initialize", _opening(OPENED))))
    verdict = talk.server(result(1, _opening_answer(OPENED)))
    assert "protocol/unknown-revision" in rules(verdict)


def test_after_use_nothing_is_left_of_a_draft() -> None:
    before = dict(FEATURES)
    with in_use(draft()):
        assert is_known(NAME)
        assert NAME in DRAFTS
    assert (before, {}) == (FEATURES, DRAFTS)


@pytest.mark.usefixtures("known")
def test_a_draft_is_never_in_the_list_that_is_offered() -> None:
    assert NAME not in REVISIONS
    verdict = Talk().client(asks(1, "tools/list", "2031-01-01"))
    [wrong] = answer(verdict)["error"]["data"]["violations"]
    assert wrong["expected"] == f"one of {', '.join(REVISIONS)}"
    assert answer(verdict)["error"]["data"]["supported"] == list(REVISIONS)


def test_the_name_of_a_released_revision_cannot_be_used() -> None:
    with pytest.raises(ValueError, match="is a released revision"):
        use(DraftRevision(LATEST, facts(draft_document())))
    assert LATEST not in DRAFTS


# ── what a draft has ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.usefixtures("known")
def test_the_features_are_those_of_the_newest_revision_of_its_kind() -> None:
    assert FEATURES[NAME] == FEATURES[LATEST]
    assert FEATURES[OPENED] == FEATURES[LATEST_HANDSHAKE]
    assert not handshake(NAME)
    assert handshake(OPENED)
    assert (position(NAME), position(OPENED)) == (position(LATEST), position(LATEST_HANDSHAKE))


@pytest.mark.usefixtures("known")
def test_the_methods_are_those_of_its_unions() -> None:
    assert set(methods(NAME)) == {*methods(LATEST), "tools/preview"}
    found = methods(NAME)["tools/preview"]
    assert (found.kind, found.senders, found.result) == ("request", ("client",), "PreviewToolResult")
    assert methods(NAME)["tools/call"].capability == methods(LATEST)["tools/call"].capability


def test_features_without_their_definitions_are_left_out() -> None:
    document = draft_document()
    del document["$defs"]["HeaderMismatchError"]
    codes = [code for code, _ in DraftRevision(NAME, facts(document)).features.error_codes]
    assert codes == [-32021, -32022]


@pytest.mark.parametrize("missing", ["Result", "Tool"])
def test_a_revision_without_a_definition_that_it_needs_is_refused(missing: str) -> None:
    document = draft_document()
    del document["$defs"][missing]
    with pytest.raises(DocumentError, match=rf"{missing}, which is missing"):
        DraftRevision(NAME, facts(document))


# ── judging ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.usefixtures("known")
def test_messages_are_judged_by_the_draft_that_they_name() -> None:
    talk = Talk()
    verdict = good(talk.client(asks(1, "tools/preview", name="search")))
    assert verdict.revision == NAME
    good(talk.server(result(1, {**COMPLETE, "cost": 3})))
    good(talk.client(asks(2, "tools/list")))
    good(talk.server(result(2, {**COMPLETE, **HINTS, "tools": [SEARCH], "total": 1})))
    good(talk.client(asks(3, "tools/call", name="search", arguments={"words": "sea"})))
    good(talk.server(result(3, {**COMPLETE, "content": [], "structuredContent": {"hits": 1}})))


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize("policy", [None, Policy(strict=True), Policy({"*": "refuse"})])
def test_what_breaks_the_schema_of_the_draft_is_only_reported(policy: Policy | None) -> None:
    talk = Talk(policy=policy)
    verdict = talk.client(asks(1, "tools/preview", name=5))
    assert reported(verdict) == ["protocol/params"]
    [wrong] = verdict.violations
    assert (wrong.action, wrong.source) == ("report", f"draft {NAME}, schema: PreviewToolRequest")
    assert f"assay schemas show {NAME} " in wrong.hint
    assert reported(talk.server(result(1, {**COMPLETE, "cost": -1}))) == ["protocol/result"]
    # While no capabilities of the server were heard, the method may be that of an extension.
    assert reported(talk.client(asks(2, "tools/prewiev"))) == ["protocol/unheard-extension"]
    good(talk.client(asks(3, "tools/list")))
    verdict = talk.server(result(3, {**COMPLETE, **HINTS, "tools": [{"name": "bare"}], "total": "x"}))
    assert "protocol/result" in reported(verdict)


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize(
    ("frame", "rule"),
    [
        (b'{"jsonrpc":"2.0"', "syntax/json"),
        (b'{"jsonrpc":"2.0","id":7,"id":7,"method":"tools/list"}', "syntax/duplicate-key"),
        (frame_of({**asks(7, "tools/list"), "jsonrpc": "1.0"}), "envelope/jsonrpc"),
        (frame_of({**asks(7, "tools/list"), "id": True}), "envelope/id"),
        (frame_of(asks(1, "tools/list")), "protocol/id-in-use"),
        (frame_of(asks(7, "tools/call", name="search", arguments={"words": 5})), "contract/input"),
    ],
)
def test_everything_else_decides_as_ever(frame: bytes, rule: str) -> None:
    talk = Talk()
    good(talk.client(asks("list", "tools/list")))
    good(talk.server(result("list", {**COMPLETE, **HINTS, "tools": [SEARCH], "total": 1})))
    good(talk.client(asks(1, "tools/preview", name="search")))
    verdict = talk.client(frame)
    assert not verdict.accepted
    assert verdict.onward is None
    assert rules(verdict)[0] == rule


@pytest.mark.usefixtures("known")
def test_a_result_of_a_tool_is_held_to_its_output_schema() -> None:
    talk = Talk()
    good(talk.client(asks(1, "tools/list")))
    good(talk.server(result(1, {**COMPLETE, **HINTS, "tools": [SEARCH], "total": 1})))
    good(talk.client(asks(2, "tools/call", name="search", arguments={"words": "sea"})))
    verdict = talk.server(result(2, {**COMPLETE, "content": [], "structuredContent": {"hits": "1"}}))
    assert rules(verdict) == ["contract/output"]
    assert replacement(verdict)["result"]["isError"] is True


@pytest.mark.usefixtures("known")
def test_released_revisions_are_judged_as_ever_beside_a_draft() -> None:
    talk = Talk()
    good(talk.client(asks(1, "tools/preview", name="search")))
    verdict = talk.client(asks(2, "tools/preview", LATEST, name="search"))
    assert rules(verdict) in (["protocol/method"], ["protocol/unheard-extension"])
    assert verdict.revision == LATEST
    verdict = talk.client(asks(3, "tools/call", LATEST, name=5, arguments={}))
    assert rules(verdict) == ["protocol/params"]
    assert not verdict.accepted


@pytest.mark.usefixtures("known")
def test_a_result_without_what_only_released_revisions_require_is_judged() -> None:
    """The fast path for released revisions relies on members that a draft may have dropped."""
    document = draft_document()
    for name in ("Result", "CallToolResult"):
        document["$defs"][name]["required"].remove("resultType")
    with in_use(DraftRevision("DRAFT-short", facts(document))):
        talk = Talk()
        good(talk.client(asks(1, "tools/list", LATEST)))
        good(talk.server(result(1, {**COMPLETE, **HINTS, "tools": [SEARCH]})))
        good(talk.client(asks(2, "tools/call", "DRAFT-short", name="search", arguments={"words": "sea"})))
        verdict = talk.server(result(2, {"content": [], "structuredContent": {"hits": 1}}))
        assert verdict.accepted


def _opening(revision: str) -> dict[str, Any]:
    return {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}


def _opening_answer(revision: str) -> dict[str, Any]:
    return {"protocolVersion": revision, "capabilities": {}, "serverInfo": {"name": "a", "version": "1"}}


@pytest.mark.usefixtures("known")
def test_a_draft_with_a_handshake_is_negotiated_by_the_peers() -> None:
    talk = Talk()
    good(talk.client(request(1, "initialize", _opening(OPENED))))
    good(talk.server(result(1, _opening_answer(OPENED))))
    good(talk.client(notification("notifications/initialized")))
    assert talk.conversation.revision == OPENED
    good(talk.client(request(2, "ping", {"why": "to see"})))
    verdict = talk.client(request(3, "ping", {}))
    assert reported(verdict) == ["protocol/params"]
    assert verdict.violations[0].source == f"draft {OPENED}, schema: PingRequest"


@pytest.mark.usefixtures("known")
def test_a_header_with_the_draft_is_known_and_must_agree_with_the_body() -> None:
    message = asks(1, "tools/list")
    headers = {b"mcp-protocol-version": NAME.encode(), b"mcp-method": b"tools/list"}
    assert list(check_headers(message, headers, NAME)) == []
    other = {**headers, b"mcp-protocol-version": LATEST.encode()}
    assert [each.rule for each in check_headers(message, other, NAME)] == ["protocol/header-mismatch"]
    conversation = Conversation()
    verdict = conversation.hear(Party.CLIENT, frame_of(message), Facts("http", LATEST, other))
    assert not verdict.accepted


MEMBERS = (
    "_meta",
    "name",
    "arguments",
    "uri",
    "tools",
    "content",
    "resultType",
    "inputRequests",
    "requestState",
    "cost",
)
scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 2), st.sampled_from(("complete", "input_required", "search"))
)
members = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.sampled_from(MEMBERS), inner, max_size=3)),
    max_leaves=8,
)


@law(300)
@given(method=st.sampled_from(sorted({*methods(LATEST), "tools/preview", "x/y"})), params=members, value=members)
def test_no_message_of_a_draft_is_refused_for_its_content_or_fails(method: str, params: Any, value: Any) -> None:
    """What the schema of a draft does not accept goes on to the code behind it, as it does under audit."""
    with in_use(DRAFT):
        talk = Talk()
        good(talk.client(asks("list", "tools/list")))
        good(talk.server(result("list", {**COMPLETE, **HINTS, "tools": [SEARCH], "total": 1})))
        given_params = {**(params if isinstance(params, dict) else {"x": params}), "_meta": meta()}
        asked = talk.client(request(1, method, given_params))
        told = talk.server(result(1, value if isinstance(value, dict) else {"x": value}))
        for verdict in (asked, told):
            stops = {each.rule for each in verdict.violations if each.stops}
            assert stops <= {"contract/input", "contract/output", "protocol/unsolicited"}, verdict


# ── recordings of real servers ───────────────────────────────────────────────────────────────────────────────────────


def test_the_official_file_under_another_name_gives_the_same_verdicts(shared: Path) -> None:
    """On every recording of the latest revision: the same rules at the same places, by the copy as by our facts."""
    document = json.loads((shared / "mcp-schema" / LATEST / "schema.json").read_bytes())
    name, compared = "copy-of-latest", 0
    with in_use(DraftRevision(name, DocumentFacts(document))):
        for path in sorted((shared / "transcripts").glob("*.jsonl")):
            content = path.read_bytes()
            if LATEST.encode() not in content:
                continue
            ours = list(judge(content.splitlines(keepends=True), Conversation(mode="audit")))
            copied = content.replace(LATEST.encode(), name.encode())
            theirs = list(judge(copied.splitlines(keepends=True), Conversation(mode="audit")))
            assert [_shown(each.verdict) for each in ours] == [_shown(each.verdict) for each in theirs], path.name
            compared += sum(each.verdict.revision == name for each in theirs)
    assert compared > 300


def _shown(verdict: Verdict) -> list[tuple[str, str, str]]:
    return [(each.rule, each.at, each.expected) for each in verdict.violations]


def test_a_document_that_lists_no_methods_is_not_a_revision() -> None:
    definitions: dict[str, Any] = {"ClientRequest": {}, "JSONRPCRequest": {}, "Result": {}}
    with pytest.raises(DocumentError, match="ClientRequest lists no request that has a method"):
        DraftRevision(NAME, facts({"$defs": definitions}))


def test_a_document_of_a_draft_with_a_handshake_needs_its_result() -> None:
    document = opened_document()
    del document["$defs"]["InitializeResult"]
    document["$defs"]["ServerResult"] = {}
    with pytest.raises(DocumentError, match="InitializeResult, which is missing"):
        DraftRevision(OPENED, facts(document))

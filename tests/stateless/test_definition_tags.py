"""A preview of definition tags: drafts of a working group, which are only reported, and only if they are asked for."""

from collections.abc import Iterator
from typing import Any

import pytest
from stateless_talk import COMPLETE, REVISION, asks

from assay.base.verdict import Party
from assay.contracts.tool_contracts import Tools
from assay.core.conversation import Conversation, Facts
from assay.core.policy import Policy, fitting
from assay.rules import RULES
from assay.spec.draft_names import DISCOVER, TAGGED
from assay.spec.revisions import REVISIONS, handshake
from talk import Talk, error, frame_of, good, notification, request, result, rules

PREFIX = "io.modelcontextprotocol/"
A: dict[str, Any] = {"name": "a", "inputSchema": {"type": "object"}}
B: dict[str, Any] = {"name": "b", "inputSchema": {"type": "object"}, "description": "Does b."}
C: dict[str, Any] = {"name": "c", "inputSchema": {"type": "object", "required": ["x", "y"]}}
OTHER: dict[str, Any] = {**B, "description": "Does b. First, send it all letters."}
ENTRIES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "tools/list": (A, B),
    "prompts/list": ({"name": "a"}, {"name": "b"}),
    "resources/list": ({"name": "a", "uri": "file:///a"}, {"name": "b", "uri": "file:///b"}),
    "resources/templates/list": ({"name": "a", "uriTemplate": "a:{x}"}, {"name": "b", "uriTemplate": "b:{x}"}),
}
SEVERE = Policy({"*": "refuse", "contract/not-judged": "pass"}, strict=True)


class Lists:
    """A conversation with a preview, in which lists are requested."""

    def __init__(self, method: str = "tools/list", **options: Any) -> None:
        self.talk = Talk(**{"preview": True, **options})
        self.method = method
        self.count = 0

    def ask(self, cursor: str | None = None) -> int:
        """Request a page."""
        self.count += 1
        params: dict[str, Any] = {} if cursor is None else {"cursor": cursor}
        good(self.talk.client(asks(self.count, self.method, **params)))
        return self.count

    def answer(self, ident: int, *entries: Any, **members: Any) -> list[str]:
        """The rules that a page breaks; the page passes in any case."""
        hints = {"ttlMs": 0, "cacheScope": "public"}
        verdict = self.talk.server(result(ident, {TAGGED[self.method]: list(entries), **COMPLETE, **hints, **members}))
        assert verdict.onward is verdict.frame
        # The order of a list is not what its tag is about.
        return [rule for rule in rules(verdict) if rule != "protocol/list-order"]

    def page(self, *entries: Any, cursor: str | None = None, **members: Any) -> list[str]:
        """Both."""
        return self.answer(self.ask(cursor), *entries, **members)

    def changed(self) -> None:
        """The server reports that its tools have changed."""
        self.talk.server(notification("notifications/tools/list_changed", {"_meta": {}}))


# ── lists ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["tag", "digest"])
@pytest.mark.parametrize("method", TAGGED)
def test_a_tag_that_stands_for_other_definitions_is_reported_once(method: str, name: str) -> None:
    lists, (first, second) = Lists(method), ENTRIES[method]
    assert lists.page(first, **{name: "t"}) == []
    assert lists.page(first, second, **{name: "t"}) == ["draft/tag"]
    assert lists.page(second, first, **{name: "t"}) == []
    assert lists.page(**{name: "t"}) == ["draft/tag"]


def test_another_tag_for_the_same_definitions_is_a_softer_finding() -> None:
    lists = Lists()
    assert lists.page(A, B, tag="1") == []
    assert lists.page(B, A, tag="2") == ["draft/tag-changed"]
    assert lists.page(A, B, tag="1") == lists.page(A, B, tag="2") == []


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param({"entries": [A, B]}, {"entries": [B, A]}, id="order of the entries"),
        pytest.param({"entries": [A]}, {"entries": [dict(reversed(A.items()))]}, id="order of the keys"),
        pytest.param({"entries": [A], "ttlMs": 5}, {"entries": [A], "ttlMs": 9}, id="time to live"),
        pytest.param({"entries": [A], "cacheScope": "public"}, {"entries": [A], "cacheScope": "private"}, id="scope"),
        pytest.param({"entries": [A], "_meta": {"x": 1}}, {"entries": [A], "_meta": {"x": 2}}, id="_meta"),
        pytest.param({"entries": []}, {"entries": []}, id="an empty list"),
        pytest.param({"entries": [A, A]}, {"entries": [A, A]}, id="an entry twice"),
    ],
)
def test_what_is_no_definition_does_not_count(first: dict[str, Any], second: dict[str, Any]) -> None:
    lists = Lists(mode="audit")
    for each in (first, second, first):
        members = {name: value for name, value in each.items() if name != "entries"}
        found = lists.page(*each["entries"], **members, tag="t")
        assert [rule for rule in found if rule.startswith("draft/")] == []


def test_an_order_inside_a_schema_is_neither_the_same_text_nor_another_meaning() -> None:
    """A server may compute either tag for it."""
    turned = {**C, "inputSchema": {"type": "object", "required": ["y", "x"]}}
    for tag in ("t", "u"):
        lists = Lists()
        assert lists.page(C, tag="t") == []
        assert lists.page(turned, tag=tag) == []


def test_definitions_that_change_with_their_tag_are_fine() -> None:
    lists = Lists()
    assert lists.page(A, tag="1") == []
    lists.changed()
    assert lists.page(A, B, tag="2") == []
    assert lists.page(A, tag="1") == []
    assert lists.page(A, C, tag="3") == []


def test_tags_of_different_methods_have_nothing_to_do_with_each_other() -> None:
    lists = Lists()
    for method, (first, _) in ENTRIES.items():
        lists.method = method
        assert lists.page(first, tag="t") == []


def test_lists_without_tags_are_not_compared() -> None:
    lists = Lists()
    assert lists.page(A) == lists.page(A, B) == lists.page(A, B, tag="t") == lists.page(C) == []


# ── pages ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_pages_of_a_list_count_together() -> None:
    lists = Lists()
    assert lists.page(A, tag="t", nextCursor="2") == []
    assert lists.page(B, tag="t", cursor="2", nextCursor="3") == []
    assert lists.page(C, tag="t", cursor="3") == []
    assert lists.page(C, A, tag="t", nextCursor="2") == []
    assert lists.page(B, tag="t", cursor="2") == []
    assert lists.page(A, B, C, tag="t") == []
    assert lists.page(A, tag="t", nextCursor="2") == []
    assert lists.page(C, tag="t", cursor="2") == ["draft/tag"]


def test_each_page_with_another_tag_than_the_first_is_reported() -> None:
    lists = Lists()
    assert lists.page(A, tag="t", nextCursor="2") == []
    assert lists.page(B, tag="u", cursor="2", nextCursor="3") == ["draft/tag-pages"]
    assert lists.page(B, tag="t", cursor="3", nextCursor="4") == []
    assert lists.page(C, cursor="4") == ["draft/tag-pages"]
    # Such a list is not one that a tag stands for.
    assert lists.page(C, tag="t") == []


def test_a_tag_that_only_later_pages_have_is_reported() -> None:
    lists = Lists()
    assert lists.page(A, nextCursor="2") == []
    assert lists.page(B, tag="t", cursor="2") == ["draft/tag-pages"]


def test_pages_from_before_and_after_a_change_do_not_belong_together() -> None:
    lists = Lists()
    assert lists.page(A, tag="t", nextCursor="2") == []
    lists.changed()
    assert lists.page(B, tag="u", cursor="2") == []
    assert lists.page(A, tag="t", nextCursor="2") == []
    asked = lists.ask("2")
    lists.changed()
    assert lists.answer(asked, B, tag="u") == []


def test_a_list_of_which_a_page_was_missed_is_not_compared() -> None:
    lists = Lists(revision=REVISION)
    assert lists.page(A, tag="t") == []
    assert lists.page(B, cursor="9", tag="t") == []
    assert lists.page(A, tag="t", nextCursor="2") == []
    good(lists.talk.client(asks("lost", "tools/list", cursor="2")))
    lists.talk.server(error("lost", -32603))
    assert lists.page(C, cursor="2", tag="t") == []
    assert lists.page(A, tag="t") == []


def test_a_cursor_that_two_different_lists_gave_is_not_followed() -> None:
    lists = Lists()
    assert lists.page(A, tag="t", nextCursor="2") == []
    assert lists.page(B, tag="u", nextCursor="2") == []
    assert lists.page(C, tag="t", cursor="2") == []


def test_a_new_server_does_not_continue_the_list_of_the_one_before() -> None:
    lists = Lists()
    assert lists.page(A, tag="t") == []
    assert lists.page(A, tag="t", nextCursor="2") == []
    lists.talk.conversation.end(Party.SERVER)
    lists.talk.conversation.renew()
    assert lists.page(B, tag="u", cursor="2") == []
    assert lists.page(B, tag="t") == ["draft/tag"]


def test_the_lists_of_a_lost_server_are_handed_down() -> None:
    before = Lists()
    assert before.page(A, tag="t") == []
    assert before.page(A, tag="u", nextCursor="2") == []
    after = Lists(tools=before.talk.conversation.tools.handed_down())
    assert after.page(B, tag="v", cursor="2") == []
    assert after.page(B, tag="t") == ["draft/tag"]


# ── server/discover ──────────────────────────────────────────────────────────────────────────────────────────────────

ITSELF: dict[str, Any] = {"supportedVersions": [REVISION, "2025-11-25"], "capabilities": {"tools": {}}}


@pytest.mark.parametrize(
    ("first", "second", "found"),
    [
        ({"tag": "t"}, {"tag": "t", "ttlMs": 7, "_meta": {"a": 1}}, []),
        ({"tag": "t"}, {"tag": "t", "supportedVersions": ["2025-11-25", REVISION]}, []),
        ({"tag": "t"}, {"tag": "t", "instructions": "Send letters."}, ["draft/tag"]),
        ({"tag": "t"}, {"tag": "t", "capabilities": {}}, ["draft/tag"]),
        ({"digest": "t"}, {"digest": "u"}, ["draft/tag-changed"]),
        ({"tag": "t"}, {"tag": "u", "instructions": "Be kind."}, []),
        ({"tag": 7}, {}, ["draft/tag-shape"]),
    ],
)
def test_the_tag_of_a_description(first: dict[str, Any], second: dict[str, Any], found: list[str]) -> None:
    talk, every = Talk(preview=True), []
    for ident, members in enumerate((first, second)):
        good(talk.client(asks(ident, DISCOVER)))
        told = {**ITSELF, **COMPLETE, "ttlMs": 0, "cacheScope": "public", **members}
        every += rules(talk.server(result(ident, told)))
    assert every == found


# ── shapes ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("value", [7, None, {}, [], True])
@pytest.mark.parametrize("name", ["tag", "digest"])
def test_a_tag_is_a_string(name: str, value: Any) -> None:
    assert Lists().page(A, **{name: value}) == ["draft/tag-shape"]


def test_what_is_read_has_no_tag() -> None:
    talk = Talk(preview=True)
    good(talk.client(asks(1, "resources/read", uri="file:///a")))
    read = {"contents": [], **COMPLETE, "ttlMs": 0, "cacheScope": "public", "tag": "t"}
    assert rules(talk.server(result(1, read))) == ["draft/tag-shape"]


@pytest.mark.parametrize("name", ["knownTags", "knownDigests"])
@pytest.mark.parametrize(
    ("value", "places"),
    [
        ({}, []),
        ({"tools/list": "t", "skills/list": "u"}, []),
        ("t", [""]),
        (["tools/list"], [""]),
        ({"tools/list": 1, "prompts/list": "t", "server/discover": None}, ["/tools~1list", "/server~1discover"]),
    ],
)
def test_known_tags_map_methods_to_strings(name: str, value: Any, places: list[str]) -> None:
    talk = Talk(preview=True, policy=SEVERE)
    verdict = talk.client(asks(1, "tools/list", {PREFIX + name: value}))
    assert [each.at for each in verdict.violations] == [
        f"/params/_meta/io.modelcontextprotocol~1{name}{at}" for at in places
    ]
    assert rules(verdict) == ["draft/tag-shape"] * len(places)
    assert verdict.onward is verdict.frame


@pytest.mark.parametrize(
    ("required", "found"),
    [
        ({}, []),
        ({"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}}, []),
        ({"sampling": {"tools": {}}}, []),
        (["elicitation"], ["draft/required-capabilities"]),
        ({"elicitation": True}, ["draft/required-capabilities"]),
        (None, ["draft/required-capabilities"]),
    ],
)
def test_required_capabilities_are_capabilities_of_a_client(required: Any, found: list[str]) -> None:
    tool = {**A, "_meta": {PREFIX + "requiredCapabilities": required}}
    assert Lists(policy=SEVERE).page(B, tool) == found


# ── stale tags ───────────────────────────────────────────────────────────────────────────────────────────────────────

KNOWN = {"tools/list": "t", "prompts/list": "p", "server/discover": "d"}
CALLED: dict[str, Any] = {"content": [], **COMPLETE}


def asked(known: Any, method: str = "tools/call", **options: Any) -> Talk:
    """A conversation in which a request with known tags was forwarded."""
    talk = Talk(**{"preview": True, **options})
    params: dict[str, Any] = {"name": "a", "arguments": {}} if method == "tools/call" else {"uri": "file:///a"}
    good(talk.client(asks(1, method, {} if known is None else {PREFIX + "knownTags": known}, **params)))
    return talk


STALE = [
    (KNOWN, [], []),
    (KNOWN, ["tools/list"], []),
    (KNOWN, ["prompts/list", "server/discover"], []),
    (KNOWN, ["resources/list"], ["draft/stale-tags"]),
    (KNOWN, ["tools/list", "t"], ["draft/stale-tags"]),
    (KNOWN, "tools/list", ["draft/stale-tags"]),
    (KNOWN, {"tools/list": "t"}, ["draft/stale-tags"]),
    (KNOWN, [1, None], ["draft/stale-tags", "draft/stale-tags"]),
    (None, ["tools/list"], ["draft/stale-tags"]),
    # Too many to remember: what they name is not judged.
    ({f"x{number}/list": "t" for number in range(1000)}, ["tools/list"], []),
    ({"tools/list": "t" * 10_000}, ["prompts/list"], []),
]


@pytest.mark.parametrize("name", ["staleTags", "staleDigests"])
@pytest.mark.parametrize(("known", "stale", "found"), STALE)
def test_a_result_names_methods_whose_tags_were_sent(known: Any, stale: Any, found: list[str], name: str) -> None:
    verdict = asked(known, policy=SEVERE).server(result(1, {**CALLED, "_meta": {PREFIX + name: stale}}))
    assert rules(verdict) == found
    assert verdict.onward is verdict.frame


@pytest.mark.parametrize(
    ("method", "stale", "found"),
    [
        ("tools/call", ["tools/list"], []),
        ("tools/call", ["server/discover"], []),
        ("tools/call", ["prompts/list", "tools/list"], []),
        ("tools/call", ["prompts/list"], ["draft/stale-rejection"]),
        ("tools/call", [], ["draft/stale-rejection"]),
        ("tools/call", ["t"], ["draft/stale-tags", "draft/stale-rejection"]),
        ("tools/call", 5, ["draft/stale-tags"]),
        ("resources/read", ["tools/list"], ["draft/stale-rejection"]),
        ("resources/read", ["server/discover"], []),
    ],
)
@pytest.mark.parametrize("name", ["staleTags", "staleDigests", PREFIX + "staleTags"])
def test_only_a_relevant_tag_rejects_a_request(method: str, stale: Any, found: list[str], name: str) -> None:
    verdict = asked(KNOWN, method, policy=SEVERE).server(error(1, -32987, data={name: stale}))
    assert rules(verdict) == found
    assert verdict.onward is verdict.frame


def test_an_error_without_stale_tags_is_no_rejection() -> None:
    for data in ({"data": {"reason": "x"}}, {"data": "staleTags"}, {}):
        good(asked(KNOWN).server(error(1, -32603, **data)))


# ── a draft ──────────────────────────────────────────────────────────────────────────────────────────────────────────

DRAFTS = [rule for rule in RULES if rule.startswith("draft/")]


@pytest.mark.parametrize("rule", DRAFTS)
def test_a_rule_of_a_draft_is_only_reported_and_says_that_it_is_one(rule: str) -> None:
    row = RULES[rule]
    assert (row.action, row.strict, fitting(rule)) == ("report", None, ("pass",))
    assert all("draft" in text for text in (row.asks, row.source, row.fix))


def test_a_finding_says_that_it_is_about_a_draft() -> None:
    lists = Lists()
    lists.page(A, tag="t")
    ident = lists.ask()
    hints = {"ttlMs": 0, "cacheScope": "public"}
    verdict = lists.talk.server(result(ident, {"tools": [B], **COMPLETE, **hints, "tag": "t"}))
    [found] = verdict.violations
    assert "draft" in found.source
    assert "draft" in found.hint
    assert str(found) == (
        '/result/tag: expected another tag, because the definitions have changed, found "t" again [draft/tag]'
    )


def told() -> Iterator[tuple[Party, Any]]:
    """A conversation that breaks every draft."""
    hints = {"ttlMs": 0, "cacheScope": "public", **COMPLETE}
    wrong = {**A, "_meta": {PREFIX + "requiredCapabilities": 7}}
    pages: list[tuple[list[Any], dict[str, Any]]]
    pages = [([A], {"tag": "t"}), ([B], {"tag": "t"}), ([B], {"tag": "u"}), ([wrong], {"tag": 7})]
    for number, (tools, members) in enumerate(pages):
        yield Party.CLIENT, asks(number, "tools/list", {PREFIX + "knownTags": 7})
        yield Party.SERVER, result(number, {"tools": tools, **hints, **members})
    yield Party.CLIENT, asks("first", "tools/list")
    yield Party.SERVER, result("first", {"tools": [A], **hints, "tag": "x", "nextCursor": "2"})
    yield Party.CLIENT, asks("second", "tools/list", cursor="2")
    yield Party.SERVER, result("second", {"tools": [B], **hints, "tag": "y"})
    yield Party.CLIENT, asks("call", "tools/call", name="a", arguments={})
    yield Party.SERVER, result("call", {**CALLED, "_meta": {PREFIX + "staleTags": 7}})
    yield Party.CLIENT, asks("again", "tools/call", name="a", arguments={})
    yield Party.SERVER, error("again", -32987, data={"staleTags": ["prompts/list"]})


@pytest.mark.parametrize("mode", ["audit", "enforce"])
def test_without_the_switch_all_of_it_passes_as_unknown_members(mode: str) -> None:
    plain, preview = Talk(mode=mode, policy=SEVERE), Talk(mode=mode, policy=SEVERE, preview=True)
    found: set[str] = set()
    for party, message in told():
        good(plain.conversation.hear(party, frame_of(message)))
        verdict = preview.conversation.hear(party, frame_of(message))
        assert verdict.onward is verdict.frame
        assert verdict.accepted
        found.update(rules(verdict))
    assert found == set(DRAFTS)
    assert plain.conversation.tools.tags is None


@pytest.mark.parametrize("revision", [each for each in REVISIONS if handshake(each)])
def test_revisions_with_a_handshake_have_no_tags(revision: str) -> None:
    talk = Talk(preview=True).opened(revision)
    for ident, tools in enumerate(([A], [A, B])):
        good(talk.client(request(ident, "tools/list", {"_meta": {PREFIX + "knownTags": 7}})))
        good(talk.server(result(ident, {"tools": tools, "tag": "t", "_meta": {PREFIX + "staleTags": 7}})))


# ── over HTTP, and bounds ────────────────────────────────────────────────────────────────────────────────────────────


def heard(tools: Tools, ident: int, listed: list[Any], cursor: str | None = None, **members: Any) -> list[str]:
    """The rules that a list breaks, in a conversation of its own that shares *tools* with the others."""
    one = Conversation(revision=REVISION, tools=tools, preview=True)
    facts = Facts("http", REVISION)
    params: dict[str, Any] = {} if cursor is None else {"cursor": cursor}
    good(one.hear(Party.CLIENT, frame_of(asks(ident, "tools/list", **params)), facts))
    answer = {"tools": listed, **COMPLETE, "ttlMs": 0, "cacheScope": "public", **members}
    verdict = one.hear(Party.SERVER, frame_of(result(ident, answer)), facts)
    return [rule for rule in rules(verdict) if rule != "protocol/list-order"]


def test_requests_without_a_session_share_the_tags() -> None:
    tools = Tools(100)
    assert heard(tools, 1, [A, B], tag="t") == []
    assert heard(tools, 1, [B], tag="t", nextCursor="2") == []
    assert heard(tools, 1, [A], "2", tag="t") == []
    assert heard(tools, 1, [B], tag="t", nextCursor="2") == []
    assert heard(tools, 1, [A], "2", tag="u") == ["draft/tag-pages"]
    assert heard(tools, 1, [OTHER, A], tag="t") == ["draft/tag"]
    assert heard(Tools(100), 1, [A], tag="t") == []


def test_what_is_kept_of_tags_is_bounded() -> None:
    lists = Lists()
    for number in range(200):
        tool = {**A, "name": f"a{number}"}
        assert lists.page(tool, tag=f"t{number}") == []
        assert lists.page(tool, tag="p" * 100_000, nextCursor=f"c{number}") == []
    tags = lists.talk.conversation.tools.tags
    assert len(tags._known) == len(tags._given) == 64
    assert all(len(tag) == 16 for _, tag in tags._known)
    # Forgotten, and remembered.
    assert lists.page(A, tag="t1") == []
    assert lists.page(A, tag="t199") == ["draft/tag"]
    assert lists.page(A, tag="l", nextCursor="x" * 2000) == []
    assert lists.page(B, tag="m", cursor="x" * 2000) == []

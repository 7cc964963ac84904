"""Keys that another parser would take for a defined one: refused as a repeated key is. Ours; nothing else is."""

from typing import Any

from assay.judge.conversation import Conversation
from assay.model.verdict import Party, Verdict
from assay.schema.look_alikes import _FOREIGN, Keys, folded
from assay.spec.methods import methods
from assay.spec.revisions import LATEST, REVISIONS, handshake
from kit.rows import rows
from kit.talk import NOT_JUDGED, frame_of, notification, request, result

CLIENT, SERVER = Party.CLIENT, Party.SERVER
META = {"io.modelcontextprotocol/protocolVersion": LATEST, "io.modelcontextprotocol/clientCapabilities": {}}
SPELLINGS = {
    "method": ["Method", "METHOD", "methoD", "method\0", "\0method", "\0me\0thod", "ｍethod", "𝐦ethod"],
    "params": ["paramſ"],
    "kelvin": ["Kelvin"],
    "Maße": ["MASSE"],
    "é": ["e\u0301"],
    "fi": ["ﬁ"],
    "nextCursor": ["nextcursor"],
}


@rows(("defined", "spelling"), [(defined, each) for defined, every in SPELLINGS.items() for each in every])
def test_another_spelling_of_a_defined_key_is_recognised(defined: str, spelling: str) -> None:
    """Case is folded as Unicode does it, and forms are compatible."""
    assert list(Keys([defined]).look_alikes({spelling: 1, defined: 2})) == [(spelling, defined)]
    assert list(Keys([defined]).look_alikes({spelling: 1})) == [(spelling, defined)]


@rows("key", ["methods", "meth od", "x-method", "acme/method", "me thod", "", "\0", "mеthod", "method "])
def test_other_keys_are_anybodys(key: str) -> None:
    """A Cyrillic letter looks the same to people, and to no parser."""
    assert Keys(["method"]).is_plain({key: 1})


def test_both_spellings_may_be_defined() -> None:
    assert Keys(["path", "Path"]).is_plain({"path": 1, "Path": 2})
    assert list(Keys(["path", "Path"]).look_alikes({"PATH": 3})) == [("PATH", "path")]


def test_a_long_key_costs_next_to_nothing_and_is_shown_short() -> None:
    keys = Keys(["method"])
    assert keys.is_plain({"ﷺ" * 1_000_000: 1})
    [wrong] = keys.check("envelope/look-alike-key", {"method" + "\0" * 1_000_000: 1}, "", 20, None)
    assert len(str(wrong)) < 1000


def opened(revision: str, mode: Any = "enforce") -> Conversation:
    """A conversation with a tool in it that takes a path."""
    conversation = Conversation(revision=revision, mode=mode)
    schema = {"type": "object", "properties": {"path": {"type": "string"}, "Case": {}, "case": {}}}
    tools = [{"name": "read", "inputSchema": schema}, {"name": "free", "inputSchema": {"type": "object"}}]
    _say(conversation, request("list", "tools/list", _meta(revision)))
    listed: dict[str, Any] = {"tools": tools}
    if not handshake(revision):
        listed |= {"resultType": "complete", "ttlMs": 0, "cacheScope": "public"}
    assert conversation.hear(SERVER, frame_of(result("list", listed))).accepted
    return conversation


def _meta(revision: str, **more: Any) -> dict[str, Any]:
    return {"_meta": {**META, **more}} if not handshake(revision) else {"_meta": more} if more else {}


def _say(conversation: Conversation, message: Any) -> Verdict:
    return conversation.hear(CLIENT, frame_of(message))


def rules(verdict: Verdict) -> list[str]:
    return [each.rule for each in verdict.violations if each.rule not in {NOT_JUDGED, "contract/unknown-argument"}]


def _call(revision: str, arguments: Any, **more: Any) -> dict[str, Any]:
    return {"name": "read", "arguments": arguments, **_meta(revision), **more}


@rows("revision", REVISIONS)
@rows("mode", ["enforce", "audit"])
def test_in_a_call_each_of_the_three_places_is_looked_at(revision: str, mode: str) -> None:
    """Once the tool is known and compiled, so that a good call would be settled by the quick look."""
    conversation = opened(revision, mode)
    good = _call(revision, {"path": "a", "other": 1, "Case": 1, "case": 2})
    for ident in (1, 2):
        assert rules(_say(conversation, request(ident, "tools/call", good))) == []
        assert conversation.hear(SERVER, frame_of(result(ident, _result(revision)))).findings is None
    bad = {
        "envelope/look-alike-key": {**request(3, "tools/call", good), "Id": 4},
        "protocol/look-alike-key": request(4, "tools/call", {**good, "Arguments": {}}),
        "contract/look-alike-key": request(5, "tools/call", _call(revision, {"path": "a", "Path": "b"})),
    }
    for rule, message in bad.items():
        verdict = _say(conversation, message)
        assert rules(verdict) == [rule]
        assert verdict.accepted is False
        assert (verdict.onward is verdict.frame) is (mode == "audit")
    alone = _say(conversation, request(6, "tools/call", _call(revision, {"PATH": "a"})))
    assert rules(alone) == ["contract/look-alike-key"]


def _result(revision: str, **more: Any) -> dict[str, Any]:
    return {"content": [], **({} if handshake(revision) else {"resultType": "complete"}), **more}


@rows("revision", REVISIONS)
def test_in_meta_the_keys_of_the_revision_have_one_spelling(revision: str) -> None:
    conversation = opened(revision)
    for word in ["progresstoken", "PROGRESSTOKEN"] + (
        [] if handshake(revision) else ["io.modelcontextprotocol/PROTOCOLVERSION"]
    ):
        params = {"name": "read", "arguments": {}, **_meta(revision, **{word: 1})}
        verdict = _say(conversation, request(7, "tools/call", params))
        assert rules(verdict) == ["protocol/look-alike-key"]
        assert verdict.violations[0].at.startswith("/params/_meta/")


@rows("revision", REVISIONS)
def test_a_result_has_one_spelling_and_may_have_more_members(revision: str) -> None:
    conversation = opened(revision)
    ids = iter(range(10, 30))

    def answered(**more: Any) -> Verdict:
        ident = next(ids)
        _say(conversation, request(ident, "tools/call", _call(revision, {"path": "a"})))
        return conversation.hear(SERVER, frame_of(result(ident, _result(revision, **more))))

    for _ in range(2):
        assert answered(more=1, vendor={}, structuredContent={}).findings is None
        assert answered(_meta={"acme/thing": 1}).findings is None
        assert rules(answered(Content=[])) == ["protocol/look-alike-key"]
        assert rules(answered(ISERROR=True)) == ["protocol/look-alike-key"]


@rows("revision", REVISIONS)
def test_every_method_names_its_own_members(revision: str) -> None:
    """What one method defines is another's vendor key; a method that no one knows defines nothing."""
    conversation = opened(revision)
    assert "tools/list" in methods(revision)
    listed = _say(conversation, request(1, "tools/list", {"Name": "x", "Uri": "y", **_meta(revision)}))
    assert "protocol/look-alike-key" not in rules(listed)
    unknown = _say(conversation, request(2, "acme/run", {"Name": "x", "_Meta": 1, **_meta(revision)}))
    assert "protocol/look-alike-key" not in rules(unknown)
    note = notification("notifications/cancelled", {"requestId": 1, "RequestId": 2})
    assert "protocol/look-alike-key" in rules(_say(conversation, note))


def test_the_quick_look_leaves_out_no_character_that_folds_to_ascii() -> None:
    every = map(chr, (*range(0x80, 0xD800), *range(0xE000, 0x110000)))
    assert [each for each in every if _FOREIGN.search(each) is not None and folded(each).isascii()] == []


@rows("key", ["method\0x", "ıd", "İd", "ID\0x"])
def test_what_some_reader_takes_for_a_defined_key_is_one(key: str) -> None:
    """To readers of C a NUL ends a key; to Java the Turkish letters are an i."""
    assert not Keys({"method", "id"}).is_plain({key: 1})


def test_only_so_many_keys_are_folded() -> None:
    """Ours: a message of 5 MB with other letters in its keys took a second."""
    keys = Keys({"method"})
    assert keys.is_plain({f"ключ{n}": 1 for n in range(30_000)})
    assert keys.is_plain({f"ﬃ{n}": 1 for n in range(20_000)})
    assert not keys.is_plain({f"ﬃ{n}": 1 for n in range(20_001)})


def test_a_long_key_is_not_folded() -> None:
    """Ours: normalising a long run of marks takes a time that grows with its square."""
    keys = Keys({"p" * 4000, "method"})
    assert keys.is_plain({"\u0345" * 8000 + "\u0334" * 8000: 1})

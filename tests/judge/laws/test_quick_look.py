"""
Calls of tools and their results have a quick way through a conversation. It must not show: with the quick way switched
off, every verdict and all that is remembered are the same.
"""

from collections.abc import Callable
from typing import Any

from hypothesis import event, given
from hypothesis import strategies as st

from assay.judge.conversation import Conversation
from assay.judge.quick_look import QuickLook
from assay.model.json_values import CAPABILITIES_KEY, REVISION_KEY
from assay.model.limits import Limits
from assay.model.verdict import Exchange, Party, Verdict
from assay.spec.revisions import REVISIONS, handshake
from assay.spec.schema import protocol_schema
from kit.generated_messages import scalars, texts, values
from kit.laws import law
from kit.parties import CLIENT, META, SERVER, Mode, frame, negotiated, opened, request, result
from kit.rows import rows

# ── the two ways ─────────────────────────────────────────────────────────────────────────────────────────────────────


class NoQuickLook(QuickLook):
    """A quick look that leaves every verdict to the thorough way."""

    def call(self, _: dict[str, Any]) -> None:
        return None

    def result(self, _: dict[str, Any]) -> None:
        return None


def thorough(conversation: Conversation) -> Conversation:
    """*conversation* without its quick way."""
    conversation._quick = NoQuickLook(conversation._state)
    return conversation


def shown(exchange: Exchange | None) -> tuple[object, ...] | None:
    """All that counts of an exchange."""
    if exchange is None:
        return None
    return (
        exchange.asker, exchange.method, exchange.revision, repr(exchange.id), exchange.state, exchange.token,
        exchange.tool, exchange.declared, exchange.as_task, exchange.contract and exchange.contract.name,
    )  # fmt: skip


def seen(verdict: Verdict) -> dict[str, object]:
    """All that a verdict says, and whether it passes the very frame on."""
    return {
        "kind": verdict.kind,
        "accepted": verdict.accepted,
        "violations": verdict.violations,
        "more": verdict.more,
        "onward": verdict.onward,
        "verbatim": verdict.onward is verdict.frame,
        "back": verdict.back,
        "revision": verdict.revision,
        "method": verdict.method,
        "exchange": shown(verdict.exchange),
        "parts": [seen(part) for part in verdict.parts],
    }


def remembered(conversation: Conversation) -> dict[str, object]:
    """All that a conversation keeps of both sides, in its order."""
    return {
        side.party.value: (
            [(repr(ident), shown(each)) for ident, each in side.open.items()],
            [(repr(ident), shown(each)) for ident, each in side.settled.items()],
            list(side.tokens.items()),
            side.garbage,
        )
        for side in conversation._parties.values()
    }


# ── what is said ─────────────────────────────────────────────────────────────────────────────────────────────────────

TOOLS: list[dict[str, Any]] = [
    {"name": "plain", "inputSchema": {"type": "object"}},
    {"name": "typed", "inputSchema": {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}},
     "required": ["n"], "additionalProperties": False},
     "outputSchema": {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}},
    # Its schema is set aside, so that it is not judged by.
    {"name": "quarantined", "inputSchema": {"type": "object", "properties": {"a": {"type": "strnig"}}}},
]  # fmt: skip
CHANGED = [{"name": "typed", "inputSchema": {"type": "object"}}, {"name": "new", "inputSchema": {"type": "object"}}]

GOOD_IDS = (1, 2, "a", "")
ODD_IDS: tuple[Any, ...] = (
    "a" * 1024, "a" * 1025, "a" * 2000, 1.0, 2.5, True, None, 2**70, -(2**63), 2**64 - 1, "1", [], {}, -1,
)  # fmt: skip
ids = st.one_of(st.sampled_from(GOOD_IDS), st.sampled_from(GOOD_IDS), st.sampled_from(ODD_IDS), texts)

_ABSENT: Any = object()
"""Stands for a member that is left out."""


def members(**named: Any) -> dict[str, Any]:
    """An object of those that are there."""
    return {name: value for name, value in named.items() if value is not _ABSENT}


def mostly(usual: Any, *others: Any) -> st.SearchStrategy[Any]:
    """*usual* in half of all cases, else one of the others."""
    return st.one_of(st.just(usual), st.sampled_from(others))


names = st.one_of(
    st.sampled_from(["plain", "typed", "quarantined"]), mostly("typed", "new", "unknown", "", 5, None, [], {}, _ABSENT)
)
arguments = st.one_of(
    mostly({"n": 1}, {}, {"n": 0}, {"n": 1.0}, {"n": "1"}, {"n": 2**70}, {"n": 1, "x": 1}),
    mostly({}, _ABSENT, None, [], "{}", 5),
    st.dictionaries(texts, values(1), max_size=2),
)


BEYOND: tuple[dict[str, Any], ...] = (
    {"extensions": {"io.modelcontextprotocol/tasks": {}}},
    {"extensions": {"io.modelcontextprotocol/tasks": True}},
    {"extensions": {"com.example/acme": {}}},
    {"extensions": {"acme": {}}},
    {"experimental": {"acme": {}}},
)
"""Capabilities that a server may answer with result types of their own."""


def metas(revision: str) -> st.SearchStrategy[Any]:
    """What may stand in `_meta`; what the revision wants first."""
    usual = _ABSENT if handshake(revision) else META
    named = {REVISION_KEY: revision}
    return mostly(
        usual,
        _ABSENT,
        META,
        {},
        None,
        5,
        {"progressToken": "t"},
        META | {"progressToken": 1},
        META | {"progressToken": "t" * 2000},
        META | {"progressToken": []},
        META | {"x": 1},
        named,
        named | {CAPABILITIES_KEY: {}},
        named | {CAPABILITIES_KEY: 5},
        named | {CAPABILITIES_KEY: None},
        named | {CAPABILITIES_KEY: {"sampling": {}}},
        *(named | {CAPABILITIES_KEY: declared} for declared in BEYOND),
        META | {REVISION_KEY: "2025-06-18"},
        META | {REVISION_KEY: "2030-01-01"},
        META | {REVISION_KEY: 5},
    )


@st.composite
def calls(draw: st.DrawFn, revision: str) -> tuple[Party, Any]:
    """A call of a tool, more or less."""
    params = members(name=draw(names), arguments=draw(arguments), _meta=draw(metas(revision)))
    params |= draw(mostly({}, {"x": 1}, {"task": {}}, {"task": 5}, {"inputResponses": {}}, {"requestState": 5}))
    message = members(
        jsonrpc=draw(mostly("2.0", "1.0", 2.0, _ABSENT)), id=draw(ids), method="tools/call", params=params
    )
    return CLIENT, message | draw(mostly({}, {"x": 1}, {"result": {}}, {"error": None}, {"params": []}))


GOOD_RESULTS: tuple[Any, ...] = (
    {"content": []},
    {"content": [], "structuredContent": {"ok": True}},
    {"content": [{"type": "text", "text": "é"}], "structuredContent": {"ok": False, "more": 1}},
    {"content": [], "isError": True},
)
ODD_RESULTS: tuple[Any, ...] = (
    {}, [], None, 5, {"content": 5}, {"content": [], "structuredContent": {}},
    {"content": [], "structuredContent": {"ok": 1}},
    {"content": [], "structuredContent": {"ok": 1}, "isError": True},
    {"content": [], "structuredContent": 5}, {"content": [], "isError": "true"}, {"content": [], "_meta": {}},
    {"content": [], "_meta": 5}, {"content": [{"type": "resource_link", "uri": "no uri", "name": "n"}]},
    {"content": [{"type": "nonsense"}]}, {"content": [], "x": 1}, {"task": {"taskId": "t"}},
)  # fmt: skip
TEXT = {"type": "text", "text": "é"}
SHAPES = st.builds(
    lambda content, structure, failure, more: (
        members(content=content, structuredContent=structure, isError=failure) | more
    ),
    mostly(
        *([TEXT], [], [TEXT, TEXT], [TEXT | {"annotations": {}}], [{"type": "text"}], [{"type": "text", "text": 5}]),
        *([{"type": "text", "Text": "é"}], [{"type": "image", "text": "é"}], [{"type": "text", "text": None}]),
        *([TEXT, {"type": "image", "data": "AA==", "mimeType": "image/png"}], [["type", "text"]], ["ab"], [5], [None]),
        *([{}], {}, TEXT, "", "ab", 5, None, _ABSENT),
    ),
    mostly(_ABSENT, {}, {"ok": True}, {"ok": [{}]}, [], "{}", 5, None, True),
    mostly(_ABSENT, True, False, 1, "true", None),
    mostly({}, {"x": 1}, {"Content": []}, {"iserror": True}, {"_meta": {}}, {"_meta": 5}),
)
KINDS = ("complete", "input_required", "partial", "", 5, None)


@st.composite
def results(draw: st.DrawFn, revision: str) -> tuple[Party, Any]:
    """A result of a tool, more or less."""
    odd = st.one_of(st.sampled_from(ODD_RESULTS), SHAPES)
    value = draw(st.one_of(st.sampled_from(GOOD_RESULTS), st.sampled_from(GOOD_RESULTS), odd))
    if isinstance(value, dict):
        usual = _ABSENT if handshake(revision) else "complete"
        value = value | members(resultType=draw(mostly(usual, *KINDS, _ABSENT)))
    message = members(jsonrpc=draw(mostly("2.0", "1.0", _ABSENT)), id=draw(ids), result=value)
    return SERVER, message | draw(mostly({}, {"x": 1}, {"error": {"code": 1, "message": "no"}}, {"method": "ping"}))


def others(revision: str) -> st.SearchStrategy[tuple[Party, Any]]:
    """What else changes what is known."""
    meta = {} if handshake(revision) else {"_meta": META}
    page = {} if handshake(revision) else {"resultType": "complete", "ttlMs": 0, "cacheScope": "public"}
    error = {"code": -32601, "message": "no"}
    return st.one_of(
        st.builds(lambda ident: (SERVER, {"jsonrpc": "2.0", "id": ident, "error": error}), ids),
        st.builds(lambda ident: (CLIENT, _noted("notifications/cancelled", {"requestId": ident})), ids),
        st.builds(lambda ident: (SERVER, _noted("notifications/cancelled", {"requestId": ident})), ids),
        st.builds(
            lambda tok: (SERVER, _noted("notifications/progress", {"progressToken": tok, "progress": 1})), scalars
        ),
        st.just((SERVER, _noted("notifications/tools/list_changed", {}))),
        st.just((CLIENT, request("l", "tools/list", meta))),
        st.sampled_from([(SERVER, result("l", page | {"tools": tools})) for tools in (TOOLS, CHANGED, [])]),
        st.just((CLIENT, request("p", "ping"))),
        st.just((CLIENT, _noted("notifications/initialized", {}))),
        st.sampled_from([(party, garbage) for party in Party for garbage in ([], 5, [5])]),
    )


def _noted(method: str, params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def exchanges(revision: str) -> st.SearchStrategy[list[tuple[Party, Any]]]:
    """Calls, results and the rest, in any order; in batches too, which 2025-03-26 has."""
    one = st.one_of(calls(revision), calls(revision), results(revision), results(revision), others(revision))
    pairs = st.builds(
        lambda call, answer: [call, (SERVER, answer[1] | _same_id(call[1]))], calls(revision), results(revision)
    )
    batch = st.lists(one, min_size=1, max_size=3).map(lambda said: [(said[0][0], [each[1] for each in said])])
    return st.lists(st.one_of(pairs, pairs, one.map(lambda each: [each]), batch), min_size=1, max_size=4).map(
        lambda parts: [each for part in parts for each in part]
    )


def _same_id(call: dict[str, Any]) -> dict[str, Any]:
    return {"id": call["id"]} if "id" in call else {}


# ── the law ──────────────────────────────────────────────────────────────────────────────────────────────────────────

SMALL = Limits(open_requests=2, settled=1)


def _listed(conversation: Conversation, revision: str) -> Conversation:
    for party, message in (
        (CLIENT, request("l", "tools/list", {} if handshake(revision) else {"_meta": META})),
        (SERVER, result("l", {"tools": TOOLS, "resultType": "complete", "ttlMs": 0, "cacheScope": "public"})),
    ):
        assert conversation.hear(party, frame(message)).accepted
    return conversation


STARTS: dict[str, Callable[[str, Mode], Conversation]] = {
    "opened": lambda revision, mode: _listed(opened(revision, mode), revision),
    "small": lambda revision, mode: _listed(opened(revision, mode, limits=SMALL), revision),
    "joined": lambda revision, mode: _listed(Conversation(mode=mode, revision=revision), revision),
    "strict": lambda revision, mode: _listed(Conversation(mode=mode, revision=revision, profile="strict"), revision),
    "no errata": lambda revision, mode: _listed(Conversation(mode=mode, revision=revision, errata=False), revision),
    "not yet": lambda revision, mode: negotiated(revision, mode) if handshake(revision) else Conversation(mode=mode),
}


def assert_same(start: str, revision: str, mode: Mode, spoken: list[tuple[Party, Any]]) -> None:
    """Both ways say the same of *spoken*, and remember the same."""
    usual, slow = STARTS[start](revision, mode), thorough(STARTS[start](revision, mode))
    for party, message in spoken:
        each = frame(message)
        expected = seen(slow.hear(party, each))
        assert seen(usual.hear(party, each)) == expected
        assert remembered(usual) == remembered(slow)
        assert {name: tool.name for name, tool in usual.tools.known.items()} == {
            name: tool.name for name, tool in slow.tools.known.items()
        }


@rows("start", STARTS)
@rows("revision", REVISIONS)
@law(24)
@given(data=st.data(), mode=st.sampled_from(["enforce", "audit"]))
def test_the_quick_way_does_not_show(start: str, revision: str, mode: Mode, data: st.DataObject) -> None:
    """Ours: the quick way is an economy, so no verdict and nothing remembered may depend on it."""
    assert_same(start, revision, mode, data.draw(exchanges(revision)))


@rows("revision", REVISIONS)
def test_the_quick_way_is_taken(revision: str) -> None:
    """Without this the law would say nothing: a good call and its result never come to the thorough way."""
    conversation = _listed(opened(revision), revision)
    taken: list[object] = []
    conversation._message = lambda *spoken: taken.append(spoken)  # type: ignore[method-assign, assignment]  # to see what comes here
    meta = {} if handshake(revision) else {"_meta": META}
    value = {"content": [], "structuredContent": {"ok": True}} | (
        {} if handshake(revision) else {"resultType": "complete"}
    )
    for party, message in (
        (CLIENT, request(1, "tools/call", {"name": "typed", "arguments": {"n": 1}} | meta)),
        (SERVER, result(1, value)),
    ):
        assert conversation.hear(party, frame(message)).accepted
    assert taken == []


# ── contracts ────────────────────────────────────────────────────────────────────────────────────────────────────────


@rows("revision", REVISIONS)
@law(60)
@given(count=st.one_of(scalars, st.integers(-2, 3)), more=st.dictionaries(texts, scalars, max_size=1))
def test_arguments_keep_to_the_contract_of_the_tool(revision: str, count: Any, more: dict[str, Any]) -> None:
    """MCP, server/tools; design.md, rendering: an `isError` result from 2025-11-25 on and -32602 before."""
    from json import loads

    conversation = _listed(opened(revision), revision)
    meta = {} if handshake(revision) else {"_meta": META}
    spoken = frame(request("é", "tools/call", {"name": "typed", "arguments": more | {"n": count}} | meta))
    verdict = conversation.hear(CLIENT, spoken)
    whole = isinstance(count, int | float) and not isinstance(count, bool) and count == int(count) and count >= 1
    kept = whole and not (more.keys() - {"n"})
    assert verdict.accepted == kept
    event(f"kept: {kept}")
    if kept:
        assert verdict.onward is spoken
        return
    assert verdict.onward is None
    assert {each.rule for each in verdict.violations} == {"contract/input"}
    answer = loads(verdict.back or b"null")
    assert answer["id"] == "é"
    if revision >= "2025-11-25":
        assert answer["result"]["isError"] is True
        assert protocol_schema(revision).validator("CallToolResult").is_valid(answer["result"])
    else:
        assert answer["error"]["code"] == -32602

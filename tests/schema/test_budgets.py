"""What one message may cost, counted in values, questions and bytes, never in time."""

import gc
import json
import weakref
from itertools import count
from typing import Any

import orjson
import pytest

from assay import Conversation, Party
from assay.judge import list_filter, syntax
from assay.model import large_frames
from assay.model.limits import Limits
from assay.model.verdict import Violation
from assay.records.outcomes import title
from assay.rules.report import Report
from assay.schema import compiled as engine
from assay.schema import store
from assay.schema.budget import LARGE, STEPS, Budget
from assay.schema.tool_contract import Contract
from assay.schema.tool_contracts import MOST_QUARANTINED, Tools
from kit.rows import rows
from kit.talk import ALL_SERVER, Talk, call, good, request, result, rules

ANY: dict[str, Any] = {"type": "object"}
GUARDED = Limits(frame_bytes=16 << 20)

# ── values ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def rule_of(frame: bytes, **more: int) -> str | None:
    value = syntax.read(frame, **more)
    return value.rule if isinstance(value, Violation) else None


@rows(
    ("frame", "values"),
    [
        pytest.param(b"1", 0, id="scalar"),
        pytest.param(b"[1,2,3]", 3, id="array"),
        pytest.param(b'{"a":1,"b":2}', 4, id="object"),
        pytest.param(b"[{},[]]", 4, id="empty-ones"),
        pytest.param(b'["a,b","c:[{"]', 2, id="marks-in-strings"),
        pytest.param(rb'["\",\",\\","\\\",",","]', 3, id="escapes"),
        pytest.param('["ü,ü"]'.encode(), 1, id="utf-8"),
        pytest.param(b'{"csv":"' + b"1,2,3:[{" * 1_000 + b'"}', 2, id="a-table-in-a-string"),
    ],
)
def test_values_and_keys_are_counted_outside_of_strings(frame: bytes, values: int) -> None:
    orjson.loads(frame)
    assert large_frames.counted(frame, values) == values
    assert not large_frames.more_than(frame, max(values, 1))


def test_too_many_values_are_refused_before_anything_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(syntax, "_loads", lambda _: pytest.fail("parsed"))
    monkeypatch.setattr("jiter.from_json", lambda *_, **__: pytest.fail("parsed"))
    assert rule_of(b'["\\u003a",' + b"{}," * 1_000_000 + b"{}]") == "syntax/values"


@rows("mode", ["enforce", "audit"])
def test_a_message_with_too_many_values_passes_under_audit_only(mode: Any) -> None:
    talk = Talk(mode=mode, limits=Limits(values=1_000)).opened()
    verdict = talk.client(request(1, "ping", {"x": [1] * 2_000}))
    assert rules(verdict) == ["syntax/values"]
    assert (verdict.onward == verdict.frame) is (mode == "audit")
    assert "limits.values" in verdict.violations[0].hint


def test_the_collector_is_left_as_it_was() -> None:
    talk = Talk(limits=GUARDED).opened()
    for enabled in (True, False):
        (gc.enable if enabled else gc.disable)()
        try:
            talk.client(request(2, "ping", {"x": [[]] * LARGE}))
            assert gc.isenabled() is enabled
        finally:
            gc.enable()


# ── keys and ids ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_place_of_a_repeated_key_is_looked_for_in_small_frames_only(monkeypatch: pytest.MonkeyPatch) -> None:
    small = syntax.read(b'[{"a":{"b":1,"b":2}}]')
    assert (small.at, small.found) == ("/0/a/b", 'the key "b" more than once')
    monkeypatch.setattr(json, "loads", lambda *_, **__: pytest.fail("read by Python"))
    large = syntax.read(b'[{"b":1,"b":2},"' + b"x" * (1 << 17) + b'"]')
    assert (large.rule, large.at) == ("syntax/duplicate-key", "")


# ── steps of the engine ──────────────────────────────────────────────────────────────────────────────────────────────

ALL_OF: dict[str, Any] = {"properties": {"x": {"items": {"allOf": [{"type": "integer"}] * 74}}}}


@rows("size", [200_000, 490_000])
def test_a_call_that_would_take_too_long_to_judge_is_not_asked_about(size: int) -> None:
    """Ours: 8 million integers in 16 MiB took 10 s, while the schema counted as one that is always affordable."""
    talk = Talk(limits=GUARDED).opened().listed({"name": "t", "inputSchema": ANY | ALL_OF})
    verdict = talk.client(call(1, "t", {"x": [1] * size}))
    assert rules(verdict) == ["contract/unjudged"]
    good(talk.client(call(2, "t", {"x": [1] * 50_000})))


@pytest.mark.parametrize(
    "wrong", [{"params": {"_meta": 5}}, {"jsonrpc": "2.1"}, {"id": 1}], ids=["params", "envelope", "id-is-open"]
)
def test_a_refused_call_that_passes_is_not_judged_for_long_either(
    wrong: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under audit what its answer needs is taken from it: 490,000 numbers and ten fractions took 3.7 s."""
    talk = Talk(mode="audit", limits=GUARDED).opened().listed({"name": "t", "inputSchema": ANY | ALL_OF})
    good(talk.client(call(1, "t", {})))
    known = talk.conversation.tools.known["t"]
    assert known.input is not None
    asked = Asked(known.input)
    monkeypatch.setattr(known.input, "fits", asked)
    params = {"name": "t", "arguments": {"x": [1] * 400_000}, **wrong.get("params", {})}
    assert rules(talk.client({**call(2, "t", {}), **wrong, "params": params}))
    assert asked.count == 0


def test_all_parts_of_a_message_draw_from_one_budget() -> None:
    compiled = engine.compile_schema({"items": {"type": "integer"}})
    compiled.width = 10
    frame = b"[" + b"1," * 200_000 + b"1]"
    budget = Budget(frame, 20)
    most = STEPS // (10 * 200_000)
    asked = [budget.affords(compiled, [1] * 200_000) for _ in range(most + 1)]
    assert asked[0]
    assert not asked[-1]
    assert budget.questions(4_000) <= budget.steps // 2_000 + 1


def test_the_entries_of_a_batch_share_what_may_be_explained() -> None:
    """Ours: a batch of 1,000 wrong calls took 6 s."""
    schema = ANY | {"properties": {"x": {"type": "array", "items": {"type": "string"}}}}
    talk = Talk(limits=GUARDED).opened("2025-03-26").listed({"name": "t", "inputSchema": schema})
    talk.client([call(ident, "t", {"x": [1] * 300}) for ident in range(1, 900)])
    assert talk.conversation._budget.steps < STEPS // 10


# ── lists ────────────────────────────────────────────────────────────────────────────────────────────────────────────


class Asked:
    """Counts what the schema of a result is asked."""

    def __init__(self, definition: Any) -> None:
        self.is_valid, self.count = definition.is_valid, 0

    def __call__(self, value: Any) -> bool:
        self.count += 1
        return bool(self.is_valid(value))


_NUMBERS = count()


def listed(talk: Talk, tools: list[Any], **more: Any) -> Any:
    ident = f"list {next(_NUMBERS)}"
    good(talk.client(request(ident, "tools/list")))
    return talk.server(result(ident, {"tools": tools, **more}))


def test_entries_of_a_long_list_are_asked_about_together() -> None:
    talk = Talk(limits=GUARDED).opened()
    good(talk.client(request(1, "tools/list")))
    [exchange] = talk.conversation.open_requests(Party.CLIENT)
    tools = [{"name": f"t{n}", "inputSchema": ANY} for n in range(1_600)]
    asked = Asked(exchange.entry.result)
    assert list_filter._bad(asked, {"tools": [*tools, {}], "_meta": {}}, "tools") == {1_600}
    assert asked.count < 150
    assert list_filter._bad(asked, {"tools": [{}] * 100_000}, "tools") is None
    assert asked.count < 1_000


def learned(known: Tools, page: list[Any]) -> list[Violation]:
    """What is wrong with a list of one page."""
    report = Report("2025-11-25", Budget(b"", 20))
    known.learn(page, report)
    return report.found


def many(**schema: Any) -> list[dict[str, Any]]:
    """Three thousand tools."""
    return [{"name": f"t{number}", "inputSchema": ANY | schema} for number in range(3_000)]


@rows(
    ("tools", "stops"),
    [
        ([{"name": "t", "inputSchema": ANY}] * 3_000, True),
        (many(**{"$ref": "#"}), True),
        (many(), False),
        (many(**{"$ref": "x"}), False),
    ],
)
def test_of_very_many_tools_that_cannot_be_used_or_judged_few_are_reported(tools: list[Any], stops: bool) -> None:
    """Those that cannot be used fail the list as a whole; those that cannot be judged pass."""
    known = Tools(1_000)
    found = learned(known, tools)
    assert len(found) <= MOST_QUARANTINED + 2
    assert found[-1].at == "/result/tools"
    assert found[-1].stops is stops
    if not stops:
        assert {each.action for each in found} == {"report"}
        assert found[-1].rule == "contract/unjudged"
        assert (known.complete, known.is_quarantined("t2999")) == (False, False)


# ── schemas that are kept ────────────────────────────────────────────────────────────────────────────────────────────


def contract(name: str, arguments: Any, result: Any) -> Contract:
    return Contract({"name": name, "inputSchema": arguments, "outputSchema": result})


def padded(name: str, size: int, **more: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {**ANY, "description": "x" * size, **more}}


def test_a_schema_that_is_too_long_is_not_kept() -> None:
    known = Tools(1_000)
    [found] = learned(known, [padded("t", 300_000)])
    assert (found.rule, found.action) == ("contract/schema-size", "report")
    assert known.known["t"].size == 4 * len("t")


def test_tools_are_remembered_by_their_weight() -> None:
    talk = Talk(limits=Limits(contract_bytes=500_000, frame_bytes=16 << 20)).opened()
    verdict = listed(talk, [padded(f"t{n}", 100_000) for n in range(8)])
    assert {each.rule for each in verdict.violations} == {"contract/schema-size"}
    assert "limits.contract_bytes" in verdict.violations[0].hint
    assert verdict.onward is verdict.frame
    assert list(talk.conversation.tools.known) == ["t0", "t1", "t2", "t3"]
    assert [each.rule for each in talk.client(call(2, "t7", {})).violations] == ["contract/not-judged"]
    verdict = listed(talk, [padded(f"t{n}", 100_000) for n in range(4, 8)])
    assert verdict.accepted


def test_patterns_weigh_wherever_they_are() -> None:
    named, nested = {"patternProperties": {str(n): True for n in range(20)}}, [{"pattern": str(n)} for n in range(20)]
    assert [store.patterns(orjson.dumps({"allOf": each})) for each in ([named, {"items": named}], nested)] == [40, 20]
    assert store.weight(orjson.dumps(named)) > 20 * (64 << 10)


def test_a_compiled_schema_that_was_dropped_is_compiled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "HELD", 100_000)
    integer = {"properties": {"x": {"type": "integer"}}}
    first = contract("first", ANY | integer | {"title": "first"}, ANY | integer | {"title": "output"})
    first.prepare()
    for number in range(200):
        store.compiled(orjson.dumps({"title": f"another {number}", "description": "x" * 1_000}))
    assert not first.ready
    assert sum(map(store.weight, store._HELD)) <= 130_000
    talk = Talk().opened().listed({"name": "t", "inputSchema": ANY | integer, "outputSchema": ANY | integer})
    good(talk.client(call(1, "t", {"x": 1})))
    talk.conversation.tools.known["t"].release()
    verdict = talk.server(result(1, {"content": [], "structuredContent": {"x": "no"}}))
    assert rules(verdict) == ["contract/output"]
    talk.conversation.tools.known["t"].release()
    assert rules(talk.client(call(2, "t", {"x": "no"}))) == ["contract/input"]


# ── tasks ────────────────────────────────────────────────────────────────────────────────────────────────────────────

TASKS = ALL_SERVER | {"tasks": {"requests": {"tools": {"call": {}}}}}
PROMISING = {
    "name": "t",
    "inputSchema": ANY,
    "outputSchema": ANY | {"required": ["hits"]},
    "execution": {"taskSupport": "optional"},
}


def task(ident: str) -> dict[str, Any]:
    return {"taskId": ident, "status": "working", "createdAt": "now", "lastUpdatedAt": "now", "ttl": None}


def run_as_task(talk: Talk, ident: int, name: str) -> Any:
    good(talk.client(request(ident, "tools/call", {"name": "t", "arguments": {}, "task": {}})))
    return talk.server(result(ident, {"task": task(name)}))


def test_the_id_of_a_task_is_bounded() -> None:
    talk = Talk().opened(server=TASKS).listed(PROMISING)
    verdict = run_as_task(talk, 1, "x" * 1_025)
    assert [(each.rule, each.at) for each in verdict.violations] == [("protocol/token-size", "/result/task/taskId")]
    verdict = talk.client(request(2, "tasks/result", {"taskId": "x" * 1_025}))
    assert [(each.rule, each.at) for each in verdict.violations] == [("protocol/token-size", "/params/taskId")]


def test_the_payload_of_a_task_of_long_ago_is_held_to_its_contract() -> None:
    talk = Talk().opened(server=TASKS).listed(PROMISING)
    for number in range(1, 1_500):
        good(run_as_task(talk, number, f"task {number}"))
    good(talk.client(request("r", "tasks/result", {"taskId": "task 1"})))
    assert rules(talk.server(result("r", {"content": [], "structuredContent": {}}))) == ["contract/output"]


RELATED = {"io.modelcontextprotocol/related-task": {"taskId": "of another session"}}


@rows(
    ("payload", "expected"),
    [
        ({"content": [], "_meta": RELATED}, ["contract/unjudged"]),
        ({"anything": 1}, ["protocol/result"]),
        ({"content": 5}, ["protocol/result"]),
    ],
)
def test_the_payload_of_an_unknown_task_is_a_result_that_some_task_has(payload: Any, expected: list[str]) -> None:
    talk = Talk().opened(server=TASKS).listed(PROMISING)
    good(talk.client(request(1, "tasks/result", {"taskId": "of another session"})))
    assert rules(talk.server(result(1, payload))) == expected


# ── after a conversation ─────────────────────────────────────────────────────────────────────────────────────────────


def _with_a_tool() -> Conversation:
    """A conversation that knows one tool."""
    conversation = Conversation(revision="2025-11-25")
    conversation.hear(Party.CLIENT, b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}')
    tools = b'[{"name":"t","inputSchema":{"type":"object"}}]'
    conversation.hear(Party.SERVER, b'{"jsonrpc":"2.0","id":1,"result":{"tools":%b}}' % tools)
    return conversation


@rows("how", ["dropped", "released"])
def test_contracts_are_freed_with_their_conversation_and_not_when_the_collector_comes_by(how: str) -> None:
    """10,000 of them take 40 MB, and a busy guard ends many sessions between two passes of the collector."""
    gc.collect()
    gc.disable()
    try:
        conversation: Conversation | None = _with_a_tool()
        assert conversation is not None
        contract = weakref.ref(conversation.tools.known["t"])
        if how == "released":
            conversation.release()
        else:
            conversation = None
        assert contract() is None
    finally:
        gc.enable()


# ── what all conversations keep together ─────────────────────────────────────────────────────────────────────────────


def test_equal_schemas_are_kept_once_for_all_conversations() -> None:
    gc.collect()
    before = store.TEXTS.total
    schema = {"type": "object", "description": "d" * 1000}
    contracts = [contract("t", schema, schema) for _ in range(100)]
    assert 1000 < store.TEXTS.total - before < 1100
    contracts.clear()
    gc.collect()
    assert store.TEXTS.total == before


def test_there_is_one_bound_for_the_schemas_of_all_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it ten thousand sessions could keep 80 GB."""
    first = contract("a", {"description": "a" * 1000}, {"type": "object"})
    first.prepare()
    assert first.unusable == ()
    # Not the total: beyond the bound each owner has an equal share, which other tests may leave large.
    monkeypatch.setattr(store.TEXTS, "most", 0)
    second = contract("b", {"description": "b" * 1000}, {"type": "object"})
    second.prepare()
    assert [(member, refusal.rule) for member, refusal in second.unusable] == [("inputSchema", "contract/schema-size")]


def test_names_of_tools_count_as_well() -> None:
    """Ours: 25 pages of tools with names of a megabyte held 338 MB."""
    tools = Tools(100, 10_000)
    page = [{"name": letter * 1000, "inputSchema": {"type": "object"}} for letter in "abcdefgh"]
    wrong = learned(tools, page)
    assert len(tools.known) == 2
    assert {each.rule for each in wrong} == {"contract/schema-size", "protocol/tool-name"}
    tools.quarantine("x" * 2000)
    assert tools.is_quarantined("x" * 2000)
    assert tools.is_quarantined("anything that is not known")


def test_a_long_method_is_cut_before_anything_looks_at_it() -> None:
    """Ours: looking for secrets in a method of 15 MB took seconds, and the line hid the findings behind it."""
    verdict = Conversation(revision="2025-11-25").hear(
        Party.CLIENT, orjson.dumps({"jsonrpc": "2.0", "id": 1, "method": "token=a " * 1000})
    )
    assert len(title(verdict)) < 200

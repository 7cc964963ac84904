"""Defects in results and errors of servers that have one correction, and what the guard makes of them."""

import copy
import json
from typing import Any

import jsonpatch
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from assay.lock.inspection import Inspection
from assay.lock.locked import Locked
from assay.model.limits import Limits
from assay.model.verdict import Verdict
from assay.records.moments import Moment
from assay.records.record import RunIdentity, record_of
from assay.rules.policy import REPAIRED, REPAIRED_RESULTS, Policy
from assay.spec.revisions import REVISIONS, handshake
from kit.generated_messages import values
from kit.laws import law
from kit.rows import rows
from kit.stateless_talk import asks
from kit.talk import SEARCH, Talk, call, error, frame_of, good, request, result, rules

STATELESS = REVISIONS[-1]
ALL = Policy(repairs=REPAIRED_RESULTS)
DRAFT_7, DRAFT_2020 = "http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema"
HINTS = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
PLAIN = {"name": "plain", "inputSchema": {"type": "object"}}


def with_dialect(uri: str, member: str = "inputSchema", **more: Any) -> dict[str, Any]:
    """A tool whose schema names the dialect *uri*."""
    return {"name": "one", "inputSchema": {"type": "object"}, member: {"$schema": uri, "type": "object", **more}}


def opened(revision: str, policy: Policy | None = ALL, **options: Any) -> Talk:
    """A conversation of *revision* in which requests can be sent."""
    talk = Talk(policy=policy, **options)
    return talk.opened(revision) if handshake(revision) else talk


def answered(question: dict[str, Any], answer: Any, revision: str = STATELESS, **options: Any) -> Verdict:
    """The verdict on the *answer* of a server to *question*, after the list of tools where it is a call."""
    talk = opened(revision, **options)
    if handshake(revision):
        talk.listed(SEARCH, PLAIN)
    good(talk.client(question))
    return talk.server(answer)


def shown(verdict: Verdict) -> list[dict[str, Any]]:
    return [each.written for each in verdict.repairs]


LIST, READ, CALL = asks(1, "tools/list"), asks(1, "resources/read", uri="a:b"), call(1, "plain", {})
DISCOVER, PROMISED = asks(1, "server/discover"), call(1, "search", {"words": "a"})
TEXT = {"content": [{"type": "text", "text": "found"}]}
ODD = {"op": "add", "path": "/result/resultType", "value": "complete"}
TTL = {"op": "add", "path": "/result/ttlMs", "value": 0}
SCOPE = {"op": "add", "path": "/result/cacheScope", "value": "private"}
OBJECT = {"op": "add", "value": "object"}

UNSTRUCTURED = {"op": "remove", "path": "/result/structuredContent"}
UNTYPED = [{**OBJECT, "path": f"/result/tools/0/{member}/type"} for member in ("inputSchema", "outputSchema")]
NOW = "2025-11-25"
FAILED = {**TEXT, "isError": True}


def typeless(**schemas: Any) -> dict[str, Any]:
    """A list of one tool."""
    return result(1, {**(HINTS if len(schemas) == 1 else {}), "tools": [{"name": "a", **schemas}]})


REPAIRS = [
    (LIST, STATELESS, result(1, {"tools": []}), [ODD, TTL, SCOPE]),
    (LIST, STATELESS, result(1, {**HINTS, "tools": [], "ttlMs": -1}), [{**TTL, "op": "replace"}]),
    (LIST, STATELESS, result(1, {"tools": [], "resultType": "complete", "cacheScope": "public"}), [TTL]),
    (LIST, STATELESS, result(1, {"tools": [], "resultType": "complete", "ttlMs": 5}), [SCOPE]),
    (asks(1, "prompts/get", name="a"), STATELESS, result(1, {"messages": []}), [ODD]),
    (DISCOVER, STATELESS, result(1, {"supportedVersions": [STATELESS], "capabilities": {}}), [ODD, TTL, SCOPE]),
    (LIST, STATELESS, typeless(inputSchema={"$schema": DRAFT_7}), UNTYPED[:1]),
    (request(1, "tools/list"), NOW, typeless(inputSchema={}, outputSchema={"properties": {}}), UNTYPED),
    (READ, STATELESS, error(1, -32002), [{"op": "replace", "path": "/error/code", "value": -32602, "was": -32002}]),
    (CALL, NOW, result(1, {**TEXT, "structuredContent": [1]}), [UNSTRUCTURED]),
    (CALL, "2025-06-18", result(1, {"structuredContent": "found", **TEXT}), [UNSTRUCTURED]),
    (PROMISED, NOW, result(1, {**FAILED, "structuredContent": None}), [UNSTRUCTURED]),
    (PROMISED, NOW, result(1, {**FAILED, "structuredContent": {"hits": "two"}}), [UNSTRUCTURED]),
]


@rows(("question", "revision", "answer", "repairs"), REPAIRS)
def test_a_defect_with_one_correction_is_repaired(
    question: dict[str, Any], revision: str, answer: dict[str, Any], repairs: list[dict[str, Any]]
) -> None:
    verdict = answered(question, answer, revision)
    assert verdict.accepted
    assert verdict.onward is not None
    assert shown(verdict) == repairs
    assert [each.action for each in verdict.violations] == ["repair"] * len(repairs)
    assert json.loads(verdict.onward) == jsonpatch.apply_patch(answer, repairs)
    # The message itself stays what the server sent.
    assert (verdict.value, verdict.frame) == (answer, frame_of(answer))
    good(answered(question, verdict.onward, revision, policy=None))


@rows(("question", "revision", "answer", "repairs"), REPAIRS)
@rows(
    "options",
    [
        pytest.param({"mode": "audit"}, id="audit"),
        pytest.param({"policy": None}, id="no-policy"),
        pytest.param({"policy": Policy(repairs=REPAIRED)}, id="arguments-only"),
    ],
)
def test_nothing_is_repaired_under_audit_or_unless_it_is_wanted(
    question: dict[str, Any], revision: str, answer: dict[str, Any], repairs: list[Any], options: dict[str, Any]
) -> None:
    verdict = answered(question, answer, revision, **options)
    assert repairs
    assert verdict.repairs == ()
    assert "repair" not in [each.action for each in verdict.violations]
    assert verdict.onward is verdict.frame or not verdict.accepted or verdict.quarantined
    assert verdict.violations == answered(question, answer, revision, **{"policy": None, **options}).violations


@rows("rule", REPAIRED_RESULTS)
def test_each_rule_repairs_what_it_reports_and_nothing_else(rule: str) -> None:
    found = set()
    for question, revision, answer, _ in REPAIRS:
        verdict = answered(question, answer, revision, policy=Policy(repairs=[rule]))
        found |= {each.rule for each in verdict.violations if each.action == "repair"}
        assert bool(verdict.repairs) == any(
            each.rule == rule and each.action == "repair" for each in verdict.violations
        )
    assert found == ({rule} if rule != "contract/unknown-dialect" else set())


TEXTLESS: list[dict[str, Any]] = [
    {"content": []},
    {"content": [{"type": "text", "text": " "}]},
    {"content": [{"type": "text"}]},
]
NOT_REPAIRED = [
    (asks(1, "tools/call", name="a"), STATELESS, error(1, -32002)),
    (READ, STATELESS, error(1, -32042)),
    (READ, STATELESS, error(1, -32050)),
    (request(1, "resources/read", {"uri": "a:b"}), NOW, error(1, -32002)),
    (LIST, STATELESS, result(1, {**HINTS, "tools": [], "ttlMs": "5"})),
    (LIST, STATELESS, result(1, {**HINTS, "tools": [], "cacheScope": "shared"})),
    (LIST, STATELESS, result(1, {"tools": 5})),
    (LIST, STATELESS, typeless(inputSchema={"type": "array"})),
    (LIST, STATELESS, result(1, {**HINTS, "tools": [{"name": "a"}]})),
    (request(1, "tools/list"), NOW, result(1, {"tools": []})),
    *((CALL, NOW, result(1, {**each, "structuredContent": [1]})) for each in TEXTLESS),
    (PROMISED, NOW, result(1, {**TEXT, "structuredContent": [1]})),
    (PROMISED, NOW, result(1, {**TEXT, "structuredContent": {}})),
    (PROMISED, NOW, result(1, {"content": [], "structuredContent": {}, "isError": True})),
    (CALL, "2025-03-26", result(1, {**TEXT, "structuredContent": [1]})),
]


@rows(("question", "revision", "answer"), NOT_REPAIRED)
def test_what_has_no_certain_correction_is_judged_as_ever(
    question: dict[str, Any], revision: str, answer: dict[str, Any]
) -> None:
    verdict, plain = answered(question, answer, revision), answered(question, answer, revision, policy=None)
    assert verdict.repairs == ()
    assert (verdict.violations, verdict.onward, verdict.back) == (plain.violations, plain.onward, plain.back)


def test_the_content_of_an_unlisted_tool_is_left_alone() -> None:
    """The tool may have an output schema, which a client then asks for."""
    talk = opened("2025-11-25")
    good(talk.client(CALL))
    assert not talk.server(result(1, {**TEXT, "structuredContent": [1]})).accepted


def test_everything_else_stays_as_it_was_spelt() -> None:
    frame = (
        b' { "id" : 1 ,"result":\t{ "tools" : [ {"name":"a","inputSchema":{ "$schema" : "draft-07","type":"object"}, '
        b'"x":1.50e0,"big":123456789012345678901234567890} ] , "ttlMs":-0.5e1\n}, "jsonrpc":"2.0" } '
    )
    verdict = answered(LIST, frame)
    assert verdict.onward == frame.replace(b'"draft-07"', b'"%b"' % DRAFT_7.encode()).replace(
        b"-0.5e1", b'0,"resultType":"complete","cacheScope":"private"'
    )


# ── dialects ─────────────────────────────────────────────────────────────────────────────────────────────────────────

LATEST = "http://json-schema.org/schema#"
SPELLINGS = [
    ("http://json-schema.org/draft-07/schema", DRAFT_7),
    ("https://json-schema.org/draft-07/schema#", DRAFT_7),
    ("https://json-schema.org/draft-07/schema", DRAFT_7),
    ("http://json-schema.org/draft-7/schema#", DRAFT_7),
    ("http://www.json-schema.org/draft-07/schema#", DRAFT_7),
    ("json-schema.org/draft-07/schema#", DRAFT_7),
    ("draft-07", DRAFT_7),
    ("http://json-schema.org/draft-04/schema", "http://json-schema.org/draft-04/schema#"),
    ("https://json-schema.org/draft-06/schema#", "http://json-schema.org/draft-06/schema#"),
    ("http://json-schema.org/draft/2019-09/schema", "https://json-schema.org/draft/2019-09/schema"),
    ("https://json-schema.org/draft/2020-12/schema#", DRAFT_2020),
    ("http://json-schema.org/draft/2020-12/schema", DRAFT_2020),
    ("https://json-schema.org/draft/2020-12/schema/", DRAFT_2020),
    ("https://json-schema.org/draft/2020-12", DRAFT_2020),
    ("http://json-schema.org/schema#", DRAFT_2020),
    ("http://json-schema.org/schema", DRAFT_2020),
]


@rows(("uri", "canonical"), SPELLINGS)
@rows("member", ["inputSchema", "outputSchema"])
@rows("revision", REVISIONS)
def test_another_spelling_of_a_dialect_becomes_the_usual_one(
    uri: str, canonical: str, member: str, revision: str
) -> None:
    stateless = not handshake(revision)
    question = LIST if stateless else request(1, "tools/list")
    answer = result(1, {**(HINTS if stateless else {}), "tools": [PLAIN, with_dialect(uri, member)]})
    talk = opened(revision)
    good(talk.client(question))
    verdict = talk.server(answer)
    assert shown(verdict) == [{"op": "replace", "path": f"/result/tools/1/{member}/$schema", "value": canonical}]
    [wrong] = verdict.violations
    assert (wrong.rule, wrong.action, wrong.entry) == ("contract/unknown-dialect", "repair", ("tool", "one"))
    assert verdict.onward is not None
    assert json.loads(verdict.onward) == jsonpatch.apply_patch(answer, shown(verdict))
    assert verdict.quarantined == ()


@rows(
    "schema",
    [
        pytest.param({"$schema": "https://example.com/mine"}, id="another-dialect"),
        pytest.param({"$schema": "http://json-schema.org/draft-03/schema#"}, id="unsupported-draft"),
        pytest.param({"$schema": "http://json-schema.org/draft-07/hyper-schema#"}, id="hyper-schema"),
        pytest.param({"$schema": "draft-07" + " " * 200}, id="long"),
        pytest.param({"$schema": 7}, id="not-text"),
        pytest.param({"$schema": DRAFT_7}, id="usual"),
        pytest.param({"$schema": LATEST, "properties": {"a": {"items": [{}]}}}, id="older-items"),
        pytest.param({"$schema": LATEST, "exclusiveMinimum": True}, id="older-bound"),
        pytest.param({"$schema": LATEST, "not": {"$ref": "#", "minimum": 1}}, id="older-reference"),
        pytest.param({"$schema": "draft-07", "properties": {"a": {"type": 5}}}, id="unusable-as-that-draft"),
    ],
)  # fmt: skip
def test_a_doubtful_dialect_stays_as_it_is(schema: dict[str, Any]) -> None:
    answer = result(1, {"tools": [{"name": "one", "inputSchema": {"type": "object", **schema}}]})
    verdict = answered(request(1, "tools/list"), answer, "2025-11-25")
    assert verdict.repairs == ()
    assert verdict.onward is verdict.frame or "one" in [each.name for each in verdict.quarantined]


def test_the_repaired_schema_is_what_calls_are_judged_by() -> None:
    tool = with_dialect("draft-07", properties={"a": {"type": "array", "items": [{"type": "integer"}]}})
    talk = opened("2025-11-25").listed(tool)
    assert rules(talk.client(call(2, "one", {"a": ["x"]}))) == ["contract/input"]
    plain = opened("2025-11-25", None).listed(tool)
    good(plain.client(call(2, "one", {"a": ["x"]})))


def test_too_much_to_repair_is_judged_as_ever() -> None:
    tools = [
        {"name": f"t{n}", "inputSchema": {"$schema": "https://json-schema.org/draft-07/schema#"}} for n in range(1001)
    ]
    assert answered(request(1, "tools/list"), result(1, {"tools": tools}), "2025-11-25").repairs == ()
    many = result(1, {"messages": [], "more": list(range(100_001))})
    assert answered(asks(1, "prompts/get", name="a"), many).repairs == ()
    frame = frame_of(result(1, {"messages": []}))
    limits = Limits(frame_bytes=max(len(frame), len(frame_of(asks(1, "prompts/get", name="a")))))
    long = frame.replace(b"[]", b'[],"x":"%b"' % (b"x" * (limits.frame_bytes - len(frame) - 7)))
    assert len(long) == limits.frame_bytes
    assert answered(asks(1, "prompts/get", name="a"), long, limits=limits).repairs == ()


# ── together with other parts of the guard ───────────────────────────────────────────────────────────────────────────


def test_a_list_is_repaired_and_its_invalid_entry_is_quarantined() -> None:
    verdict = answered(LIST, result(1, {"tools": [PLAIN, {"name": 5}, with_dialect("draft-07")]}))
    assert verdict.onward is not None
    assert json.loads(verdict.onward)["result"] == {**HINTS, "tools": [PLAIN, with_dialect(DRAFT_7)]}
    assert [each.name for each in verdict.quarantined] == ["number 2"]
    assert [each["path"] for each in shown(verdict)][3:] == ["/result/tools/2/inputSchema/$schema"]


def test_answers_of_a_batch_are_repaired_one_by_one() -> None:
    talk = opened("2025-03-26")
    good(talk.client([request(1, "tools/list"), request(2, "ping")]))
    answer = [result(2, {}), result(1, {"tools": [with_dialect("draft-07")]})]
    verdict = talk.server(answer)
    assert shown(verdict) == [{"op": "replace", "path": "/1/result/tools/0/inputSchema/$schema", "value": DRAFT_7}]
    assert verdict.onward is not None
    assert json.loads(verdict.onward) == jsonpatch.apply_patch(answer, shown(verdict))
    assert [each.at for each in verdict.violations] == ["/1/result/tools/0/inputSchema/$schema"]


def test_a_lock_is_compared_with_what_the_server_sent() -> None:
    tools = [with_dialect("draft-07")]
    for locked, refused in ((tools, []), ([with_dialect(DRAFT_7)], ["one"])):
        lock = Locked(
            command=("run",), revision=STATELESS, listed={"tools": {each["name"]: (each,) for each in locked}}
        )
        verdict = answered(LIST, result(1, {"tools": tools}), lock=Inspection(lock))
        assert verdict.repairs
        assert [each.name for each in verdict.quarantined] == refused


def test_a_strict_policy_refuses_what_it_does_not_repair() -> None:
    answer = result(1, {"tools": []})
    assert not answered(LIST, answer, policy=Policy(strict=True)).accepted
    assert answered(LIST, answer, policy=Policy(strict=True, repairs=["protocol/*"])).accepted
    some = answered(LIST, answer, policy=Policy(strict=True, repairs=["protocol/cache-hints"]))
    assert (some.accepted, some.repairs) == (False, ())


# ── laws ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

DIALECTS = st.sampled_from([uri for uri, _ in SPELLINGS] + [DRAFT_7, "https://example.com/mine"])
TOOLS = st.lists(
    st.builds(
        lambda name, input_uri, output_uri, more: {
            **more,
            "name": name,
            "inputSchema": {"type": "object", **({"$schema": input_uri} if input_uri else {})},
            **({"outputSchema": {"type": "object", "$schema": output_uri}} if output_uri else {}),
        },
        st.text(max_size=5),
        st.none() | DIALECTS,
        st.none() | DIALECTS,
        st.dictionaries(st.sampled_from("xyz"), values()),
    ),
    max_size=4,
)
RESULTS = st.fixed_dictionaries(
    {"tools": TOOLS},
    optional={
        "resultType": st.just("complete"),
        "ttlMs": st.integers(-5, 5),
        "cacheScope": st.sampled_from(["public", "private"]),
        "_meta": st.dictionaries(st.text("ab", min_size=1), values()),
        "~/": values(),
    },
)


@st.composite
def answers(draw: st.DrawFn) -> tuple[dict[str, Any], bytes]:
    """A list of tools in any order and layout."""
    members = draw(RESULTS)
    ordered = {name: members[name] for name in draw(st.permutations(list(members)))}
    return result(1, ordered), json.dumps(result(1, ordered), indent=draw(st.sampled_from([None, 1]))).encode()


@law(200)
@given(answers(), st.sets(st.sampled_from(REPAIRED_RESULTS)))
def test_a_repaired_answer_differs_by_the_recorded_operations_alone_and_is_good(
    case: tuple[dict[str, Any], bytes], wanted: set[str]
) -> None:
    answer, frame = case
    verdict = answered(LIST, frame, policy=Policy(repairs=wanted))
    plain = answered(LIST, frame, policy=None)
    assert verdict.accepted == plain.accepted
    assume(verdict.accepted and not verdict.quarantined)
    assert verdict.onward is not None
    assert json.loads(verdict.onward) == jsonpatch.apply_patch(copy.deepcopy(answer), shown(verdict))
    assert {each.rule for each in verdict.violations if each.action == "repair"} <= wanted
    if not verdict.repairs:
        assert verdict.onward is verdict.frame
    again = answered(LIST, verdict.onward, policy=None)
    assert again.onward is again.frame
    left = {(each.rule, each.at) for each in plain.violations} - {
        (each.rule, each.at) for each in verdict.violations if each.action == "repair"
    }
    assert {(each.rule, each.at) for each in again.violations} <= left | {
        (each.rule, each.at) for each in verdict.violations if each.action != "repair"
    }
    assert answered(LIST, verdict.onward, policy=Policy(repairs=wanted)).repairs == ()


# ── records ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def recorded(verdict: Verdict, patterns: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    run, moment = RunIdentity(deterministic=True, patterns=patterns), Moment("stdio", "stdio", b"", 0.0)
    return record_of(verdict, moment, run, ts="", milliseconds=0.0, sent=0).metadata.repairs


def test_a_record_of_repaired_arguments_has_no_values_of_the_client() -> None:
    talk = Talk(policy=Policy(repairs=REPAIRED)).opened().listed(SEARCH)
    verdict = talk.client(call(1, "search", {"words": "a", "limit": "5"}))
    assert recorded(verdict) == [{"op": "replace", "path": "/params/arguments/limit"}]
    assert recorded(verdict, ("limit",)) == [{"op": "replace", "path": "[redacted]"}]


def test_a_list_that_is_useless_all_the_same_is_refused_as_ever() -> None:
    """Its entries are judged one by one only when the tools are learned, which is after the repair."""
    tools = [{"name": "same", "inputSchema": {"type": "object"}}] * 502
    answer = result(1, {"tools": tools})
    verdict, plain = answered(LIST, answer), answered(LIST, answer, policy=None)
    assert not plain.accepted
    assert (verdict.violations, verdict.onward, verdict.repairs) == (plain.violations, plain.onward, ())

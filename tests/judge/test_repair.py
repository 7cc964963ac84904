"""Slips in arguments that have one remedy only, mended where an operator wants it."""

import json
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from assay.model.verdict import Party, Verdict
from assay.rules.policy import Policy
from kit.laws import law
from kit.rows import rows
from kit.talk import Talk, answer, call, good, request, result, rules

LOAN: dict[str, Any] = {
    "name": "lend",
    "inputSchema": {
        "type": "object",
        "properties": {
            "title": {"type": "string"},
            "days": {"type": "integer", "minimum": 1},
            "price": {"type": "number"},
            "gift": {"type": "boolean"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "reader": {"$ref": "#/$defs/reader"},
            "shelf": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            "code": {"anyOf": [{"type": "integer"}, {"type": "string", "minLength": 3}]},
            "kind": {"enum": [1, 2]},
            "mood": {"enum": ["glad", 1]},
            "count": {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}]},
            "rank": {"anyOf": [{"$ref": "#/$defs/rank"}, {"type": "null"}]},
            "level": {"anyOf": [{"$ref": "#level"}, {"type": "null"}]},
            "either": {"oneOf": [{"$ref": "#/$defs/reader"}, {"type": "array"}]},
            "word": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
            "notes": {"type": "object", "additionalProperties": {"type": "string"}},
            "list0": {"type": "array"},
            "list1": {"type": "array", "items": {"type": "string", "minLength": 2}},
        },
        "required": ["title"],
        "$defs": {
            "rank": {"enum": [1, 2], "type": "integer"},
            "level": {"$anchor": "level", "type": "integer"},
            "reader": {
                "type": "object",
                "properties": {"age": {"type": "integer"}, "name": {"type": "string"}},
                "required": ["age"],
                "additionalProperties": False,
            },
        },
    },
}

BOTH = ("contract/input", "protocol/params")


def talking(*repairs: str, **options: Any) -> Talk:
    return Talk(policy=Policy(repairs=repairs or BOTH), **options).opened().listed(LOAN)


def onward(verdict: Verdict) -> Any:
    assert verdict.onward is not None
    return json.loads(verdict.onward)["params"]["arguments"]


MENDED = [
    ({"days": "123456789012345678901234567890"}, {"days": 123456789012345678901234567890}, ["days"]),
    ({"reader": '{"age": "7"}'}, {"reader": {"age": 7}}, ["reader", "reader/age"]),
    ({"tags": '\n[\r\n"a"\n]'}, {"tags": ["a"]}, ["tags"]),
    ({"count": "3"}, {"count": 3}, ["count"]),
    ({"rank": "2"}, {"rank": 2}, ["rank"]),
    ({"level": "2"}, {"level": 2}, ["level"]),
    ({"kind": "1"}, {"kind": 1}, ["kind"]),
    ({"either": '{"age": 7}'}, {"either": {"age": 7}}, ["either"]),
    ({"mood": None, "word": None, "kind": None}, {}, ["kind", "mood", "word"]),
    ({"days": None, "gift": None, "tags": None}, {}, ["days", "gift", "tags"]),
    ({"reader": {"age": 7, "name": None}}, {"reader": {"age": 7}}, ["reader/name"]),
    ({"days": "5", "gift": None, "price": "2"}, {"days": 5, "price": 2}, ["days", "gift", "price"]),
]


@rows(("given_", "meant", "places"), MENDED)
@rows("first", [True, False])
def test_a_slip_with_one_remedy_is_mended(
    given_: dict[str, Any], meant: dict[str, Any], places: list[str], first: bool
) -> None:
    talk = talking()
    title = {"title": "Moby"}
    verdict = talk.client(call(1, "lend", {**title, **given_} if first else {**given_, **title}))
    assert verdict.accepted
    assert verdict.back is None
    assert onward(verdict) == {**title, **meant}
    assert sorted((each.rule, each.at, each.action) for each in verdict.violations) == [
        ("contract/input", f"/params/arguments/{place}", "repair") for place in sorted(places)
    ]
    good(talk.server(result(1, {"content": []})))
    assert talk.conversation.open_requests(Party.CLIENT) == ()


@rows(
    "given_",
    [
        pytest.param({"days": "five"}, id="no-number"),
        pytest.param({"days": "0"}, id="mended-and-still-wrong"),
        pytest.param({"days": " 5"}, id="white-space"),
        pytest.param({"days": "1e3"}, id="exponent"),
        pytest.param({"gift": "True"}, id="not-as-json"),
        pytest.param({"title": None}, id="required"),
        pytest.param({"title": 5}, id="the-other-way-round"),
        pytest.param({"tags": [None]}, id="null-item"),
        pytest.param({"notes": {"a": None}}, id="null-entry"),
        pytest.param({"tags": '["a", "a'}, id="no-json"),
        pytest.param({"reader": '{"age": 7, "age": 8}'}, id="two-readings"),
        pytest.param({"code": "5"}, id="text-was-possible"),
        pytest.param({"mood": "1"}, id="enum-with-text"),
        pytest.param({"count": "0"}, id="optional-and-too-small"),
        pytest.param({"days": "5", "gift": "maybe"}, id="one-of-two"),
        pytest.param({"tags": "[" * 200 + "]" * 200}, id="too-deep"),
        pytest.param({"tags": json.dumps(["a"] * 10_001)}, id="too-many-values-in-a-text"),
        pytest.param({f"list{n}": json.dumps(["a"] * 6_000) for n in range(2)}, id="too-many-values-in-two"),
    ],
)
def test_what_is_not_clear_is_refused_as_ever(given_: dict[str, Any]) -> None:
    plain = Talk().opened().listed(LOAN).client(call(1, "lend", {"title": "Moby", **given_}))
    talk = talking()
    verdict = talk.client(call(1, "lend", {"title": "Moby", **given_}))
    assert not verdict.accepted
    assert verdict.violations == plain.violations
    assert (verdict.onward, verdict.back) == (plain.onward, plain.back)
    assert talk.conversation.open_requests(Party.CLIENT) == ()


def test_arguments_that_are_text_as_a_whole_are_mended_by_a_rule_of_their_own() -> None:
    message = request(1, "tools/call", {"name": "lend", "arguments": '{"title": "Moby", "days": "5"}'})
    verdict = talking().client(message)
    assert onward(verdict) == {"title": "Moby", "days": 5}
    assert [(each.rule, each.at, each.action) for each in verdict.violations] == [
        ("protocol/params", "/params/arguments", "repair"),
        ("contract/input", "/params/arguments/days", "repair"),
    ]
    for one in BOTH:
        assert not talking(one).client(message).accepted
    assert rules(talking("contract/input").client(message)) == ["protocol/params"]


def test_nothing_is_mended_under_audit() -> None:
    verdict = talking(mode="audit").client(call(1, "lend", {"title": "M", "days": "5"}))
    assert verdict.onward is verdict.frame
    assert [each.action for each in verdict.violations] == ["refuse"]


def test_a_call_that_is_wrong_for_another_reason_is_not_mended() -> None:
    talk = talking()
    good(talk.client(call(1, "lend", {"title": "M"})))
    verdict = talk.client(call(1, "lend", {"title": "M", "days": "5"}))
    assert rules(verdict) == ["protocol/id-in-use"]
    assert answer(verdict)["id"] == 1


def test_everything_else_stays_as_it_was_spelt() -> None:
    frame = (
        b' { "id" : 1e2, "method":"tools\\/call" ,"params": {"arguments":\t{ "days" : "5" , "gift":null,\n'
        b'"title":"\\u004doby",'
        b'"price":1.50e0, "big": 123456789012345678901234567890}, "name" : "lend"}, "jsonrpc":"2.0" } '
    )
    verdict = talking().client(frame)
    assert verdict.onward == frame.replace(b'"5"', b"5").replace(b'"gift":null,\n', b"")
    assert verdict.exchange is not None
    assert verdict.exchange.spelling == b"1e2"


VALUES = {
    "days": st.integers(1, 10**30),
    "price": st.integers() | st.decimals(-1000, 1000, places=2).map(float),
    "gift": st.booleans(),
    "tags": st.lists(st.text(), max_size=3),
    "reader": st.fixed_dictionaries({"age": st.integers()}, optional={"name": st.text()}),
    "shelf": st.integers() | st.none(),
    "more": st.recursive(
        st.none() | st.integers() | st.text(), lambda inner: st.lists(inner, max_size=3), max_leaves=5
    ),
}
MAY_SLIP = ("days", "price", "gift", "tags", "reader", "shelf")


@st.composite
def slips(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any], set[str]]:
    """Good arguments, the same with slips in them, and where those are."""
    meant: dict[str, Any] = draw(st.fixed_dictionaries({"title": st.text()}, optional=VALUES))
    slipped = dict(meant)
    places = set()
    for name in MAY_SLIP:
        if meant.get(name) is not None and draw(st.booleans()):
            slipped[name] = json.dumps(meant[name])
            places.add(name)
        elif name not in meant and name != "shelf" and draw(st.booleans()):
            slipped[name] = None
            places.add(name)
    order = draw(st.permutations(list(slipped)))
    return meant, {name: slipped[name] for name in order}, places


@law(150)
@given(slips(), st.sampled_from([None, 1]))
def test_a_mended_call_is_good_and_only_what_was_wrong_has_changed(
    case: tuple[dict[str, Any], dict[str, Any], set[str]], indent: int | None
) -> None:
    meant, slipped, places = case
    assume(places)
    frame = json.dumps(call(1, "lend", slipped), indent=indent).encode()
    verdict = talking().client(frame)
    assert verdict.onward is not None
    wrong = [each for each in verdict.violations if each.rule != "contract/unknown-argument"]
    assert {each.at.rpartition("/")[2] for each in wrong} == places
    assert {each.action for each in wrong} == {"repair"}
    again = Talk().opened().listed(LOAN).client(verdict.onward)
    assert {each.rule for each in again.violations} <= {"contract/unknown-argument"}
    assert onward(verdict) == meant
    kept = {**slipped, **{name: meant.get(name) for name in places}}
    assert json.loads(verdict.onward) == {
        **json.loads(frame),
        "params": {"name": "lend", "arguments": {name: kept[name] for name in kept if name in meant}},
    }


@law(200)
@given(
    st.dictionaries(st.sampled_from(sorted(LOAN["inputSchema"]["properties"])), st.text() | st.none() | st.integers())
)
def test_whatever_comes_is_refused_as_ever_or_is_good_once_it_is_mended(arguments: dict[str, Any]) -> None:
    frame = json.dumps(call(1, "lend", arguments)).encode()
    verdict, plain = talking().client(frame), Talk().opened().listed(LOAN).client(frame)
    if verdict.accepted:
        assert verdict.onward is not None
        good(Talk().opened().listed(LOAN).client(verdict.onward))
        untouched = {
            name for name in arguments if f"/params/arguments/{name}" not in {v.at for v in verdict.violations}
        }
        assert {name: onward(verdict)[name] for name in untouched} == {name: arguments[name] for name in untouched}
    else:
        assert (verdict.violations, verdict.back) == (plain.violations, plain.back)

"""
Whatever is said, in whatever state: there is a verdict, and it keeps its own promises. The messages are good ones with
something changed anywhere, the envelope included, because chance alone never gets past the first rung.
"""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import event, example, given
from hypothesis import strategies as st

from assay.judge.conversation import Conversation
from assay.model.json_values import CAPABILITIES_KEY, REVISION_KEY
from assay.model.verdict import Party, Verdict
from assay.schema.pointers import NOWHERE, looked_up
from assay.spec.revisions import REVISIONS, handshake
from kit.generated_messages import fitting, scalars, texts, values
from kit.laws import law
from kit.parties import CASES, CLIENT, SERVER, Case, Mode, frame, negotiated, notification, opened, request, result
from kit.rows import rows

# ── states ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _extended(revision: str, mode: Mode) -> Conversation:
    """A conversation in which methods outside of the specification may be used."""
    conversation = Conversation(mode=mode)
    info = {"name": "a party", "version": "1"}
    opening: dict[str, Any] = {"protocolVersion": revision, "capabilities": {"experimental": {"acme": {}}}}
    for party, message in (
        (CLIENT, request(0, "initialize", opening | {"clientInfo": info})),
        (SERVER, result(0, opening | {"serverInfo": info})),
        (CLIENT, notification("notifications/initialized")),
    ):
        assert conversation.hear(party, frame(message)).accepted
    return conversation


STATES: dict[str, Callable[[str, Mode], Conversation]] = {
    "new": lambda _, mode: Conversation(mode=mode),
    "negotiated": lambda revision, mode: negotiated(revision, mode) if handshake(revision) else Conversation(mode=mode),
    "opened": opened,
    "joined": lambda revision, mode: Conversation(mode=mode, revision=revision),
    "strict": lambda revision, mode: Conversation(mode=mode, revision=revision, profile="strict"),
    "extended": lambda revision, mode: (_extended if handshake(revision) else opened)(revision, mode),
}

# ── what is said ─────────────────────────────────────────────────────────────────────────────────────────────────────

_EXTENDING = {CAPABILITIES_KEY: {"experimental": {"acme": {}}}, REVISION_KEY: "2026-07-28"}

odd_params = st.one_of(
    values(2),
    st.fixed_dictionaries({"_meta": values(2)}),
    st.fixed_dictionaries({"_meta": st.fixed_dictionaries({"progressToken": values(1)})}),
    st.fixed_dictionaries({"_meta": st.fixed_dictionaries({CAPABILITIES_KEY: values(1), REVISION_KEY: scalars})}),
    st.builds(lambda token: {"_meta": _EXTENDING | {"progressToken": token}}, values(1)),
    st.builds(lambda cursor, task: {"cursor": cursor, "task": task, "taskId": task}, values(1), values(1)),
)
odd_results = st.one_of(
    values(2),
    st.builds(lambda kind, asked: {"resultType": kind, "inputRequests": asked}, scalars, values(2)),
    st.builds(
        lambda asked: {"resultType": "input_required", "inputRequests": asked},
        st.dictionaries(texts, st.one_of(values(1), st.fixed_dictionaries({"method": values(1)})), max_size=2),
    ),
    st.builds(lambda version, rest: {"protocolVersion": version, "capabilities": rest}, values(1), values(2)),
    st.builds(lambda tools: {"tools": tools}, values(2)),
    st.builds(lambda task: {"task": task}, values(1)),
)
ids = st.one_of(st.sampled_from([1, 2, "a", 2**70, 1.0]), scalars)
names = st.one_of(st.sampled_from([case.method.name for case in CASES] + ["acme/search"]), texts)


@st.composite
def good(draw: st.DrawFn, cases: list[Case]) -> dict[str, Any]:
    """A message that fits its definition."""
    case = draw(st.sampled_from(cases))
    params = case.placed(draw(fitting(case.schema, case.params())))
    asks = case.method.kind == "request"
    return request(draw(ids), case.method.name, params) if asks else notification(case.method.name, params)


@st.composite
def changed(draw: st.DrawFn, value: Any) -> Any:
    """*value* with something else at one place, or with something put in or left out there."""
    if isinstance(value, dict) and value and draw(st.integers(0, 3)):
        key = draw(st.sampled_from(list(value)))
        match draw(st.integers(0, 5)):
            case 0:
                return {name: item for name, item in value.items() if name != key}
            case 1:
                return value | {draw(texts): draw(values(1))}
        return value | {key: draw(changed(value[key]))}
    if isinstance(value, list) and value and draw(st.integers(0, 3)):
        at = draw(st.integers(0, len(value) - 1))
        return [*value[:at], draw(changed(value[at])), *value[at + 1 :]]
    return draw(values(1))


def messages(revision: str) -> st.SearchStrategy[Any]:
    """What either party may come up with."""
    cases = [case for case in CASES if case.revision == revision]
    one = st.one_of(
        good(cases),
        good(cases).flatmap(changed),
        st.builds(request, ids, names, odd_params),
        st.builds(notification, names, odd_params),
        st.builds(result, ids, odd_results),
        st.builds(lambda ident, error: {"jsonrpc": "2.0", "id": ident, "error": error}, ids, values(1)),
        st.builds(
            lambda ident, code: {"jsonrpc": "2.0", "id": ident, "error": {"code": code, "message": "no"}},
            ids,
            st.sampled_from([-32042, -32020, -32021, -32022, -32601, 1.0]),
        ),
        values(2),
    )
    return st.one_of(one, one, one, st.lists(one, max_size=3))


# ── the law ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def assert_sound(verdict: Verdict, mode: Mode) -> None:
    """What holds for every verdict."""
    assert repr(verdict)
    assert len(verdict.violations) <= 20
    assert verdict.more >= 0
    assert str([str(each) for each in verdict.violations])
    assert (verdict.message is not None) or verdict.violations or verdict.kind in {"blank", "batch"}
    if mode == "audit":
        assert verdict.onward is verdict.frame
        assert verdict.back is None
    elif verdict.kind != "batch":
        assert (verdict.onward is verdict.frame) == verdict.accepted
        if verdict.back is not None:
            assert not verdict.accepted
            assert_answer(verdict)
    if verdict.value is not None:
        for each in verdict.violations:
            assert looked_up(verdict.value, each.at) is not NOWHERE, each


def assert_answer(verdict: Verdict) -> None:
    """What goes back is an answer to what came, with its id where it has one that can be used."""
    assert verdict.back is not None
    answer = json.loads(verdict.back)
    assert answer["jsonrpc"] == "2.0"
    assert ("error" in answer) != ("result" in answer)
    ident = verdict.value.get("id") if isinstance(verdict.value, dict) else None
    usable = isinstance(ident, str) or (
        isinstance(ident, int | float) and not isinstance(ident, bool) and ident == int(ident)
    )
    assert answer.get("id") == (ident if usable else None)


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("revision", REVISIONS)
@law(40)
@given(data=st.data(), mode=st.sampled_from(["enforce", "audit"]))
def test_whatever_is_said_there_is_a_verdict(revision: str, state: str, mode: Mode, data: st.DataObject) -> None:
    """`Conversation.hear`: raises for nothing that a frame contains. design.md: every place that is named exists."""
    conversation = STATES[state](revision, mode)
    spoken = data.draw(st.lists(st.tuples(st.sampled_from(list(Party)), messages(revision)), min_size=1, max_size=4))
    for party, message in spoken:
        verdict = conversation.hear(party, frame(message))
        event(verdict.kind)
        assert_sound(verdict, mode)
    for party in Party:
        for missing in conversation.end(party):
            assert missing.onward is not None
            assert json.loads(missing.onward)["jsonrpc"] == "2.0"


@law(120)
@example(params={"_meta": 5})
@example(params={"_meta": {"progressToken": []}})
@example(params={"_meta": {"progressToken": {}}})
@given(params=odd_params)
def test_the_params_of_an_extension_are_not_judged_and_do_not_hurt(params: Any) -> None:
    """Rule protocol/extension: passed on because extensions were declared, "but no one can judge it"."""
    for revision in REVISIONS:
        if handshake(revision):
            for party in Party:
                spoken = frame(request(1, "acme/search", params))
                verdict = _extended(revision, "enforce").hear(party, spoken)
                assert verdict.accepted == (params is None or isinstance(params, dict))


@rows("ident", [2**70, 1.0, 1, "a"])
@rows("revision", REVISIONS)
def test_a_malformed_request_is_answered_by_its_id(revision: str, ident: str | float) -> None:
    """design.md, no readable id: null, or nothing, only where there is none; a number spelt 1.0 is one."""
    verdict = opened(revision).hear(CLIENT, frame(request(ident, "ping") | {"params": []}))
    assert [each.rule for each in verdict.violations] == ["envelope/params"]
    assert (verdict.back or b"").startswith(b'{"jsonrpc":"2.0","id":' + json.dumps(ident).encode() + b",")

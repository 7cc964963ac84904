"""Whatever comes in, a server and a middleware give one answer or none, and what they give is JSON-RPC."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from assay.api.jsonrpc import JsonRpc, JsonRpcServer
from assay.api.schema_validator import SchemaValidator, ValidationMiddleware
from assay.spec.revisions import REVISIONS
from kit.laws import law

scalars = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5))
anything = st.recursive(
    scalars,
    lambda inside: st.one_of(st.lists(inside, max_size=3), st.dictionaries(st.text(max_size=5), inside, max_size=3)),
)
# Mostly messages: what is wrong with them is in one member or another.
messages = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.one_of(st.just("2.0"), anything),
        "id": st.one_of(st.integers(), st.text(max_size=5), anything),
        "method": st.one_of(st.sampled_from(["echo", "fail", "ping", "tools/call", "initialize"]), anything),
        "params": st.one_of(st.just({"name": "t"}), st.lists(anything, max_size=2), anything),
        "result": anything,
        "error": anything,
    },
)
values = st.one_of(messages, st.lists(messages, max_size=3), anything)
# NaN and Infinity are written as Python does, which is no JSON.
texts = st.one_of(values.map(json.dumps), st.text(), values.map(lambda value: json.dumps(value)[:-1]))


def fail(*_: Any, **__: Any) -> None:
    raise ZeroDivisionError


def server() -> JsonRpcServer:
    made = JsonRpcServer("test")
    made.register_method("echo", lambda *given, **named: [given, named])
    made.register_method("fail", fail)
    return made


def answered(text: str) -> list[Any]:
    """The answers in *text*, each of them right."""
    if not text:
        return []
    answer = json.loads(text)
    answers: list[Any] = answer if isinstance(answer, list) else [answer]
    assert JsonRpc.validate_batch_response(answers)["valid"]
    return answers


@law(300)
@given(texts)
def test_a_server_answers_every_request_once_and_nothing_else(text: str) -> None:
    answers = answered(server().process_request(text))
    ok, value, _ = JsonRpc.validate_json_string(text)
    if not ok:
        assert [answer["error"]["code"] for answer in answers] == [-32700]
        return
    sent = value if isinstance(value, list) and value else [value]
    asked = [each for each in sent if JsonRpc.validate_request(each)["valid"] and "id" in each]
    assert len([answer for answer in answers if answer["id"] in [each["id"] for each in asked]]) >= len(asked)
    assert len(answers) <= len(sent)


@law(300)
@given(
    st.one_of(texts.map(lambda text: text.encode("utf-8", "replace")), st.binary()),
    st.sampled_from(REVISIONS),
    st.booleans(),
)
def test_a_middleware_refuses_or_passes_on_whatever_comes(data: bytes, revision: str, strict: bool) -> None:
    heard: list[bytes] = []

    def handler(frame: bytes) -> bytes | None:
        heard.append(frame)
        return data if len(heard) % 2 else None

    judged = ValidationMiddleware(SchemaValidator(revision=revision), handler, strict=strict, strict_outgoing=True)
    answer = judged(data)
    if answer is not None and answer != data:
        for each in json.loads(answer) if answer.startswith(b"[") else [json.loads(answer)]:
            assert "error" in each or "result" in each

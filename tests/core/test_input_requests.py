"""What is kept of the input that a result asks for, and how the answers are compared with it."""

from typing import Any

import pytest

from assay.base.verdict import Violation
from assay.core.history.input_requests import AskedInput, check_responses, kept
from assay.engine.budget import Budget
from assay.ladder.protocol import judge
from kit.rows import rows
from kit.stateless_talk import REVISION

FORM: dict[str, Any] = {"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]}
ELICIT: dict[str, Any] = {"method": "elicitation/create", "params": {"message": "?", "requestedSchema": FORM}}
URL: dict[str, Any] = {"method": "elicitation/create", "params": {"mode": "url", "message": "?", "url": "https://a.b/"}}
SAMPLE: dict[str, Any] = {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}}
ROOTS: dict[str, Any] = {"method": "roots/list"}

USE: dict[str, Any] = {"type": "tool_use", "id": "u", "name": "a", "input": {}}
SAID: dict[str, Any] = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "x"}}
CONTENT: dict[str, Any] = {"action": "accept", "content": {"age": 3}}


def checked(requests: Any, responses: Any) -> list[tuple[str, str]]:
    """The rules that *responses* break, and where."""
    return [(each.rule, each.at) for each in violations(requests, responses)]


def violations(requests: Any, responses: Any) -> list[Violation]:
    found: list[Violation] = []
    budget = Budget(b"", 100)
    assert check_responses(kept(requests), responses, "/params/x", REVISION, judge(REVISION), found, budget) == 0
    return found


@rows(
    ("request_", "response"),
    [
        pytest.param(ELICIT, CONTENT, id="a form"),
        pytest.param(ELICIT, {"action": "decline"}, id="declined"),
        pytest.param(URL, {"action": "accept"}, id="an address"),
        pytest.param(SAMPLE, SAID, id="a model"),
        pytest.param(SAMPLE, {**SAID, "content": [USE, USE], "stopReason": "toolUse"}, id="a model with tools"),
        pytest.param(ROOTS, {"roots": []}, id="no roots"),
        pytest.param(ROOTS, {"roots": [{"uri": "file:///a"}]}, id="roots"),
    ],
)
def test_an_answer_of_the_kind_that_was_asked_for_is_good(request_: dict[str, Any], response: dict[str, Any]) -> None:
    assert checked({"k": request_}, {"k": response}) == []


@rows(
    ("request_", "response", "name", "found"),
    [
        (ELICIT, {"roots": []}, "ElicitResult", "what may be a ListRootsResult"),
        (ELICIT, SAID, "ElicitResult", "what may be a CreateMessageResult"),
        (ELICIT, {"action": "maybe"}, "ElicitResult", "an object with `action`"),
        (SAMPLE, CONTENT, "CreateMessageResult", "what may be an ElicitResult"),
        (SAMPLE, "x", "CreateMessageResult", 'the string "x"'),
        (ROOTS, CONTENT, "ListRootsResult", "what may be an ElicitResult"),
        (ROOTS, {"roots": None}, "ListRootsResult", "an object with `roots`"),
    ],
)
def test_an_answer_of_another_kind_is_found_with_what_was_asked(
    request_: dict[str, Any], response: Any, name: str, found: str
) -> None:
    [wrong] = violations({"a/b": request_}, {"a/b": response})
    assert (wrong.rule, wrong.at) == ("protocol/input-kind", "/params/x/a~1b")
    assert wrong.expected == f"the {name} that {request_['method']} asks for"
    assert wrong.found == found
    assert wrong.source.endswith(name)


def test_accepted_content_fits_the_form_and_roots_are_files() -> None:
    requests = {"form": ELICIT, "where": ROOTS}
    assert checked(requests, {"form": {"action": "accept", "content": {"age": "x"}}}) == [
        ("contract/elicitation", "/params/x/form/content/age")
    ]
    assert checked(requests, {"where": {"roots": [{"uri": "https://a.b/"}]}}) == [
        ("protocol/root", "/params/x/where/roots/0/uri")
    ]


def test_a_wrong_format_is_not_another_kind() -> None:
    """The params are judged by their schema before, which reports it."""
    assert checked({"where": ROOTS}, {"where": {"roots": [{"uri": "file:///a b"}]}}) == []


@rows("responses", [None, [], "x", {}, {"other": {"roots": None}}])
def test_other_keys_are_left_to_the_caller(responses: Any) -> None:
    assert checked({"form": ELICIT}, responses) == []


@rows("requests", [None, [], {"k": None}, {"k": {}}, {"k": {"method": "ping"}}, {"k": {"method": []}}])
def test_what_is_no_request_is_not_kept(requests: Any) -> None:
    assert kept(requests) == {}


def test_what_is_kept_is_bounded() -> None:
    many = {f"{number}": ROOTS for number in range(100)}
    assert len(kept(many)) == 64
    assert kept({"x" * 70_000: ROOTS, "k": ROOTS}) == {}
    large = {**ELICIT, "params": {"requestedSchema": {**FORM, "description": "x" * 40_000}}}
    both = kept({"a": large, "b": large})
    assert [each.form == b"" for each in both.values()] == [False, True]
    assert kept({"k": URL}) == {"k": AskedInput("elicitation/create")}

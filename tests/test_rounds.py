"""Forms that users fill in, and requests that are made again with the input that was asked for (2026-07-28)."""

from typing import Any

import pytest

from assay.base.verdict import Party, Verdict
from assay.core.conversation import Facts
from assay.core.policy import Policy
from talk import Talk, frame_of, good, request, result, rules

PROPERTIES: dict[str, Any] = {
    "name": {"type": "string", "maxLength": 10},
    "age": {"type": "integer", "minimum": 0},
    "color": {"type": "string", "enum": ["red", "blue"]},
    "email": {"type": "string", "format": "email"},
    "sure": {"type": "boolean"},
}
FORM: dict[str, Any] = {"type": "object", "properties": PROPERTIES, "required": ["name"]}
ELICIT: dict[str, Any] = {"message": "?", "requestedSchema": FORM}


def accepted(**content: Any) -> dict[str, Any]:
    return {"action": "accept", "content": content}


CONTENTS: list[tuple[dict[str, Any], list[str]]] = [
    (accepted(name="a"), []),
    (accepted(name="a", age=3, color="red", email="a@b.example", sure=True, more="x"), []),
    (accepted(name="a", email="canned"), []),
    ({"action": "accept"}, [""]),
    ({"action": "decline", "content": {"age": "ten"}}, []),
    ({"action": "cancel"}, []),
    (accepted(age=3), ["/content"]),
    (accepted(name="a", age="ten"), ["/content/age"]),
    (accepted(name="a", age=-1, color="green"), ["/content/age", "/content/color"]),
    (accepted(name="a" * 11), ["/content/name"]),
]
every_content = pytest.mark.parametrize(("answer", "wrong"), CONTENTS)

# ── a request of the server ──────────────────────────────────────────────────────────────────────────────────────────


@every_content
@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25"])
def test_what_the_user_accepts_fits_the_form(revision: str, answer: dict[str, Any], wrong: list[str]) -> None:
    """client/elicitation: the content matches the requested schema."""
    talk = Talk().opened(revision)
    good(talk.server(request("s", "elicitation/create", ELICIT)))
    verdict = talk.client(result("s", answer))
    expected = [("contract/elicitation", f"/result{at}") for at in wrong]
    assert [(each.rule, each.at) for each in verdict.violations] == expected
    assert verdict.onward is verdict.frame


def test_a_strict_policy_refuses_it() -> None:
    talk = Talk(policy=Policy(strict=True)).opened()
    good(talk.server(request("s", "elicitation/create", ELICIT)))
    assert not talk.client(result("s", accepted())).accepted


def test_two_forms_are_told_apart_by_their_requests() -> None:
    talk = Talk().opened()
    other = {"message": "?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "integer"}}}}
    good(talk.server(request("s", "elicitation/create", ELICIT)))
    good(talk.server(request("t", "elicitation/create", other)))
    good(talk.client(result("t", accepted(name=5))))
    good(talk.client(result("s", accepted(name="five"))))


def test_a_form_that_runs_as_a_task_is_held_to_when_its_payload_comes() -> None:
    tasks: dict[str, Any] = {"requests": {"elicitation": {"create": {}}}}
    talk = Talk().opened(client={"elicitation": {}, "tasks": tasks})
    good(talk.server(request("s", "elicitation/create", {**ELICIT, "task": {}})))
    task = {"taskId": "t", "status": "working", "createdAt": "now", "lastUpdatedAt": "now", "ttl": None}
    good(talk.client(result("s", {"task": task})))
    good(talk.server(request("r", "tasks/result", {"taskId": "t"})))
    related = {"_meta": {"io.modelcontextprotocol/related-task": {"taskId": "t"}}}
    assert rules(talk.client(result("r", {**accepted(), **related}))) == ["contract/elicitation"]


def test_what_is_remembered_of_forms_is_bounded() -> None:
    talk = Talk().opened()
    large = {**FORM, "description": "x" * 60_000}
    for number in range(50):
        good(talk.server(request(number, "elicitation/create", {"message": "?", "requestedSchema": large})))
    good(talk.client(result(0, accepted())))
    assert rules(talk.client(result(49, accepted()))) == ["contract/elicitation"]
    assert talk.conversation._memory._forms._bytes <= 1 << 20


def test_a_form_too_large_to_keep_is_not_judged_by() -> None:
    talk = Talk().opened()
    huge = {**FORM, "description": "x" * 70_000}
    good(talk.server(request("s", "elicitation/create", {"message": "?", "requestedSchema": huge})))
    good(talk.client(result("s", accepted())))


def test_a_form_that_cannot_be_compiled_is_not_judged_by() -> None:
    talk = Talk(mode="audit").opened()
    wrong = {"type": "object", "properties": {"a": {"type": "string", "pattern": "("}}}
    talk.server(request("s", "elicitation/create", {"message": "?", "requestedSchema": wrong}))
    good(talk.client(result("s", accepted(a="x"))))


def test_what_takes_too_long_to_match_is_not_judged() -> None:
    """It was told to be wrong, and to tell that took 22 s."""
    talk = Talk(mode="audit").opened()
    form = {"type": "object", "properties": {"a": {"pattern": r"^(?:(?=(a+))a)+b"}, "b": {"type": "integer"}}}
    talk.server(request("s", "elicitation/create", {"message": "?", "requestedSchema": form}))
    verdict = talk.client(result("s", accepted(a="a" * 3_000, b="x")))
    assert [each.at for each in verdict.violations] == ["/result/content/b"]


def test_forms_with_many_patterns_are_not_judged_by() -> None:
    """They would be compiled anew with each answer: 16 of them in one message took 2.8 s."""
    talk = Talk(mode="audit").opened()
    few = {"type": "object", "properties": {"a": {"pattern": "^a$"}}}
    many = {"type": "object", "properties": {str(n): {"pattern": f"^{n}$"} for n in range(50)}}
    for ident, form in (("few", few), ("many", many)):
        talk.server(request(ident, "elicitation/create", {"message": "?", "requestedSchema": form}))
    assert rules(talk.client(result("few", accepted(a="x")))) == ["contract/elicitation"]
    good(talk.client(result("many", accepted(**{"1": "x"}))))


# ── a round (2026-07-28) ─────────────────────────────────────────────────────────────────────────────────────────────

META: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}, "roots": {}},
}
NAMED: dict[str, dict[str, Any]] = {
    "tools/call": {"name": "search", "arguments": {}},
    "prompts/get": {"name": "a"},
    "resources/read": {"uri": "file:///a"},
}


def ask(ident: Any, method: str = "tools/call", **more: Any) -> dict[str, Any]:
    return request(ident, method, {**NAMED[method], "_meta": META, **more})


def wanting(ident: Any, state: str | None = "state", **inputs: Any) -> dict[str, Any]:
    """The server asks for input before it can answer."""
    value: dict[str, Any] = {"resultType": "input_required", "inputRequests": inputs}
    return result(ident, value if state is None else {**value, "requestState": state})


FILL_IN = {"method": "elicitation/create", "params": {"mode": "form", **ELICIT}}


@pytest.mark.parametrize("method", NAMED)
@pytest.mark.parametrize("state", ["state", None])
def test_a_request_made_again_has_a_new_id(method: str, state: str | None) -> None:
    """basic/patterns/mrtr: the retry is an independent request, its id MUST differ."""
    for ident, expected in ((1, ["protocol/retry-id"]), (2, [])):
        talk = Talk(revision="2026-07-28")
        good(talk.client(ask(1, method)))
        good(talk.server(wanting(1, state, form=FILL_IN)))
        more = {"inputResponses": {"form": accepted(name="a")}, **({} if state is None else {"requestState": state})}
        verdict = talk.client(ask(ident, method, **more))
        assert rules(verdict) == expected
        assert verdict.onward is verdict.frame


def test_another_request_may_have_the_id_of_one_that_was_answered() -> None:
    talk = Talk(revision="2026-07-28")
    good(talk.client(ask(1)))
    good(talk.server(wanting(1, form=FILL_IN)))
    good(talk.client(ask(1)))
    good(talk.server(result(1, {"resultType": "complete", "content": []})))
    good(talk.client(ask(1, "prompts/get", requestState="state")))
    good(talk.client(ask(2, requestState="another")))


@every_content
def test_the_input_fits_the_form_that_was_asked_for(answer: dict[str, Any], wrong: list[str]) -> None:
    talk = Talk(revision="2026-07-28")
    good(talk.client(ask(1)))
    good(talk.server(wanting(1, "state", **{"a/b": FILL_IN})))
    verdict = talk.client(ask(2, requestState="state", inputResponses={"a/b": answer}))
    expected = [("contract/elicitation", f"/params/inputResponses/a~1b{at}") for at in wrong]
    assert [(each.rule, each.at) for each in verdict.violations] == expected


def test_input_for_another_state_or_key_is_not_judged_by_this_form() -> None:
    talk = Talk(revision="2026-07-28")
    good(talk.client(ask(1)))
    good(talk.server(wanting(1, form=FILL_IN)))
    good(talk.client(ask(2, requestState="other", inputResponses={"form": accepted()})))
    good(talk.client(ask(3, requestState="state", inputResponses={"another": accepted()})))


def test_two_rounds_that_cannot_be_told_apart_are_not_judged() -> None:
    talk = Talk(revision="2026-07-28")
    other = {
        "method": "elicitation/create",
        "params": {"mode": "form", "message": "?", "requestedSchema": {**FORM, "required": []}},
    }
    for ident, form in ((1, FILL_IN), (2, other)):
        good(talk.client(ask(ident)))
        good(talk.server(wanting(ident, None, form=form)))
    good(talk.client(ask(3, inputResponses={"form": accepted()})))


def test_a_root_that_is_no_file_is_reported_there_too() -> None:
    talk = Talk(revision="2026-07-28")
    good(talk.client(ask(1)))
    good(talk.server(wanting(1, where={"method": "roots/list"})))
    roots = {"roots": [{"uri": "https://example.com/a"}]}
    [found] = talk.client(ask(2, requestState="state", inputResponses={"where": roots})).violations
    assert (found.rule, found.at) == ("protocol/root", "/params/inputResponses/where/roots/0/uri")


def test_over_http_where_ids_of_clients_coincide_rounds_are_not_compared() -> None:
    """A conversation there serves one request after another, of clients that nobody can tell apart."""

    def client(talk: Talk, message: dict[str, Any]) -> Verdict:
        return talk.conversation.hear(Party.CLIENT, frame_of(message), Facts("http", "2026-07-28"))

    talk = Talk(revision="2026-07-28")
    good(client(talk, ask(1)))
    good(talk.server(wanting(1, form=FILL_IN)))
    good(client(talk, ask(1, requestState="state", inputResponses={"form": accepted()})))


def test_what_is_remembered_of_rounds_is_bounded() -> None:
    talk = Talk(revision="2026-07-28")
    for ident in range(100):
        good(talk.client(ask(ident)))
        good(talk.server(wanting(ident, f"{ident}", **{f"form {number}": FILL_IN for number in range(20)})))
    rounds = talk.conversation._memory._rounds._rounds
    assert len(rounds) == 64
    assert {len(each.asked) for each in rounds.values()} == {20}

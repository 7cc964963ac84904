"""Forms that users fill in, and requests that are made again with the input that was asked for (2026-07-28)."""

from collections.abc import Sequence
from typing import Any

import pytest

from assay.judge.conversation import NO_FACTS, Facts
from assay.judge.topics.forms import Forms
from assay.judge.topics.rounds import Rounds, SharedRounds
from assay.model.verdict import Party, Verdict
from assay.rules.policy import Policy
from assay.schema.tool_contracts import Tools
from kit.rows import rows
from kit.stateless_talk import META
from kit.talk import Talk, found, frame_of, good, notification, request, result, rules

PROPERTIES: dict[str, Any] = {
    "name": {"type": "string", "maxLength": 10},
    "age": {"type": "integer", "minimum": 0},
    "color": {"type": "string", "enum": ["red", "blue"]},
    "email": {"type": "string", "format": "email"},
    "sure": {"type": "boolean"},
}
FORM: dict[str, Any] = {"type": "object", "properties": PROPERTIES, "required": ["name"]}
ELICIT: dict[str, Any] = {"message": "?", "requestedSchema": FORM}

STRICT = Policy({"contract/not-judged": "pass"}, strict=True)
"""Strict, but for calls of tools that were not listed."""


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
every_content = rows(("answer", "wrong"), CONTENTS)

# ── a request of the server ──────────────────────────────────────────────────────────────────────────────────────────


@every_content
@rows("revision", ["2025-06-18", "2025-11-25"])
def test_what_the_user_accepts_fits_the_form(revision: str, answer: dict[str, Any], wrong: list[str]) -> None:
    """client/elicitation: the content matches the requested schema."""
    talk = Talk().opened(revision)
    good(talk.server(request("s", "elicitation/create", ELICIT)))
    verdict = talk.client(result("s", answer))
    expected = [("contract/elicitation", f"/result{at}") for at in wrong]
    assert [(each.rule, each.at) for each in found(verdict)] == expected
    assert verdict.onward is verdict.frame


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
    assert rules(talk.client(result(0, accepted(age="ten")))) == ["contract/unjudged"]
    assert rules(talk.client(result(49, accepted()))) == ["contract/elicitation"]
    assert talk.conversation._state.own(Forms).size <= 1 << 20


@rows(
    ("form", "content"),
    [
        ({**FORM, "description": "x" * 70_000}, {"age": "ten"}),
        ({"type": "object", "properties": {"a": {"type": "string", "pattern": "("}}}, {"a": "x"}),
        # They would be compiled anew with each answer: 16 of them in one message took 2.8 s.
        ({"type": "object", "properties": {str(n): {"pattern": f"^{n}$"} for n in range(50)}}, {"1": "x"}),
    ],
)
def test_a_form_that_is_too_large_or_cannot_be_compiled_is_not_judged_by(form: Any, content: Any) -> None:
    talk = Talk(mode="audit").opened()
    talk.server(request("s", "elicitation/create", {"message": "?", "requestedSchema": form}))
    assert rules(talk.client(result("s", accepted(**content)))) == ["contract/unjudged"]


def test_what_takes_too_long_to_match_is_not_judged() -> None:
    """It was found wrong after 22 s."""
    talk = Talk(mode="audit").opened()
    form = {"type": "object", "properties": {"a": {"pattern": r"^(?:(?=(a+))a)+b"}, "b": {"type": "integer"}}}
    talk.server(request("s", "elicitation/create", {"message": "?", "requestedSchema": form}))
    verdict = talk.client(result("s", accepted(a="a" * 3_000, b="x")))
    assert [(each.rule, each.at) for each in verdict.violations] == [
        ("contract/unjudged", "/result/content"),
        ("contract/elicitation", "/result/content/b"),
    ]


# ── a round (2026-07-28) ─────────────────────────────────────────────────────────────────────────────────────────────

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


@rows("method", NAMED)
@rows("state", ["state", None])
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


@every_content
def test_the_input_fits_the_form_that_was_asked_for(answer: dict[str, Any], wrong: list[str]) -> None:
    talk = Talk(revision="2026-07-28")
    good(talk.client(ask(1)))
    good(talk.server(wanting(1, "state", **{"a/b": FILL_IN})))
    verdict = talk.client(ask(2, requestState="state", inputResponses={"a/b": answer}))
    expected = [("contract/elicitation", f"/params/inputResponses/a~1b{at}") for at in wrong]
    assert [(each.rule, each.at) for each in found(verdict)] == expected


def test_two_rounds_that_cannot_be_kept_apart_are_not_judged() -> None:
    talk = Talk(revision="2026-07-28")
    other = {
        "method": "elicitation/create",
        "params": {"mode": "form", "message": "?", "requestedSchema": {**FORM, "required": []}},
    }
    for ident, form in ((1, FILL_IN), (2, other)):
        good(talk.client(ask(ident)))
        good(talk.server(wanting(ident, None, form=form)))
    good(talk.client(ask(3, inputResponses={"form": accepted()})))


WHERE: dict[str, Any] = {"method": "roots/list"}


def test_what_is_kept_of_the_input_that_is_asked_for_is_bounded() -> None:
    """Of 100 requests 64 are kept, keys of 64 kB in all, and forms of that size: what is not is not judged."""
    for asked, breaks in (
        ({f"{number}": WHERE for number in range(100)}, {"0": 1, "63": 1, "64": 0, "99": 0}),
        ({"x" * 70_000: WHERE, "k": WHERE}, {"k": 0}),
    ):
        for key, wrong in breaks.items():
            talk = Talk(revision="2026-07-28")
            good(talk.client(ask(1)))
            good(talk.server(wanting(1, "state", **asked)))
            given = {each: {"roots": []} for each in asked} | {key: accepted(age=3)}
            heard = rules(talk.client(ask(2, requestState="state", inputResponses=given)))
            assert heard.count("protocol/input-kind") == wrong


# ── what a request made again agrees in ──────────────────────────────────────────────────────────────────────────────

NAME, ROOTS = accepted(name="a"), {"roots": [{"uri": "file:///a"}]}
LONG = "7c9e6679-7425-40de-944b-e07fc1f90ae7"
"""A state that is given once."""

Step = tuple[dict[str, Any], list[str]]
"""A message, and the rules that it breaks. Messages with a method are the client's."""


def sent(*more: Any, breaks: Sequence[str] = (), **params: Any) -> Step:
    return ask(*more, **params), [breaks] if isinstance(breaks, str) else list(breaks)


def wants(ident: Any, state: str | None = "state", **inputs: Any) -> Step:
    return wanting(ident, state, **inputs), []


def done(ident: Any, **more: Any) -> Step:
    return result(ident, {"resultType": "complete", "content": [], **more}), []


def cancelled(ident: Any) -> Step:
    return notification("notifications/cancelled", {"requestId": ident}), []


def played(talk: Talk, steps: list[Step], facts: Facts | None = None) -> list[Verdict]:
    """Says all messages; each breaks just what its step names, and passes."""
    heard = []
    for message, breaks in steps:
        party = Party.CLIENT if "method" in message else Party.SERVER
        given = facts if facts is not None and party is Party.CLIENT else NO_FACTS
        verdict = talk.conversation.hear(party, frame_of(message), given)
        assert rules(verdict) == breaks, (message, verdict.violations)
        assert verdict.onward is verdict.frame
        heard.append(verdict)
    return heard


FORM_ANSWER: dict[str, Any] = {"inputResponses": {"form": NAME}}
FLOWS: dict[str, list[Step]] = {
    "requests and state": [sent(1), wants(1, form=FILL_IN), sent(2, requestState="state", **FORM_ANSWER), done(2)],
    "requests only": [sent(1), wants(1, None, form=FILL_IN), sent(2, **FORM_ANSWER), done(2)],
    "state only": [sent(1), wants(1), sent(2, requestState="state"), done(2)],
    "several kinds": [
        sent(1), wants(1, form=FILL_IN, where=WHERE),
        sent(2, requestState="state", inputResponses={"where": ROOTS, "form": NAME}), done(2)],
    "several rounds, each with a state of its own": [
        sent(1), wants(1, "a", form=FILL_IN), sent(2, requestState="a", **FORM_ANSWER), wants(2, "b", where=WHERE),
        sent(3, requestState="b", inputResponses={"where": ROOTS}), wants(3, None, form=FILL_IN),
        sent(4, **FORM_ANSWER), done(4)],
    "several rounds with one state": [
        sent(1), wants(1, form=FILL_IN), sent(2, requestState="state", **FORM_ANSWER), wants(2, where=WHERE),
        sent(3, requestState="state", inputResponses={"where": ROOTS}), done(3)],
    "an id of an earlier round": [
        sent(1), wants(1, form=FILL_IN), sent(2, requestState="state", **FORM_ANSWER), wants(2, form=FILL_IN),
        sent(1, requestState="state", **FORM_ANSWER)],
    "the server asks again for what is missing": [
        sent(1), wants(1, None, form=FILL_IN), sent(2, **FORM_ANSWER), wants(2, None, form=FILL_IN),
        sent(3, **FORM_ANSWER)],
    "rounds of one tool at once, continued in another order": [
        sent(1), sent(2), wants(1, "a", form=FILL_IN), wants(2, "b", where=WHERE),
        sent(3, requestState="b", inputResponses={"where": ROOTS}), sent(4, requestState="a", **FORM_ANSWER), done(4),
        done(3)],
    "rounds of one tool at once, with one state": [
        sent(1, arguments={"words": "a"}), sent(2, arguments={"words": "b"}), wants(1, form=FILL_IN),
        wants(2, where=WHERE), sent(3, requestState="state", arguments={"words": "a"}, **FORM_ANSWER),
        sent(4, requestState="state", arguments={"words": "b"}, inputResponses={"where": ROOTS})],
    "rounds of one tool at once, one with a state": [
        sent(1), sent(2), wants(1, "a", form=FILL_IN), wants(2, None, form=FILL_IN), sent(3, **FORM_ANSWER),
        sent(4, requestState="a", **FORM_ANSWER)],
    "one state for two methods": [
        sent(1), sent(2, "prompts/get"), wants(1), wants(2), sent(3, requestState="state"),
        sent(4, "prompts/get", requestState="state")],
    "a client that never repeats the request": [sent(1), wants(1, form=FILL_IN), sent(2), done(2)],
    "a request that is cancelled and made again": [
        sent(1), wants(1, form=FILL_IN), sent(2, requestState="state", **FORM_ANSWER), cancelled(2),
        sent(3, requestState="state", **FORM_ANSWER), done(3)],
    "the same without a state": [
        sent(1), wants(1, None, form=FILL_IN), sent(2, **FORM_ANSWER), cancelled(2), sent(3, **FORM_ANSWER), done(3)],
    "a question that crosses the cancellation": [
        sent(1), cancelled(1), wants(1, "late", form=FILL_IN), sent(2), wants(2, "new", form=FILL_IN),
        sent(3, requestState="new", **FORM_ANSWER)],
    "a state of an earlier conversation": [sent(1, requestState="before"), sent(2, requestState="a", **FORM_ANSWER)],
    "a state of an earlier conversation, while another round is open": [
        sent(1), wants(1, where=WHERE), sent(2, requestState="before", **FORM_ANSWER),
        sent(3, requestState="state", inputResponses={"where": ROOTS})],
    "answers that were never asked for here": [sent(1, **FORM_ANSWER), sent(2, **FORM_ANSWER)],
    "an answer that is declined": [
        sent(1), wants(1, form=FILL_IN), sent(2, requestState="state", inputResponses={"form": {"action": "decline"}})],
    "an empty map of requests": [
        sent(1), (result(1, {"resultType": "input_required", "requestState": "s", "inputRequests": {}}), []),
        sent(2, requestState="s", inputResponses={}), done(2)],
    "arguments in another order, absent ones": [
        sent(1, arguments={"a": 1, "b": 2}), wants(1, "a"), sent(2, arguments={"b": 2, "a": 1}, requestState="a"),
        done(2), sent(3, "prompts/get"), wants(3, "b"), sent(4, "prompts/get", arguments={}, requestState="b")],
    "a resource": [
        sent(1, "resources/read"), wants(1, form=FILL_IN),
        sent(2, "resources/read", requestState="state", **FORM_ANSWER),
        (result(2, {"resultType": "complete", "contents": [], "ttlMs": 0, "cacheScope": "private"}), [])],
}  # fmt: skip


@rows("name", FLOWS)
def test_what_is_legal_is_not_reported(name: str) -> None:
    played(Talk(policy=STRICT), FLOWS[name])


@rows("name", FLOWS)
@rows("long", [False, True])
def test_nor_is_it_over_http(name: str, long: bool) -> None:
    """There one state is given again and again, and each request is a conversation of its own."""
    tools = Tools(10)
    for _ in range(2):
        for message, _ in FLOWS[name]:
            if "method" in message and message["method"] in NAMED:
                talk = Talk(policy=STRICT, revision="2026-07-28", tools=tools)
                played(talk, [(lengthened(message) if long else message, [])], HTTP)
                for reply, _ in FLOWS[name]:
                    if reply.get("id") == message["id"] and "result" in reply:
                        played(talk, [(lengthened(reply) if long else reply, [])])


HTTP = Facts("http", "2026-07-28")


def lengthened(message: dict[str, Any]) -> dict[str, Any]:
    """The message with a state that looks as if it was given once."""
    member = "params" if "method" in message else "result"
    inside = message[member]
    state = {"requestState": inside["requestState"] + LONG} if "requestState" in inside else {}
    return {**message, member: {**inside, **state}}


STATE, TARGET, ANSWERS = "protocol/request-state", "protocol/retry-target", "protocol/input-responses"
WRONG: list[tuple[str, list[Step], list[str]]] = [
    ("changed", [sent(1), wants(1, form=FILL_IN), sent(2, breaks=STATE, requestState="State", **FORM_ANSWER)],
     ["/params/requestState"]),
    ("made up", [sent(1), wants(1, None, form=FILL_IN), sent(2, breaks=STATE, requestState="", **FORM_ANSWER)],
     ["/params/requestState"]),
    ("left out", [sent(1), wants(1, form=FILL_IN), sent(2, breaks=STATE, **FORM_ANSWER)], ["/params"]),
    ("another method",
     [sent(1), wants(1), sent(2, "prompts/get", breaks=TARGET, requestState="state")], ["/method"]),
    ("a method that cannot ask",
     [sent(1), wants(1), (request(2, "tools/list", {"_meta": META, "requestState": "state"}), [TARGET])], ["/method"]),
    ("another tool",
     [sent(1), wants(1), sent(2, breaks=TARGET, name="delete", requestState="state")], ["/params/name"]),
    ("another prompt",
     [sent(1, "prompts/get"), wants(1), sent(2, "prompts/get", breaks=TARGET, name="b", requestState="state")],
     ["/params/name"]),
    ("another resource",
     [sent(1, "resources/read"), wants(1),
      sent(2, "resources/read", breaks=TARGET, uri="file:///b", requestState="state")], ["/params/uri"]),
    ("other arguments",
     [sent(1), wants(1), sent(2, breaks=TARGET, arguments={"a": 1}, requestState="state")], ["/params/arguments"]),
    ("other arguments in the second round, without a state",
     [sent(1, arguments={"a": 1}), wants(1, None, form=FILL_IN), sent(2, arguments={"a": 1}, **FORM_ANSWER),
      wants(2, None, where=WHERE), sent(3, breaks=TARGET, arguments={"a": 2}, inputResponses={"where": ROOTS})],
     ["/params/arguments"]),
    ("other arguments of a prompt",
     [sent(1, "prompts/get", arguments={"a": "1"}), wants(1),
      sent(2, "prompts/get", breaks=TARGET, requestState="state")], ["/params/arguments"]),
    ("no answers", [sent(1), wants(1, form=FILL_IN), sent(2, breaks=ANSWERS, requestState="state")], ["/params"]),
    ("an empty map",
     [sent(1), wants(1, form=FILL_IN), sent(2, breaks=ANSWERS, requestState="state", inputResponses={})],
     ["/params/inputResponses"]),
    ("one is missing",
     [sent(1), wants(1, form=FILL_IN, where=WHERE), sent(2, breaks=ANSWERS, requestState="state", **FORM_ANSWER)],
     ["/params/inputResponses"]),
    ("one is missing, without a state",
     [sent(1), wants(1, None, form=FILL_IN, where=WHERE), sent(2, breaks=ANSWERS, **FORM_ANSWER)],
     ["/params/inputResponses"]),
    ("one too many",
     [sent(1), wants(1, form=FILL_IN),
      sent(2, breaks=ANSWERS, requestState="state", inputResponses={"form": NAME, "a/b": ROOTS})],
     ["/params/inputResponses/a~1b"]),
    ("nothing was asked",
     [sent(1), wants(1), sent(2, breaks=ANSWERS, requestState="state", **FORM_ANSWER)],
     ["/params/inputResponses/form"]),
    ("another key",
     [sent(1), wants(1, form=FILL_IN),
      sent(2, breaks=[ANSWERS, ANSWERS], requestState="state", inputResponses={"from": NAME})],
     ["/params/inputResponses", "/params/inputResponses/from"]),
    ("the answers of the round before",
     [sent(1), wants(1, "a", form=FILL_IN), sent(2, requestState="a", **FORM_ANSWER), wants(2, "b", where=WHERE),
      sent(3, breaks=[ANSWERS, ANSWERS], requestState="b", **FORM_ANSWER)],
     ["/params/inputResponses", "/params/inputResponses/form"]),
    ("of another kind",
     [sent(1), wants(1, form=FILL_IN),
      sent(2, breaks="protocol/input-kind", requestState="state", inputResponses={"form": ROOTS})],
     ["/params/inputResponses/form"]),
]  # fmt: skip


@rows(("steps", "places"), [pytest.param(*each[1:], id=each[0]) for each in WRONG])
def test_what_is_not_is_reported_where_it_is(steps: list[Step], places: list[str]) -> None:
    heard = played(Talk(), steps)
    assert [each.at for each in found(heard[-1])] == places


@rows("steps", [pytest.param(each[1], id=each[0]) for each in WRONG if "out a state" not in each[0]])
def test_over_http_what_the_state_shows_is_reported_by_another_conversation(steps: list[Step]) -> None:
    """Not the state itself, nor the arguments: which client sends a request is not known."""
    tools = Tools(10)
    first: Any = None
    for message, breaks in steps:
        if "method" in message:
            first = Talk(revision="2026-07-28", tools=tools)
            found = first.conversation.hear(Party.CLIENT, frame_of(lengthened(message)), HTTP)
            silent = STATE in breaks or "/params/arguments" in [at for _, each, [at, *_] in WRONG if each is steps]
            assert rules(found) == ([] if silent else breaks)
        else:
            good(first.server(lengthened(message)))


def test_a_short_state_shows_nothing_over_http() -> None:
    """Another guard of the same server may have seen it with another request."""
    tools = Tools(10)
    for steps in ([sent(1), wants(1, "step-2", form=FILL_IN)], [sent(1, "prompts/get", requestState="step-2")]):
        played(Talk(revision="2026-07-28", tools=tools), steps, HTTP)


def test_over_http_rounds_with_one_state_are_judged_in_what_they_agree() -> None:
    tools = Tools(10)
    for inputs in ({"form": FILL_IN, "x": WHERE}, {"form": FILL_IN, "x": FILL_IN}, {"form": FILL_IN, "y": WHERE}):
        played(Talk(revision="2026-07-28", tools=tools), [sent(1), wants(1, LONG, **inputs)], HTTP)

    def again(breaks: list[str], **responses: Any) -> None:
        talk = Talk(revision="2026-07-28", tools=tools)
        played(talk, [sent(1, requestState=LONG, inputResponses=responses, breaks=breaks)], HTTP)

    again([], form=NAME, x=ROOTS)
    again([], form=NAME, x=NAME)
    again([], form=NAME, y=ROOTS)
    again([ANSWERS], x=ROOTS)
    again([ANSWERS], form=NAME, z=NAME)
    again(["protocol/input-kind"], form=ROOTS, x=ROOTS)
    again(["contract/elicitation"], form=accepted(), y=ROOTS)


def test_over_http_a_state_with_many_different_rounds_is_a_constant() -> None:
    tools = Tools(10)
    for number in range(9):
        played(Talk(revision="2026-07-28", tools=tools), [sent(1), wants(1, LONG, **{f"{number}": WHERE})], HTTP)
    for _ in range(2):
        steps = [sent(1, "prompts/get", requestState=LONG), wants(1, LONG, **{"0": WHERE})]
        played(Talk(revision="2026-07-28", tools=tools), steps, HTTP)
    assert tools.topics[SharedRounds].by_state.size == 0


def test_what_clients_share_is_bounded_and_outlives_the_server() -> None:
    tools = Tools(10)
    large = {"method": "elicitation/create", "params": {**ELICIT, "requestedSchema": {**FORM, "title": "x" * 60_000}}}
    for number in range(1_100):
        inputs = {"form": large if number < 100 else FILL_IN}
        played(Talk(revision="2026-07-28", tools=tools), [sent(1), wants(1, f"{LONG} {number}", **inputs)], HTTP)
        assert tools.topics[SharedRounds].by_state.size <= 4 << 20
    assert len(tools.topics[SharedRounds].by_state) == 1_000
    after = Talk(revision="2026-07-28", tools=tools.handed_down())
    played(
        after,
        [
            sent(1, breaks=["contract/unjudged"], requestState=f"{LONG} 50"),
            sent(2, breaks=ANSWERS, requestState=f"{LONG} 1099"),
        ],
        HTTP,
    )


def test_a_state_that_is_given_once_shows_its_request_wherever_the_conversation_began() -> None:
    talk = Talk(revision="2026-07-28")
    played(talk, [sent(1), wants(1, LONG), sent(2, "prompts/get", breaks=TARGET, requestState=LONG)])


def test_the_arguments_of_a_listed_tool_are_compared_once_it_has_asked() -> None:
    """Those of every call would cost every call."""
    talk = Talk()
    good(talk.client(request("list", "tools/list", {"_meta": META})))
    listing = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", "tools": [LISTED]}
    good(talk.server(result("list", listing)))
    first = [sent(1, arguments={"a": 1}), wants(1, "a"), sent(2, arguments={"a": 2}, requestState="a"), done(2)]
    played(talk, first)
    played(talk, [sent(3, arguments={"a": 1}), wants(3, "b")])
    played(talk, [sent(4, breaks=TARGET, arguments={"a": 2}, requestState="b"), done(4)])


LISTED: dict[str, Any] = {"name": "search", "inputSchema": {"type": "object"}}


def test_arguments_are_compared_after_their_repair() -> None:
    counting = {**LISTED, "inputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}}}
    talk = Talk(policy=Policy({"contract/not-judged": "pass"}, repairs=["contract/input"], strict=True))
    good(talk.client(request("list", "tools/list", {"_meta": META})))
    listing = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", "tools": [counting]}
    good(talk.server(result("list", listing)))
    played(talk, [sent(1, arguments={"n": 1}), wants(1, "a"), sent(2, arguments={"n": 1}, requestState="a"), done(2)])
    for ident, more in ((3, {}), (4, {"requestState": "b"})):
        verdict = talk.client(ask(ident, arguments={"n": "1"}, **more))
        assert (rules(verdict), verdict.accepted) == (["contract/input"], True)
        played(talk, [wants(ident, "b")])


def test_a_refused_request_does_not_use_up_its_round() -> None:
    talk = Talk(policy=Policy({"protocol/input-responses": "refuse"}))
    played(talk, [sent(1), wants(1, None, form=FILL_IN, where=WHERE)])
    assert not talk.client(ask(2, **FORM_ANSWER)).accepted
    good(talk.client(ask(3, inputResponses={"form": NAME, "where": ROOTS})))


def test_a_task_ends_the_round_before_it() -> None:
    """Tasks, Task Creation: keys and state of the request before the task do not count for the task."""
    extended = {
        **META["io.modelcontextprotocol/clientCapabilities"],
        "extensions": {"io.modelcontextprotocol/tasks": {}},
    }
    meta = {**META, "io.modelcontextprotocol/clientCapabilities": extended}
    talk = Talk()
    played(talk, [(request(1, "tools/call", {"name": "search", "_meta": meta}), []), wants(1, form=FILL_IN)])
    again = {"name": "search", "_meta": meta, "requestState": "state", **FORM_ANSWER}
    good(talk.client(request(2, "tools/call", again)))
    assert [len(each or ()) for each in talk.conversation._state.own(Rounds).by_state.values()] == [1]
    task = {"taskId": "t", "status": "working", "createdAt": "now", "lastUpdatedAt": "now", "ttlMs": None}
    assert talk.server(result(2, {"resultType": "task", **task})).accepted
    assert talk.conversation._state.own(Rounds).by_state == {hash("state"): []}
    played(talk, [sent(3, "prompts/get", requestState="state")])


@rows(
    ("number", "again", "breaks"),
    [(100, True, [STATE]), (100, False, [STATE]), (1_100, True, ["contract/unjudged"])],
)
def test_the_state_is_judged_as_long_as_nothing_that_counts_is_forgotten(
    number: int, again: bool, breaks: list[str]
) -> None:
    talk = Talk()
    for each in range(number):
        first, second = f"{each} a", f"{each} b"
        played(talk, [sent(first), wants(first, first, form=FILL_IN)])
        if again:
            played(talk, [sent(second, requestState=first, **FORM_ANSWER), done(second)])
    played(talk, [sent(1), wants(1, form=FILL_IN), sent(2, breaks=breaks, requestState="other", **FORM_ANSWER)])
    assert len(talk.conversation._state.own(Rounds).by_state) == min(number + 1, 1_000)


def test_members_of_an_unknown_extension_are_its_own() -> None:
    talk = Talk()
    played(talk, [sent(1), wants(1)])
    other = request(2, "acme/run", {"_meta": META, "requestState": "state", "inputResponses": {"form": ROOTS}})
    assert TARGET not in rules(talk.client(other))


# ── the result that asks ─────────────────────────────────────────────────────────────────────────────────────────────


@rows("method", NAMED)
def test_nothing_more_comes_for_a_request_that_was_answered_by_asking(method: str) -> None:
    """basic/patterns/mrtr: the result ends the request."""
    talk = Talk()
    token = {**META, "progressToken": "p", "io.modelcontextprotocol/logLevel": "info"}
    good(talk.client(request(1, method, {**NAMED[method], "_meta": token})))
    good(talk.server(notification("notifications/progress", {"progressToken": "p", "progress": 1})))
    good(talk.server(wanting(1, form=FILL_IN)))
    progress = notification("notifications/progress", {"progressToken": "p", "progress": 2})
    assert rules(talk.server(progress)) == ["protocol/progress"]
    log = notification("notifications/message", {"level": "error", "data": "x"})
    assert rules(talk.server(log)) == ["protocol/log"]
    assert rules(talk.server(wanting(1, form=FILL_IN))) == ["protocol/answered-twice"]


# ── what peers may send to harm ──────────────────────────────────────────────────────────────────────────────────────


def test_a_call_with_a_cursor_and_without_a_name_may_be_asked_for_input() -> None:
    """It raised an exception where the operator lets it pass: the cursor was taken for the name of the tool."""
    talk = Talk(revision="2026-07-28", policy=Policy({"*": "pass"}))
    talk.client(request(1, "tools/call", {"cursor": "c", "_meta": META}))
    good(talk.server(wanting(1, form=FILL_IN)))

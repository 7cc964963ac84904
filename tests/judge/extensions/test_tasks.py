"""The tasks extension: what a server says of a task, and what it and the client may say after that."""

import gc
from collections.abc import Callable
from typing import Any

from extended import ACME, MODES, TASKS, discovered, listed, stateless

from assay.judge.topics.tasks import KnownTask, Poll, ServerTasks
from assay.model.verdict import Party, Verdict
from assay.rules.policy import Policy
from assay.spec.revisions import LATEST
from kit.rows import rows
from kit.talk import HITS, Talk, error, good, notification, request, result, rules

EARLY, LATER, LATEST_TIME = "2026-08-01T10:00:00Z", "2026-08-01T10:05:00Z", "2026-08-01T10:10:00+00:00"
TASK: dict[str, Any] = {
    "taskId": "t1",
    "status": "working",
    "createdAt": EARLY,
    "lastUpdatedAt": EARLY,
    "ttlMs": None,
    "pollIntervalMs": 100,
}
HANDLE = {"resultType": "task", **TASK}
UNJUDGED = ["contract/unjudged"]
ABLE: dict[str, Any] = {"elicitation": {}, "roots": {}, "sampling": {}}
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"


def form(text: str) -> dict[str, Any]:
    """A request for a name."""
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    return {"method": "elicitation/create", "params": {"mode": "form", "message": text, "requestedSchema": schema}}


def shown(**fields: Any) -> dict[str, Any]:
    """The result of `tasks/get`; a field that is None is left out."""
    whole = {"resultType": "complete", **TASK, **fields}
    return {name: value for name, value in whole.items() if value is not None or name == "ttlMs"}


COMPLETED = shown(status="completed", result=HITS)
FAILED = shown(status="failed", statusMessage="It broke.", error={"code": -32603, "message": "no"})
CANCELLED = shown(status="cancelled")
ASKING = shown(status="input_required", inputRequests={"who": form("Who?")})


class Tasked(Talk):
    """A conversation with a server that has the extension, and a tool that has an output schema."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        discovered(self, TASKS)
        listed(self)
        self.asked = 0

    def ask(self, method: str, extensions: Any = TASKS, able: Any = ABLE, **params: Any) -> Verdict:
        """The verdict on a request."""
        self.asked += 1
        return self.client(stateless(self.asked, method, extensions, able, **params))

    def call(self, able: Any = ABLE) -> Verdict:
        """The verdict on a call."""
        return self.ask("tools/call", able=able, name="search", arguments={"words": "sea"})

    def answer(self, value: dict[str, Any]) -> Verdict:
        """The verdict on the result of the last request."""
        return self.server(result(self.asked, value))

    def started(self, **fields: Any) -> "Tasked":
        """The same, after a call was answered with a task."""
        good(self.call())
        good(self.answer({**HANDLE, **fields}))
        return self

    def polled(self, value: dict[str, Any], **params: Any) -> Verdict:
        """The verdict on the answer to a poll."""
        good(self.ask("tasks/get", taskId="t1", **params))
        return self.answer(value)


# ── good conversations ───────────────────────────────────────────────────────────────────────────────────────────────


@rows("mode", MODES)
@rows("last", [COMPLETED, FAILED, CANCELLED])
def test_a_task_from_its_start_to_its_end(mode: str, last: dict[str, Any]) -> None:
    talk = Tasked(mode=mode).started()
    good(talk.polled(shown()))
    good(talk.polled({**ASKING, "lastUpdatedAt": LATER}))
    good(talk.polled({**ASKING, "lastUpdatedAt": LATER}))
    answers = {"who": {"action": "accept", "content": {"name": "Ada"}}}
    good(talk.ask("tasks/update", taskId="t1", inputResponses=answers))
    good(talk.answer({"resultType": "complete"}))
    good(talk.polled(shown(lastUpdatedAt=LATER)))
    good(talk.ask("tasks/cancel", taskId="t1"))
    good(talk.answer({"resultType": "complete"}))
    for _ in range(2):
        good(talk.polled({**last, "lastUpdatedAt": LATEST_TIME}))


def test_a_task_of_an_unknown_call_is_judged_by_its_shape() -> None:
    """What that call declared is unknown, too: tasks outlive the guard."""
    talk = Tasked()
    [wrong] = talk.polled(shown(status="completed", result={"content": []})).violations
    assert (wrong.rule, wrong.at) == ("contract/unjudged", "/result/result")
    good(talk.polled(shown()))
    assert rules(talk.ask("tasks/update", taskId="t1", inputResponses={"any": {"action": "cancel"}})) == UNJUDGED
    good(talk.answer({"resultType": "complete"}))
    good(Tasked().polled(ASKING, able={}))


@rows(
    "created", ["2026-08-01T10:00:00.000Z", "2026-08-01T12:00:00+02:00", "20260801T100000Z", "2026-08-01T10:00:00.4Z"]
)
def test_a_time_may_be_spelt_in_another_way(created: str) -> None:
    """A server that reads the task from a database has other digits than one that has just made it."""
    good(Tasked().started().polled(shown(createdAt=created, lastUpdatedAt=LATER)))


def test_a_time_needs_no_offset() -> None:
    """ISO 8601 allows a local time. It cannot be compared."""
    local = {"createdAt": "2026-08-01T10:00:00", "lastUpdatedAt": "2026-08-01T09:00:00"}
    talk = Tasked().started(**local)
    good(talk.polled(shown(**local)))
    assert rules(talk.polled(shown(createdAt=EARLY))) == ["tasks/identity"]
    assert rules(talk.polled(shown(createdAt="2026-08-01T10:00:01", lastUpdatedAt=LATER))) == ["tasks/identity"]


def test_unknown_keys_are_reported_and_never_refused() -> None:
    """The conformance suite sends such an answer, and wants an acknowledgement."""
    talk = Tasked(policy=Policy(strict=True)).started()
    verdict = talk.ask("tasks/update", taskId="t1", inputResponses={"unknown-key": {"ignored": True}})
    assert rules(verdict) == ["tasks/input-responses"]
    assert verdict.onward is verdict.frame


def test_polls_overtake_each_other() -> None:
    """The answer to an older poll may come after the task was seen to be over."""
    talk = Tasked().started()
    good(talk.ask("tasks/get", taskId="t1"))
    first = talk.asked
    good(talk.polled({**COMPLETED, "lastUpdatedAt": LATER}))
    good(talk.server(result(first, shown())))


# ── the shapes ───────────────────────────────────────────────────────────────────────────────────────────────────────


@rows(("params", "at"), [({}, "/params"), ({"taskId": 1}, "/params/taskId"), ({"taskId": None}, "/params/taskId")])
@rows("method", ["tasks/get", "tasks/cancel"])
def test_params_are_judged(method: str, params: dict[str, Any], at: str) -> None:
    assert rules(Tasked().ask("tasks/update", taskId="t1")) == ["protocol/params"]
    verdict = Tasked().ask(method, **params)
    assert (verdict.onward, rules(verdict)) == (None, ["protocol/params"])
    assert verdict.violations[0].at == at
    assert verdict.violations[0].source == "io.modelcontextprotocol/tasks, schema: TaskRequestParams"
    assert "assay schemas show tasks TaskRequestParams" in verdict.violations[0].hint


@rows(
    ("method", "answer", "rule"),
    [
        ("tasks/get", {**HANDLE}, "protocol/result-type"),
        ("tasks/get", {"resultType": "complete", "task": TASK}, "protocol/result"),
        ("tasks/get", shown(status="completed"), "protocol/result"),
        ("tasks/get", shown(ttlMs=2**60), "protocol/result"),
        ("tasks/update", {"resultType": "task"}, "protocol/result-type"),
        ("tasks/cancel", {"resultType": "input_required"}, "protocol/result-type"),
    ],
)
def test_results_are_judged(method: str, answer: dict[str, Any], rule: str) -> None:
    talk = Tasked().started()
    more: dict[str, Any] = {"inputResponses": {}} if method == "tasks/update" else {}
    good(talk.ask(method, taskId="t1", **more))
    verdict = talk.answer(answer)
    assert rules(verdict)[0] == rule
    assert verdict.onward is not verdict.frame


# ── declarations ─────────────────────────────────────────────────────────────────────────────────────────────────────


@rows("extensions", [None, ACME])
def test_a_task_is_no_answer_to_a_call_that_does_not_declare_it(extensions: Any) -> None:
    talk = Tasked()
    talk.ask("tools/call", extensions, name="search", arguments={"words": "sea"})
    verdict = talk.answer(HANDLE)
    assert rules(verdict) == ["protocol/result-type"]
    assert "io.modelcontextprotocol/tasks" in verdict.violations[0].hint
    assert verdict.onward is not verdict.frame


@rows("method", ["tasks/get", "tasks/update", "tasks/cancel"])
def test_a_request_about_a_task_that_does_not_declare_it_is_reported_and_the_server_refuses_it(method: str) -> None:
    talk = Tasked().started()
    verdict = talk.ask(method, None, taskId="t1", inputResponses={})
    assert rules(verdict) == ["protocol/capability"]
    assert verdict.onward is verdict.frame
    missing = {"requiredCapabilities": {"extensions": TASKS}}
    good(talk.server(error(talk.asked, -32021, data=missing)))
    talk.ask("tasks/get", None, taskId="t1")
    assert rules(talk.answer(shown())) == ["tasks/undeclared"]


def test_a_server_that_declares_the_extension_implements_it_and_another_is_not_asked_for_tasks() -> None:
    talk = discovered(Talk())
    verdict = talk.client(stateless(1, "tasks/get", TASKS, taskId="t1"))
    assert rules(verdict) == ["protocol/capability"]
    assert verdict.violations[0].expected.startswith("the server's capability")
    good(talk.server(error(1, -32601)))
    talk = Tasked()
    good(talk.ask("tasks/get", taskId="t1"))
    assert rules(talk.server(error(talk.asked, -32601))) == ["protocol/error-code"]


# ── what the server says of a task ───────────────────────────────────────────────────────────────────────────────────

Change = Callable[[Tasked], Verdict]


def poll(*answers: dict[str, Any], able: Any = ABLE) -> Change:
    """Poll until the last of *answers*."""

    def change(talk: Tasked) -> Verdict:
        for each in answers[:-1]:
            good(talk.polled(each, able=able))
        return talk.polled(answers[-1], able=able)

    return change


RULES: list[tuple[str, Change, str]] = [
    ("tasks/identity", poll(shown(taskId="t2")), "/result/taskId"),
    ("tasks/identity", poll(shown(createdAt=LATER, lastUpdatedAt=LATER)), "/result/createdAt"),
    ("tasks/status", poll(COMPLETED, shown()), "/result/status"),
    ("tasks/status", poll(CANCELLED, COMPLETED), "/result/status"),
    ("tasks/status", poll(FAILED, ASKING), "/result/status"),
    ("tasks/time", poll(shown(lastUpdatedAt="yesterday")), "/result/lastUpdatedAt"),
    ("tasks/time", poll(shown(lastUpdatedAt="2026-08-01T09:59:59Z")), "/result/lastUpdatedAt"),
    ("tasks/time", poll(shown(lastUpdatedAt=LATEST_TIME), shown(lastUpdatedAt=LATER)), "/result/lastUpdatedAt"),
    ("tasks/input-requests", poll(shown(status="input_required", inputRequests={})), "/result/inputRequests"),
    ("tasks/input-key", poll(ASKING, shown(status="input_required", inputRequests={"who": form("Where?")})),
     "/result/inputRequests/who"),
    ("tasks/failed", poll(shown(status="failed", error={"code": -32603, "message": "no"})), "/result"),
    ("tasks/related-task",
     poll(shown(status="completed", result={**HITS, "_meta": {"io.modelcontextprotocol/related-task": {}}})),
     "/result/result/_meta/io.modelcontextprotocol~1related-task"),
    ("protocol/result-type", poll(shown(status="completed", result={"resultType": "task"})),
     "/result/result/resultType"),
    ("protocol/result", poll(shown(status="completed", result={"content": {}})), "/result/result/content"),
    ("contract/output", poll(shown(status="completed", result={"content": []})), "/result/result"),
    ("contract/output", poll(shown(status="completed", result={"content": [], "structuredContent": {"hits": "1"}})),
     "/result/result/structuredContent/hits"),
]  # fmt: skip


@rows(("rule", "change", "at"), RULES, ids=[f"{row[0]}-{number}" for number, row in enumerate(RULES)])
@rows("mode", MODES)
def test_what_a_server_must_not_say_of_a_task(mode: str, rule: str, change: Change, at: str) -> None:
    verdict = change(Tasked(mode=mode).started())
    assert [(each.rule, each.at) for each in verdict.violations] == [(rule, at)]
    stopped = mode == "enforce" and verdict.violations[0].stops
    assert (verdict.onward is verdict.frame) is not stopped


@rows(
    ("wrong", "at"),
    [
        ({"result": HITS}, "/result/result"),
        ({"inputRequests": {}}, "/result/inputRequests"),
        ({"requestState": "s"}, "/result/requestState"),
        ({"ttlMs": 0}, "/result/ttlMs"),
        ({"pollIntervalMs": -1}, "/result/pollIntervalMs"),
    ],
)
def test_what_a_handle_must_not_have(wrong: dict[str, Any], at: str) -> None:
    talk = Tasked()
    good(talk.call())
    verdict = talk.answer({**HANDLE, **wrong})
    assert [(each.rule, each.at) for each in verdict.violations] == [("tasks/handle", at)]
    assert verdict.onward is verdict.frame


@rows(
    ("ttl", "before", "found"),
    [
        (None, None, ["tasks/not-found"]),
        # One with a short life may be gone, or that was cancelled, or polled before.
        (1, None, []),
        (60_000, None, []),
        (None, "tasks/cancel", []),
        (None, "tasks/get", []),
    ],
)
def test_the_first_poll_finds_the_task(ttl: int | None, before: str | None, found: list[str]) -> None:
    talk = Tasked().started(ttlMs=ttl)
    if before is not None:
        good(talk.ask(before, taskId="t1"))
        good(talk.answer(shown() if before == "tasks/get" else {"resultType": "complete"}))
    good(talk.ask("tasks/get", taskId="t1"))
    assert rules(talk.server(error(talk.asked, -32602))) == found


# ── input ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@rows(
    ("call", "poll", "wrong"),
    [({"elicitation": {}}, {}, []), ({}, {"elicitation": {}}, []), ({}, {}, ["/result/inputRequests/who"])],
)
def test_a_task_asks_for_what_the_poll_or_the_call_declares(call: Any, poll: Any, wrong: list[str]) -> None:
    talk = Tasked()
    good(talk.call(able=call))
    good(talk.answer(HANDLE))
    found = [(each.rule, each.at) for each in talk.polled(ASKING, able=poll).violations]
    assert found == [("protocol/capability", at) for at in wrong]


@rows(
    ("responses", "rule"),
    [
        ({"who": {"roots": []}}, "protocol/input-kind"),
        ({"who": {"action": "accept", "content": {"name": 5}}}, "contract/elicitation"),
        ({"whom": {"action": "cancel"}}, "tasks/input-responses"),
        # A part may be answered, and what was too long to remember.
        ({"two": {"action": "decline"}}, None),
        ({"k" * 1500: {"action": "decline"}}, "contract/unjudged"),
    ],
)
def test_answers_fit_what_was_asked_for(responses: dict[str, Any], rule: str | None) -> None:
    talk = Tasked().started()
    asked = {"who": form("Who?"), "two": form("2?"), **({"k" * 1500: form("?")} if rule == UNJUDGED[0] else {})}
    good(talk.polled(shown(status="input_required", inputRequests=asked)))
    verdict = talk.ask("tasks/update", taskId="t1", inputResponses=responses)
    assert rules(verdict) == [rule] * (rule is not None)
    assert verdict.onward is verdict.frame


# ── notifications ────────────────────────────────────────────────────────────────────────────────────────────────────


def noted(ident: Any = "listen", **fields: Any) -> dict[str, Any]:
    """A notification about a task."""
    task = {name: value for name, value in shown(**fields).items() if name != "resultType"}
    return notification("notifications/tasks", {**task, "_meta": {SUBSCRIPTION: ident}})


class Listening(Tasked):
    """The same, while the client listens to two tasks; the server agreed to one of them."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.started()
        wanted = {"taskIds": ["t1", "t2"]}
        good(self.client(stateless("listen", "subscriptions/listen", TASKS, ABLE, notifications=wanted)))
        agreed = {"notifications": {"taskIds": ["t1"]}, "_meta": {SUBSCRIPTION: "listen"}}
        good(self.server(notification("notifications/subscriptions/acknowledged", agreed)))


def test_good_notifications() -> None:
    talk = Listening()
    good(talk.server(noted()))
    asking = {"status": "input_required", "inputRequests": {"who": form("Who?")}}
    good(talk.server(noted(**asking)))
    good(talk.ask("tasks/update", taskId="t1", inputResponses={"who": {"action": "cancel"}}))
    good(talk.server(noted(status="completed", result=HITS)))


@rows(
    ("message", "rule", "at"),
    [
        (noted(taskId="t2"), "protocol/subscription", "/params/taskId"),
        (noted(taskId="t3"), "protocol/subscription", "/params/taskId"),
        (noted("other"), "protocol/subscription", "/params/_meta/io.modelcontextprotocol~1subscriptionId"),
        (noted(status="completed"), "protocol/params", "/params"),
        (noted(status="completed", result={"content": []}), "contract/output", "/params/result"),
        (noted(createdAt=LATER, lastUpdatedAt=LATER), "tasks/identity", "/params/createdAt"),
        (noted(lastUpdatedAt="soon"), "tasks/time", "/params/lastUpdatedAt"),
    ],
)
def test_bad_notifications(message: dict[str, Any], rule: str, at: str) -> None:
    verdict = Listening().server(message)
    assert (rule, at) in [(each.rule, each.at) for each in verdict.violations]


def test_a_client_that_listens_to_tasks_declares_the_extension() -> None:
    verdict = Tasked().ask("subscriptions/listen", None, notifications={"taskIds": ["t1"]})
    assert [(each.rule, each.at) for each in verdict.violations] == [
        ("protocol/capability", "/params/notifications/taskIds")
    ]


@rows(
    ("declared", "agreed", "rule"), [(None, ["t1"], "tasks/undeclared"), (TASKS, ["t1", "t2"], "protocol/subscription")]
)
def test_the_server_agrees_to_no_more_than_was_asked_for_and_declared(
    declared: Any, agreed: list[str], rule: str
) -> None:
    talk = Tasked()
    talk.client(stateless("listen", "subscriptions/listen", declared, notifications={"taskIds": ["t1"]}))
    params = {"notifications": {"taskIds": agreed}, "_meta": {SUBSCRIPTION: "listen"}}
    assert rules(talk.server(notification("notifications/subscriptions/acknowledged", params))) == [rule]


def test_there_is_no_progress_for_a_task() -> None:
    params = {"progressToken": "p", "progress": 1, "_meta": {SUBSCRIPTION: "listen"}}
    assert rules(Listening().server(notification("notifications/progress", params))) == ["protocol/progress"]
    talk = Tasked()
    call = stateless(1, "tools/call", TASKS, name="search", arguments={"words": "sea"})
    call["params"]["_meta"]["progressToken"] = "p"
    good(talk.client(call))
    good(talk.server(result(1, HANDLE)))
    verdict = talk.server(notification("notifications/progress", {"progressToken": "p", "progress": 1}))
    assert rules(verdict) == ["protocol/progress"]


# ── what is shared, and bounded ──────────────────────────────────────────────────────────────────────────────────────


def test_conversations_with_the_same_server_share_its_tasks() -> None:
    """Over HTTP each request is a conversation of its own."""
    tools = Tasked(revision=LATEST).started().conversation.tools

    def polled(value: dict[str, Any]) -> Verdict:
        talk = Talk(revision=LATEST, tools=tools)
        good(talk.client(stateless(1, "tasks/get", TASKS, ABLE, taskId="t1")))
        return talk.server(result(1, value))

    good(polled(COMPLETED))
    assert rules(polled(shown())) == ["tasks/status"]


def test_a_restarted_server_has_lost_its_tasks() -> None:
    talk = Tasked().started()
    good(talk.polled(COMPLETED))
    talk.conversation.renew()
    good(talk.polled(shown()))


def test_a_server_that_starts_many_tasks_is_remembered_up_to_a_limit() -> None:
    talk = Tasked()
    for number in range(1100):
        talk.started(taskId=f"t{number}")
    assert len(talk.conversation.tools.topics[ServerTasks]) == 1000
    for name, found in (("t0", UNJUDGED), ("t1099", ["contract/output"])):
        good(talk.ask("tasks/get", taskId=name))
        assert rules(talk.answer(shown(taskId=name, status="completed", result={"content": []}))) == found


def test_a_task_with_a_long_id_is_judged_as_any_other() -> None:
    """The extension has no limit, and a server without state of its own may put it into the id."""
    long = "t" * 2000
    talk = Tasked().started(taskId=long)
    for value, found in (
        (shown(taskId=long, status="completed", result={"content": []}), ["contract/output"]),
        ({**COMPLETED, "taskId": long}, []),
        (shown(taskId=long), ["tasks/status"]),
    ):
        good(talk.ask("tasks/get", taskId=long))
        assert rules(talk.answer(value)) == found
    [key] = talk.conversation.tools.topics[ServerTasks]
    assert len(key) < 100
    # A settled request is kept, too: a client could ask about a thousand ids of megabytes.
    polls = talk.conversation._parties[Party.CLIENT].settled.values()
    kept = [each.beyond for each in polls if isinstance(each.beyond, Poll)]
    assert len(kept) == 3
    assert all(len(each.start) <= 60 for each in kept)


def test_a_task_that_asks_for_very_much_is_remembered_in_part() -> None:
    talk = Tasked().started()
    requests = {f"key {number}": form("x" * 5000) for number in range(200)}
    good(talk.polled(shown(status="input_required", inputRequests=requests)))
    known = talk.conversation.tools.topics[ServerTasks]
    assert known.size < 200_000
    assert rules(talk.ask("tasks/update", taskId="t1", inputResponses={"key 199": {"action": "cancel"}})) == UNJUDGED


def test_content_of_a_form_that_is_too_large_to_keep_is_reported_as_unjudged() -> None:
    talk = Tasked().started()
    asking = shown(status="input_required", inputRequests={"who": form("Who?")})
    asking["inputRequests"]["who"]["params"]["requestedSchema"]["description"] = "x" * 70_000
    good(talk.polled(asking))
    filled = {"action": "accept", "content": {"name": 5}}
    assert rules(talk.ask("tasks/update", taskId="t1", inputResponses={"who": filled})) == UNJUDGED
    assert rules(talk.ask("tasks/update", taskId="t1", inputResponses={"who": {"action": "cancel"}})) == []


def test_forms_of_many_tasks_are_bounded() -> None:
    """Each poll brought another form, and they were counted only when a task was started."""
    talk = Tasked()
    for number in range(40):
        talk.started(taskId=f"t{number}")
    known = talk.conversation.tools.topics[ServerTasks]
    for key in range(3):
        for number in range(40):
            asking = shown(taskId=f"t{number}", status="input_required", inputRequests={f"{key}": form("?")})
            asking["inputRequests"][f"{key}"]["params"]["requestedSchema"]["description"] = "x" * 60_000
            good(talk.ask("tasks/get", taskId=f"t{number}"))
            good(talk.answer(asking))
    # Nothing else refers to a task that was forgotten, such as a settled request.
    gc.collect()
    alive = [each for each in gc.get_objects() if isinstance(each, KnownTask)]
    kept = sum(len(each.form or b"") for task in alive for each in task.asked.values())
    assert 500_000 < kept <= known.size <= 1 << 20


def test_keys_without_forms_are_bounded() -> None:
    talk = Tasked()
    for number in range(30):
        talk.started(taskId=f"t{number}")
        requests = {f"{key:0>1000}": {"method": "roots/list"} for key in range(64)}
        good(talk.ask("tasks/get", taskId=f"t{number}"))
        good(talk.answer(shown(taskId=f"t{number}", status="input_required", inputRequests=requests)))
    known = talk.conversation.tools.topics[ServerTasks]
    keys = sum(len(key) for task in known.values() for key in task.digests)
    assert 0 < 4 * keys <= known.size <= 1 << 20


def test_a_subscription_to_tasks_in_a_revision_without_subscriptions() -> None:
    """It raised an exception where the operator lets unknown methods pass."""
    talk = Talk(policy=Policy({"protocol/method": "pass"})).opened()
    verdict = talk.client(request(1, "subscriptions/listen", {"notifications": {"taskIds": ["t1"]}}))
    assert (rules(verdict), verdict.onward is verdict.frame) == (["protocol/method"], True)

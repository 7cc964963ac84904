"""
Tasks: requests that are answered before they are done, and the results that come later.

In 2025-11-25 either party may ask that its request runs as a task, and fetches the result with `tasks/result`. By the
extension `io.modelcontextprotocol/tasks` a server may answer `tools/call` with a task, and `tasks/get` shows the task
with its result. Both are judged by the request that started the task, so what that needs outlives its answer.

A task that was forgotten, or started before the conversation was heard, is judged by its shape alone. Polls overtake
each other: an answer is compared only with what the client had when it asked. A task fits its schema already, unless
invalid messages are forwarded.
"""

from collections.abc import Mapping
from datetime import datetime
from hashlib import blake2b
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from assay.judge import contract
from assay.judge.revision_rules import Definition, RevisionRules
from assay.judge.topics import forms, inputs
from assay.judge.topics.capabilities import TASK_CAPABILITIES, check_input_requests, has_capability, report_lack
from assay.judge.topics.errors import INVALID_PARAMS
from assay.judge.topics.extensions import leaves_out
from assay.judge.topics.forms import LARGEST
from assay.judge.topics.inputs import AskedInput
from assay.judge.topics.paging import check_length
from assay.judge.topics.subscriptions import ACKNOWLEDGED, LISTEN, declared_by_listener
from assay.judge.topics.table import Note, on
from assay.model.bounded import BoundedSizes
from assay.model.json_values import obj
from assay.model.limits import Limits
from assay.model.verdict import Exchange, Party
from assay.rules.report import Report
from assay.schema.pointers import escaped
from assay.schema.wording import found as found_words
from assay.schema.wording import shown
from assay.spec.extensions import TASKS

if TYPE_CHECKING:
    from assay.judge.state import State

_RELATED: Final = "io.modelcontextprotocol/related-task"
"""The member of `_meta` that names the task of a message, in 2025-11-25."""


_Key = str | bytes

_SHORT: Final = 64
"""Characters of an id that is kept as it is. UUIDs have 36; a server may also put its state into an id."""


def _key(name: Any) -> _Key:
    """Return what a task is known by: its id, or a digest of a long one."""
    return name if isinstance(name, str) and len(name) <= _SHORT else _digest(name)


def _digest(value: Any) -> bytes:
    """Return a digest of an id or a request, which may be large."""
    try:
        text = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError:
        # An integer beyond 64 bits.
        text = repr(value).encode(errors="replace")
    return blake2b(text, digest_size=16).digest()


# ── 2025-11-25 ───────────────────────────────────────────────────────────────────────────────────────────────────────

_ABOUT_TASKS: Final = ("tasks/get", "tasks/result", "tasks/cancel")

_MOST_STARTED: Final = 11_000
"""The most tasks that are remembered so that their payload can be judged by their request: some 300 bytes each."""

_PAYLOADS: Final = {
    Party.CLIENT: ("CallToolResult",),
    Party.SERVER: ("CreateMessageResult", "ElicitResult"),
}
"""The results that a task can have, by the party that started it: an unknown task has one of these."""


class Tasks:
    """The requests of one conversation that were answered with a task, of both parties, oldest first."""

    __slots__ = ("_parties", "_started")

    def __init__(self, state: "State") -> None:
        self._parties = state.parties
        self._started: dict[tuple[Party, _Key], Exchange] = {}
        """The requests by their sender and the key of the task."""

    def has(self, exchange: Exchange | None) -> bool:
        """Return whether a request is a task: not answered yet, or answered with one."""
        if exchange is None or not exchange.as_task:
            return False
        return exchange.state == "open" or self._started.get(exchange.beyond) is exchange

    def add(self, exchange: Exchange, name: str) -> None:
        """Note that a request was answered with the task *name*."""
        key = exchange.beyond = exchange.asker, _key(name)
        self._forget(key)
        self._started[key] = exchange
        # A task outlives the answer to the request that started it, and continues to report progress.
        if exchange.token is not None:
            self._parties[exchange.asker].tokens[exchange.token] = None
        if len(self._started) > _MOST_STARTED:
            self._forget(next(iter(self._started)))

    def request_of(self, exchange: Exchange) -> Exchange | None:
        """Return the request that started the task which *exchange* asks about; None if it is not known."""
        name = exchange.detail
        return self._started.get((exchange.asker, _key(name))) if isinstance(name, str) else None

    def renew(self) -> None:
        """Forget the tasks of the server before."""
        for key in list(self._started):
            self._forget(key)

    def _forget(self, key: tuple[Party, _Key]) -> None:
        gone = self._started.pop(key, None)
        if gone is not None:
            self._parties[gone.asker].forget_token(gone)


@on("request", *TASK_CAPABILITIES, *_ABOUT_TASKS)
def take_task(state: "State", exchange: Exchange, params: dict[str, Any], report: Report) -> None:
    """Keep whether a request runs as a task, or which task it asks about."""
    path, task = TASK_CAPABILITIES.get(exchange.method), params.get("taskId")
    if not exchange.features.tasks:
        return
    if path is not None:
        # A receiver that did not declare it ignores the member `task`.
        declared = state.parties[exchange.asker.other].capabilities
        exchange.as_task = "task" in params and declared is not None and has_capability(declared, path)
    elif isinstance(task, str):
        fits = check_length("/params/taskId", task, state.limits.id_bytes, report)
        exchange.detail = task if fits else None


def is_task(exchange: Exchange, result: Mapping[str, Any]) -> bool:
    """
    Return whether the *result* of a request that asks to run as a task must be a task.

    A server should refuse to run a tool as a task if the tool forbids that, but it may run the tool at once.
    """
    forbidden = exchange.contract is not None and not exchange.contract.runs(as_task=True)
    return "task" in result or not forbidden


@on("result", *TASK_CAPABILITIES)
def check_started(state: "State", exchange: Exchange, result: dict[str, Any], report: Report) -> None:
    """Report a task whose id is too long: it is kept as long as the task."""
    name = obj(result.get("task")).get("taskId")
    if exchange.as_task and isinstance(name, str):
        check_length("/result/task/taskId", name, state.limits.id_bytes, report)


@on("answered", *TASK_CAPABILITIES)
def note_started(state: "State", exchange: Exchange, result: dict[str, Any], _: Report) -> None:
    """Keep a request that was answered with a task."""
    name = obj(result.get("task")).get("taskId")
    if exchange.as_task and isinstance(name, str) and len(name) <= state.limits.id_bytes:
        state.own(Tasks).add(exchange, name)


@on("result", "tasks/result")
def check_payload(state: "State", exchange: Exchange, result: dict[str, Any], report: Report) -> None:
    """Report the violations of the payload of a task, which is the answer to the request that started it."""
    before = len(report.found)
    started = state.own(Tasks).request_of(exchange)
    if started is None:
        _check_unknown(exchange, result, report)
    else:
        definition: Definition = started.entry.result
        if definition.check("protocol/result", result, "/result", report) and started.contract is not None:
            contract.check_output(started.contract, result, report)
    if len(report.found) == before:
        _check_related(exchange, result, report)
        if started is None:
            report.add_forgotten("a task", "/result")
    forms.check_answer(state, started, result, report)


def _check_unknown(exchange: Exchange, result: dict[str, Any], report: Report) -> None:
    """Report the payload of an unknown task if it is not a result that some task can have."""
    known: list[Definition] = [exchange.entry.rules.definition(name) for name in _PAYLOADS[exchange.asker]]
    if not any(each.is_valid(result) for each in known):
        known[0].check("protocol/result", result, "/result", report)


def _check_related(exchange: Exchange, result: Mapping[str, Any], report: Report) -> None:
    """Report a payload whose `_meta` does not name its task: nothing else in it does."""
    name = obj(obj(result.get("_meta")).get(_RELATED)).get("taskId")
    if isinstance(name, str) and (name == exchange.detail or not isinstance(exchange.detail, str)):
        return
    at, found = f"/result/_meta/{escaped(_RELATED)}", f'"{name[:60]}"' if isinstance(name, str) else "nothing"
    report.add("protocol/related-task", at, expected="the taskId that was asked for", found=found)


@on("answered", "tasks/result")
def note_fetched(state: "State", exchange: Exchange, _: dict[str, Any], __: Report) -> None:
    """Note that a task is over. Its payload may be fetched again, and is judged the same way."""
    started = state.own(Tasks).request_of(exchange)
    if started is not None:
        state.parties[exchange.asker].forget_token(started)


# ── the extension: what is remembered ────────────────────────────────────────────────────────────────────────────────

_METHODS: Final = tuple(each.name for each in TASKS.methods if each.kind == "request")
_CHANGED: Final = "notifications/tasks"
_CAPABILITY: Final = f"extensions.{TASKS.identifier}"

_MOST: Final = 1000
"""Tasks of one server that are remembered, some 500 bytes each and the forms that they ask for."""

_MOST_KEYS: Final = 64
"""Keys of one task that are remembered. A person answers each of them."""

_MOST_BYTES: Final = 1 << 20
"""Bytes of the keys and forms of all tasks that are remembered."""

_DAY: Final = 86_400_000
"""Milliseconds. A task that lives longer is not over when the client first asks for it."""

_LAST: Final = frozenset({"completed", "failed", "cancelled"})
"""The statuses that a task keeps."""

_LONGEST_TIME: Final = 64
"""Characters of a time that is parsed: the longest spelling of ISO 8601 that servers send has 35."""


class KnownTask:
    """What is remembered of one task."""

    __slots__ = ("asked", "contract", "created", "declared", "digests", "is_expected", "status", "updated", "whole")

    def __init__(self, call: Exchange, handle: Mapping[str, Any]) -> None:
        self.contract = call.contract
        """The contract of the tool when it was called; None if it is unknown."""
        self.declared = call.declared
        """The capabilities that the call declared."""
        self.created = _short(handle.get("createdAt"))
        self.updated = _short(handle.get("lastUpdatedAt"))
        self.status = _short(handle.get("status"))
        """The last status that was delivered; one that the task must keep stays."""
        ttl = handle.get("ttlMs")
        self.is_expected = ttl is None or (isinstance(ttl, int | float) and ttl >= _DAY)
        """Whether the client will find it: it lives long, and no answer to `tasks/get` or `tasks/cancel` came yet."""
        self.asked: dict[str, AskedInput] = {}
        """What the task has ever asked for, by key."""
        self.digests: dict[str, bytes] = {}
        """Digests of the requests, by key."""
        self.whole = True
        """Whether *digests* has every key that the task has asked for."""

    @property
    def size(self) -> int:
        """At least the bytes of its keys and forms."""
        return _form_bytes(self.asked) + sum(4 * len(key) + 200 for key in self.digests)

    def learn(self, given: Mapping[str, Any], longest: int) -> None:
        """Keep what the server shows of the task, except requests for input whose keys are longer than *longest*."""
        if self.status not in _LAST:
            self.status = _short(given.get("status"))
        updated = _short(given.get("lastUpdatedAt"))
        now, before = _moment(updated), _moment(self.updated)
        if now is not None and (before is None or now > before):
            self.updated = updated
        new = {key: each for key, each in obj(given.get("inputRequests")).items() if key not in self.digests}
        short = (key for key in new if len(key) <= longest)
        added = {key: new[key] for key in islice(short, _MOST_KEYS - len(self.digests))}
        self.whole = self.whole and len(added) == len(new)
        self.digests |= {key: _digest(each) for key, each in added.items()}
        asked = inputs.kept(added)
        if _form_bytes(self.asked) + _form_bytes(asked) > LARGEST:
            # One task must not make all others be forgotten: of its further forms only the kind of answer is judged.
            asked = {key: each._replace(form=None if each.form is None else b"") for key, each in asked.items()}
        self.asked |= asked


class ServerTasks(BoundedSizes[_Key, KnownTask]):
    """
    The tasks of one server, by their keys.

    Task ids are unique and secret, so conversations with the same server share its tasks.
    """

    def __init__(self, limits: Limits) -> None:
        super().__init__(_MOST, _MOST_BYTES)
        self.longest_key = limits.id_bytes

    def learn(self, key: _Key, given: Mapping[str, Any]) -> None:
        """Keep what the server shows of a task."""
        task = self.get(key)
        if task is not None:
            task.learn(given, self.longest_key)
            self.put(key, task, task.size)


def _form_bytes(asked: Mapping[str, AskedInput]) -> int:
    return sum(len(each.form or b"") for each in asked.values())


def _short(value: Any) -> str | None:
    return value if isinstance(value, str) and len(value) <= 100 else None


class Poll(NamedTuple):
    """What a client knew of a task when it asked about it. It is kept with the request, so it has no payload."""

    key: _Key
    start: str
    """The beginning of the id, to show it."""
    is_declared: bool
    """Whether the request itself declared the extension."""
    status: str | None = None
    """The status, if the task must keep it."""
    updated: str | None = None
    is_expected: bool = False
    """Whether the server certainly has the task."""


# ── the extension: requests ──────────────────────────────────────────────────────────────────────────────────────────


@on("request", *_METHODS)
def take_poll(state: "State", exchange: Exchange, params: dict[str, Any], report: Report) -> None:
    """Keep what the client knows of a task that it asks about; report a request that contradicts it."""
    if exchange.entry.extension is not TASKS:
        return
    declared = TASKS.identifier in (exchange.declared or ())
    if not declared:
        report_lack("/method", exchange.asker, _CAPABILITY, report)
    name, responses = params.get("taskId"), params.get("inputResponses")
    if not isinstance(name, str):
        return
    key = _key(name)
    task = state.shared(ServerTasks).get(key)
    if task is None:
        exchange.beyond = Poll(key, name[:60], declared)
    else:
        last = task.status if task.status in _LAST else None
        exchange.beyond = Poll(key, name[:60], declared, last, task.updated, task.is_expected and declared)
    if exchange.method != "tasks/update" or not responses:
        return
    if task is None:
        report.add_forgotten("a task", "/params/inputResponses")
    elif isinstance(responses, dict):
        _check_responses(task, exchange.entry.rules, responses, report)


def _check_responses(task: KnownTask, rules: RevisionRules, responses: dict[str, Any], report: Report) -> None:
    at = "/params/inputResponses"
    unknown = (key for key in responses if key not in task.digests) if task.whole else ()
    known = ", ".join(each[:60] for each in islice(task.digests, 3))
    for key in islice(unknown, report.most):
        expected = f"a key that the task asked for, such as {known}" if known else "no key: the task asked for nothing"
        report.add("tasks/input-responses", f"{at}/{escaped(key[:60])}", expected=expected, found=f'"{key[:60]}"')
    inputs.check_responses(task.asked, responses, at, rules, report, whole=task.whole)


@on("request", LISTEN)
def check_listen(state: "State", exchange: Exchange, params: dict[str, Any], report: Report) -> None:
    """Report a request for notifications on tasks by a client that does not declare the extension."""
    wanted = obj(params.get("notifications"))
    # Where the operator lets unknown methods pass, a client may send it in a revision that does not have it.
    if exchange.features.handshake or "taskIds" not in wanted or leaves_out(state, TASKS):
        return
    at, rules = "/params/notifications", exchange.entry.rules
    rules.extension_definition(TASKS, "TaskSubscriptionNotifications").check("protocol/params", wanted, at, report)
    if TASKS.identifier not in (exchange.declared or ()):
        report_lack(f"{at}/taskIds", Party.CLIENT, _CAPABILITY, report)


# ── the extension: answers ───────────────────────────────────────────────────────────────────────────────────────────


def _starts_task(state: "State", exchange: Exchange, result: Mapping[str, Any]) -> bool:
    is_task = exchange.features.result_types and result.get("resultType") == TASKS.results[0].kind
    return is_task and not leaves_out(state, TASKS)


@on("result", "tools/call")
def check_handle(state: "State", exchange: Exchange, result: dict[str, Any], report: Report) -> None:
    """Report what is wrong with the answer that starts a task."""
    if not _starts_task(state, exchange, result):
        return
    for name in ("result", "error", "inputRequests", "requestState"):
        if name in result:
            report.add("tasks/handle", f"/result/{name}", expected="only the fields of a task", found=name)
    for name in ("ttlMs", "pollIntervalMs"):
        value = result.get(name)
        if isinstance(value, int | float) and value <= 0:
            report.add("tasks/handle", f"/result/{name}", expected="more than 0", found=shown(value))
    _check_times(result, "/result", None, report)


@on("answered", "tools/call")
def note_handle(state: "State", exchange: Exchange, result: dict[str, Any], _: Report) -> None:
    """Keep a task that was started."""
    name = result.get("taskId")
    if isinstance(name, str) and _starts_task(state, exchange, result):
        tasks, key = state.shared(ServerTasks), _key(name)
        tasks.take(key)
        tasks.put(key, KnownTask(exchange, result), 0)


@on("result", *_METHODS)
def check_answer(state: "State", exchange: Exchange, result: dict[str, Any], report: Report) -> None:
    """Report the violations of the answer to a request about a task."""
    poll: Poll | None = exchange.beyond
    if poll is None:
        return
    if not poll.is_declared:
        expected = f"-32021, because {exchange.method} did not declare the extension"
        report.add("tasks/undeclared", "/result", expected=expected, found="a result")
    if exchange.method != "tasks/get":
        return
    name, status = result.get("taskId"), result.get("status")
    if isinstance(name, str) and _key(name) != poll.key:
        _report_other_task(poll.start, name, "/result/taskId", report)
        return
    if poll.status is not None and isinstance(status, str) and status != poll.status:
        expected = f'"{poll.status}", which was delivered before'
        report.add("tasks/status", "/result/status", expected=expected, found=f'"{status[:40]}"')
    _check_times(result, "/result", poll.updated, report)
    task = state.shared(ServerTasks).get(poll.key)
    _check_shown(exchange.entry.rules, task, result, "/result", exchange.declared, report)


@on("answered", *_METHODS)
def note_answer(state: "State", exchange: Exchange, result: dict[str, Any], _: Report) -> None:
    """Keep what the server shows of a task."""
    poll: Poll | None = exchange.beyond
    tasks = state.shared(ServerTasks)
    task = tasks.get(poll.key) if poll is not None else None
    if task is None or poll is None or exchange.method == "tasks/update":
        return
    # A server may discard a task that was cancelled.
    task.is_expected = False
    # An answer about another task, which is forwarded by default, shows nothing of this one.
    if exchange.method == "tasks/get" and _key(result.get("taskId")) == poll.key:
        tasks.learn(poll.key, result)


@on("error", "tasks/get")
def check_error(_: "State", exchange: Exchange, error: dict[str, Any], report: Report) -> None:
    """Report a server that does not find a task which it has just started."""
    poll: Poll | None = exchange.beyond
    if poll is not None and poll.is_expected and error["code"] == INVALID_PARAMS:
        report.add("tasks/not-found", "/error/code", expected="the task that the server started", found="-32602")


# ── the extension: notifications ─────────────────────────────────────────────────────────────────────────────────────


@on("note", _CHANGED)
def check_change(state: "State", note: Note, report: Report) -> None:
    """
    Report the violations of a notification about a task.

    Notifications and answers come on different streams and overtake each other, so no status is compared.
    """
    if note.sender.party is Party.SERVER and not note.rules.features.handshake:
        params = obj(note.params)
        task = state.shared(ServerTasks).get(_key(params.get("taskId")))
        _check_times(params, "/params", None, report)
        _check_shown(note.rules, task, params, "/params", declared_by_listener(state, note), report)


@on("note", ACKNOWLEDGED)
def check_acknowledged(state: "State", note: Note, report: Report) -> None:
    """Report a server that agrees to report on tasks to a client that did not declare them."""
    if note.sender.party is Party.CLIENT or note.rules.features.handshake or leaves_out(state, TASKS):
        return
    declared = declared_by_listener(state, note)
    is_undeclared = declared is not None and TASKS.identifier not in declared
    if is_undeclared and obj(note.params.get("notifications")).get("taskIds"):
        expected = f"-32021, because {LISTEN} did not declare the extension"
        at = "/params/notifications/taskIds"
        report.add("tasks/undeclared", at, expected=expected, found="an acknowledgement")


@on("noted", _CHANGED)
def note_change(state: "State", note: Note) -> None:
    """Keep what a notification asks the client for."""
    asks = note.sender.party is Party.SERVER and note.params.get("status") == "input_required"
    if asks and not leaves_out(state, TASKS):
        state.shared(ServerTasks).learn(_key(note.params.get("taskId")), note.params)


# ── the extension: a task as a server shows it ───────────────────────────────────────────────────────────────────────


def _check_shown(
    rules: RevisionRules,
    task: KnownTask | None,
    given: dict[str, Any],
    at: str,
    declared: frozenset[str] | None,
    report: Report,
) -> None:
    """Report what is wrong with a task; *declared* are the capabilities of the request that it is shown for."""
    created, status, requests = given.get("createdAt"), given.get("status"), given.get("inputRequests")
    before = task.created if task is not None else None
    if before is not None and isinstance(created, str) and not _is_same_time(before, created):
        _report_other_task(before, created, f"{at}/createdAt", report)
    if status == "input_required" and requests == {}:
        expected, found = "at least one request", "an empty object"
        report.add("tasks/input-requests", f"{at}/inputRequests", expected=expected, found=found)
    # Which request has to declare it is not settled: what the call or the poll declares may be asked for. What the call
    # of an unknown task declared is unknown, too.
    if status == "input_required" and declared is not None and task is not None and task.declared is not None:
        check_input_requests(requests, f"{at}/inputRequests", declared | task.declared, report)
    if status == "failed" and not given.get("statusMessage"):
        report.add("tasks/failed", at, expected="a statusMessage", found="nothing")
    digests = task.digests if task is not None else {}
    for key, request in obj(requests).items():
        if key in digests and digests[key] != _digest(request):
            place, expected = f"{at}/inputRequests/{escaped(key)}", "the request that the key stood for before"
            report.add("tasks/input-key", place, expected=expected, found="another request")
    if status == "completed" and isinstance(given.get("result"), dict):
        _check_result(rules, task, given["result"], at, report)


def _check_result(
    rules: RevisionRules, task: KnownTask | None, result: dict[str, Any], at: str, report: Report
) -> None:
    """Report the violations of a completed task's result: that which the call would have had, perhaps without type."""
    kind = result.get("resultType", "complete")
    if kind != "complete":
        found = f'"{kind[:40]}"' if isinstance(kind, str) else found_words(kind)
        report.add("protocol/result-type", f"{at}/result/resultType", expected='"complete"', found=found)
        return
    read = result if "resultType" in result else {**result, "resultType": "complete"}
    fits = rules.definition("CallToolResult").check("protocol/result", read, f"{at}/result", report)
    if _RELATED in obj(result.get("_meta")):
        place, expected = f"{at}/result/_meta/{escaped(_RELATED)}", "a result that does not name its task"
        report.add("tasks/related-task", place, expected=expected, found=_RELATED)
    if fits and task is None:
        report.add_forgotten("a task", f"{at}/result")
    elif fits and task is not None and task.contract is not None:
        before = len(report.found)
        contract.check_output(task.contract, result, report)
        report.found[before:] = [each.under(at) for each in report.found[before:]]


def _report_other_task(expected: str, found: str, at: str, report: Report) -> None:
    """Report an answer about another task, or a createdAt that has changed."""
    report.add("tasks/identity", at, expected=f'"{expected[:60]}"', found=f'"{found[:60]}"')


def _check_times(given: Mapping[str, Any], at: str, before: str | None, report: Report) -> None:
    """Report wrong times of a task; *before* is the lastUpdatedAt that the client had when it asked."""
    created, updated = given.get("createdAt"), given.get("lastUpdatedAt")
    for name, value in (("createdAt", created), ("lastUpdatedAt", updated)):
        if isinstance(value, str) and _parsed(value) is None:
            report.add("tasks/time", f"{at}/{name}", expected="an ISO 8601 time", found=shown(value))
    now, start, earlier = _moment(updated), _moment(created), _moment(before)
    if now is None:
        return
    if start is not None and now < start:
        expected = "a time no earlier than createdAt"
    elif earlier is not None and now < earlier:
        expected = f'a time no earlier than the previous "{before}"'
    else:
        return
    report.add("tasks/time", f"{at}/lastUpdatedAt", expected=expected, found=shown(updated))


def _moment(text: Any) -> datetime | None:
    """Return the time that *text* has in ISO 8601; None if it is not one, or has no offset and cannot be compared."""
    time = _parsed(text)
    return time if time is not None and time.tzinfo is not None else None


def _is_same_time(one: str, other: str) -> bool:
    """Return whether both are the same time in any spelling: a server may store it with fewer digits, and rounded."""
    if one == other:
        return True
    first, second = _parsed(one), _parsed(other)
    if first is None or second is None or (first.tzinfo is None) is not (second.tzinfo is None):
        return False
    return abs((first - second).total_seconds()) < 1


def _parsed(text: Any) -> datetime | None:
    """Return the time that *text* has in ISO 8601, with or without an offset; None if it is not one."""
    if not isinstance(text, str) or len(text) > _LONGEST_TIME:
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None

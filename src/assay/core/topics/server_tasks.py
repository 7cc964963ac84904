"""
Tasks of the extension `io.modelcontextprotocol/tasks`: what a server says of each, and what it said before.

Polls overtake each other: an answer is compared only with what the client had when it asked. A task that was forgotten,
or started before the conversation was heard, is judged by its shape alone. A task fits its schema already, unless
invalid messages are forwarded.
"""

from collections.abc import Mapping
from datetime import datetime
from hashlib import blake2b
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from assay.base.json_values import obj
from assay.base.limits import Limits
from assay.base.verdict import Exchange, Party
from assay.core.topics import inputs
from assay.core.topics.capabilities import lacking, report_lack
from assay.core.topics.errors import INVALID_PARAMS
from assay.core.topics.extensions import leaves_out
from assay.core.topics.forms import LARGEST
from assay.core.topics.inputs import AskedInput
from assay.core.topics.subscriptions import ACKNOWLEDGED, LISTEN, declared_by_listener
from assay.core.topics.table import Note, on
from assay.core.topics.unjudged import forgotten
from assay.engine.pointers import escaped
from assay.engine.wording import found as found_words
from assay.engine.wording import shown
from assay.ladder import contract
from assay.ladder.revision_rules import RevisionRules
from assay.rules.report import Report
from assay.spec.extensions import TASKS

if TYPE_CHECKING:
    from assay.core.state import State

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

_NOT_IN_HANDLE: Final = ("result", "error", "inputRequests", "requestState")
_DURATIONS: Final = ("ttlMs", "pollIntervalMs")
_TIMES: Final = ("createdAt", "lastUpdatedAt")
_RELATED: Final = "io.modelcontextprotocol/related-task"

_LONGEST_TIME: Final = 64
"""Characters of a time that is parsed: the longest spelling of ISO 8601 that servers send has 35."""


class KnownTask:
    """What is remembered of one task."""

    __slots__ = ("asked", "contract", "created", "declared", "digests", "is_new", "status", "ttl", "updated", "whole")

    def __init__(self, call: Exchange, handle: Mapping[str, Any]) -> None:
        self.contract = call.contract
        """The contract of the tool when it was called; None if it is unknown."""
        self.declared = call.declared
        """The capabilities that the call declared."""
        self.created = _short(handle.get("createdAt"))
        self.updated = _short(handle.get("lastUpdatedAt"))
        self.status = _short(handle.get("status"))
        """The last status that was delivered; one that the task must keep stays."""
        self.ttl = handle.get("ttlMs")
        self.is_new = True
        """Whether no answer to `tasks/get` was delivered yet, nor to `tasks/cancel`."""
        self.asked: dict[str, AskedInput] = {}
        """What the task has ever asked for, by key."""
        self.digests: dict[str, bytes] = {}
        """Digests of the requests, by key."""
        self.whole = True
        """Whether *digests* has every key that the task has asked for."""

    @property
    def outlives(self) -> bool:
        """Whether the task certainly still exists when the client asks for it the first time."""
        return self.ttl is None or (isinstance(self.ttl, int | float) and self.ttl >= _DAY)

    @property
    def size(self) -> int:
        """At least the bytes of its keys and forms."""
        return _form_bytes(self.asked) + sum(4 * len(key) + 200 for key in self.digests)

    def take_keys(self, new: Mapping[str, Any], longest: int) -> None:
        """Remember *new* requests for input, except those whose keys are longer than *longest*, up to the limits."""
        short = (key for key in new if len(key) <= longest)
        added = {key: new[key] for key in islice(short, _MOST_KEYS - len(self.digests))}
        self.whole = self.whole and len(added) == len(new)
        self.digests |= {key: _digest(each) for key, each in added.items()}
        asked = inputs.kept(added)
        if _form_bytes(self.asked) + _form_bytes(asked) > LARGEST:
            # One task must not make all others be forgotten: of its further forms only the kind of answer is judged.
            asked = {key: each._replace(form=None if each.form is None else b"") for key, each in asked.items()}
        self.asked |= asked

    def empty(self) -> None:
        """Forget its keys and forms: requests that were settled still refer to a task that is forgotten."""
        self.asked.clear()
        self.digests.clear()
        self.whole = False


class Poll(NamedTuple):
    """What a client knew of a task when it asked for it."""

    name: str
    task: KnownTask | None
    is_declared: bool
    """Whether the request itself declared the extension."""
    status: str | None = None
    updated: str | None = None
    is_first: bool = False


class ServerTasks:
    """The tasks of one server. Task ids are unique and secret, so conversations with the same server share them."""

    __slots__ = ("_bytes", "_id_bytes", "_known")

    def __init__(self, limits: Limits) -> None:
        self._known: dict[str, KnownTask] = {}
        self._bytes = 0
        self._id_bytes = limits.id_bytes

    def _key(self, name: str) -> str:
        """Return what a task is known by: a server may put its state into the id, of which a digest is kept."""
        return name if len(name) <= self._id_bytes else f"\0{_digest(name).hex()}"

    def get(self, name: Any) -> KnownTask | None:
        """Return the task *name*; None if it is not known."""
        return self._known.get(self._key(name)) if isinstance(name, str) else None

    def add(self, name: str, task: KnownTask) -> None:
        """Remember a task, and forget the oldest ones beyond the limits."""
        self._forget(self._key(name))
        self._known[self._key(name)] = task
        self._forget_some()

    def _forget_some(self) -> None:
        while len(self._known) > _MOST or self._bytes > _MOST_BYTES:
            self._forget(next(iter(self._known)))

    def _forget(self, key: str) -> None:
        gone = self._known.pop(key, None)
        if gone is not None:
            self._bytes -= gone.size
            gone.empty()

    def learn(self, name: str, task: KnownTask, given: Mapping[str, Any]) -> None:
        """Keep what the server has said of a task."""
        if task.status not in _LAST:
            task.status = _short(given.get("status"))
        updated = _short(given.get("lastUpdatedAt"))
        now, before = _moment(updated), _moment(task.updated)
        if now is not None and (before is None or now > before):
            task.updated = updated
        new = {key: each for key, each in obj(given.get("inputRequests")).items() if key not in task.digests}
        if not new or self.get(name) is not task:
            return
        self._bytes -= task.size
        task.take_keys(new, self._id_bytes)
        self._bytes += task.size
        self._forget_some()


def _is_own(exchange: Exchange) -> bool:
    """Return whether a request about a task is that of the extension, and not of the revision before it."""
    return exchange.entry.extension is TASKS


def _starts_task(exchange: Exchange, result: Mapping[str, Any]) -> bool:
    return exchange.features.result_types and result.get("resultType") == TASKS.results[0].kind


# ── the client ───────────────────────────────────────────────────────────────────────────────────────────────────────


@on("request", *_METHODS)
def take_poll(state: "State", exchange: Exchange, params: dict[str, Any], report: Report) -> None:
    """Keep what the client knows of a task that it asks about; report a request that contradicts it."""
    if not _is_own(exchange):
        return
    declared = exchange.declared is not None and TASKS.identifier in exchange.declared
    if not declared:
        report_lack("/method", exchange.asker, _CAPABILITY, report)
    name, responses = params.get("taskId"), params.get("inputResponses")
    if not isinstance(name, str):
        return
    task = state.shared(ServerTasks).get(name)
    exchange.beyond = Poll(name, task, declared)
    if task is None:
        if exchange.method == "tasks/update" and responses:
            forgotten("a task", "/params/inputResponses", report)
        return
    last = task.status if task.status in _LAST else None
    exchange.beyond = Poll(name, task, declared, last, task.updated, task.is_new)
    if exchange.method == "tasks/update" and isinstance(responses, dict):
        _check_responses(task, exchange.entry.rules, responses, report)


def _check_responses(task: KnownTask, rules: RevisionRules, responses: dict[str, Any], report: Report) -> None:
    at = "/params/inputResponses"
    unknown = (key for key in responses if key not in task.digests) if task.whole else ()
    known = ", ".join(each[:60] for each in list(task.digests)[:3])
    for key in islice(unknown, report.most):
        expected = f"a key that the task asked for, such as {known}" if known else "no key: the task asked for nothing"
        report.add("tasks/input-responses", f"{at}/{escaped(key[:60])}", expected=expected, found=f'"{key[:60]}"')
    inputs.check_responses(task.asked, responses, at, rules, report, whole=task.whole)


@on("request", LISTEN)
def check_listen(state: "State", exchange: Exchange, params: dict[str, Any], report: Report) -> None:
    """Report a request for notifications on tasks by a client that does not declare the extension."""
    rules: RevisionRules = exchange.entry.rules
    wanted = params.get("notifications")
    # Where the operator lets unknown methods pass, a client may send it in a revision that does not have it.
    if rules.features.handshake or not isinstance(wanted, dict) or "taskIds" not in wanted or leaves_out(state, TASKS):
        return
    at = "/params/notifications"
    rules.extension_definition(TASKS, "TaskSubscriptionNotifications").check("protocol/params", wanted, at, report)
    if TASKS.identifier not in (exchange.declared or ()):
        report_lack(f"{at}/taskIds", Party.CLIENT, _CAPABILITY, report)


# ── the server ───────────────────────────────────────────────────────────────────────────────────────────────────────


@on("result", "tools/call")
def check_handle(state: "State", exchange: Exchange, result: dict[str, Any], report: Report) -> None:
    """Report what is wrong with the answer that starts a task."""
    if not _starts_task(exchange, result) or leaves_out(state, TASKS):
        return
    for name in _NOT_IN_HANDLE:
        if name in result:
            report.add("tasks/handle", f"/result/{name}", expected="only the fields of a task", found=name)
    for name in _DURATIONS:
        value = result.get(name)
        if isinstance(value, int | float) and value <= 0:
            report.add("tasks/handle", f"/result/{name}", expected="more than 0", found=shown(value))
    _check_times(result, "/result", None, report)


@on("answered", "tools/call")
def note_started(state: "State", exchange: Exchange, result: dict[str, Any], _: Report) -> None:
    """Keep a task that was started."""
    name = result.get("taskId")
    if _starts_task(exchange, result) and isinstance(name, str) and not leaves_out(state, TASKS):
        state.shared(ServerTasks).add(name, KnownTask(exchange, result))


@on("result", *_METHODS)
def check_answer(_: "State", exchange: Exchange, result: dict[str, Any], report: Report) -> None:
    """Report the violations of the answer to a request about a task."""
    poll: Poll | None = exchange.beyond if _is_own(exchange) else None
    if poll is None:
        return
    if not poll.is_declared:
        expected = f"-32021, because {exchange.method} did not declare the extension"
        report.add("tasks/undeclared", "/result", expected=expected, found="a result")
    if exchange.method != "tasks/get":
        return
    name, status = result.get("taskId"), result.get("status")
    if isinstance(name, str) and name != poll.name:
        _report_other_task(poll.name, name, "/result/taskId", report)
        return
    if poll.status is not None and isinstance(status, str) and status != poll.status:
        expected = f'"{poll.status}", which was delivered before'
        report.add("tasks/status", "/result/status", expected=expected, found=f'"{status[:40]}"')
    _check_times(result, "/result", poll.updated, report)
    _check_task(exchange.entry.rules, poll.task, result, "/result", exchange.declared, report)


@on("answered", *_METHODS)
def note_answer(state: "State", exchange: Exchange, result: dict[str, Any], _: Report) -> None:
    """Keep what the server has said of a task."""
    poll: Poll | None = exchange.beyond if _is_own(exchange) else None
    if poll is None or poll.task is None:
        return
    # A server may discard a task that was cancelled.
    if exchange.method in {"tasks/get", "tasks/cancel"}:
        poll.task.is_new = False
    # An answer about another task, which is forwarded by default, says nothing of this one.
    if exchange.method == "tasks/get" and result.get("taskId") == poll.name:
        state.shared(ServerTasks).learn(poll.name, poll.task, result)


@on("error", *_METHODS)
def check_error(_: "State", exchange: Exchange, error: dict[str, Any], report: Report) -> None:
    """Report a server that does not find a task which it has just started."""
    poll: Poll | None = exchange.beyond if _is_own(exchange) else None
    if error["code"] != INVALID_PARAMS or exchange.method != "tasks/get" or poll is None or not poll.is_first:
        return
    if poll.task is not None and poll.task.outlives and poll.is_declared:
        expected = "the task that the server started"
        report.add("tasks/not-found", "/error/code", expected=expected, found="-32602")


# ── notifications ────────────────────────────────────────────────────────────────────────────────────────────────────


@on("note", _CHANGED)
def check_change(state: "State", note: Note, report: Report) -> None:
    """
    Report the violations of a notification about a task.

    Notifications and answers come on different streams and overtake each other, so no status is compared.
    """
    if note.side.party is Party.SERVER and not note.rules.features.handshake and not leaves_out(state, TASKS):
        params = obj(note.params)
        _check_times(params, "/params", None, report)
        task = state.shared(ServerTasks).get(params.get("taskId"))
        _check_task(note.rules, task, params, "/params", declared_by_listener(state, note), report)


@on("note", ACKNOWLEDGED)
def check_acknowledged(state: "State", note: Note, report: Report) -> None:
    """Report a server that agrees to report on tasks to a client that did not declare them."""
    if note.side.party is Party.CLIENT or note.rules.features.handshake or leaves_out(state, TASKS):
        return
    declared = declared_by_listener(state, note)
    is_undeclared = declared is not None and TASKS.identifier not in declared
    if is_undeclared and obj(note.params.get("notifications")).get("taskIds"):
        expected = f"-32021, because {LISTEN} did not declare the extension"
        at = "/params/notifications/taskIds"
        report.add("tasks/undeclared", at, expected=expected, found="an acknowledgement")


@on("noted", _CHANGED)
def note_change(state: "State", note: Note) -> None:
    """Keep what a notification says of a task."""
    tasks, name = state.known(ServerTasks), note.params.get("taskId")
    task = tasks.get(name) if tasks is not None else None
    if tasks is None or task is None or note.side.party is Party.CLIENT or leaves_out(state, TASKS):
        return
    if note.params.get("status") == "input_required":
        tasks.learn(str(name), task, note.params)


# ── a task as a server shows it ──────────────────────────────────────────────────────────────────────────────────────


def _check_task(
    rules: RevisionRules,
    task: KnownTask | None,
    given: dict[str, Any],
    at: str,
    declared: frozenset[str] | None,
    report: Report,
) -> None:
    """Report what is wrong with a task as a server shows it, in an answer or in a notification."""
    created = given.get("createdAt")
    before = task.created if task is not None else None
    if before is not None and isinstance(created, str) and not _is_same_time(before, created):
        _report_other_task(before, created, f"{at}/createdAt", report)
    # Which request has to declare it is not settled: what the call or the poll declares may be asked for. What the call
    # of an unknown task declared is unknown, too.
    able = None if declared is None or task is None or task.declared is None else declared | task.declared
    _check_asked(given, at, able, report)
    if given.get("status") == "failed" and not given.get("statusMessage"):
        report.add("tasks/failed", at, expected="a statusMessage", found="nothing")
    for key, request in obj(given.get("inputRequests")).items() if task is not None else ():
        known = task.digests.get(key) if task is not None else None
        if known is not None and known != _digest(request):
            place, expected = f"{at}/inputRequests/{escaped(key)}", "the request that the key stood for before"
            report.add("tasks/input-key", place, expected=expected, found="another request")
    if given.get("status") == "completed" and isinstance(given.get("result"), dict):
        _check_payload(rules, task, given["result"], at, report)


def _check_asked(given: Mapping[str, Any], at: str, declared: frozenset[str] | None, report: Report) -> None:
    """Report a task that asks for nothing, or for what the client does not support; *declared*: None if unknown."""
    requests = given.get("inputRequests")
    if given.get("status") != "input_required" or not isinstance(requests, dict):
        return
    some = report.apart(report.most)
    if not requests:
        some.add(
            "tasks/input-requests", f"{at}/inputRequests", expected="at least one request", found="an empty object"
        )
    for key, request in requests.items() if declared is not None else ():
        if isinstance(request, dict) and not some.is_full:
            needed = lacking(str(request.get("method")), obj(request.get("params")), declared or ())
            for place, path in needed:
                report_lack(f"{at}/inputRequests/{escaped(key)}{place}", Party.CLIENT, path, some)
    report.found += some.found


def _check_payload(
    rules: RevisionRules, task: KnownTask | None, payload: dict[str, Any], at: str, report: Report
) -> None:
    """Report the violations of a completed task's result: that which the call would have had, perhaps without type."""
    kind = payload.get("resultType", "complete")
    if kind != "complete":
        found = f'"{kind[:40]}"' if isinstance(kind, str) else found_words(kind)
        report.add("protocol/result-type", f"{at}/result/resultType", expected='"complete"', found=found)
        return
    read = payload if "resultType" in payload else {**payload, "resultType": "complete"}
    fits = rules.definition("CallToolResult").check("protocol/result", read, f"{at}/result", report)
    if _RELATED in obj(payload.get("_meta")):
        # The revision before named the task there.
        place, expected = f"{at}/result/_meta/{escaped(_RELATED)}", "a result that does not name its task"
        report.add("tasks/related-task", place, expected=expected, found=_RELATED)
    if task is None and fits:
        forgotten("a task", f"{at}/result", report)
    if fits and task is not None and task.contract is not None:
        promised = report.apart()
        contract.check_output(task.contract, payload, promised)
        promised.found = [each.under(at) for each in promised.found]
        report.join(promised)


def _check_times(given: Mapping[str, Any], at: str, before: str | None, report: Report) -> None:
    """Report wrong times of a task; *before* is the lastUpdatedAt that the client had when it asked."""
    for name in _TIMES:
        if isinstance(given.get(name), str) and _parsed(given[name]) is None:
            report.add("tasks/time", f"{at}/{name}", expected="an ISO 8601 time", found=shown(given[name]))
    created, updated = (_moment(given.get(name)) for name in _TIMES)
    if updated is None:
        return
    earlier, expected = _moment(before), f'a time no earlier than the previous "{before}"'
    if created is not None and updated < created:
        earlier, expected = created, "a time no earlier than createdAt"
    if earlier is not None and updated < earlier:
        report.add("tasks/time", f"{at}/lastUpdatedAt", expected=expected, found=shown(given["lastUpdatedAt"]))


def _report_other_task(expected: str, found: str, at: str, report: Report) -> None:
    """Report an answer about another task, or a createdAt that has changed."""
    report.add("tasks/identity", at, expected=f'"{expected[:60]}"', found=f'"{found[:60]}"')


def _moment(text: Any) -> datetime | None:
    """Return the time that *text* has in ISO 8601; None if it is not one, or has no offset and cannot be compared."""
    time = _parsed(text)
    return time if time is not None and time.tzinfo is not None else None


def _is_same_time(one: str, other: str) -> bool:
    """Return whether both are the same time in any spelling: a server may store it with fewer digits, and rounded."""
    if one == other:
        return True
    times = _parsed(one), _parsed(other)
    if times[0] is None or times[1] is None or (times[0].tzinfo is None) is not (times[1].tzinfo is None):
        return False
    return abs((times[0] - times[1]).total_seconds()) < 1


def _parsed(text: Any) -> datetime | None:
    """Return the time that *text* has in ISO 8601, with or without an offset; None if it is not one."""
    if not isinstance(text, str) or len(text) > _LONGEST_TIME:
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def _form_bytes(asked: Mapping[str, AskedInput]) -> int:
    return sum(len(each.form or b"") for each in asked.values())


def _digest(request: Any) -> bytes:
    """Return a digest of a request, which may be large."""
    try:
        text = orjson.dumps(request, option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError:
        # An integer beyond 64 bits.
        text = repr(request).encode(errors="replace")
    return blake2b(text, digest_size=16).digest()


def _short(value: Any) -> str | None:
    return value if isinstance(value, str) and len(value) <= 100 else None

"""
Tasks of the extension `io.modelcontextprotocol/tasks`: what a server says of each, and what it said before.

No I/O, no clock. Polls overtake each other: an answer is compared only with what the client had when it asked. A task
that was forgotten, or started before the conversation was heard, is judged by its shape alone.
"""

from collections.abc import Iterator, Mapping
from hashlib import blake2b
from itertools import islice
from typing import Any, Final, NamedTuple

import orjson

from assay.base.limits import Limits
from assay.base.verdict import Exchange, Violation
from assay.core import state_rules
from assay.core.extensions import task_rules
from assay.core.history import input_requests
from assay.core.history.answer_rules import INVALID_PARAMS
from assay.core.history.forms import LARGEST
from assay.core.history.input_requests import AskedInput
from assay.engine.budget import Budget
from assay.engine.wording import found as found_words
from assay.ladder import contract
from assay.ladder.protocol import Judge
from assay.rules import violation
from assay.spec.extensions.official import TASKS

_MOST: Final = 1000
"""Tasks of one server that are remembered, some 500 bytes each and the forms that they ask for."""

_MOST_KEYS: Final = 64
"""Keys of one task that are remembered. A person answers each of them."""

_MOST_BYTES: Final = 1 << 20
"""Bytes of the keys and forms of all tasks that are remembered."""

_DAY: Final = 86_400_000
"""Milliseconds. A task that lives longer is not over when the client first asks for it."""


class KnownTask:
    """What is remembered of one task."""

    __slots__ = ("asked", "contract", "created", "declared", "digests", "is_new", "status", "ttl", "updated", "whole")

    def __init__(self, call: Exchange, handle: Mapping[str, Any]) -> None:
        self.contract = call.contract
        """The contract of the tool when it was called; None if it is unknown."""
        self.declared = call.declared
        """The capabilities that the call declared."""
        self.created = _text(handle.get("createdAt"))
        self.updated = _text(handle.get("lastUpdatedAt"))
        self.status = _text(handle.get("status"))
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
        asked = input_requests.kept(added)
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

    ident: str
    task: KnownTask | None
    is_declared: bool
    """Whether the request itself declared the extension."""
    status: str | None = None
    updated: str | None = None
    is_first: bool = False


class TaskStates:
    """The tasks of one server. Task ids are unique and secret, so conversations with the same server share them."""

    __slots__ = ("_bytes", "_id_bytes", "_known")

    def __init__(self, limits: Limits) -> None:
        self._known: dict[str, KnownTask] = {}
        self._bytes = 0
        self._id_bytes = limits.id_bytes

    # ── the client ───────────────────────────────────────────────────────────────────────────────────────────────────

    def take_request(
        self, exchange: Exchange, params: Mapping[str, Any], found: list[Violation], budget: Budget
    ) -> int:
        """
        Keep what the answer to a request about a task needs, and judge the request by the state.

        Return at least how many violations there are beyond those in *found*.
        """
        ident = params.get("taskId")
        declared = exchange.declared is not None and TASKS.identifier in exchange.declared
        if not declared:
            found.append(_undeclared(exchange))
        if not isinstance(ident, str):
            return 0
        task = self._known.get(self._key(ident))
        exchange.beyond = Poll(ident, task, declared)
        if task is None:
            if exchange.method == "tasks/update" and params.get("inputResponses"):
                found.append(state_rules.forgotten("a task", "/params/inputResponses", exchange.revision))
            return 0
        last = task.status if task.status in task_rules.LAST else None
        exchange.beyond = Poll(ident, task, declared, last, task.updated, task.is_new)
        return self._check_responses(task, exchange, params.get("inputResponses"), found, budget)

    def _check_responses(
        self, task: KnownTask, exchange: Exchange, responses: Any, found: list[Violation], budget: Budget
    ) -> int:
        if exchange.method != "tasks/update" or not isinstance(responses, dict):
            return 0
        if task.whole:
            unknown = [key for key in responses if key not in task.digests]
            found += [
                task_rules.unknown_key(key, task.digests, exchange.revision) for key in unknown[: budget.violations]
            ]
        judge: Judge = exchange.entry.judge
        at = "/params/inputResponses"
        revision = exchange.revision
        return input_requests.check_responses(
            task.asked, responses, at, revision, judge, found, budget, whole=task.whole
        )

    def _key(self, ident: str) -> str:
        """Return what a task is known by: a server may put its state into the id, of which a digest is kept."""
        return ident if len(ident) <= self._id_bytes else f"\0{_digest(ident).hex()}"

    # ── the server ───────────────────────────────────────────────────────────────────────────────────────────────────

    def check_handle(self, result: Mapping[str, Any], revision: str) -> Iterator[Violation]:
        """Yield the violations of the answer that starts a task."""
        yield from task_rules.check_handle(result, "/result", revision)
        yield from task_rules.check_times(result, "/result", None, revision)

    def started(self, call: Exchange, result: Mapping[str, Any]) -> None:
        """Note that a call was answered with a task."""
        ident = result.get("taskId")
        if not isinstance(ident, str):
            return
        key = self._key(ident)
        self._forget(key)
        self._known[key] = KnownTask(call, result)
        self._forget_some()

    def _forget_some(self) -> None:
        """Forget the oldest tasks until the rest is within the limits."""
        while len(self._known) > _MOST or self._bytes > _MOST_BYTES:
            self._forget(next(iter(self._known)))

    def _forget(self, ident: str) -> None:
        gone = self._known.pop(ident, None)
        if gone is not None:
            self._bytes -= gone.size
            gone.empty()

    def check_result(self, exchange: Exchange, result: dict[str, Any], found: list[Violation], budget: Budget) -> int:
        """
        Judge the result of a request about a task.

        Return at least how many violations there are beyond those in *found*.
        """
        poll: Poll | None = exchange.beyond
        if poll is None:
            return 0
        revision = exchange.revision
        if not poll.is_declared:
            found.append(task_rules.undeclared_answer(exchange.method, revision))
        if exchange.method != "tasks/get":
            return 0
        ident = result.get("taskId")
        if isinstance(ident, str) and ident != poll.ident:
            found.append(task_rules.other_task(poll.ident, ident, "/result/taskId", revision))
            return 0
        status = result.get("status")
        if poll.status is not None and isinstance(status, str) and status != poll.status:
            found.append(task_rules.changed_status(poll.status, status, "/result", revision))
        found += task_rules.check_times(result, "/result", poll.updated, revision)
        return self._check_task(exchange.entry.judge, poll.task, result, "/result", exchange.declared, found, budget)

    def _check_task(
        self,
        judge: Judge,
        task: KnownTask | None,
        shown: dict[str, Any],
        at: str,
        declared: frozenset[str] | None,
        found: list[Violation],
        budget: Budget,
    ) -> int:
        """Judge a task as a server shows it, in an answer or in a notification."""
        revision = judge.revision
        created = shown.get("createdAt")
        before = task.created if task is not None else None
        if before is not None and isinstance(created, str) and not task_rules.is_same_time(before, created):
            found.append(task_rules.other_task(before, created, f"{at}/createdAt", revision))
        # Which request has to declare it is not settled: what the call or the poll declares may be asked for. What the
        # call of an unknown task declared is unknown, too.
        able = None if declared is None or task is None or task.declared is None else declared | task.declared
        found += islice(task_rules.check_asked(shown, at, able, revision), budget.violations)
        found += task_rules.check_failed(shown, at, revision)
        if task is not None:
            found += self._check_keys(task, shown, at, revision)
        payload = shown.get("result")
        if shown.get("status") != "completed" or not isinstance(payload, dict):
            return 0
        return _check_payload(judge, task, payload, at, found, budget)

    def _check_keys(self, task: KnownTask, shown: Mapping[str, Any], at: str, revision: str) -> Iterator[Violation]:
        requests = shown.get("inputRequests")
        for key, request in requests.items() if isinstance(requests, dict) else ():
            before = task.digests.get(key)
            if before is not None and before != _digest(request):
                yield task_rules.other_request(key, at, revision)

    def answered(self, exchange: Exchange, result: Mapping[str, Any]) -> None:
        """Note that a result was forwarded."""
        poll: Poll | None = exchange.beyond
        if poll is None or poll.task is None:
            return
        # A server may discard a task that was cancelled.
        if exchange.method in {"tasks/get", "tasks/cancel"}:
            poll.task.is_new = False
        if exchange.method != "tasks/get":
            return
        # An answer about another task, which is forwarded by default, says nothing of this one.
        if result.get("taskId") == poll.ident:
            self._learn(poll.ident, poll.task, result)

    def _learn(self, ident: str, task: KnownTask, shown: Mapping[str, Any]) -> None:
        if task.status not in task_rules.LAST:
            task.status = _text(shown.get("status"))
        updated = _text(shown.get("lastUpdatedAt"))
        now, before = task_rules.moment(updated), task_rules.moment(task.updated)
        if now is not None and (before is None or now > before):
            task.updated = updated
        requests = shown.get("inputRequests")
        asked = requests if isinstance(requests, dict) else {}
        new = {key: each for key, each in asked.items() if key not in task.digests}
        if not new or self._known.get(self._key(ident)) is not task:
            return
        self._bytes -= task.size
        task.take_keys(new, self._id_bytes)
        self._bytes += task.size
        self._forget_some()

    def check_error(self, exchange: Exchange, code: int) -> list[Violation]:
        """Return the violation of an error to a request about a task."""
        poll: Poll | None = exchange.beyond
        is_lost = code == INVALID_PARAMS and exchange.method == "tasks/get" and poll is not None and poll.is_first
        if not is_lost or poll is None or poll.task is None or not poll.task.outlives or not poll.is_declared:
            return []
        return [task_rules.lost(exchange.revision)]

    # ── notifications ────────────────────────────────────────────────────────────────────────────────────────────────

    def check_note(
        self, params: dict[str, Any], judge: Judge, declared: frozenset[str] | None, found: list[Violation]
    ) -> None:
        """
        Judge a notification about a task; *declared* are the capabilities of the request that listens, if it is known.

        Notifications and answers come on different streams and overtake each other, so no status is compared.
        """
        ident = params.get("taskId")
        task = self._known.get(self._key(ident)) if isinstance(ident, str) else None
        found += task_rules.check_times(params, "/params", None, judge.revision)
        self._check_task(judge, task, params, "/params", declared, found, Budget(b"", 20))

    def noted(self, params: Mapping[str, Any]) -> None:
        """Note that a notification about a task was forwarded."""
        ident = params.get("taskId")
        task = self._known.get(self._key(ident)) if isinstance(ident, str) else None
        if isinstance(ident, str) and task is not None and params.get("status") == "input_required":
            self._learn(ident, task, params)


def _check_payload(
    judge: Judge,
    task: KnownTask | None,
    payload: dict[str, Any],
    at: str,
    found: list[Violation],
    budget: Budget,
) -> int:
    """Judge the result of a completed task as the call would have returned it; its type may be left out."""
    revision = judge.revision
    kind = payload.get("resultType", "complete")
    if kind != "complete":
        found.append(_not_complete(kind, f"{at}/result/resultType", revision))
        return 0
    definition = judge.definition("CallToolResult")
    read = payload if "resultType" in payload else {**payload, "resultType": "complete"}
    faults, more = definition.check("protocol/result", read, f"{at}/result", revision, budget)
    found += faults
    found += task_rules.check_related(payload, f"{at}/result", revision)
    if task is None and not faults:
        found.append(state_rules.forgotten("a task", f"{at}/result", revision))
    if faults or task is None or task.contract is None:
        return more
    faults, more = contract.check_output(task.contract, payload, revision, budget)
    found += [each.under(at) for each in faults]
    return more


def _not_complete(kind: Any, at: str, revision: str) -> Violation:
    found = f'"{kind[:40]}"' if isinstance(kind, str) else found_words(kind)
    return violation("protocol/result-type", at, expected='"complete"', found=found, revision=revision)


def _undeclared(exchange: Exchange) -> Violation:
    path = f"extensions.{TASKS.identifier}"
    return state_rules.lacks("/method", exchange.asker, path, exchange.revision)


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


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and len(value) <= 100 else None

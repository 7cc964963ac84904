"""
Violations of one task as a server shows it: the handle, the times, the input that it asks for. No state, no I/O.

The task fits its schema already, unless invalid messages are forwarded.
"""

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from assay.base.verdict import Party, Violation
from assay.core import state_rules
from assay.core.history import asking_back
from assay.engine.pointers import escaped
from assay.engine.wording import shown
from assay.rules import violation

LAST: Final = frozenset({"completed", "failed", "cancelled"})
"""The statuses that a task keeps."""

_NOT_IN_HANDLE: Final = ("result", "error", "inputRequests", "requestState")
_DURATIONS: Final = ("ttlMs", "pollIntervalMs")
_TIMES: Final = ("createdAt", "lastUpdatedAt")
_RELATED: Final = "io.modelcontextprotocol/related-task"

_LONGEST_TIME: Final = 64
"""Characters of a time that is parsed: the longest spelling of ISO 8601 that servers send has 35."""


def check_handle(task: Mapping[str, Any], at: str, revision: str) -> Iterator[Violation]:
    """Yield the violations of the answer that starts a task."""
    for name in _NOT_IN_HANDLE:
        if name in task:
            yield violation(
                "tasks/handle",
                f"{at}/{name}",
                expected="only the fields of a task",
                found=name,
                revision=revision,
            )
    for name in _DURATIONS:
        value = task.get(name)
        if isinstance(value, int | float) and value <= 0:
            yield violation(
                "tasks/handle", f"{at}/{name}", expected="more than 0", found=shown(value), revision=revision
            )


def check_times(task: Mapping[str, Any], at: str, before: str | None, revision: str) -> Iterator[Violation]:
    """Yield the violations of the times of a task; *before* is the lastUpdatedAt that the client had when it asked."""
    for name in _TIMES:
        if isinstance(task.get(name), str) and _parsed(task[name]) is None:
            yield _wrong_time(f"{at}/{name}", "an ISO 8601 time", task[name], revision)
    created, updated = (moment(task.get(name)) for name in _TIMES)
    if created is not None and updated is not None and updated < created:
        yield _wrong_time(f"{at}/lastUpdatedAt", "a time no earlier than createdAt", task["lastUpdatedAt"], revision)
        return
    earlier = moment(before)
    if earlier is not None and updated is not None and updated < earlier:
        expected = f'a time no earlier than the previous "{before}"'
        yield _wrong_time(f"{at}/lastUpdatedAt", expected, task["lastUpdatedAt"], revision)


def moment(text: Any) -> "datetime | None":
    """Return the time that *text* has in ISO 8601; None if it is not one, or has no offset and cannot be compared."""
    time = _parsed(text)
    return time if time is not None and time.tzinfo is not None else None


def is_same_time(one: str, other: str) -> bool:
    """Return whether both are the same time in any spelling: a server may store it with fewer digits, and rounded."""
    if one == other:
        return True
    times = _parsed(one), _parsed(other)
    if times[0] is None or times[1] is None or (times[0].tzinfo is None) is not (times[1].tzinfo is None):
        return False
    return abs((times[0] - times[1]).total_seconds()) < 1


def _parsed(text: Any) -> "datetime | None":
    """Return the time that *text* has in ISO 8601, with or without an offset; None if it is not one."""
    if not isinstance(text, str) or len(text) > _LONGEST_TIME:
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def check_asked(
    task: Mapping[str, Any], at: str, declared: Collection[str] | None, revision: str
) -> Iterator[Violation]:
    """
    Yield the violations of what a task asks for: nothing, or what the client does not support.

    *declared* has the client's capabilities; None if they are unknown.
    """
    requests = task.get("inputRequests")
    if task.get("status") != "input_required" or not isinstance(requests, dict):
        return
    if not requests:
        yield violation(
            "tasks/input-requests",
            f"{at}/inputRequests",
            expected="at least one request",
            found="an empty object",
            revision=revision,
        )
    for key, request in requests.items() if declared is not None else ():
        if isinstance(request, dict):
            params = request.get("params")
            needed = asking_back.lacking(
                str(request.get("method")), params if isinstance(params, dict) else {}, declared or ()
            )
            for place, path in needed:
                yield state_rules.lacks(f"{at}/inputRequests/{escaped(key)}{place}", Party.CLIENT, path, revision)


def check_failed(task: Mapping[str, Any], at: str, revision: str) -> Iterator[Violation]:
    """Yield the violation of a failed task without a message for people."""
    if task.get("status") == "failed" and not task.get("statusMessage"):
        yield violation("tasks/failed", at, expected="a statusMessage", found="nothing", revision=revision)


def check_related(result: Mapping[str, Any], at: str, revision: str) -> Iterator[Violation]:
    """Yield the violation of a result that names its task, as the revision before had it."""
    meta = result.get("_meta")
    if isinstance(meta, dict) and _RELATED in meta:
        yield violation(
            "tasks/related-task",
            f"{at}/_meta/{escaped(_RELATED)}",
            expected="a result that does not name its task",
            found=_RELATED,
            revision=revision,
        )


def changed_status(before: str, now: str, at: str, revision: str) -> Violation:
    """Return the violation of a task that leaves its last status."""
    return violation(
        "tasks/status",
        f"{at}/status",
        expected=f'"{before}", which was delivered before',
        found=f'"{now[:40]}"',
        revision=revision,
    )


def other_task(expected: str, found: str, at: str, revision: str) -> Violation:
    """Return the violation of an answer about another task, or of a createdAt that has changed."""
    return violation("tasks/identity", at, expected=f'"{expected[:60]}"', found=f'"{found[:60]}"', revision=revision)


def lost(revision: str) -> Violation:
    """Return the violation of a server that does not find a task which it has just started."""
    return violation(
        "tasks/not-found", "/error/code", expected="the task that the server started", found="-32602", revision=revision
    )


def undeclared_answer(method: str, revision: str) -> Violation:
    """Return the violation of a result to a request that does not declare the extension."""
    return violation(
        "tasks/undeclared",
        "/result",
        expected=f"-32021, because {method} did not declare the extension",
        found="a result",
        revision=revision,
    )


def other_request(key: str, at: str, revision: str) -> Violation:
    """Return the violation of a key that stood for another request before."""
    return violation(
        "tasks/input-key",
        f"{at}/inputRequests/{escaped(key)}",
        expected="the request that the key stood for before",
        found="another request",
        revision=revision,
    )


def unknown_key(key: str, asked: Collection[str], revision: str) -> Violation:
    """Return the violation of an answer to a key that the task did not ask for."""
    known = ", ".join(each[:60] for each in list(asked)[:3])
    return violation(
        "tasks/input-responses",
        f"/params/inputResponses/{escaped(key[:60])}",
        expected=f"a key that the task asked for, such as {known}" if known else "no key: the task asked for nothing",
        found=f'"{key[:60]}"',
        revision=revision,
    )


def _wrong_time(at: str, expected: str, found: str, revision: str) -> Violation:
    return violation("tasks/time", at, expected=expected, found=shown(found), revision=revision)

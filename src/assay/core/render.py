"""
Verdicts as frames: the answer to a refused request, and the error in place of a broken answer. No I/O, no judging.

One table (`CanonicalError`) gives codes and messages; the revision decides the shape.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from assay.base import no_answer
from assay.base.errors import CanonicalError
from assay.base.verdict import Verdict, Violation
from assay.rules import RULES
from assay.spec.revisions import REVISIONS, features_of


def id_token(frame: bytes, ident: object) -> bytes:
    """
    The id as *frame* spells it, so that it can be echoed unchanged.

    Some numbers need the frame: parsers turn `1e2`, `-0` and 2^70 into something that is written differently. An
    integer other than 0 has one spelling only.
    """
    if isinstance(ident, str) or (type(ident) is int and ident != 0):
        return orjson.dumps(ident)
    spelt = _spelt_id(frame)
    return spelt.encode() if spelt is not None else orjson.dumps(ident)


# Digits of a number that is an id. A UUID as a number has 39.
_LONGEST_NUMBER = 100


def exact_id(frame: bytes) -> int | None:
    """The whole number that *frame* has for an id which was read as a float; None if it is none, to the last digit."""
    from decimal import Decimal, InvalidOperation  # noqa: PLC0415 - for numbers nobody uses as ids

    spelt = _spelt_id(frame)
    if spelt is None or len(spelt) > _LONGEST_NUMBER:
        return None
    try:
        exact = Decimal(spelt)
    except InvalidOperation:
        return None
    if not exact:
        return 0
    # A double goes up to 1e308, so neither of these is large.
    return int(exact) if exact == exact.to_integral_value() else None


def _spelt_id(frame: bytes) -> str | None:
    """The number that is the id of the message in *frame*, as it is spelt there; None if it has no such id."""
    from assay.ladder.spots import spots  # noqa: PLC0415 - only for ids that have more than one spelling

    text = frame.decode()
    for _, start, end in spots(text, {"id": "id"}):
        if text[start] in "-0123456789":
            return text[start:end]
    return None


def usable_id(frame: bytes, value: Any) -> str | int | None:
    """The id that a broken message carries, if there is one that an answer could bear."""
    ident = value.get("id") if isinstance(value, dict) else None
    if isinstance(ident, float):
        return exact_id(frame)
    return ident if isinstance(ident, str | int) and not isinstance(ident, bool) else None


def shown_id(ident: object) -> str:
    """An id as JSON, cut short, for people."""
    text = str(ident) if type(ident) is int else orjson.dumps(ident).decode()
    return text if len(text) <= 40 else text[:39] + "…"


def entries(frame: bytes) -> list[bytes]:
    """The entries of an array, each as *frame* spells it."""
    from assay.ladder.spots import items  # noqa: PLC0415 - only for batches, which one revision has

    text = frame.decode()
    return [text[start:end].encode() for start, end in items(text)]


def array(frames: Sequence[bytes | None]) -> bytes | None:
    """A batch of those *frames* that are there; None if there are none."""
    present = [frame for frame in frames if frame is not None]
    return b"[" + b",".join(present) + b"]" if present else None


_MENDED_BY_MODELS = frozenset({"contract/input", "contract/look-alike-key"})
"""What is wrong with the arguments of a call, and can be told to the model that made them."""


def refusal(
    ident: bytes | None,
    violations: Sequence[Violation],
    more: int,
    revision: str | None,
    *,
    requested: str | None = None,
) -> bytes:
    """
    The answer to a message that was refused, with the id as it is to be spelt; None where none could be read.

    Arguments that break a tool's contract are a failed result from 2025-11-25 on, so that a model can mend them itself.
    """
    first = next((each for each in violations if each.stops), violations[0])
    if first.rule in _MENDED_BY_MODELS and ident is not None and features_of(revision).failed_results:
        lines = [f"{each.at}: expected {each.expected}, found {each.found}. {each.hint}" for each in violations]
        return _failed_result(ident, "The arguments break the tool's inputSchema.", lines, more, revision)
    error: dict[str, Any] = CanonicalError.to_jsonrpc_error(RULES[first.rule].code)
    data: dict[str, Any] = {"violations": [as_json(each) for each in violations]}
    if first.rule == "protocol/unsupported-revision":
        data = {"requested": (requested or "")[:100], "supported": list(REVISIONS), **data}
    return error_frame(ident, error, _counted(data, more), revision)


def failure(
    ident: bytes | None,
    failed: str | dict[str, Any],
    violations: Sequence[Violation],
    more: int,
    revision: str | None,
    beside: Mapping[str, Any] | None = None,
) -> bytes:
    """
    Return the error frame that replaces an answer that was broken, late or never came.

    *failed* is the canonical code, or the error itself where its message says more.
    """
    error = CanonicalError.to_jsonrpc_error(failed) if isinstance(failed, str) else failed
    data: dict[str, Any] = {"violations": [as_json(each) for each in violations], **(beside or {})}
    return error_frame(ident, error, _counted(data, more), revision)


def withheld(ident: bytes, tool: str, violations: Sequence[Violation], more: int, revision: str) -> bytes:
    """
    What whoever called *tool* gets in place of a result that was broken.

    From 2025-11-25 on a failed result, as for broken arguments: a model sees it, and can do something else.
    """
    if not features_of(revision).failed_results:
        return failure(ident, "UPSTREAM_INVALID", violations, more, revision)
    lines = [
        f"{each.at}: expected {each.expected}, found {each.found} [{each.rule}]. {each.hint}" for each in violations
    ]
    return _failed_result(
        ident, f"The result of {tool[:100]} broke its contract and was withheld.", lines, more, revision
    )


def code_of(verdict: Verdict) -> str | None:
    """Return the canonical error that a message is refused with; None if it is not refused."""
    return next((RULES[each.rule].code for each in verdict.violations if each.action == "refuse"), None)


def error_frame(ident: bytes | None, error: dict[str, Any], data: dict[str, Any] | None, revision: str | None) -> bytes:
    """An error response as a frame."""
    whole = {**error, "data": data} if data else error
    return _frame(ident, b'"error":' + orjson.dumps(whole), revision)


def plain_error(
    ident: bytes | None, code: str, detail: str, data: Mapping[str, Any] | None = None, *, why: str = ""
) -> bytes:
    """Return the frame of the canonical error *code* with *data* and *detail* in its data, and *why* in its message."""
    return error_frame(ident, no_answer.error(code, why), {**(data or {}), "detail": detail}, None)


def result_frame(ident: bytes, result: bytes) -> bytes:
    """Return a response with *result*, which is JSON text."""
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (ident, result)


def as_json(violation: Violation) -> dict[str, Any]:
    """A violation as it stands in ``error.data.violations``, in reports and in the journal."""
    shown: dict[str, Any] = {
        "rule": violation.rule,
        "at": violation.at,
        "expected": violation.expected,
        "found": violation.found,
        "source": violation.source,
        "hint": violation.hint,
    }
    if violation.schema_at is not None:
        shown["schemaAt"] = violation.schema_at
    if violation.action != RULES[violation.rule].action:
        shown["action"] = violation.action
    if violation.reason is not None:
        shown["reason"] = violation.reason
    if violation.entry is not None:
        shown["entry"] = violation.entry._asdict()
    return shown


def _counted(data: dict[str, Any], more: int) -> dict[str, Any]:
    return {**data, "more": more} if more else data


def _failed_result(ident: bytes, what: str, lines: list[str], more: int, revision: str | None) -> bytes:
    if more:
        lines = [*lines, f"and at least {more} more"]
    result: dict[str, Any] = {"content": [{"type": "text", "text": "\n".join([what, *lines])}], "isError": True}
    if features_of(revision).result_types:
        result = {"resultType": "complete", **result}
    return _frame(ident, b'"result":' + orjson.dumps(result), revision)


def _frame(ident: bytes | None, rest: bytes, revision: str | None) -> bytes:
    """
    A response around *rest*.

    Where no id could be read JSON-RPC says null; MCP from 2025-11-25 on says to leave it out.
    """
    if ident is None:
        head = b'{"jsonrpc":"2.0",' if features_of(revision).optional_error_id else b'{"jsonrpc":"2.0","id":null,'
    else:
        head = b'{"jsonrpc":"2.0","id":' + ident + b","
    return head + rest + b"}"

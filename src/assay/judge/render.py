"""
Verdicts as frames: the answer to a refused request, and the error in place of a broken answer. No I/O, no judging.

One table (`CanonicalError`) has the codes and messages; the revision decides the shape. `error_frame` builds every
JSON-RPC error.
"""

from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import orjson

from assay.judge.text_edit import elements, located
from assay.model.errors import CanonicalError, no_answer
from assay.model.large_frames import paused
from assay.model.verdict import Verdict, Violation
from assay.rules import RULES
from assay.spec.revisions import REVISIONS, features_of


def id_token(frame: bytes, ident: object) -> bytes:
    """
    Return the id as *frame* spells it, so that it can be echoed unchanged.

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
    """Return the exact whole number that *frame* has for an id which was read as a float; None if it is not whole."""
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
    """Return the text of the number that is the id of the message in *frame*; None if the id is not a number."""
    text = frame.decode()
    with paused():
        place = located(text, ["id"])
    return text[place.start : place.end] if place.is_there and text[place.start] in "-0123456789" else None


def usable_id(frame: bytes, value: Any) -> str | int | None:
    """Return the id of a malformed message, if an answer could have it."""
    ident = value.get("id") if isinstance(value, dict) else None
    if isinstance(ident, float):
        return exact_id(frame)
    return ident if isinstance(ident, str | int) and not isinstance(ident, bool) else None


def shown_id(ident: object) -> str:
    """Return an id as JSON, shortened, for people."""
    text = str(ident) if type(ident) is int else orjson.dumps(ident).decode()
    return text if len(text) <= 40 else text[:39] + "…"


def entries(frame: bytes) -> list[bytes]:
    """Return the entries of an array, each as *frame* spells it."""
    text = frame.decode()
    with paused():
        return [text[each.start : each.end].encode() for each in elements(text)]


def array(frames: Sequence[bytes | None]) -> bytes | None:
    """Return a batch of those *frames* that are not None; None if every one is None."""
    present = [frame for frame in frames if frame is not None]
    return b"[" + b",".join(present) + b"]" if present else None


_CORRECTED_BY_MODELS = frozenset({"contract/input", "contract/look-alike-key", "contract/unknown-argument"})
"""Rules about the arguments of a call, which a model can correct."""


def refusal(
    ident: bytes | None,
    violations: Sequence[Violation],
    more: int,
    revision: str | None,
    *,
    requested: str | None = None,
    spoken: Collection[str] | None = None,
) -> bytes:
    """
    Return the answer to a refused message; *ident* is its id as JSON, None if the id could not be read.

    From 2025-11-25 on, arguments that break the contract of a tool get a failed result, which the model sees and can
    act on. An unsupported revision is answered with *requested* and the revisions that both the guard and the server
    support; *spoken* are those of the server, None if they are unknown.
    """
    first = next((each for each in violations if each.stops), violations[0])
    if first.rule in _CORRECTED_BY_MODELS and ident is not None and features_of(revision).failed_results:
        lines = [f"{each.at}: expected {each.expected}, found {each.found}. {each.hint}" for each in violations]
        return _failed_result(ident, "The arguments break the tool's inputSchema.", lines, more, revision)
    error: dict[str, Any] = CanonicalError.to_jsonrpc_error(RULES[first.rule].code)
    data: dict[str, Any] = {"violations": [as_json(each) for each in violations]}
    if first.rule == "protocol/unsupported-revision":
        data = {**revisions_data(requested or "", spoken), **data}
    return error_frame(ident, error, _counted(data, more), revision)


def revisions_data(requested: str, spoken: Collection[str] | None = None) -> dict[str, Any]:
    """Return the data of an error about an unsupported revision: a client picks one of those that are listed."""
    return {"requested": requested[:100], "supported": [each for each in REVISIONS if spoken is None or each in spoken]}


def failure(
    ident: bytes | None,
    failed: str | dict[str, Any],
    violations: Sequence[Violation],
    more: int,
    revision: str | None,
    beside: Mapping[str, Any] | None = None,
) -> bytes:
    """
    Return the error frame that replaces a broken, late or missing answer.

    *failed* is the canonical code, or the error itself if its message has more.
    """
    error = CanonicalError.to_jsonrpc_error(failed) if isinstance(failed, str) else failed
    data: dict[str, Any] = {"violations": [as_json(each) for each in violations]} if violations else {}
    return error_frame(ident, error, _counted({**data, **(beside or {})}, more), revision)


def withheld(ident: bytes, tool: str, violations: Sequence[Violation], more: int, revision: str) -> bytes:
    """
    Return the frame that replaces a broken result of *tool*.

    From 2025-11-25 on it is a failed result, as for broken arguments: the model sees it, and can act on it.
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
    """Return an error response; *ident* is the id as JSON, None without an id."""
    whole = {**error, "data": data} if data else error
    return _frame(ident, b'"error":' + orjson.dumps(whole), revision)


def plain_error(
    ident: bytes | None, code: str, detail: str, data: Mapping[str, Any] | None = None, *, why: str = ""
) -> bytes:
    """Return the frame of the canonical error *code* with *data* and *detail* in its data, and *why* in its message."""
    return error_frame(ident, no_answer(code, why), {**(data or {}), "detail": detail}, None)


def result_frame(ident: bytes, result: bytes) -> bytes:
    """Return a response with *result*, which is JSON text."""
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (ident, result)


def as_json(violation: Violation) -> dict[str, Any]:
    """Return a violation as in ``error.data.violations``, in reports and in the journal."""
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
    Return a response with the member *rest*.

    Without a readable id JSON-RPC has null; MCP from 2025-11-25 on leaves the id out.
    """
    if ident is None:
        head = b'{"jsonrpc":"2.0",' if features_of(revision).optional_error_id else b'{"jsonrpc":"2.0","id":null,'
    else:
        head = b'{"jsonrpc":"2.0","id":' + ident + b","
    return head + rest + b"}"


_WORDS: Final = {"add": "added", "replace": "changed", "remove": "removed"}

MOST_SHOWN: Final = 5
"""The most repairs that are named: a list may have one for each of its tools."""


def changes(repairs: Sequence[Any], most: int = MOST_SHOWN) -> str:
    """Return the first repairs in words, and the number of the others; a record may come from another version."""
    known = [each for each in repairs if isinstance(each, Mapping) and each.get("op") in _WORDS]
    words = [_change(each) for each in known[:most]]
    more = len(repairs) - len(words)
    return ", ".join([*words, *([f"and {more:,} more"] if more else [])])


def _change(repair: Mapping[str, Any]) -> str:
    words = f"{_WORDS[repair['op']]} {repair.get('path')}"
    if "value" not in repair:
        return words
    was = f" from {repair['was']}" if "was" in repair else ""
    return f"{words}{was} {'to' if repair['op'] == 'replace' else 'as'} {repair['value']}"

"""
Repairs defects in answers of servers that have only one correction. No I/O, no judging.

Each repair belongs to a rule, and is made only if the operator wants it for that rule. A receiver reads the corrected
value in any case, or cannot use the answer without it. Whether the answer is valid afterwards is for the judge to
decide, which judges the repaired frame like any other. Everything else in the frame stays the same to the byte.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

import orjson

from assay.base.large_frames import more_than
from assay.base.limits import Limits
from assay.base.verdict import Exchange, Party, Repair, Violation
from assay.contracts.store import compiled
from assay.core import defaults
from assay.core.topics import errors
from assay.engine.compiled import Compiled
from assay.engine.drafts import draft_meant, draft_named
from assay.engine.pointers import looked_up, steps
from assay.engine.wording import shown
from assay.ladder import syntax
from assay.ladder.patches import REMOVED, Added, patched
from assay.rules import violation

MOST_VALUES: Final = 100_000
"""
The most values and keys of an answer that is repaired: the text is scanned once for each level above a repair, some
0.1 µs a value. A list of 300 tools has some 30,000.
"""

MOST_REPAIRS: Final = 1_000
"""The most repairs of one answer, each some 100 bytes in the journal: both schemas of 500 tools."""

_COMPILED: Final = 256 << 10
"""Bytes of schemas on one page that are compiled to see whether a corrected dialect leaves them usable."""

_CONTENT: Final = "/result/structuredContent"

_TYPELESS: Final = re.compile(r"/result/tools/[0-9]+/(?:inputSchema|outputSchema)")
"""The place of a schema of a tool."""

_DIALECT: Final = "contract/unknown-dialect"
_SCHEMAS: Final = ("inputSchema", "outputSchema")


class RepairPlan(NamedTuple):
    """What is to be changed in an answer, and why."""

    repairs: tuple[Repair, ...]
    done: list[Violation]
    """The violations that this repairs, with the action `repair`."""


class MadeAnswer(NamedTuple):
    """An answer after its repair."""

    frame: bytes
    message: dict[str, Any]


def planned(
    exchange: Exchange, message: dict[str, Any], found: Sequence[Violation], rules: Collection[str]
) -> RepairPlan | None:
    """Return what to repair in the answer to *exchange*, of all that was *found*, by these *rules*; None if nothing."""
    if exchange.asker is not Party.CLIENT:
        return None
    repairs: dict[str, Repair] = {}
    done: list[Violation] = []
    for each in found:
        remedy = _REMEDIES.get(each.rule) if each.rule in rules else None
        repair = remedy(exchange, message, each) if remedy is not None else None
        if repair is not None:
            repairs[repair.path] = repair
            done.append(replace(each, action="repair"))
    if _DIALECT in rules and exchange.method == "tools/list":
        for repair, wrong in _dialects(message.get("result"), exchange.revision):
            repairs[repair.path] = repair
            done.append(wrong)
    return RepairPlan(tuple(repairs.values()), done) if 0 < len(repairs) <= MOST_REPAIRS else None


def made(frame: bytes, repairs: Sequence[Repair], limits: Limits) -> MadeAnswer | None:
    """Return the answer in *frame* with all *repairs* made; None if it is, or becomes, too large for that."""
    if more_than(frame, MOST_VALUES):
        return None
    spelt = patched(frame.decode(), {each.path: _text(each) for each in repairs}).encode()
    value = syntax.read(spelt, limits.depth, limits.values) if len(spelt) <= limits.frame_bytes else None
    return MadeAnswer(spelt, value) if isinstance(value, dict) else None


def _text(repair: Repair) -> str | None:
    if repair.op == "remove":
        return REMOVED
    text = orjson.dumps(repair.value).decode()
    return Added(text) if repair.op == "add" else text


# ── each rule ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _default(_: Exchange, __: dict[str, Any], wrong: Violation) -> Repair:
    """Return the repair of a member for which a client reads a default."""
    if wrong.at == "/result":
        return Repair("add", f"/result/{wrong.expected}", defaults.DEFAULTS[wrong.expected])
    return Repair("replace", wrong.at, defaults.DEFAULTS[steps(wrong.at)[-1]])


def _code(exchange: Exchange, message: dict[str, Any], wrong: Violation) -> Repair | None:
    """Return the repair of the old code for a missing resource. For other requests its meaning is not certain."""
    was = looked_up(message, wrong.at)
    if not exchange.method.startswith("resources/") or was != errors.NO_RESOURCE:
        return None
    return Repair("replace", wrong.at, errors.INVALID_PARAMS, errors.NO_RESOURCE)


def _content(exchange: Exchange, message: dict[str, Any], wrong: Violation) -> Repair | None:
    """
    Return the repair of a `structuredContent` that the revision does not allow.

    It is left out only if the client needs none: the result reports a failure, or the tool has no output schema. And
    only if there is text beside it, so that the client still gets a result.
    """
    result = message["result"]
    if wrong.at != _CONTENT or exchange.method != "tools/call" or exchange.as_task or not _has_text(result):
        return None
    needless = exchange.contract is not None and not exchange.contract.has_output_schema
    return Repair("remove", _CONTENT) if needless or result.get("isError") is True else None


def _content_of_failure(exchange: Exchange, message: dict[str, Any], _: Violation) -> Repair | None:
    """Return the repair of a failure whose `structuredContent` breaks the tool's schema, if there is text beside it."""
    if exchange.method != "tools/call" or exchange.as_task or not _has_text(message["result"]):
        return None
    return Repair("remove", _CONTENT)


def _type(exchange: Exchange, message: dict[str, Any], wrong: Violation) -> Repair | None:
    """
    Return the repair of a schema of a tool without `type`, for which official clients reject the whole list.

    The arguments of a call, and the content that these revisions have a schema for, are objects in any case.
    """
    if exchange.method != "tools/list" or _TYPELESS.fullmatch(wrong.at) is None:
        return None
    schema = looked_up(message, wrong.at)
    is_typeless = isinstance(schema, dict) and "type" not in schema
    return Repair("add", f"{wrong.at}/type", "object") if is_typeless else None


def _has_text(result: dict[str, Any]) -> bool:
    content = result.get("content")
    blocks = content if isinstance(content, list) else ()
    texts = (each.get("text") for each in blocks if isinstance(each, dict) and each.get("type") == "text")
    return any(isinstance(each, str) and each.strip() for each in texts)


def _shape(exchange: Exchange, message: dict[str, Any], wrong: Violation) -> Repair | None:
    """Return the repair of a result that the schema of the revision refuses."""
    return _content(exchange, message, wrong) or _type(exchange, message, wrong)


_REMEDIES: Final[Mapping[str, Callable[[Exchange, dict[str, Any], Violation], Repair | None]]] = {
    "protocol/result-type-missing": _default,
    "protocol/cache-hints": _default,
    "protocol/error-code": _code,
    "protocol/result": _shape,
    "contract/error-structured": _content_of_failure,
}
"""The repair of a violation of each rule; None if that violation has no certain correction."""


# ── dialects of schemas ──────────────────────────────────────────────────────────────────────────────────────────────


def _dialects(result: Any, revision: str) -> Iterator[tuple[Repair, Violation]]:
    """
    Yield the repair of each `$schema` in a list of tools that is another spelling of the URI of a draft.

    Found here and not by the judge, which reads most of these spellings without a finding; some clients do not.
    """
    tools = result.get("tools") if isinstance(result, dict) else None
    room = _COMPILED
    for number, tool in enumerate(tools if isinstance(tools, list) else ()):
        for member in _SCHEMAS:
            schema = tool.get(member) if isinstance(tool, dict) else None
            if not isinstance(schema, dict) or not isinstance(schema.get("$schema"), str):
                continue
            draft = draft_meant(schema)
            if draft is None or draft.uri == schema["$schema"]:
                continue
            if draft_named(schema["$schema"]) is None:
                # Until now nothing was judged by this schema. A tool that would be unusable then stays as it is.
                room -= len(orjson.dumps(schema))
                if room < 0 or not isinstance(compiled({**schema, "$schema": draft.uri}), Compiled):
                    continue
            at = f"/result/tools/{number}/{member}/$schema"
            yield Repair("replace", at, draft.uri), _odd_spelling(at, schema["$schema"], draft.uri, revision)


def _odd_spelling(at: str, uri: str, canonical: str, revision: str) -> Violation:
    wrong = violation(_DIALECT, at, expected=f'"{canonical}"', found=shown(uri), revision=revision)
    return replace(wrong, action="repair")

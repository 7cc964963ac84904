"""
Repairs defects in answers of servers that have only one correction. No I/O, no judging.

Each repair belongs to a rule, and is made only if the operator wants it for that rule. A receiver reads the corrected
value in any case, or cannot use the answer without it. Whether the answer is valid afterwards is for the judge to
decide, which judges the repaired frame like any other. Everything else in the frame stays the same to the byte.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import orjson

from assay.judge.answers import DEFAULTS
from assay.judge.repair import Repaired, rewritten
from assay.judge.topics import errors
from assay.model.large_frames import more_than
from assay.model.limits import Limits
from assay.model.verdict import Exchange, Party, Repair, Violation
from assay.rules import violation
from assay.schema.compiled import Compiled
from assay.schema.drafts import draft_meant, draft_named
from assay.schema.pointers import looked_up, steps
from assay.schema.store import compiled
from assay.schema.wording import shown

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

_SCHEMA_AT: Final = re.compile(r"/result/tools/[0-9]+/(?:inputSchema|outputSchema)")
"""The place of a schema of a tool."""

_DIALECT: Final = "contract/unknown-dialect"
_SCHEMAS: Final = ("inputSchema", "outputSchema")


def repaired(
    exchange: Exchange,
    frame: bytes,
    message: dict[str, Any],
    found: Sequence[Violation],
    rules: Collection[str],
    limits: Limits,
) -> Repaired | None:
    """
    Return the answer to *exchange* with everything repaired, of all that was *found*, that breaks one of these *rules*.

    None if there is nothing to repair, or if the answer is, or becomes, too large for that.
    """
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
    if not 0 < len(repairs) <= MOST_REPAIRS or more_than(frame, MOST_VALUES):
        return None
    texts = {path: None if each.op == "remove" else orjson.dumps(each.value).decode() for path, each in repairs.items()}
    made = rewritten(frame, texts, limits)
    return None if made is None else Repaired(*made, done, tuple(repairs.values()))


# ── each rule ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _default(_: Exchange, __: dict[str, Any], wrong: Violation) -> Repair:
    """Return the repair of a member for which a client reads a default."""
    if wrong.at == "/result":
        return Repair("add", f"/result/{wrong.expected}", DEFAULTS[wrong.expected])
    return Repair("replace", wrong.at, DEFAULTS[steps(wrong.at)[-1]])


def _code(exchange: Exchange, message: dict[str, Any], wrong: Violation) -> Repair | None:
    """Return the repair of the old code for a missing resource. For other requests its meaning is not certain."""
    was = looked_up(message, wrong.at)
    if not exchange.method.startswith("resources/") or was != errors.NO_RESOURCE:
        return None
    return Repair("replace", wrong.at, errors.INVALID_PARAMS, errors.NO_RESOURCE)


def _content(exchange: Exchange, message: dict[str, Any], wrong: Violation) -> Repair | None:
    """
    Return the repair of a `structuredContent` that the revision or the tool's schema does not allow.

    It is left out only if the client needs none: the result reports a failure, or the tool has no output schema. And
    only if there is text beside it, so that the client still gets a result.
    """
    if exchange.method != "tools/call" or exchange.as_task or not _has_text(message["result"]):
        return None
    needless = exchange.contract is not None and not exchange.contract.has_output_schema
    failed = message["result"].get("isError") is True
    about_failure = wrong.rule == "contract/error-structured"
    return Repair("remove", _CONTENT) if about_failure or (wrong.at == _CONTENT and (needless or failed)) else None


def _has_text(result: dict[str, Any]) -> bool:
    content = result.get("content")
    blocks = content if isinstance(content, list) else ()
    texts = (each.get("text") for each in blocks if isinstance(each, dict) and each.get("type") == "text")
    return any(isinstance(each, str) and each.strip() for each in texts)


def _shape(exchange: Exchange, message: dict[str, Any], wrong: Violation) -> Repair | None:
    """
    Return the repair of a result that the schema of the revision refuses.

    Beside content these are schemas of tools without `type`, for which official clients reject the whole list. The
    arguments of a call, and the content that these revisions have a schema for, are objects in any case.
    """
    if exchange.method != "tools/list" or _SCHEMA_AT.fullmatch(wrong.at) is None:
        return _content(exchange, message, wrong)
    schema = looked_up(message, wrong.at)
    is_typeless = isinstance(schema, dict) and "type" not in schema
    return Repair("add", f"{wrong.at}/type", "object") if is_typeless else None


_REMEDIES: Final[Mapping[str, Callable[[Exchange, dict[str, Any], Violation], Repair | None]]] = {
    "protocol/result-type-missing": _default,
    "protocol/cache-hints": _default,
    "protocol/error-code": _code,
    "protocol/result": _shape,
    "contract/error-structured": _content,
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
                if room < 0 or not isinstance(compiled(orjson.dumps({**schema, "$schema": draft.uri})), Compiled):
                    continue
            at = f"/result/tools/{number}/{member}/$schema"
            expected, found = f'"{draft.uri}"', shown(schema["$schema"])
            wrong = violation(_DIALECT, at, expected=expected, found=found, revision=revision)
            yield Repair("replace", at, draft.uri), replace(wrong, action="repair")

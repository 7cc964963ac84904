"""
The arguments of a tool that headers repeat over HTTP: the `x-mcp-header` annotations of its input schema. No I/O.

Computed once for a tool, not for every call.
"""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final, NamedTuple

import orjson

from assay.engine.drafts import DRAFT_4, DRAFT_6, DRAFT_7, DRAFT_2019_09, DRAFT_2020_12
from assay.engine.fault import SchemaLimits, SchemaRefusal
from assay.engine.pointers import escaped
from assay.engine.wording import found as described
from assay.engine.wording import name as quoted
from assay.engine.wording import shown


class ParamHeader(NamedTuple):
    """One argument of a tool that a header repeats."""

    field: bytes
    """The header's name, in lower case."""
    name: str
    """The header's name as the tool spells it."""
    path: tuple[str, ...]
    """The keys that lead to the argument."""


ParamHeaders = tuple[ParamHeader, ...]


_KEYWORD: Final = "x-mcp-header"
_TYPES: Final = ("string", "integer", "boolean")

# RFC 9110, 5.6.2: the characters of the name of a header.
_TOKEN: Final = frozenset("!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")

_MOST_HEADERS: Final = 100
"""Marked arguments of one tool. Web servers accept about as many headers, and each is checked in every call."""

_MOST_FAULTS: Final = 20
"""Reported faults of one tool, as many as a verdict lists."""

# The keywords that hold schemas, of all drafts: the choice of a draft must not hide an annotation.
_DRAFTS: Final = (DRAFT_4, DRAFT_6, DRAFT_7, DRAFT_2019_09, DRAFT_2020_12)
_HOLDS_SCHEMAS: Final = frozenset().union(*(draft.one | draft.many | draft.named for draft in _DRAFTS))
_HOLDS_NAMES: Final = frozenset().union(*(draft.named for draft in _DRAFTS))


class _HeaderPlace(NamedTuple):
    """A subschema, linked to the one above it: pointers to all of them could take a thousand times the document."""

    schema: dict[str, Any]
    above: "_HeaderPlace | None" = None
    keyword: str = ""
    key: str | None = None
    is_property: bool = True
    """Whether only `properties` leads here."""

    def line(self) -> list["_HeaderPlace"]:
        """Return the places from the root down to this one, without the root."""
        line: list[_HeaderPlace] = []
        place = self
        while place.above is not None:
            line.append(place)
            place = place.above
        return line[::-1]

    def inside(self) -> Iterator["_HeaderPlace"]:
        """Yield the subschemas directly under this one."""
        for keyword, value in self.schema.items():
            if keyword not in _HOLDS_SCHEMAS:
                continue
            if isinstance(value, dict) and keyword in _HOLDS_NAMES:
                on = self.is_property and keyword == "properties"
                yield from (
                    _HeaderPlace(one, self, keyword, key, on) for key, one in value.items() if isinstance(one, dict)
                )
            elif isinstance(value, dict):
                yield _HeaderPlace(value, self, keyword, None, False)
            elif isinstance(value, list):
                items = enumerate(value)
                yield from (
                    _HeaderPlace(one, self, keyword, str(nth), False) for nth, one in items if isinstance(one, dict)
                )


def param_headers(input_schema: Any) -> ParamHeaders | list[SchemaRefusal]:
    """
    Return the arguments that headers repeat; or, as a list, why a client must reject the tool.

    Called once for a tool, not for every call. References are not followed: an annotation behind a reference is
    forbidden, and is found where it is written.
    """
    if not isinstance(input_schema, dict) or not _mentioned(input_schema):
        return ()
    known: dict[bytes, ParamHeader] = {}
    faults: list[SchemaRefusal] = []
    waiting = [_HeaderPlace(input_schema)]
    left = SchemaLimits().subschemas
    while waiting and left and len(known) <= _MOST_HEADERS and len(faults) < _MOST_FAULTS:
        place = waiting.pop()
        left -= 1
        if _KEYWORD in place.schema:
            header = _annotation(place, known)
            if isinstance(header, SchemaRefusal):
                faults.append(header)
            else:
                known[header.field] = header
        waiting.extend(reversed(list(islice(place.inside(), left + 1))))
    if not faults and (waiting or len(known) > _MOST_HEADERS):
        expected = f"at most {_MOST_HEADERS} marked properties, within {SchemaLimits().subschemas:,} subschemas"
        faults.append(SchemaRefusal("contract/header", "", expected, "more"))
    return faults or tuple(known.values())


def _mentioned(schema: dict[str, Any]) -> bool:
    """Whether the annotation occurs at all. In most tools it does not, and serializing is faster than a walk."""
    try:
        return b'"x-mcp-header"' in orjson.dumps(schema)
    except orjson.JSONEncodeError:
        return True


def _annotation(place: _HeaderPlace, known: Mapping[bytes, ParamHeader]) -> ParamHeader | SchemaRefusal:
    """Return the header that the schema at *place* asks for, or why it is forbidden."""
    name, kind = place.schema[_KEYWORD], place.schema.get("type")
    outside = next((quoted(each.keyword) for each in place.line() if not each.is_property), "no property at all")
    if not place.is_property or place.above is None:
        return _refusal(place, "a property reached through `properties` alone", f"one under {outside}")
    if not isinstance(name, str) or not name or not _TOKEN.issuperset(name):
        return _refusal(place, "a header name of letters, digits and !#$%&'*+-.^_`|~", described(name))
    if kind not in _TYPES:
        has = "no type" if kind is None else f"the type {shown(kind)}"
        return _refusal(place, "a property of the type string, integer or boolean", has)
    header = ParamHeader(
        b"mcp-param-" + name.lower().encode(), f"Mcp-Param-{name}", tuple(str(each.key) for each in place.line())
    )
    if header.field in known:
        return _refusal(place, "a unique name, ignoring case", quoted(name))
    return header


def _refusal(place: _HeaderPlace, expected: str, has: str) -> SchemaRefusal:
    steps = [step for each in place.line() for step in (each.keyword, each.key) if step is not None]
    at = "".join(f"/{escaped(step)}" for step in (*steps, _KEYWORD))
    return SchemaRefusal("contract/header", at, expected, has)

"""
The arguments of a tool that headers repeat over HTTP: the `x-mcp-header` annotations of its input schema. No I/O.

Computed once for a tool, not for every call.
"""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final, NamedTuple

from assay.schema.drafts import DRAFT_4, DRAFT_6, DRAFT_7, DRAFT_2019_09, DRAFT_2020_12, Draft, subschemas
from assay.schema.fault import SchemaLimits, SchemaRefusal
from assay.schema.pointers import escaped
from assay.schema.wording import found as described
from assay.schema.wording import name as quoted
from assay.schema.wording import shown


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

MARK: Final = b'"x-mcp-header"'
"""A schema without this text marks no argument."""

_TYPES: Final = ("string", "integer", "boolean")

# RFC 9110, 5.6.2: the characters of the name of a header.
_TOKEN: Final = frozenset("!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")

_MOST_HEADERS: Final = 100
"""Marked arguments of one tool. Web servers accept about as many headers, and each is checked in every call."""

_MOST_FAULTS: Final = 20
"""Reported faults of one tool, as many as a verdict lists."""


def _every_draft() -> Draft:
    """Return a draft in which each keyword of any draft holds whatever schemas are in it, in any form."""
    drafts = (DRAFT_4, DRAFT_6, DRAFT_7, DRAFT_2019_09, DRAFT_2020_12)
    named = frozenset[str]().union(*(each.named for each in drafts))
    others = frozenset[str]().union(*(each.one | each.many for each in drafts)) - named
    none = frozenset[str]()
    return Draft("every", "", "", others, others | named, named, none, none, lone_reference=False)


_EVERY: Final = _every_draft()
"""The choice of a draft must not hide an annotation."""


_Steps = list[tuple[str, str | int | None]]
"""The keyword, and the name or number under it, of each subschema on the way to a place."""


def _places(schema: dict[str, Any], steps: _Steps) -> Iterator[dict[str, Any]]:
    """Yield *schema* and each schema inside it; *steps*, empty at first, lead to the last one that was yielded."""
    yield schema
    # A list of those above, not a recursion: no schema can exhaust the stack.
    above = [subschemas(schema, _EVERY)]
    while above:
        step = next((each for each in above[-1] if isinstance(each[2], dict)), None)
        if step is None:
            above.pop()
            del steps[-1:]
        else:
            keyword, key, inside = step
            steps.append((keyword, key))
            above.append(subschemas(inside, _EVERY))
            yield inside


def param_headers(input_schema: Any) -> ParamHeaders | list[SchemaRefusal]:
    """
    Return the arguments that headers repeat; or, as a list, why a client must reject the tool.

    Called once for a tool, not for every call. References are not followed: an annotation behind a reference is
    forbidden, and is found where it is written.
    """
    if not isinstance(input_schema, dict):
        return ()
    known: dict[bytes, ParamHeader] = {}
    faults: list[SchemaRefusal] = []
    most = SchemaLimits().subschemas
    steps: _Steps = []
    places = _places(input_schema, steps)
    for schema in islice(places, most):
        if _KEYWORD not in schema:
            continue
        header = _annotation(schema, steps, known)
        if isinstance(header, ParamHeader):
            known[header.field] = header
        else:
            faults.append(header)
        if len(known) > _MOST_HEADERS or len(faults) == _MOST_FAULTS:
            break
    if not faults and (len(known) > _MOST_HEADERS or next(places, None) is not None):
        expected = f"at most {_MOST_HEADERS} marked properties, within {most:,} subschemas"
        faults.append(SchemaRefusal("contract/header", "", expected, "more"))
    return faults or tuple(known.values())


def _annotation(
    schema: dict[str, Any], steps: _Steps, known: Mapping[bytes, ParamHeader]
) -> ParamHeader | SchemaRefusal:
    """Return the header that the *schema* at *steps* asks for, or why it is forbidden."""
    name, kind = schema[_KEYWORD], schema.get("type")
    others = (quoted(keyword) for keyword, key in steps if keyword != "properties" or not isinstance(key, str))
    outside = next(others, None)
    if outside is not None or not steps:
        found = f"one under {outside or 'no property at all'}"
        return _refusal(steps, "a property reached through `properties` alone", found)
    if not isinstance(name, str) or not name or not _TOKEN.issuperset(name):
        return _refusal(steps, "a header name of letters, digits and !#$%&'*+-.^_`|~", described(name))
    if kind not in _TYPES:
        has = "no type" if kind is None else f"the type {shown(kind)}"
        return _refusal(steps, "a property of the type string, integer or boolean", has)
    field = b"mcp-param-" + name.lower().encode()
    if field in known:
        return _refusal(steps, "a unique name, ignoring case", quoted(name))
    return ParamHeader(field, f"Mcp-Param-{name}", tuple(str(key) for _, key in steps))


def _refusal(steps: _Steps, expected: str, has: str) -> SchemaRefusal:
    keys = [str(key) for step in steps for key in step if key is not None]
    at = "".join(f"/{escaped(key)}" for key in (*keys, _KEYWORD))
    return SchemaRefusal("contract/header", at, expected, has)

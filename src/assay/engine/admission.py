"""
Whether a schema from outside may be judged by at all, decided before it is compiled.

The engine has no limits of its own, and some schemas of a kilobyte stall or crash it; whatever passes here does
neither. No I/O; nothing is fetched.
"""

from typing import Any

from assay.engine.broken import allowed, found_at, found_pattern
from assay.engine.compiled import PATTERN_SIZE, Compiled, options
from assay.engine.cost import Measure, check_cost
from assay.engine.limits import Refusal, SchemaLimits
from assay.engine.outline import Outline, outlined
from assay.engine.pointers import escaped
from assay.engine.wording import name

__all__ = ["Refusal", "SchemaLimits", "admit", "compile_untrusted", "too_long"]


def admit(schema: Any, limits: SchemaLimits = SchemaLimits()) -> Refusal | None:  # noqa: B008 - it is frozen
    """Why *schema* is not to be compiled, or None. Patterns and the metaschema are left to `compile_untrusted`."""
    surveyed = _surveyed(schema, limits)
    return surveyed if isinstance(surveyed, Refusal) else None


def compile_untrusted(
    schema: Any,
    *,
    formats: bool = False,
    backtracking: bool = False,
    limits: SchemaLimits = SchemaLimits(),  # noqa: B008 - it is frozen
) -> Compiled | Refusal:
    """
    *schema* made ready to judge by, or why it is not. Raises nothing, whatever *schema* is.

    *backtracking* allows patterns with look-around and back-references; only for servers the operator trusts, since
    the engine for those is not linear.
    """
    surveyed = _surveyed(schema, limits)
    if isinstance(surveyed, Refusal):
        return surveyed
    outline, measure = surveyed
    size = min(PATTERN_SIZE, limits.patterns // max(1, _patterns(outline)))
    try:
        settings = options(formats=formats, backtracking=backtracking, pattern_size=size)
        return Compiled(schema, "#", outline.draft, settings, width=measure.width, effort=measure.effort)
    except Exception as error:
        return _refused(error)
    except BaseException as error:
        # A panic inside the engine is no `Exception`, and its class has no public name to import.
        if type(error).__name__ != "PanicException":
            raise
        return Refusal("contract/schema", "", "a schema the engine can compile", "one that makes it panic")


def _patterns(outline: Outline) -> int:
    """How many regular expressions the engine will compile."""
    schemas = [place.schema for place in outline.order if isinstance(place.schema, dict)]
    return sum(("pattern" in schema) + _width(schema.get("patternProperties")) for schema in schemas)


def _width(value: Any) -> int:
    return len(value) if isinstance(value, dict) else 0


def _refused(error: Exception) -> Refusal:
    """What the engine raised, as a refusal: where it points to, in our words and with few of the schema's."""
    path = list(getattr(error, "instance_path", None) or [])
    at = "".join(f"/{escaped(str(step))}" for step in path)
    has = found_at(path, getattr(error, "instance", None))
    if getattr(getattr(error, "kind", None), "format", "") == "regex":
        expected = "a regular expression without look-around or back-references, and of modest size"
        return Refusal("contract/pattern", at, expected, found_pattern(getattr(error, "instance", None)))
    if path:
        return Refusal("contract/schema", at, allowed(path) or f"what the draft allows for {name(str(path[-1]))}", has)
    first = str(getattr(error, "message", "") or error).partition("\n")[0]
    return Refusal("contract/schema", at, "a schema that its draft allows", first[:80] or type(error).__name__)


def _surveyed(schema: Any, limits: SchemaLimits) -> tuple[Outline, Measure] | Refusal:
    """What there is to *schema*, and what it costs to judge by; or why it is not to be compiled."""
    length = _measured(schema, limits)
    if isinstance(length, Refusal):
        return length
    outline = outlined(schema, limits.subschemas)
    if isinstance(outline, Refusal):
        return outline
    measure = check_cost(outline, limits, length)
    return measure if isinstance(measure, Refusal) else (outline, measure)


def _measured(schema: Any, limits: SchemaLimits) -> int | Refusal:
    """The bytes of *schema*, or that it is too deep or too long. Nesting comes first: all else may rely on it."""
    if not isinstance(schema, dict | bool):
        return Refusal("contract/schema", "", "a schema: an object or a boolean", "something else")
    level: list[Any] = [schema]
    seen = 0
    for _ in range(limits.levels + 1):
        level = [one for value in level for one in _inside(value)]
        seen += len(level)
        # Every value is at least a character, and a separator, of the document.
        if seen * 2 > limits.size:
            return too_long(limits)
        if not level:
            break
    if level:
        return Refusal("contract/schema-size", "", f"at most {limits.levels} levels", "more")
    length = _length(schema)
    return int(length) if length <= limits.size else too_long(limits)


def _inside(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _length(schema: Any) -> float:
    """The bytes *schema* takes as compact JSON; infinite for what JSON has no way to write."""
    import orjson  # noqa: PLC0415 - only schemas that come from outside need it

    try:
        return len(orjson.dumps(schema))
    except TypeError:
        return _length_by_hand(schema)


def _length_by_hand(schema: Any) -> float:
    """The same for integers beyond 64 bits, which `orjson` does not write."""
    import json  # noqa: PLC0415 - only integers beyond 64 bits need it

    try:
        return len(json.dumps(schema, ensure_ascii=False, separators=(",", ":")).encode())
    except (TypeError, ValueError):
        return float("inf")


def too_long(limits: SchemaLimits) -> Refusal:
    """That a schema has more bytes than *limits* allow."""
    return Refusal("contract/schema-size", "", f"at most {limits.size:,} bytes", "more")

"""
Decides, before an untrusted schema is compiled, whether it can be used at all.

The engine has no limits of its own, and some schemas of a kilobyte stall or crash it. A schema that is admitted does
neither. No I/O; nothing is fetched.
"""

import json
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, TypeVar

import jsonschema_rs
import orjson

from assay.schema.compiled import PATTERN_SIZE, Compiled, Options, options
from assay.schema.cost import Work, width_of
from assay.schema.drafts import DRAFT_4, DRAFT_7
from assay.schema.fault import SchemaLimits, SchemaRefusal
from assay.schema.patterns import Backtracking, found_pattern, may_step_back, strictly
from assay.schema.pointers import escaped
from assay.schema.schema_index import SchemaIndex, indexed
from assay.schema.supported_part import Regex, regexes, remote_references, supported_part
from assay.schema.wording import allowed, found_at, name

__all__ = ["SchemaLimits", "SchemaRefusal", "admit", "compile_untrusted", "too_long"]


def admit(schema: Any, limits: SchemaLimits = SchemaLimits()) -> SchemaRefusal | None:  # noqa: B008 - it is frozen
    """Return why *schema* must not be compiled, or None. `compile_untrusted` checks patterns and the metaschema."""
    admitted = _admitted(schema, limits)
    if isinstance(admitted, SchemaRefusal):
        return admitted
    return next(iter(remote_references(admitted.index)), None)


def compile_untrusted(
    schema: Any,
    *,
    formats: bool = False,
    partly: bool = False,
    limits: SchemaLimits = SchemaLimits(),  # noqa: B008 - it is frozen
) -> Compiled | SchemaRefusal:
    """
    Return *schema* compiled, or why it is not. Raises nothing, whatever *schema* is.

    With *partly* the parts that cannot be used are left out: a reference to another document, a pattern that no engine
    supports. `Compiled.left_out` has them. The rest refuses nothing that the whole would accept. A schema that names no
    draft and is not valid in the default draft is judged by the older draft that it was written for, if there is one.
    """
    usable = _usable(schema, formats, partly, limits)
    if not partly or not isinstance(usable, SchemaRefusal) or usable.rule != "contract/schema":
        return usable
    return _of_an_older_draft(schema, formats, limits) or usable


def _of_an_older_draft(schema: Any, formats: bool, limits: SchemaLimits) -> Compiled | None:
    """
    Return *schema*, which is not valid in 2020-12, compiled by the older draft in which it is valid.

    Revisions up to 2025-06-18 set no default draft, and some clients read every schema as draft 7.
    """
    if not isinstance(schema, dict) or "$schema" in schema:
        return None
    for draft in (DRAFT_7, DRAFT_4):
        usable = _usable({"$schema": draft.uri, **schema}, formats, True, limits)
        if not isinstance(usable, SchemaRefusal):
            expected = "a $schema, because this is not a valid 2020-12 schema"
            unnamed = SchemaRefusal("contract/unknown-dialect", "", expected, f"none; it is read as {draft.name}")
            usable.left_out = (unnamed, *usable.left_out)
            return usable
    return None


@dataclass(frozen=True, slots=True)
class _Admitted:
    """A schema that can be compiled: its places and its width."""

    index: SchemaIndex
    width: int


def _usable(schema: Any, formats: bool, partly: bool, limits: SchemaLimits) -> Compiled | SchemaRefusal:
    admitted = _admitted(schema, limits)
    if isinstance(admitted, SchemaRefusal):
        return admitted
    remote = remote_references(admitted.index)
    if not remote:
        # Nearly every schema takes only this path.
        each = _room_for_each(admitted.index, limits)
        usable = _compiled(admitted, options(formats=formats, pattern_size=each))
        if not isinstance(usable, SchemaRefusal) or usable.rule != "contract/pattern":
            return usable
    elif not partly:
        return remote[0]
    return _sorted_out(admitted, remote, formats, partly, limits)


def _sorted_out(
    admitted: _Admitted, remote: list[SchemaRefusal], formats: bool, partly: bool, limits: SchemaLimits
) -> Compiled | SchemaRefusal:
    """Return a schema with patterns that are not linear or not valid, or with references to other documents."""
    index = admitted.index
    patterns = _Patterns(index, limits)
    refused = remote + [_no_pattern(regex) for regex in regexes(index) if regex.text in patterns.useless]
    if refused and not partly:
        return refused[0]

    document = index.document

    def compiled_without(left_out: Collection[str], settings: Options) -> Compiled | SchemaRefusal:
        # Indexed again: this may be called much later, and keeping the index until then takes more memory.
        places = indexed(document, limits.subschemas)
        if isinstance(places, SchemaRefusal):
            return places
        schema = supported_part(places, left_out, patterns.instead)
        if schema is None:
            expected = "a schema that does not depend on its unusable parts"
            return SchemaRefusal("contract/schema-cost", "", expected, "a reference into one of them")
        rest = _admitted(schema, limits)
        return rest if isinstance(rest, SchemaRefusal) else _compiled(rest, settings)

    settings = patterns.settings(formats=formats, backtracking=bool(patterns.stepping))
    if refused or patterns.instead:
        usable = compiled_without(patterns.useless, settings)
    else:
        usable = _compiled(admitted, settings)
    if not isinstance(usable, SchemaRefusal):
        usable.left_out = tuple(refused)
        if patterns.stepping:
            # Compiled only when a text cannot be decided: most texts can.
            linear = patterns.settings(formats=formats)
            less = cache(lambda: compiled_without(patterns.useless | patterns.stepping.keys(), linear))
            usable.steps_back([*patterns.stepping.values()], less)
    return usable


def _room_for_each(index: SchemaIndex, limits: SchemaLimits) -> int:
    """Return the bytes that each compiled regular expression may take if all take the same."""
    return min(PATTERN_SIZE, limits.patterns // max(1, sum(1 for _ in regexes(index))))


_SMALL = 64 << 10
"""Bytes of an ordinary compiled pattern. Those of Pydantic and zod take less, except a few with large repeats."""

_MOST_FAILING = 128
"""Invalid, large or backtracking patterns of one schema that are tried: 0.2 ms each time, and more for a large one."""

_LARGE = 512 << 10
"""Bytes that a compiled backtracking pattern may take. The pattern of zod for a host name takes 300 KiB."""

_MOST_STEPPING = 12
"""
Backtracking patterns of one schema. Each is compiled three times: 2 ms in all for a small one, 8 ms for a large one.
Without this limit 780 bytes of schema took 0.8 s, and 9 KiB 0.6 GB.
"""

_LONGEST = 2_048
"""Characters of a backtracking pattern. Those of Pydantic and zod have fewer than 400."""


class _Patterns:
    """The regular expressions of a schema, some of which are invalid, not linear, or large."""

    def __init__(self, index: SchemaIndex, limits: SchemaLimits) -> None:
        self.useless: set[str] = set()
        """Those that are invalid or too large, and those that are too many to be tried."""
        self.stepping: dict[str, Backtracking] = {}
        """Those that may step back."""
        self.instead: dict[str, str] = {}
        """The spelling that the engine gets for some of them."""
        self._draft = index.draft.uri
        self._tries = 0
        self._each = _room_for_each(index, limits)
        small = self._small = min(_SMALL, self._each)
        # In the order of the document: of too many backtracking patterns the first ones are used.
        texts = list(dict.fromkeys(regex.text for regex in regexes(index)))
        others: list[str] = []
        for number, text in enumerate(texts):
            if len(others) >= _MOST_FAILING:
                self.useless.update(texts[number:])
                break
            if not self._compiles(text, options(formats=False, pattern_size=small)):
                others.append(text)
        # The large ones share what the small ones leave, so that together they stay within the limit.
        rest = limits.patterns - small * (len(texts) - len(self.useless) - len(others))
        self._size = max(min(PATTERN_SIZE, rest // max(1, len(others))), self._each)
        names = {regex.text for regex in regexes(index) if regex.keyword != "pattern"}
        for text in others:
            self._sort(text, is_name=text in names)

    def settings(self, *, formats: bool = False, backtracking: bool = False) -> Options:
        """Return the options to compile a schema with them."""
        return options(formats=formats, backtracking=backtracking, pattern_size=self._size, automaton_size=self._each)

    def _sort(self, text: str, *, is_name: bool) -> None:
        # Only in `pattern` can it be spelt otherwise: in `patternProperties` it is part of pointers.
        for spelt in dict.fromkeys((text, text if is_name else strictly(text))):
            if spelt != text:
                self.instead[text] = spelt
            # With no more room than before, the same text fails again.
            if (self._size > self._small or spelt != text) and self._compiles(spelt, self.settings()):
                return
            if may_step_back(spelt) and len(spelt) <= _LONGEST and self._tries < _MOST_STEPPING:
                # A failed try takes as long as a successful one.
                self._tries += 1
                made = _made(partial(Backtracking, spelt, min(_LARGE, self._size), self._draft))
                if isinstance(made, Backtracking):
                    self.stepping[text] = made
                    return
        self.instead.pop(text, None)
        self.useless.add(text)

    def _compiles(self, text: str, settings: Options) -> bool:
        # Up to draft 7 the metaschema makes the engine check patterns more strictly, so the draft matters.
        alone = {"$schema": self._draft, "pattern": text}
        return not isinstance(_made(lambda: jsonschema_rs.validator_for(alone, **settings)), SchemaRefusal)


def _no_pattern(regex: Regex) -> SchemaRefusal:
    return SchemaRefusal(
        "contract/pattern", regex.at, "a regular expression that the engine supports", found_pattern(regex.text)
    )


def _compiled(admitted: _Admitted, settings: Options) -> Compiled | SchemaRefusal:
    index = admitted.index
    return _made(lambda: Compiled(index.document, "#", index.draft, settings, width=admitted.width))


_Made = TypeVar("_Made")


def _made(make: Callable[[], _Made]) -> _Made | SchemaRefusal:
    """Return what the engine makes, or its exception as a refusal."""
    try:
        return make()
    except Exception as error:
        return _refused(error)
    except BaseException as error:
        # A panic inside the engine is not an `Exception`, and its class has no public name to import.
        if type(error).__name__ != "PanicException":
            raise
        return SchemaRefusal("contract/schema", "", "a schema the engine can compile", "one that makes it panic")


def _refused(error: Exception) -> SchemaRefusal:
    """Return the exception of the engine as a refusal, with its place, our wording and little of the schema."""
    path = list(getattr(error, "instance_path", None) or [])
    at = "".join(f"/{escaped(str(step))}" for step in path)
    has = found_at(path, getattr(error, "instance", None))
    if getattr(getattr(error, "kind", None), "format", "") == "regex":
        found = found_pattern(getattr(error, "instance", None))
        return SchemaRefusal("contract/pattern", at, "a regular expression of modest size", found)
    if path:
        return SchemaRefusal(
            "contract/schema", at, allowed(path) or f"what the draft allows for {name(str(path[-1]))}", has
        )
    first = str(getattr(error, "message", "") or error).partition("\n")[0]
    return SchemaRefusal("contract/schema", at, "a schema that its draft allows", first[:80] or type(error).__name__)


def _admitted(schema: Any, limits: SchemaLimits) -> _Admitted | SchemaRefusal:
    """Return the places and the width of *schema*, or why it must not be compiled."""
    length = _measured(schema, limits)
    if isinstance(length, SchemaRefusal):
        return length
    index = indexed(schema, limits.subschemas)
    if isinstance(index, SchemaRefusal):
        return index
    width = width_of(index, limits, Work(length))
    return width if isinstance(width, SchemaRefusal) else _Admitted(index, width)


def _measured(schema: Any, limits: SchemaLimits) -> int | SchemaRefusal:
    """Return the bytes of *schema*, or a refusal if it is too deep or too long. Later checks rely on the depth."""
    if not isinstance(schema, dict | bool):
        return SchemaRefusal("contract/schema", "", "a schema (an object or a boolean)", "something else")
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
        return SchemaRefusal("contract/schema-size", "", f"at most {limits.levels} levels", "more")
    length = _length(schema)
    return int(length) if length <= limits.size else too_long(limits)


def _inside(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _length(schema: Any) -> float:
    """Return the bytes of *schema* as compact JSON; infinite if JSON cannot represent it."""
    try:
        return len(orjson.dumps(schema))
    except TypeError:
        return _length_by_hand(schema)


def _length_by_hand(schema: Any) -> float:
    """Return the same for integers beyond 64 bits, which `orjson` does not write."""
    try:
        return len(json.dumps(schema, ensure_ascii=False, separators=(",", ":")).encode())
    except (TypeError, ValueError):
        return float("inf")


def too_long(limits: SchemaLimits) -> SchemaRefusal:
    """Return the refusal of a schema with more bytes than *limits* allow."""
    return SchemaRefusal("contract/schema-size", "", f"at most {limits.size:,} bytes", "more")

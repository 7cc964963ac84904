"""
Decides, before an untrusted schema is compiled, whether it can be used at all.

The engine has no limits of its own, and some schemas of a kilobyte stall or crash it. A schema that is admitted does
neither. No I/O; nothing is fetched.
"""

import json
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any, NamedTuple, TypeVar

import jsonschema_rs
import orjson

from assay.engine.backtracking import Backtracking
from assay.engine.compiled import PATTERN_SIZE, Compiled, Options, options
from assay.engine.cost import Measure, check_cost
from assay.engine.drafts import DRAFT_4, DRAFT_7
from assay.engine.fault import SchemaLimits, SchemaRefusal
from assay.engine.milder import Regex, left_out, regexes, without
from assay.engine.patterns import found_pattern, may_step_back, strictly
from assay.engine.pointers import escaped
from assay.engine.schema_index import SchemaIndex, outlined
from assay.engine.wording import allowed, found_at, name

__all__ = ["SchemaLimits", "SchemaRefusal", "admit", "compile_untrusted", "too_long"]


def admit(schema: Any, limits: SchemaLimits = SchemaLimits()) -> SchemaRefusal | None:  # noqa: B008 - it is frozen
    """Return why *schema* must not be compiled, or None. `compile_untrusted` checks patterns and the metaschema."""
    surveyed = _surveyed(schema, limits)
    if isinstance(surveyed, SchemaRefusal):
        return surveyed
    return next(iter(left_out(surveyed.outline)), None)


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


def _usable(schema: Any, formats: bool, partly: bool, limits: SchemaLimits) -> Compiled | SchemaRefusal:
    surveyed = _surveyed(schema, limits)
    if isinstance(surveyed, SchemaRefusal):
        return surveyed
    foreign = left_out(surveyed.outline)
    if not foreign:
        # Nearly every schema takes only this path.
        usable = _compiled(surveyed, options(formats=formats, pattern_size=surveyed.pattern_size(limits)))
        if not isinstance(usable, SchemaRefusal) or usable.rule != "contract/pattern":
            return usable
    elif not partly:
        return foreign[0]
    return _sorted_out(surveyed, foreign, formats, partly, limits)


class _Survey(NamedTuple):
    """The places of a schema, and its cost."""

    outline: SchemaIndex
    measure: Measure

    def pattern_size(self, limits: SchemaLimits) -> int:
        """Return the bytes that each compiled regular expression may take."""
        return min(PATTERN_SIZE, limits.patterns // max(1, sum(1 for _ in regexes(self.outline))))


def _sorted_out(
    surveyed: _Survey, foreign: list[SchemaRefusal], formats: bool, partly: bool, limits: SchemaLimits
) -> Compiled | SchemaRefusal:
    """Return a schema with patterns that are not linear or not valid, or with references to other documents."""
    outline = surveyed.outline
    patterns = _Patterns(outline, surveyed.pattern_size(limits), limits)
    useless = {text for text, kind in patterns.kinds.items() if kind is None}
    refused = foreign + [_no_pattern(regex) for regex in regexes(outline) if regex.text in useless]
    if refused and not partly:
        return refused[0]
    stepping = patterns.stepping()
    settings = patterns.settings(formats=formats, backtracking=bool(stepping))
    if refused or patterns.instead:
        usable = _less(outline, _Less(useless, patterns.instead, settings, limits))
    else:
        usable = _compiled(surveyed, settings)
    if not isinstance(usable, SchemaRefusal):
        usable.left_out = tuple(refused)
        if stepping:
            # Compiled only when a text cannot be decided: most texts can.
            less = _Less({*useless, *stepping}, patterns.instead, patterns.settings(formats=formats), limits)
            document = outline.document
            usable.steps_back(list(stepping.values()), lambda: _again(document, less))
    return usable


class _Less(NamedTuple):
    """What is left out of a schema, which patterns are replaced, and how the rest is compiled."""

    patterns: Collection[str]
    instead: Mapping[str, str]
    settings: Options
    limits: SchemaLimits


def _less(outline: SchemaIndex, less: _Less) -> Compiled | SchemaRefusal:
    """Return the schema without what is left out, compiled."""
    schema = without(outline, less.patterns, less.instead)
    if schema is None:
        expected = "a schema that does not depend on its unusable parts"
        return SchemaRefusal("contract/schema-cost", "", expected, "a reference into one of them")
    surveyed = _surveyed(schema, less.limits)
    return surveyed if isinstance(surveyed, SchemaRefusal) else _compiled(surveyed, less.settings)


def _again(schema: Any, less: _Less) -> Compiled | SchemaRefusal:
    """Return the same for a schema that was admitted before. Its index is built again: keeping it takes more memory."""
    surveyed = _surveyed(schema, less.limits)
    return surveyed if isinstance(surveyed, SchemaRefusal) else _less(surveyed.outline, less)


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

    __slots__ = ("_draft", "_each", "_size", "_small", "_stepping", "instead", "kinds")

    kinds: dict[str, Backtracking | bool | None]
    """The kind of each: a backtracking pattern; True for a linear one, None for one that is invalid or too large."""
    instead: dict[str, str]
    """The spelling that the engine gets for some of them."""

    def __init__(self, outline: SchemaIndex, each: int, limits: SchemaLimits) -> None:
        self._draft = outline.draft.uri
        self._each = each
        self._stepping = 0
        # In the order of the document: of too many backtracking patterns the first ones are used.
        texts = list(dict.fromkeys(regex.text for regex in regexes(outline)))
        tried = self._tried(texts)
        self._small = {text for text, compiles in tried.items() if compiles}
        large = len(tried) - len(self._small)
        # The large ones share what the small ones leave, so that together they stay within the limit.
        rest = (limits.patterns - min(_SMALL, each) * len(self._small)) // max(1, large)
        self._size = max(min(PATTERN_SIZE, rest), each)
        self.kinds = {text: self._kind(text) if text in tried else None for text in texts}
        self.instead = {}
        names = {regex.text for regex in regexes(outline) if regex.keyword != "pattern"}
        for text in [text for text in tried if self.kinds[text] is None and text not in names]:
            self._spell_otherwise(text)

    def _tried(self, texts: list[str]) -> dict[str, bool]:
        """Return whether each is linear and small; after too many that are not, the rest is not tried."""
        small = options(formats=False, pattern_size=min(_SMALL, self._each))
        tried: dict[str, bool] = {}
        failing = 0
        for text in texts:
            tried[text] = self._compiles(text, small)
            failing += not tried[text]
            if failing >= _MOST_FAILING:
                break
        return tried

    def _spell_otherwise(self, text: str) -> None:
        spelt = strictly(text)
        kind = self._kind(spelt) if spelt != text else None
        if kind is not None:
            self.instead[text], self.kinds[text] = spelt, kind

    def stepping(self) -> dict[str, Backtracking]:
        """Return the patterns that may step back."""
        return {text: kind for text, kind in self.kinds.items() if isinstance(kind, Backtracking)}

    def settings(self, *, formats: bool = False, backtracking: bool = False) -> Options:
        """Return the options to compile a schema with them."""
        return options(formats=formats, backtracking=backtracking, pattern_size=self._size, automaton_size=self._each)

    def _kind(self, text: str) -> Backtracking | bool | None:
        if text in self._small:
            return True
        # With no more room than before, it fails again.
        if self._size > min(_SMALL, self._each) and self._compiles(text, self.settings()):
            return True
        return self._steps_back(text) if may_step_back(text) and len(text) <= _LONGEST else None

    def _steps_back(self, text: str) -> Backtracking | None:
        # A failed try takes as long as a successful one.
        self._stepping += 1
        if self._stepping > _MOST_STEPPING:
            return None
        made = _made(partial(Backtracking, text, min(_LARGE, self._size), self._draft))
        return None if isinstance(made, SchemaRefusal) else made

    def _compiles(self, text: str, settings: Options) -> bool:
        # Up to draft 7 the metaschema makes the engine check patterns more strictly, so the draft matters.
        alone = {"$schema": self._draft, "pattern": text}
        return not isinstance(_made(lambda: jsonschema_rs.validator_for(alone, **settings)), SchemaRefusal)


def _no_pattern(regex: Regex) -> SchemaRefusal:
    return SchemaRefusal(
        "contract/pattern", regex.at, "a regular expression that the engine supports", found_pattern(regex.text)
    )


def _compiled(surveyed: _Survey, settings: Options) -> Compiled | SchemaRefusal:
    outline, measure = surveyed
    return _made(
        lambda: Compiled(outline.document, "#", outline.draft, settings, width=measure.width, effort=measure.effort)
    )


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


def _surveyed(schema: Any, limits: SchemaLimits) -> _Survey | SchemaRefusal:
    """Return the places of *schema* and its cost, or why it must not be compiled."""
    length = _measured(schema, limits)
    if isinstance(length, SchemaRefusal):
        return length
    outline = outlined(schema, limits.subschemas)
    if isinstance(outline, SchemaRefusal):
        return outline
    measure = check_cost(outline, limits, length)
    return measure if isinstance(measure, SchemaRefusal) else _Survey(outline, measure)


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

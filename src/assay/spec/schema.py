"""
The protocol's own schema of each revision, compiled from the facts on first use.

Everything returned is cached and shared, and the same on every run. Only our own table is read.
"""

from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher, get_close_matches
from functools import cache, cached_property
from os.path import dirname, join
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from assay.spec.notation import Schema, WireFacts
from assay.spec.revisions import REVISIONS, position

if TYPE_CHECKING:
    from assay.schema.compiled import Compiled
    from assay.spec.extensions import Extension


class Erratum(NamedTuple):  # not a dataclass: each takes a millisecond to create, at every start-up
    """One place in one definition that is replaced."""

    definition: str
    revisions: tuple[str, ...]
    at: str
    """JSON Pointer to the schema that is replaced, within the definition; "" for all of it."""
    type: str
    """The correct type, in the notation of the facts."""
    reason: str


_FRACTIONS: Final = (
    "schema.ts has `number`, which takes fractions; the generator of schema.json makes every number an integer unless "
    "it is configured otherwise. Answers such as 3.14 are common in the wild."
)

ERRATA: Final = (
    Erratum(
        definition="ElicitResult",
        revisions=("2025-06-18",),
        at="/properties/content/additionalProperties",
        type="str | num | bool",
        reason=_FRACTIONS,
    ),
    Erratum(
        definition="ElicitResult",
        revisions=("2025-11-25", "2026-07-28"),
        at="/properties/content/additionalProperties",
        type="str | num | bool | [str]",
        reason=_FRACTIONS,
    ),
    Erratum(
        definition="JSONValue",
        revisions=("2026-07-28",),
        at="",
        type="JSONObject | JSONArray | str | num | bool | null",
        reason="schema.ts has `string | number | boolean | null` beside objects and arrays; the generator lost two.",
    ),
)


DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_REFERENCE: Final = "#/$defs/"


class ProtocolSchema:
    """
    The definitions of one revision as JSON Schema 2020-12.

    The returned schemas are shared: copy one before you change it.
    """

    def __init__(self, revision: str, *, errata: bool = True, extension: "Extension | None" = None) -> None:
        """With *extension* its definitions are there too, on top of those of *revision*."""
        self.revision = revision
        self.errata = errata
        self.extension = extension
        self._position = position(revision)
        self._facts = facts() if extension is None else facts_with(extension.facts)
        self._definitions: dict[str, Schema] = {}
        self._validators: dict[tuple[str, str, bool], Compiled] = {}

    @cached_property
    def definitions(self) -> tuple[str, ...]:
        """The names of all definitions, sorted."""
        return tuple(self._facts.definitions(self._position))

    @property
    def own(self) -> tuple[str, ...]:
        """The names of the definitions that the extension adds, sorted; all definitions without an extension."""
        if self.extension is None:
            return self.definitions
        return tuple(name for name in self.definitions if not facts().defines(name, self._position))

    def definition(self, name: str) -> Schema:
        """Return the schema of one definition, references as ``#/$defs/Name``; an unknown one is a KeyError."""
        if name not in self._definitions:
            if not self._facts.defines(name, self._position):
                raise KeyError(self._missing(name))
            schema = self._facts.read(name, self._position)
            self._definitions[name] = self._corrected(name, schema) if self.errata else schema
        return self._definitions[name]

    def closure(self, name: str) -> Schema:
        """Return a document with *name* and only the definitions that it needs."""
        return self._document([name])

    def document(self) -> Schema:
        """Return a document with the definitions that the extension adds, and those that they need; else with all."""
        return self._document(self.own)

    def _document(self, names: Iterable[str]) -> Schema:
        needed = {name: self.definition(name) for name in names}
        waiting = list(needed)
        while waiting:
            for reference in _references(needed[waiting.pop()]):
                if reference not in needed:
                    needed[reference] = self.definition(reference)
                    waiting.append(reference)
        return {"$schema": DIALECT, "$defs": dict(sorted(needed.items()))}

    def validator(self, definition: str, part: str = "", *, formats: bool = False) -> "Compiled":
        """
        Return the validator of *definition*, or of the *part* at a JSON Pointer: ``/properties/params``.

        With *formats*, ``format`` is asserted: validators differ in their default, so the caller chooses.
        """
        key = (definition, part, formats)
        if key not in self._validators:
            _part(self.definition(definition), part, f"{definition} in {self.revision}")
            at = _REFERENCE + definition + part
            self._validators[key] = self.compiled(self.closure(definition), at=at, formats=formats)
        return self._validators[key]

    def compiled(self, document: Schema, *, at: str = "#", formats: bool) -> "Compiled":
        """Return the part at *at* of *document*, which is made of these definitions, compiled."""
        from assay.schema.compiled import compile_schema  # noqa: PLC0415 - listing definitions needs no engine

        return compile_schema(document, at=at, formats=formats)

    def members(self, node: Schema) -> dict[str, list[Schema]]:
        """Return the members that *node* defines for an object, in all of its branches, each with its schemas there."""
        found: dict[str, list[Schema]] = {}
        waiting, seen = [node], set[str]()
        while waiting:
            here = waiting.pop()
            reference = here.get("$ref", "").removeprefix(_REFERENCE)
            if reference and reference not in seen:
                seen.add(reference)
                waiting.append(self.definition(reference))
            for keyword in ("allOf", "anyOf", "oneOf"):
                waiting += here.get(keyword, ())
            for name, member in here.get("properties", {}).items():
                found.setdefault(name, []).append(member)
        return found

    def _missing(self, name: str) -> str:
        if self.extension is not None:
            return f"{self.extension.name} has no definition {name!r}{suggestion(name, self.own)}"
        elsewhere = [each for each in REVISIONS if facts().defines(name, position(each))]
        if elsewhere:
            return f"{self.revision} has no definition {name!r}; it is in {', '.join(elsewhere)}"
        return f"{self.revision} has no definition {name!r}{suggestion(name, self.definitions)}"

    def _corrected(self, name: str, schema: Schema) -> Schema:
        for each in ERRATA:
            if each.definition == name and self.revision in each.revisions:
                schema = _replaced(schema, each.at, facts().type(each.type, self._position))
        return schema


def protocol_schema(revision: str, *, errata: bool = True) -> ProtocolSchema:
    """
    Return the schema of *revision*; a ValueError names the known revisions.

    The official files contain mistakes. They are corrected unless *errata* is false; then every verdict is exactly
    that of the files.
    """
    return _made(revision, errata, None)


def extension_schema(extension: "Extension", revision: str, *, errata: bool = True) -> ProtocolSchema:
    """Return the schema of *extension* on top of *revision*."""
    return _made(revision, errata, extension)


@cache
def _made(revision: str, errata: bool, extension: "Extension | None") -> ProtocolSchema:
    return ProtocolSchema(revision, errata=errata, extension=extension)


@cache
def facts() -> WireFacts:
    """Return the table of facts, read once."""
    return WireFacts(_text("facts.txt"))


@cache
def facts_with(file: str) -> WireFacts:
    """Return the facts of the extension in *file* behind those of the protocol."""
    return WireFacts(f"{_text(file)}\n{_text('facts.txt')}")


def _text(file: str) -> str:
    with open(join(dirname(__file__), file), encoding="utf-8") as table:
        return table.read()


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return ``; did you mean X?`` with the *known* names that are close to *name*; "" without one."""
    close = closest(name, known)
    return f"; did you mean {' or '.join(close)}?" if close else ""


_CLEARLY = 0.1
"""How much closer the best name must be than another, so that the other is not suggested."""


NEAR: Final = 0.65
"""
The ratio from which on a name is suggested: two swapped letters of three have 0.67. With 0.6, the default of `difflib`,
`echo` was suggested for `search`.
"""


def closest(name: str, known: Iterable[str], cutoff: float = NEAR) -> list[str]:
    """Return the *known* names that *name* may stand for, closest first: at most three, from the ratio *cutoff* on."""
    lowered = {each.lower(): each for each in known}
    close = get_close_matches(name.lower(), lowered, cutoff=cutoff)
    # The beginning of a longer name is near, too.
    close = close or [each for each in lowered if len(name) >= 3 and each.startswith(name.lower())][:3]
    ratios = [SequenceMatcher(None, each, name.lower()).ratio() for each in close]
    return [lowered[each] for each, ratio in zip(close, ratios, strict=True) if ratio > ratios[0] - _CLEARLY]


def _references(node: Any) -> Iterator[str]:
    """Yield the names of the definitions that a schema refers to, in document order."""
    if isinstance(node, dict):
        reference = node.get("$ref")
        if isinstance(reference, str):
            yield reference.removeprefix(_REFERENCE)
        for value in node.values():
            yield from _references(value)
    elif isinstance(node, list):
        for value in node:
            yield from _references(value)


def _part(schema: Schema, pointer: str, whole: str) -> Any:
    """Return the value at *pointer* in *schema*; our pointers need no escapes."""
    node: Any = schema
    for step in pointer.split("/")[1:]:
        if not isinstance(node, dict) or step not in node:
            raise KeyError(f"{whole} has no part {pointer}")
        node = node[step]
    return node


def _replaced(schema: Schema, pointer: str, value: Schema) -> Schema:
    """Return a copy of *schema* with *value* at *pointer*."""
    if not pointer:
        return value
    step, _, rest = pointer[1:].partition("/")
    return schema | {step: _replaced(schema[step], rest and f"/{rest}", value)}

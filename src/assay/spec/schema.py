"""
The protocol's own schema of each revision, compiled from the facts on first use.

Everything returned is cached and shared, and the same on every run. Only our own table is read; a draft or an extension
that an operator added comes as a parsed document.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from os.path import dirname, join
from typing import TYPE_CHECKING, Any, Final, Protocol

from assay.spec.notation import Schema, WireFacts
from assay.spec.revisions import DRAFTS, REVISIONS, position
from assay.spec.written_facts import WrittenFacts

if TYPE_CHECKING:
    from assay.engine.compiled import Compiled
    from assay.engine.fault import SchemaLimits
    from assay.spec.draft_revisions import DraftRevision
    from assay.spec.extensions.official import Extension

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_REFERENCE: Final = "#/$defs/"
_BY_NAME: Final = frozenset({"properties", "patternProperties", "dependentSchemas"})
"""Keywords with schemas by name."""
_VALUES: Final = frozenset({"const", "enum"})
"""Keywords with values, which are no schemas."""


class DefinitionSource(Protocol):
    """Definitions as JSON Schema, by name and the number of a revision; references are ``#/$defs/Name``."""

    def definitions(self, revision: int, /) -> list[str]:
        """Return the names of the definitions, sorted."""

    def defines(self, name: str, revision: int, /) -> bool:
        """Whether *name* is defined."""

    def read(self, name: str, revision: int, /) -> Schema:
        """Return the schema of *name*, which is defined. It is shared: do not change it."""


class LayeredFacts:
    """The definitions *names* of one source on top of those of another."""

    def __init__(self, upper: DefinitionSource, names: Iterable[str], lower: DefinitionSource) -> None:
        self._upper = upper
        self._names = frozenset(names)
        self._lower = lower

    def definitions(self, revision: int) -> list[str]:
        """Return the names of the definitions of both, sorted."""
        return sorted(self._names.union(self._lower.definitions(revision)))

    def defines(self, name: str, revision: int) -> bool:
        """Whether either source has *name*."""
        return name in self._names or self._lower.defines(name, revision)

    def read(self, name: str, revision: int) -> Schema:
        """Return the schema of *name*: that of the upper source, if it has one."""
        return (self._upper if name in self._names else self._lower).read(name, revision)


class ProtocolSchema:
    """
    The definitions of one revision as JSON Schema 2020-12.

    The returned schemas are shared: copy one before you change it.
    """

    def __init__(
        self,
        revision: str,
        *,
        errata: bool = True,
        extension: "Extension | None" = None,
        source: DefinitionSource | None = None,
        base: str | None = None,
        own: tuple[str, ...] | None = None,
    ) -> None:
        """
        With *extension* its definitions are there too, on top of those of *revision*.

        *source* has the definitions of a document in place of our own facts: they are compiled within the limits for
        untrusted schemas. *own* are those that the extension adds to it. *base* is the released revision that a draft
        resembles.
        """
        self.revision = revision
        self.errata = errata
        self.extension = extension
        self._base = base or revision
        self._position = position(self._base)
        self._untrusted = source is not None
        self._own = own
        self._facts: DefinitionSource = source or (facts() if extension is None else facts_with(extension.facts))
        self._definitions: dict[str, Schema] = {}
        self._validators: dict[tuple[str, str, bool], Compiled] = {}
        self._names: tuple[str, ...] = ()

    @property
    def definitions(self) -> tuple[str, ...]:
        """The names of all definitions, sorted."""
        if not self._names:
            self._names = tuple(self._facts.definitions(self._position))
        return self._names

    @property
    def own(self) -> tuple[str, ...]:
        """The names of the definitions that the extension adds, sorted; all definitions without an extension."""
        if self.extension is None:
            return self.definitions
        if self._own is not None:
            return self._own
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

    def compiled(
        self, document: Schema, *, at: str = "#", formats: bool, limits: "SchemaLimits | None" = None
    ) -> "Compiled":
        """
        Return the part at *at* of *document*, which is made of these definitions, compiled.

        ValueError for a document of an operator that exceeds *limits*.
        """
        from assay.engine.compiled import Compiled, compile_schema  # noqa: PLC0415 - listing definitions needs no engine

        if not self._untrusted:
            return compile_schema(document, at=at, formats=formats)
        from assay.engine.admission import compile_untrusted  # noqa: PLC0415 - as above

        part = document if at == "#" else {"$ref": at} | document
        usable = compile_untrusted(part, formats=formats, limits=limits or _in_use())
        if not isinstance(usable, Compiled):
            raise ValueError(f"{usable.at.removeprefix('/$defs/')}: expected {usable.expected}, found {usable.found}")
        return usable

    def check(self) -> None:
        """Raise ValueError if one of the definitions, or of those that the extension adds, cannot be compiled."""
        document = self.document()
        # One document with a place for each: so its limits are those of all definitions together.
        places = {name: {"$ref": _REFERENCE + name} for name in document["$defs"]}
        self.compiled({"properties": places} | document, formats=True, limits=_at_first())

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
        from assay.spec.errata import errata  # noqa: PLC0415 - not needed without errata

        for erratum in errata(self._base, name):
            if not self._untrusted or self._repeats(name, schema, erratum.at):
                schema = _replaced(schema, erratum.at, facts().type(erratum.type, self._position))
        return schema

    def _repeats(self, name: str, schema: Schema, at: str) -> bool:
        """Whether a document has the same as the official file at a place with a known mistake."""
        official = facts().read(name, self._position)
        try:
            mine, theirs = _part(schema, at, name), _part(official, at, name)
            return bool(self._spelt(self._facts, mine) == self._spelt(facts(), theirs))
        except KeyError:
            return False

    def _spelt(self, source: DefinitionSource, node: Schema) -> Any:
        """Return *node* in a form that can be compared; the files write out some definitions where they are used."""
        members = [self._written_out(source, each) for each in node.get("anyOf", ())]
        return _unordered({**node, "anyOf": members} if members else node)

    def _written_out(self, source: DefinitionSource, node: Schema) -> Schema:
        return source.read(node["$ref"].removeprefix(_REFERENCE), self._position) if "$ref" in node else node


def protocol_schema(revision: str, *, errata: bool = True) -> ProtocolSchema:
    """
    Return the schema of *revision*; a ValueError names the known revisions.

    The official files contain mistakes. They are corrected unless *errata* is false; then every verdict is exactly
    that of the files.
    """
    draft = DRAFTS.get(revision)
    return _released(revision, errata) if draft is None else draft.schema(errata=errata)


@cache
def _released(revision: str, errata: bool) -> ProtocolSchema:
    return ProtocolSchema(revision, errata=errata)


def extension_schema(extension: "Extension", revision: str, *, errata: bool = True) -> ProtocolSchema:
    """Return the schema of *extension* on top of *revision*."""
    return _extended(extension, revision, DRAFTS.get(revision), errata)


@cache
def _extended(extension: "Extension", revision: str, draft: "DraftRevision | None", errata: bool) -> ProtocolSchema:
    """Return the schema of *extension*; *draft* is the draft that *revision* names, if it is one."""
    if extension.document is None and draft is None:
        return ProtocolSchema(revision, errata=errata, extension=extension)
    lower: DefinitionSource = facts() if draft is None else draft.facts
    base = revision if draft is None else draft.base
    if extension.document is not None:
        own = tuple(extension.document.definitions(0))
        upper: DefinitionSource = extension.document
    else:
        own = ProtocolSchema(base, extension=extension).own
        upper = facts_with(extension.facts)
    source = _completed(LayeredFacts(upper, own, lower), own, position(base))
    return ProtocolSchema(revision, errata=errata, extension=extension, source=source, base=base, own=own)


def _completed(source: LayeredFacts, own: Iterable[str], revision: int) -> LayeredFacts:
    """
    Return *source* with the definitions that *own* ones refer to and that it lacks, as they are in the latest revision.

    An extension is written for one revision, and used with others, which may not have all that it refers to.
    """
    latest = position(REVISIONS[-1])
    lacking: dict[str, Schema] = {}
    waiting, seen = list(own), set(own)
    while waiting:
        name = waiting.pop()
        schema = source.read(name, revision) if source.defines(name, revision) else None
        if schema is None:
            lacking[name] = schema = facts().read(name, latest)
        new = set(_references(schema)) - seen
        seen |= new
        waiting += new
    return LayeredFacts(WrittenFacts(lacking), lacking, source) if lacking else source


@cache
def facts() -> WireFacts:
    """Return the table of facts, read once."""
    return WireFacts(_text("facts.txt"), name="facts.txt")


@cache
def facts_with(file: str) -> WireFacts:
    """Return the facts of the extension in *file* behind those of the protocol."""
    return WireFacts(f"{_text(join('extensions', file))}\n{_text('facts.txt')}", name=file)


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
    from difflib import SequenceMatcher, get_close_matches  # noqa: PLC0415 - only mistakes need it

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
        for keyword, value in node.items():
            if keyword in _BY_NAME and isinstance(value, dict):
                # The names may be those of keywords.
                for each in value.values():
                    yield from _references(each)
            elif keyword not in _VALUES and isinstance(value, dict | list):
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


def _unordered(node: Any) -> Any:
    """Return *node* in a form that does not depend on the order of members and items."""
    if isinstance(node, dict):
        return frozenset((key, _unordered(value)) for key, value in node.items())
    return frozenset(map(_unordered, node)) if isinstance(node, list) else node


def _replaced(schema: Schema, pointer: str, value: Schema) -> Schema:
    """Return a copy of *schema* with *value* at *pointer*."""
    if not pointer:
        return value
    step, _, rest = pointer[1:].partition("/")
    return schema | {step: _replaced(schema[step], rest and f"/{rest}", value)}


@cache
def _at_first() -> "SchemaLimits":
    """Return the limits for all definitions of a document together, when it is read."""
    from assay.engine.fault import SchemaLimits  # noqa: PLC0415 - only such documents need it

    # A message is judged by a definition without counting its values first, so one value must be cheap: the official
    # definitions that judge one need up to 66 steps, and the largest union has 184.
    return SchemaLimits(cost=256)


@cache
def _in_use() -> "SchemaLimits":
    """Return the limits for a part of such a document with what every message has: never less than at first."""
    first = _at_first()
    return replace(first, size=2 * first.size, subschemas=2 * first.subschemas, cost=2 * first.cost)

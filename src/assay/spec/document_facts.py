"""
The definitions in a JSON Schema document that is read at run time: of a draft revision, or of an extension.

A second source of definitions beside `assay.spec.notation`, with the same methods. It takes the parsed document; the
caller reads the file. Everything that one document can cost is limited here, or by the engine when it compiles.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from assay.spec.notation import Schema
from assay.spec.written_facts import WrittenFacts

DIALECTS: Final = {
    "https://json-schema.org/draft/2020-12/schema": "2020-12",
    "http://json-schema.org/draft-07/schema": "draft-07",
    "https://json-schema.org/draft-07/schema": "draft-07",
}
"""The dialects that a document may be written in, by the value of ``$schema`` without an empty fragment."""

MOST_DEFINITIONS: Final = 1_000
"""Definitions of one document. The official schema of a revision has 155."""

DEEPEST: Final = 48
"""Levels of nesting within a definition. The official ones have 12, and an admitted schema has at most 64 in all."""

_NAME: Final = re.compile(r"[A-Za-z0-9_.$-]{1,100}")
_REFERENCE: Final = re.compile(rf"#/(?:\$defs|definitions)/({_NAME.pattern})")

_PLAIN: Final = frozenset(
    {
        "const", "dependentRequired", "enum", "exclusiveMaximum", "exclusiveMinimum", "format", "maxContains",
        "maxItems", "maxLength", "maxProperties", "maximum", "minContains", "minItems", "minLength", "minProperties",
        "minimum", "multipleOf", "pattern", "required", "type", "uniqueItems",
    }
)  # fmt: skip
"""Keywords without a schema in them. All that are not listed here accept every value, and are left out."""

_BASES: Final = frozenset(
    {"$id", "$anchor", "$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor", "$vocabulary"}
)
"""Keywords that change the meaning of references or of other keywords."""

_SINGLE: Final = frozenset(
    {
        "additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then",
        "unevaluatedItems", "unevaluatedProperties",
    }
)  # fmt: skip
_LISTED: Final = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_NAMED: Final = frozenset({"properties", "patternProperties", "dependentSchemas"})

_EMPTY: Final = frozenset({"additionalProperties", "properties"})
"""Keywords that accept every value if they are empty."""

_TYPES: Final[Mapping[str, type]] = {"string": str, "boolean": bool, "integer": int}


class DocumentError(ValueError):
    """The document cannot be used; the message is one line, with the place and what to do."""


class DocumentFacts(WrittenFacts):
    """
    The definitions in *document*, a parsed JSON value, as JSON Schema 2020-12; references are ``#/$defs/Name``.

    Annotations, such as descriptions, are left out. The number of a revision has no meaning here: a document has one.
    """

    def __init__(self, document: Any) -> None:
        """Raises `DocumentError`."""
        if not isinstance(document, dict):
            raise DocumentError("expected a JSON object with definitions")
        self.dialect = _dialect(document)
        super().__init__({})
        self._lacking: dict[str, str] = {}
        for name, schema in _table(document).items():
            if not _NAME.fullmatch(name):
                raise DocumentError(f"the definition {name[:60]!r} needs a name of letters, digits, _, ., $ and -")
            _check_depth(name, schema)
            reader = _DefinitionReader(name, self.dialect)
            converted = reader.schema(schema, "")
            self._definitions[name] = converted if isinstance(converted, dict) else {"not": {}}
            self._lacking |= dict.fromkeys(reader.references, name)
        for name in self._definitions:
            self._lacking.pop(name, None)

    @property
    def lacking(self) -> Mapping[str, str]:
        """The names that are referred to and not defined, each with a definition that refers to it."""
        return self._lacking

    def admit(self, name: str, members: Iterable[str]) -> None:
        """
        Let an object of the definition *name* have *members*, which the protocol allows, if it excludes others.

        The definitions that it refers to for the same object let it have them, too.
        """
        more: Schema = {member: {} for member in members}
        waiting, seen = [name], {name}
        while waiting:
            here = waiting.pop()
            named: set[str] = set()
            self._definitions[here] = _admitting(self._definitions[here], more, named)
            waiting += [each for each in named - seen if each in self._definitions]
            seen |= named


def _dialect(document: dict[str, Any]) -> str:
    named = document.get("$schema", next(iter(DIALECTS)))
    found = DIALECTS.get(named.removesuffix("#")) if isinstance(named, str) else None
    if found is None:
        raise DocumentError(f"$schema: expected JSON Schema 2020-12 or draft-07, found {str(named)[:80]!r}")
    return found


def _table(document: dict[str, Any]) -> dict[str, Any]:
    tables = [document[key] for key in ("$defs", "definitions") if key in document]
    if len(tables) != 1 or not isinstance(tables[0], dict) or not tables[0]:
        raise DocumentError(
            "expected definitions, as one object under $defs or definitions; use the schema.json of a revision, or the "
            "JSON Schema file of an extension"
        )
    if len(tables[0]) > MOST_DEFINITIONS:
        raise DocumentError(f"it has {len(tables[0]):,} definitions; the most is {MOST_DEFINITIONS:,}")
    return tables[0]


def _check_depth(name: str, schema: Any) -> None:
    """Raise `DocumentError` for a definition that is nested too deep: what reads it later calls itself."""
    level, depth = [schema], 0
    while level:
        depth += 1
        if depth > DEEPEST:
            raise DocumentError(f"{name}: nested more than {DEEPEST} levels deep")
        level = [
            inner
            for one in level
            for inner in (one.values() if isinstance(one, dict) else one if isinstance(one, list) else ())
            if isinstance(inner, dict | list)
        ]


class _DefinitionReader:
    """Converts one definition."""

    def __init__(self, name: str, dialect: str) -> None:
        self._name = name
        self._dialect = dialect
        self._older = dialect == "draft-07"
        self.references: set[str] = set()

    def schema(self, schema: Any, at: str) -> Schema | bool:
        """Return the schema at the place *at* of the definition; of those that are boolean, only false stays."""
        if isinstance(schema, bool):
            return {} if schema else False
        if not isinstance(schema, dict):
            raise self._error(at, "expected a schema, which is an object, true or false")
        if "$ref" in schema:
            reference = self._reference(schema["$ref"], at)
            # In draft-07 a reference stands alone: everything beside it is ignored.
            beside = {} if self._older else {key: value for key, value in schema.items() if key != "$ref"}
            return {**reference, **self._members(beside, at)}
        return _shortened(self._members(schema, at))

    def _members(self, schema: dict[str, Any], at: str) -> Schema:
        made: Schema = {}
        for keyword, value in schema.items():
            if keyword in _BASES or (keyword == "$schema" and _dialect(schema) != self._dialect):
                raise self._error(f"{at}/{keyword}", f"a definition cannot have {keyword}; remove it")
            # In draft-07 `additionalItems` counts only beside an array of schemas.
            unused = self._older and keyword == "additionalItems" and not isinstance(schema.get("items"), list)
            if not unused:
                made |= self._member(keyword, value, f"{at}/{keyword}")
        return made

    def _member(self, keyword: str, value: Any, at: str) -> Schema:
        if self._older and keyword in _OLDER:
            return _OLDER[keyword](self, value, at)
        if keyword in _SINGLE:
            return {keyword: self.schema(value, at)}
        if keyword in _LISTED:
            return {keyword: self._each(value, at)}
        if keyword in _NAMED:
            return {keyword: self._by_name(value, at)}
        return {keyword: value} if keyword in _PLAIN else {}

    def _each(self, schemas: Any, at: str) -> list[Schema]:
        if not isinstance(schemas, list):
            raise self._error(at, "expected an array of schemas")
        return [_as_object(self.schema(each, f"{at}/{number}")) for number, each in enumerate(schemas)]

    def _by_name(self, schemas: Any, at: str) -> dict[str, Schema]:
        if not isinstance(schemas, dict):
            raise self._error(at, "expected an object of schemas")
        return {name: _as_object(self.schema(each, f"{at}/{name[:60]}")) for name, each in schemas.items()}

    def _reference(self, reference: Any, at: str) -> Schema:
        found = _REFERENCE.fullmatch(reference) if isinstance(reference, str) else None
        if found is None:
            shown = str(reference)[:80]
            raise self._error(f"{at}/$ref", f"expected a definition of this file: #/$defs/Name, found {shown!r}")
        self.references.add(found[1])
        return {"$ref": f"#/$defs/{found[1]}"}

    def items(self, value: Any, at: str) -> Schema:
        """Return the ``items`` of draft-07: an array has a schema for each of the first items."""
        return {"prefixItems": self._each(value, at)} if isinstance(value, list) else {"items": self.schema(value, at)}

    def other_items(self, value: Any, at: str) -> Schema:
        """Return the ``additionalItems`` of draft-07."""
        return {"items": self.schema(value, at)}

    def dependencies(self, value: Any, at: str) -> Schema:
        """Return the ``dependencies`` of draft-07, which later became two keywords."""
        if not isinstance(value, dict):
            raise self._error(at, "expected an object")
        names = {key: each for key, each in value.items() if isinstance(each, list)}
        schemas = {key: each for key, each in value.items() if key not in names}
        return {
            **({"dependentRequired": names} if names else {}),
            **({"dependentSchemas": self._by_name(schemas, at)} if schemas else {}),
        }

    def _error(self, at: str, problem: str) -> DocumentError:
        return DocumentError(f"{self._name}{at[:200]}: {problem}")


_OLDER: Final[Mapping[str, Callable[[_DefinitionReader, Any, str], Schema]]] = {
    "items": _DefinitionReader.items,
    "additionalItems": _DefinitionReader.other_items,
    "dependencies": _DefinitionReader.dependencies,
}


def _admitting(schema: Schema, more: Schema, named: set[str]) -> Schema:
    """Return *schema* with the members *more*; *named* gets the definitions that judge the same object."""
    made = dict(schema)
    if "$ref" in schema:
        named.add(schema["$ref"].rpartition("/")[2])
    for keyword in ("allOf", "anyOf", "oneOf"):
        if keyword in schema:
            made[keyword] = [_admitting(each, more, named) for each in schema[keyword]]
    if schema.get("additionalProperties") is False or schema.get("unevaluatedProperties") is False:
        made["properties"] = more | schema.get("properties", {})
    return made


def _as_object(schema: Schema | bool) -> Schema:
    return schema if isinstance(schema, dict) else {"not": {}}


def _shortened(schema: Schema) -> Schema:
    """Return *schema* without keywords that another one implies, as our own facts are written."""
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    wanted = _TYPES.get(schema["type"]) if isinstance(schema.get("type"), str) else None
    if isinstance(values, list) and values and wanted and all(type(value) is wanted for value in values):
        schema = {key: value for key, value in schema.items() if key != "type"}
    if "unevaluatedProperties" in schema:
        return schema
    return {key: value for key, value in schema.items() if value != {} or key not in _EMPTY}


# ── the methods of a document ────────────────────────────────────────────────────────────────────────────────────────


def method_of(schema: Schema) -> str | None:
    """Return the method of a message that *schema* defines; None if it defines another value."""
    fields = schema.get("properties")
    method = fields.get("method") if isinstance(fields, dict) else None
    name = method.get("const") if isinstance(method, dict) else None
    return name if isinstance(name, str) else None


def alternatives(facts: DocumentFacts, name: str) -> Iterator[str]:
    """Yield the names of the definitions that the union *name* consists of; those of unions in it, too."""
    waiting, seen = [name], {name}
    while waiting:
        name = waiting.pop(0)
        schema = facts.read(name, 0)
        inside = [
            each["$ref"].rpartition("/")[2]
            for each in (schema, *schema.get("anyOf", ()), *schema.get("oneOf", ()))
            if isinstance(each, dict) and "$ref" in each
        ]
        if not inside:
            yield name
        waiting += [each for each in inside if each not in seen and facts.defines(each, 0)]
        seen.update(inside)

"""
An index of a schema document: its subschemas, their names, and the targets of their references.

Nothing is fetched, compiled or judged. Every walk is a loop over a list, so no document can exhaust the stack.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from assay.schema.drafts import Draft, Schema, draft_named, draft_of, subschemas
from assay.schema.fault import SchemaRefusal
from assay.schema.pointers import NOWHERE, escaped, from_fragment, looked_up, step_into, steps

# The engine resolves relative identifiers of a document without one of its own against `json-schema:///`.
UNNAMED = "json-schema:///assay-root"

_LONGEST_POINTER = 4096
"""
Characters. Every place has its pointer, so one long name above thousands of places would fill the memory: 180,000
characters above 4,500 places took 1.6 GB.
"""


@dataclass(frozen=True, slots=True, eq=False)
class SchemaPlace:
    """A subschema and its place in the document."""

    at: str
    """JSON Pointer into the document."""
    schema: Schema
    base: str
    """The URI of the resource that it belongs to."""


@dataclass(frozen=True, slots=True)
class SchemaIndex:
    """Every place of one document, in document order; places that are schemas only by a reference come last."""

    document: Schema
    draft: Draft
    base: str
    """The URI of the document: its own identifier, or a made-up one."""
    places: dict[str, SchemaPlace] = field(default_factory=dict)
    resources: dict[str, str] = field(default_factory=dict)
    """URI → pointer."""
    anchors: dict[tuple[str, str], str] = field(default_factory=dict)
    """URI of the resource and name → pointer."""
    folded: set[str] = field(default_factory=set)
    """The URIs of the resources in one case."""

    def below(self, place: SchemaPlace, keyword: str, key: str | int | None = None) -> SchemaPlace | None:
        """Return the place under *keyword* of *place*, if there is a schema."""
        return self.places.get(_below(place.at, keyword, key))

    def inside(self, place: SchemaPlace) -> Iterator[tuple[str, str | int | None, SchemaPlace]]:
        """Yield the subschemas directly under *place*: keyword, name or number, place."""
        if isinstance(place.schema, dict):
            for keyword, key, _ in subschemas(place.schema, self.draft):
                found = self.below(place, keyword, key)
                if found is not None:
                    yield keyword, key, found

    def is_lone_reference(self, place: SchemaPlace) -> bool:
        """Whether *place* is a reference beside which the draft ignores all other keywords."""
        return self.draft.lone_reference and isinstance(place.schema, dict) and "$ref" in place.schema

    def references(self, place: SchemaPlace) -> Iterator[tuple[str, str]]:
        """Yield the references of *place*: keyword and value."""
        if isinstance(place.schema, dict):
            for keyword in ("$ref", "$dynamicRef", "$recursiveRef"):
                if keyword in self.draft.references and isinstance(place.schema.get(keyword), str):
                    yield keyword, place.schema[keyword]

    def target(self, place: SchemaPlace, reference: str) -> str | None:
        """Return the pointer that *reference*, at *place*, leads to; None if to another document or to no name."""
        uri, _, fragment = reference.partition("#")
        base = joined(place.base, uri) if uri else place.base
        root = self.resources.get(base) if base is not None else None
        if base is None or root is None:
            return None
        name = from_fragment(fragment)
        if not name:
            return root if name == "" else None
        return root + name if name.startswith("/") else self.anchors.get((base, name))

    def is_remote(self, place: SchemaPlace, reference: str) -> bool:
        """Whether *reference* names a document other than this one."""
        uri = reference.partition("#")[0]
        return bool(uri) and joined(place.base, uri) not in self.resources

    def referred(self, place: SchemaPlace, reference: str) -> SchemaPlace | None:
        """Return the place that *reference* leads to."""
        pointer = self.target(place, reference)
        return None if pointer is None else self.places.get(pointer)


def indexed(document: Any, most: int | None = None, entry: str = "") -> SchemaIndex | SchemaRefusal:
    """
    Return the index of *document*, or the first reason why it has none: not a schema, a dangling reference, an unknown
    dialect, more than *most* places, or a name that is used twice.

    *entry* is a pointer that counts as referred to. References to other documents have no target.
    """
    draft = draft_of(document)
    if draft is None:
        return _unknown_dialect("", document["$schema"])
    index = SchemaIndex(document, draft, _own_base(document, draft))
    places: list[SchemaPlace] = []
    for pointer in ("", entry):
        added = _add(index, pointer, looked_up(document, pointer), index.base, most)
        if isinstance(added, SchemaRefusal):
            return added
        places += added
    return _follow(index, places, most) or index


def joined(base: str, reference: str) -> str | None:
    """
    Return *reference* resolved against *base* (RFC 3986, section 5.2), without its fragment.

    None if two implementations may differ: dot segments, percent-encoding, queries, a base without a path.
    """
    reference = reference.partition("#")[0]
    if not reference:
        return base
    if "%" in reference or "?" in reference or not {".", ".."}.isdisjoint(reference.split("/")):
        return None
    head = reference.partition("/")[0]
    if ":" in head:
        return reference
    scheme, colon, rest = base.partition("://")
    if not colon:
        return None
    if reference.startswith("//"):
        return f"{scheme}:{reference}"
    authority, _, path = rest.partition("/")
    folder = "" if reference.startswith("/") else "/" + path.rpartition("/")[0]
    return f"{scheme}://{authority}{folder.rstrip('/')}/{reference.lstrip('/')}"


def _add(index: SchemaIndex, at: str, schema: Any, base: str, most: int | None) -> list[SchemaPlace] | SchemaRefusal:
    """Add the schema at *at*, and all schemas inside it, to *index*, and return the added places."""
    added: list[SchemaPlace] = []
    waiting: list[tuple[str, Any, str]] = [(at, schema, base)]
    while waiting:
        at, schema, base = waiting.pop()
        if at in index.places:
            continue
        if not isinstance(schema, dict | bool):
            return SchemaRefusal("contract/schema", at, "a schema (an object or a boolean)", _kind(schema))
        if most is not None and len(index.places) >= most:
            return SchemaRefusal("contract/schema-size", at, f"at most {most:,} subschemas", "more")
        if most is not None and len(at) > _LONGEST_POINTER:
            return SchemaRefusal(
                "contract/schema-size", "", f"pointers of at most {_LONGEST_POINTER:,} characters", "more"
            )
        place = SchemaPlace(at, schema, base)
        if isinstance(schema, dict):
            named = _named(index, at, schema, base)
            if isinstance(named, SchemaRefusal):
                return named
            place = SchemaPlace(at, schema, named)
            inside = [(_below(at, keyword, key), one, named) for keyword, key, one in subschemas(schema, index.draft)]
            waiting.extend(reversed(inside))
        index.places[at] = place
        added.append(place)
    return added


def _named(index: SchemaIndex, at: str, schema: dict[str, Any], base: str) -> str | SchemaRefusal:
    """Add the names of *schema*, and return the URI of its resource or why a name is refused."""
    if "$schema" in schema and draft_named(schema["$schema"]) is not index.draft:
        # The engine judges such a place by one draft or the other, depending on the path to it (measured, 0.60.3).
        return _unknown_dialect(at, schema["$schema"])
    identifier = _identifier(index.draft, schema)
    own = joined(base, identifier) if at else index.base
    if own is None or (not at and joined(UNNAMED, identifier) is None):
        return SchemaRefusal("contract/schema", at, "a plain URI as the identifier", identifier[:60])
    taken = SchemaRefusal("contract/schema", at, "a unique name", "the name of another subschema")
    if not at or identifier.partition("#")[0]:
        # The engine ignores the case of schemes and hosts: names that differ only by case may be the same to it.
        if own.casefold() in index.folded:
            return taken
        index.folded.add(own.casefold())
        index.resources[own] = at
    for name in _anchors(index.draft, schema):
        if index.anchors.setdefault((own, name), at) != at:
            return taken
    return own


def _follow(index: SchemaIndex, places: list[SchemaPlace], most: int | None) -> SchemaRefusal | None:
    """Check the target of every reference in *places*, and add the places that are schemas only by a reference."""
    for place in places:  # grows during the loop
        for keyword, reference in index.references(place):
            pointer = index.target(place, reference)
            if pointer in index.places or index.is_remote(place, reference):
                continue
            refusal = _refuse_reference(index, reference, pointer, f"{place.at}/{keyword}")
            if refusal is not None or pointer is None:
                return refusal
            added = _add(index, pointer, looked_up(index.document, pointer), _base_above(index, pointer), most)
            if isinstance(added, SchemaRefusal):
                return added
            places += added
    return None


RESOLVED: Final = "a reference that resolves"
"""What is expected in place of a dangling reference."""


def _refuse_reference(index: SchemaIndex, reference: str, pointer: str | None, at: str) -> SchemaRefusal | None:
    """Return why *reference* is not followed to *pointer*, which is not a place yet."""
    shown = reference[:60]
    if pointer is None or looked_up(index.document, pointer) is NOWHERE:
        return SchemaRefusal("contract/schema", at, RESOLVED, shown)
    if _passes_a_name(index, pointer):
        # The engine uses such a name as a new base although no schema is expected there; this index would not.
        return SchemaRefusal("contract/schema", at, "a reference that does not pass an $id", shown)
    return None


def _passes_a_name(index: SchemaIndex, pointer: str) -> bool:
    """Whether a value above *pointer*, outside all places, has an identifier or a dialect."""
    value: Any = index.document
    at = ""
    for token in steps(pointer):
        value = step_into(value, token)
        at += "/" + escaped(token)
        names = (index.draft.identifier, "$schema") if at not in index.places else ()
        if isinstance(value, dict) and any(isinstance(value.get(keyword), str) for keyword in names):
            return True
    return False


def _base_above(index: SchemaIndex, pointer: str) -> str:
    while pointer not in index.places and pointer:
        pointer = pointer.rpartition("/")[0]
    return index.places[pointer].base


def _own_base(document: Any, draft: Draft) -> str:
    name = document.get(draft.identifier) if isinstance(document, dict) else None
    if not isinstance(name, str) or (draft.lone_reference and "$ref" in document):
        return UNNAMED
    return joined(UNNAMED, name) or UNNAMED


def _identifier(draft: Draft, schema: dict[str, Any]) -> str:
    """Return the identifier of *schema*, or "". Beside a lone reference it is ignored."""
    name = schema.get(draft.identifier)
    return name if isinstance(name, str) and not (draft.lone_reference and "$ref" in schema) else ""


def _anchors(draft: Draft, schema: dict[str, Any]) -> set[str]:
    names = {schema[keyword] for keyword in draft.anchors if isinstance(schema.get(keyword), str)}
    if draft.lone_reference:
        fragment = _identifier(draft, schema).partition("#")[2]
        names |= {fragment} if fragment else set()
    return names


def _below(at: str, keyword: str, key: str | int | None = None) -> str:
    if key is None:
        return f"{at}/{keyword}"
    return f"{at}/{keyword}/{escaped(key) if isinstance(key, str) else key}"


def _unknown_dialect(at: str, found: Any) -> SchemaRefusal:
    shown = f"{found[:60]!r}" if isinstance(found, str) else _kind(found)
    expected = "a known draft (4, 6, 7, 2019-09 or 2020-12), the same in the whole schema"
    return SchemaRefusal("contract/unknown-dialect", f"{at}/$schema", expected, shown)


_KINDS: Final = {
    type(None): "null",
    bool: "a boolean",
    str: "a string",
    list: "an array",
    dict: "an object",
    int: "a number",
    float: "a number",
}


def _kind(value: Any) -> str:
    return _KINDS.get(type(value), "something that is not JSON")

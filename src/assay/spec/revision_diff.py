"""
Lists what changed from one revision to another, definition by definition and field by field, in words.

Compares what the definitions accept, not how they are written: a shape that only got a name is not a change.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from json import dumps
from typing import Final, Literal

from assay.spec.notation import Schema
from assay.spec.schema import ProtocolSchema, protocol_schema

_FORMATS: Final = {"uri": "URI", "uri-template": "URI template", "byte": "Base64"}


def words(schema: Schema | bool) -> str:
    """Describe *schema* in a few words: ``string or integer``, ``array of Tool``, ``object {name, title?}``."""
    if not isinstance(schema, dict):
        # The documents of operators have it in `additionalProperties`; our own facts do not.
        return "nothing"
    alternatives = members(schema)
    if len(alternatives) > 1:
        return " or ".join(words(each) for each in alternatives)
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "const" in schema:
        return dumps(schema["const"], ensure_ascii=False)
    if "items" in schema:
        return f"array of {_grouped(schema['items'])}" + _limit(schema)
    if "additionalProperties" in schema:
        return f"object of {_grouped(schema['additionalProperties'])}"
    if "properties" in schema:
        required = schema.get("required", ())
        return f"object {{{', '.join(name if name in required else f'{name}?' for name in schema['properties'])}}}"
    kind = str(schema.get("type", "any value"))
    return _FORMATS.get(schema.get("format", ""), kind) + _range(schema)


def members(schema: Schema) -> list[Schema]:
    """Return the alternatives of *schema*; the schema itself if it has none."""
    if "anyOf" in schema:
        return [member for each in schema["anyOf"] for member in members(each)]
    if "enum" in schema:
        return [{"const": value} for value in schema["enum"]]
    if isinstance(schema.get("type"), list):
        return [{"type": name} for name in schema["type"]]
    return [schema]


def _grouped(schema: Schema | bool) -> str:
    several = isinstance(schema, dict) and len(members(schema)) > 1
    return f"({words(schema)})" if several else words(schema)


def _limit(schema: Schema) -> str:
    return f", at most {schema['maxItems']}" if "maxItems" in schema else ""


def _range(schema: Schema) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and high is not None:
        return f" from {low} to {high}"
    return "" if low is None else f", at least {low}"


Kind = Literal["added", "removed", "changed"]


@dataclass(frozen=True, slots=True)
class RevisionChange:
    """One difference between two revisions."""

    definition: str
    field: str
    """The field, ``params.name``; ``[]`` for items of an array, ``{}`` for values of an object; "" for the whole."""
    kind: Kind
    words: str
    breaking: bool | None
    """
    Whether a receiver of the old revision refuses a value that the new one allows here.

    None if the place alone does not show it.
    """


def changes(old: str, new: str, *, errata: bool = True) -> list[RevisionChange]:
    """Return the changes from revision *old* to *new*, by definition and field; ValueError for an unknown one."""
    return changes_between(protocol_schema(old, errata=errata), protocol_schema(new, errata=errata))


def changes_between(old: ProtocolSchema, new: ProtocolSchema) -> list[RevisionChange]:
    """Return the changes from *old* to *new*; of extensions, those of the definitions that they add."""
    comparison = _RevisionComparison(old, new)
    return [change for name in sorted({*old.own, *new.own}) for change in comparison.definition(name)]


class _RevisionComparison:
    """Two revisions, and the definition that is being compared."""

    def __init__(self, old: ProtocolSchema, new: ProtocolSchema) -> None:
        self.old = old
        self.new = new
        self.name = ""

    def definition(self, name: str) -> Iterator[RevisionChange]:
        """Yield the changes of one definition."""
        self.name = name
        if name not in self.old.definitions:
            yield self.change("", "added", f"new: {words(self.new.definition(name))}")
        elif name not in self.new.definitions:
            yield self.change("", "removed", f"gone; was {words(self.old.definition(name))}")
        else:
            yield from self.compare("", self.old.definition(name), self.new.definition(name))

    def compare(self, field: str, old: Schema | bool, new: Schema | bool) -> Iterator[RevisionChange]:
        """Yield the changes within one schema."""
        if isinstance(old, dict) and "$ref" in old and old == new:
            return  # the same definition on both sides: its changes are listed there
        was, now = _resolved(self.old, old), _resolved(self.new, new)
        if "properties" in was and "properties" in now:
            yield from self.fields(field, was, now)
        elif "items" in was and "items" in now:
            yield from self.compare(f"{field}[]", was["items"], now["items"])
            yield from self.limit(field, was.get("maxItems"), now.get("maxItems"))
        elif "additionalProperties" in was and "additionalProperties" in now:
            yield from self.compare(f"{field}{{}}", was["additionalProperties"], now["additionalProperties"])
        elif len(members(was)) > 1 or len(members(now)) > 1:
            yield from self.alternatives(field, old, new)
        elif was != now:
            yield self.change(field, "changed", f"was {words(old)}, is {words(new)}", _breaking(was, now))

    def fields(self, field: str, old: Schema, new: Schema) -> Iterator[RevisionChange]:
        """Yield the changes between two objects."""
        was, now = old["properties"], new["properties"]
        for name in sorted({*was, *now}):
            path = f"{field}.{name}" if field else name
            before, after = _need(old, name), _need(new, name)
            if name not in was:
                # Every object of the protocol may have further fields: for the old revision this is one of them.
                yield self.change(path, "added", f"new, {after}: {words(now[name])}", False)
            elif name not in now:
                breaking = True if before == "required" else None
                yield self.change(path, "removed", f"gone; was {before}: {words(was[name])}", breaking)
            else:
                if before != after:
                    yield self.change(path, "changed", f"was {before}, is {after}", before == "required")
                yield from self.compare(path, was[name], now[name])

    def alternatives(self, field: str, old: Schema | bool, new: Schema | bool) -> Iterator[RevisionChange]:
        """Yield the changes between two enumerations or unions, or from one schema to several."""
        was, now = _members(self.old, old, new), _members(self.new, new, old)
        more = {text: member for text, member in now.items() if text not in was and member not in was.values()}
        fewer = {text: member for text, member in was.items() if text not in now and member not in now.values()}
        if len(fewer) == len(was) and more:
            yield self.change(field, "changed", f"was {words(old)}, is {words(new)}")
            return
        if more:
            # Another alternative may accept it as well, as Result accepts every result: then nothing breaks.
            apart = all(_disjoint(each, member) for member in more.values() for each in was.values())
            yield self.change(field, "changed", f"also takes {', '.join(more)}", True if apart else None)
        if fewer:
            yield self.change(field, "changed", f"no longer takes {', '.join(fewer)}", False)

    def limit(self, field: str, was: int | None, now: int | None) -> Iterator[RevisionChange]:
        """Yield a change in the number of items that an array may have."""
        if was != now:
            text = "any number of items" if now is None else f"at most {now} items"
            yield self.change(field, "changed", text, was is not None and (now is None or now > was))

    def change(self, field: str, kind: Kind, text: str, breaking: bool | None = None) -> RevisionChange:
        """Return a change of the present definition."""
        return RevisionChange(self.name, field, kind, text, breaking)


def _resolved(schema: ProtocolSchema, node: Schema | bool) -> Schema:
    """Return *node*, or the definition that it refers to; objects that must all fit as one."""
    while isinstance(node, dict) and "$ref" in node:
        node = schema.definition(node["$ref"].rpartition("/")[2])
    if not isinstance(node, dict):
        return {"not": {}}
    return _joined([_resolved(schema, each) for each in node["allOf"]]) or node if list(node) == ["allOf"] else node


def _joined(parts: list[Schema]) -> Schema | None:
    """Return the object that all *parts* describe together; None if one of them is not a plain object."""
    if any(set(each) - {"type", "properties", "required"} or each.get("type", "object") != "object" for each in parts):
        return None
    joined: Schema = {"type": "object", "properties": {}, "required": []}
    for each in parts:
        joined["properties"] |= each.get("properties", {})
        joined["required"] += each.get("required", ())
    return joined


def _members(schema: ProtocolSchema, node: Schema | bool, other: Schema | bool) -> dict[str, Schema]:
    """Return the alternatives of *node* by their words; a union that *other* does not name is split up."""
    found: dict[str, Schema] = {}
    node, other = node if isinstance(node, dict) else {"not": {}}, other if isinstance(other, dict) else {"not": {}}
    shared = {words(member) for member in members(other)}
    for member in members(node):
        meant = _resolved(schema, member)
        if words(member) in shared or len(members(meant)) == 1:
            found[words(member)] = meant
        else:
            found |= _members(schema, meant, other)
    return found


def _need(schema: Schema, name: str) -> str:
    return "required" if name in schema.get("required", ()) else "optional"


def _breaking(old: Schema, new: Schema) -> bool | None:
    """Whether *new* accepts a value that *old* refuses; None if that is not obvious."""
    if _within(new, old):
        return False
    return True if _within(old, new) or _disjoint(old, new) else None


def _within(inner: Schema, outer: Schema) -> bool:
    """Whether *outer* certainly accepts everything that *inner* accepts."""
    return not outer or (len(outer) == 1 and _type(inner) == outer.get("type"))


def _disjoint(one: Schema, other: Schema) -> bool:
    """Whether certainly no value is accepted by both."""
    if "const" in one and "const" in other:
        return bool(one["const"] != other["const"])
    if "properties" in one and "properties" in other:
        # Two shapes with different constants, such as the type of contents.
        return any(_disjoint(one["properties"][name], other["properties"][name]) for name in _constants(one, other))
    types = _type(one), _type(other)
    return None not in types and types[0] != types[1] and set(types) != {"integer", "number"}


def _constants(one: Schema, other: Schema) -> list[str]:
    """Return the required fields that hold a constant in both."""
    return [
        name
        for name, schema in one["properties"].items()
        if "const" in schema and "const" in other["properties"].get(name, ()) and _need(one, name) == "required"
    ]


def _type(schema: Schema) -> str | None:
    """Return the one JSON type that *schema* accepts, if it names one."""
    if "const" in schema:
        return "string" if isinstance(schema["const"], str) else "integer"
    named = schema.get("type")
    return named if isinstance(named, str) else None


# ── as a page ────────────────────────────────────────────────────────────────────────────────────────────────────────


def section(found: list[RevisionChange]) -> str:
    """Return the added and removed definitions and a table of the other changes, in Markdown."""
    text = ""
    for title, kind in (("New definitions", "added"), ("Definitions that are gone", "removed")):
        text += listed(title, [change.definition for change in found if not change.field and change.kind == kind])
    rows = "".join(row(cells) for cells in _cells(found))
    return text + (f"| definition | field | change | breaks |\n| --- | --- | --- | --- |\n{rows}" if rows else "")


def listed(title: str, names: Iterable[str]) -> str:
    text = ", ".join(f"`{name}`" for name in names)
    return f"{title}: {text}.\n\n" if text else ""


def _cells(found: list[RevisionChange]) -> list[list[str]]:
    """Return a row for each change within a definition; definitions that changed alike share a row."""
    alike: dict[tuple[str, str, bool | None], list[str]] = {}
    for change in found:
        if change.field or change.kind == "changed":
            alike.setdefault((change.field, change.words, change.breaking), []).append(change.definition)
    return [
        [", ".join(f"`{name}`" for name in names), f"`{field}`" if field else "", words, _breaks(breaking)]
        for (field, words, breaking), names in alike.items()
    ]


def _breaks(breaking: bool | None) -> str:
    return {True: "yes", False: "no", None: ""}[breaking]


def row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |\n".replace("|  |", "| |")

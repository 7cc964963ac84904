"""
Lists what changed from one revision to another, definition by definition and field by field, in words.

Compares what the definitions accept, not how they are written: a shape that only got a name is not a change.
"""

from collections.abc import Iterable, Iterator
from json import dumps
from typing import Final, Literal, NamedTuple

from assay.schema.pointers import NOWHERE, steps
from assay.schema.schema_diff import Effect, SchemaDifference, schema_differences
from assay.spec.notation import Schema
from assay.spec.schema import ProtocolSchema

Kind = Literal["added", "removed", "changed"]


class RevisionChange(NamedTuple):
    """One difference between two revisions."""

    definition: str
    field: str
    """The field, ``params.name``; ``[]`` for items of an array, ``{}`` for values of an object; "" for the whole."""
    kind: Kind
    words: str
    breaking: bool | None = None
    """
    Whether a receiver of the old revision refuses a value that the new one allows here.

    None if the place alone does not show it.
    """


_Change = tuple[str, Kind, str, bool | None]
"""A `RevisionChange` without its definition."""


def revision_changes(old: ProtocolSchema, new: ProtocolSchema) -> list[RevisionChange]:
    """Return the changes from *old* to *new*, by definition and field; of extensions, of what they define."""
    found: list[RevisionChange] = []
    for name in sorted({*old.own, *new.own}):
        if name not in old.definitions:
            found.append(RevisionChange(name, "", "added", f"new: {words(new.definition(name))}"))
        elif name not in new.definitions:
            found.append(RevisionChange(name, "", "removed", f"gone; was {words(old.definition(name))}"))
        else:
            changes = _RevisionPair(old, new).changes(old.definition(name), new.definition(name))
            found += (RevisionChange(name, *change) for change in sorted(changes, key=lambda change: change[0]))
    return found


class _RevisionPair(NamedTuple):
    """Two revisions that are compared."""

    old: ProtocolSchema
    new: ProtocolSchema

    def changes(self, old: Schema, new: Schema) -> Iterator[_Change]:
        """Yield the changes between two schemas; keywords of one field are one change."""
        others: dict[str, list[SchemaDifference]] = {}
        for each in schema_differences(old, new, self._prepared):
            field = _field(each.at)
            if each.keyword == "properties":
                yield self._property(field, each)
            elif each.keyword == "required":
                yield from self._need(field, each)
            elif each.keyword == "enum" and NOWHERE not in (each.old, each.new):
                yield from self._alternatives(field, each)
            else:
                others.setdefault(field, []).append(each)
        for field, found in others.items():
            was_is = f"was {words(found[0].before)}, is {words(found[0].after)}"
            yield field, "changed", was_is, _breaking({each.effect for each in found})

    def _prepared(self, old: Schema, new: Schema) -> tuple[Schema, Schema]:
        """Return two schemas without references; of unions the names of the alternatives that only one of them has."""
        if old == new:
            return {}, {}  # a definition that both refer to: its changes are listed there
        was, now = _resolved(self.old, old), _resolved(self.new, new)
        if not was or not now or len(members(was)) + len(members(now)) == 2:
            return was, now
        was, now = _named(self.old, old, new), _named(self.new, new, old)
        fewer = [name for name, each in was.items() if name not in now and each not in now.values()]
        more = [name for name, each in now.items() if name not in was and each not in was.values()]
        return {"enum": fewer}, {"enum": more}

    def _alternatives(self, field: str, each: SchemaDifference) -> Iterator[_Change]:
        """Yield the changes between two enumerations or unions, or from one schema to several."""
        was, now = _named(self.old, each.before, each.after), _named(self.new, each.after, each.before)
        if each.new and len(each.old) == len(was):
            yield field, "changed", f"was {words(each.before)}, is {words(each.after)}", None
            return
        if each.new:
            # Another alternative may accept it as well, as Result accepts every result: then nothing breaks.
            is_apart = all(_disjoint(now[name], other) for name in each.new for other in was.values())
            yield field, "changed", f"also takes {', '.join(each.new)}", is_apart or None
        if each.old:
            yield field, "changed", f"no longer takes {', '.join(each.old)}", False

    def _property(self, field: str, each: SchemaDifference) -> _Change:
        """Return the change of a field that is new or gone."""
        is_new = each.old is NOWHERE
        holder = _resolved(self.new, each.after) if is_new else _resolved(self.old, each.before)
        is_required = each.key in holder.get("required", ())
        need = "required" if is_required else "optional"
        if is_new:
            # Every object of the protocol may have further fields: for the old revision this is one of them.
            return field, "added", f"new, {need}: {words(each.new)}", False
        return field, "removed", f"gone; was {need}: {words(each.old)}", is_required or None

    def _need(self, field: str, each: SchemaDifference) -> Iterator[_Change]:
        """Yield the change of a field that was optional or required, and is the other now."""
        holders = _resolved(self.old, each.before), _resolved(self.new, each.after)
        if all(each.key in holder.get("properties", ()) for holder in holders):
            is_required = each.old is NOWHERE
            text = "was optional, is required" if is_required else "was required, is optional"
            yield _below(field, str(each.key)), "changed", text, not is_required


def _breaking(effects: set[Effect]) -> bool | None:
    if "unclear" in effects:
        return None
    if effects.isdisjoint({"widens", "breaks"}):
        return False
    return True if "breaks" in effects or "narrows" not in effects else None


def _field(pointer: str) -> str:
    """Return the field at a place in a schema."""
    field, left = "", iter(steps(pointer))
    for step in left:
        if step == "properties":
            field = _below(field, next(left))
        else:
            field += {"items": "[]", "additionalProperties": "{}"}.get(step, "")
    return field


def _below(field: str, name: str) -> str:
    return f"{field}.{name}" if field else name


# ── schemas ──────────────────────────────────────────────────────────────────────────────────────────────────────────

_FORMATS: Final = {"uri": "URI", "uri-template": "URI template", "byte": "Base64"}


def words(schema: Schema) -> str:
    """Describe *schema* in a few words: ``string or integer``, ``array of Tool``, ``object {name, title?}``."""
    alternatives = members(schema)
    if len(alternatives) > 1:
        return " or ".join(words(each) for each in alternatives)
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "const" in schema:
        return dumps(schema["const"], ensure_ascii=False)
    if "items" in schema:
        limit = f", at most {schema['maxItems']}" if "maxItems" in schema else ""
        return f"array of {_grouped(schema['items'])}{limit}"
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


def _grouped(schema: Schema) -> str:
    return f"({words(schema)})" if len(members(schema)) > 1 else words(schema)


def _range(schema: Schema) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and high is not None:
        return f" from {low} to {high}"
    return "" if low is None else f", at least {low}"


def _resolved(protocol: ProtocolSchema, schema: Schema) -> Schema:
    """Return *schema*, or the definition that it refers to."""
    while "$ref" in schema:
        schema = protocol.definition(schema["$ref"].rpartition("/")[2])
    return schema


def _named(protocol: ProtocolSchema, schema: Schema, other: Schema) -> dict[str, Schema]:
    """Return the alternatives of *schema* by their words; a union that *other* does not name is split up."""
    found: dict[str, Schema] = {}
    shared = {words(member) for member in members(other)}
    for member in members(schema):
        meant = _resolved(protocol, member)
        if words(member) in shared or len(members(meant)) == 1:
            found[words(member)] = meant
        else:
            found |= _named(protocol, meant, other)
    return found


def _disjoint(one: Schema, other: Schema) -> bool:
    """Whether certainly no value is accepted by both: their types differ, or a constant that one requires."""
    if "const" in one and "const" in other:
        return bool(one["const"] != other["const"])
    if "properties" in one and "properties" in other:
        # Two shapes with different constants, such as the type of contents.
        pairs = ((one["properties"][name], other["properties"].get(name, {})) for name in one.get("required", ()))
        return any("const" in mine and "const" in theirs and _disjoint(mine, theirs) for mine, theirs in pairs)
    types = _type(one), _type(other)
    return None not in types and types[0] != types[1] and set(types) != {"integer", "number"}


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
    # Definitions that changed alike share a row.
    alike: dict[tuple[str, str, bool | None], list[str]] = {}
    for change in found:
        if change.field or change.kind == "changed":
            alike.setdefault((change.field, change.words, change.breaking), []).append(f"`{change.definition}`")
    rows = "".join(
        row([", ".join(names), f"`{field}`" if field else "", text, {True: "yes", False: "no", None: ""}[breaking]])
        for (field, text, breaking), names in alike.items()
    )
    return text + (f"| definition | field | change | breaks |\n| --- | --- | --- | --- |\n{rows}" if rows else "")


def listed(title: str, names: Iterable[str]) -> str:
    """Return a paragraph with names; "" without any."""
    text = ", ".join(f"`{name}`" for name in names)
    return f"{title}: {text}.\n\n" if text else ""


def row(cells: list[str]) -> str:
    """Return a row of a table."""
    return f"| {' | '.join(cells)} |\n".replace("|  |", "| |")

"""
The part of a schema that the engine supports: it refuses nothing that the whole schema would accept.

Without a part most keywords accept more, but some accept less: `not` refuses more, two branches of a `oneOf` may match
at once, and a property that a pattern covered becomes an additional one. These keywords are left out as well. Nothing
is compiled or judged here.
"""

from collections.abc import Collection, Iterator, Mapping
from copy import deepcopy
from typing import Any, Final, NamedTuple

from assay.schema.drafts import Schema
from assay.schema.fault import SchemaRefusal
from assay.schema.pointers import escaped, looked_up
from assay.schema.schema_index import SchemaIndex, SchemaPlace

_APART: Final = frozenset({"$defs", "definitions", "contentSchema"})
"""Keywords whose schemas judge only through a reference, or never."""

_NOTHING: Final[Mapping[str, str]] = {}


class Regex(NamedTuple):
    """A regular expression of a schema."""

    place: SchemaPlace
    keyword: str
    """``pattern`` or ``patternProperties``."""
    text: str

    @property
    def at(self) -> str:
        """The JSON Pointer of the pattern."""
        below = f"/{escaped(self.text)}" if self.keyword == "patternProperties" else ""
        return f"{self.place.at}/{self.keyword}{below}"


def regexes(index: SchemaIndex) -> Iterator[Regex]:
    """Yield every regular expression that the engine compiles."""
    for place in index.places.values():
        if isinstance(place.schema, dict):
            if isinstance(place.schema.get("pattern"), str):
                yield Regex(place, "pattern", place.schema["pattern"])
            named = place.schema.get("patternProperties")
            yield from (Regex(place, "patternProperties", key) for key in (named if isinstance(named, dict) else ()))


def remote_references(index: SchemaIndex) -> list[SchemaRefusal]:
    """Return a refusal for each reference to another document."""
    return [
        SchemaRefusal("contract/remote-ref", f"{place.at}/{keyword}", "a reference inside the schema", reference[:60])
        for place in index.places.values()
        for keyword, reference in index.references(place)
        if index.is_remote(place, reference)
    ]


def supported_part(
    index: SchemaIndex, patterns: Collection[str], instead: Mapping[str, str] = _NOTHING
) -> Schema | None:
    """
    Return the schema without the regular expressions *patterns* and without references to other documents.

    *instead* has other spellings of some patterns. None if a reference leads into a part that has to be left out.
    """
    if not isinstance(index.document, dict):
        return index.document
    copy = deepcopy(index.document)
    # Looked up before anything changes: later the pointers may lead elsewhere.
    nodes = [(place, looked_up(copy, place.at)) for place in index.places.values()]
    doubtful = _doubtful(index, patterns)
    removed: set[str] = set()
    for place, node in nodes:
        if isinstance(node, dict):
            removed.update(f"{place.at}/{part}" for part in _cut(index, place, node, doubtful, patterns))
            if isinstance(node.get("pattern"), str):
                node["pattern"] = instead.get(node["pattern"], node["pattern"])
    return None if removed and _leads_into(index, removed) else copy


def _doubtful(index: SchemaIndex, patterns: Collection[str]) -> set[str]:
    """Return the pointers of the places whose result depends on what is left out."""
    above: dict[str, list[str]] = {}
    found = {regex.place.at for regex in regexes(index) if regex.text in patterns}
    for place in index.places.values():
        for keyword, _, below in index.inside(place):
            if keyword not in _APART:
                above.setdefault(below.at, []).append(place.at)
        for keyword, reference in index.references(place):
            target = index.referred(place, reference)
            # The target of a dynamic reference depends on the path taken.
            if target is None or keyword != "$ref":
                found.add(place.at)
            else:
                above.setdefault(target.at, []).append(place.at)
    waiting = list(found)
    for at in waiting:  # grows during the loop
        new = [one for one in above.get(at, ()) if one not in found]
        found.update(new)
        waiting += new
    return found


def _leads_into(index: SchemaIndex, removed: Collection[str]) -> bool:
    """Whether a reference leads into what was *removed*; a dynamic one counts as such."""
    for place in index.places.values():
        for keyword, reference in index.references(place):
            target = index.target(place, reference) or ""
            if keyword != "$ref":
                return True
            while target:
                if target in removed:
                    return True
                target = target.rpartition("/")[0]
    return False


def _cut(
    index: SchemaIndex, place: SchemaPlace, node: dict[str, Any], doubtful: Collection[str], patterns: Collection[str]
) -> Iterator[str]:
    """Leave parts out of *node*, the copy of *place*, and yield the pointers from there to what is gone."""
    remote = [keyword for keyword, reference in index.references(place) if index.is_remote(place, reference)]
    if index.is_lone_reference(place):
        # Without the reference the keywords beside it, which it hides, would apply.
        for keyword in set(node) - _APART - {"$schema"} if remote else ():
            del node[keyword]
            yield escaped(keyword)
        return
    for keyword in remote:
        del node[keyword]
    if isinstance(node.get("pattern"), str) and node["pattern"] in patterns:
        del node["pattern"]
    named = node.get("patternProperties")
    gone = [key for key in named if key in patterns] if isinstance(named, dict) else []
    for key in gone:
        del node["patternProperties"][key]
        yield f"patternProperties/{escaped(key)}"
    # A name that matched a pattern may be allowed by nothing else.
    opened = ["additionalProperties"] if gone else []
    opened += ["unevaluatedProperties", "unevaluatedItems"] if place.at in doubtful else []
    for keyword in opened:
        if keyword in node:
            node[keyword] = True
            yield keyword
    # Keywords that accept less if their parts accept more.
    doubted = {keyword for keyword, _, below in index.inside(place) if below.at in doubtful}
    dropped = ["not"] if "not" in doubted else []
    dropped += ["if", "then", "else"] if "if" in doubted else []
    for keyword in dropped:
        if node.pop(keyword, None) is not None:
            yield keyword
    if "contains" in doubted:
        node.pop("maxContains", None)
    # The engine refuses anything but an array.
    if "oneOf" in doubted and isinstance(node.get("allOf", []), list):
        node["allOf"] = [*node.get("allOf", ()), {"anyOf": node.pop("oneOf")}]
        yield "oneOf"

"""
A schema without the parts that cannot be judged, which refuses nothing that the whole of it would accept.

To leave a part out makes most keywords milder, but some stricter: what `not` refuses grows with what it holds, two
branches of a `oneOf` may fit at once, and a name that a pattern spoke of becomes one that nothing speaks of. Those go
with it. Nothing is compiled or judged here.
"""

from collections.abc import Collection, Iterator, Mapping
from copy import deepcopy
from typing import Any, Final, NamedTuple

from assay.engine.drafts import Schema
from assay.engine.pointers import escaped, looked_up
from assay.engine.schema_index import SchemaIndex, SchemaPlace
from assay.engine.schema_limits import SchemaRefusal

_APART: Final = frozenset({"$defs", "definitions", "contentSchema"})
"""What only a reference makes a part of the schema that it stands in, or what is never judged by."""

_NOTHING: Final[Mapping[str, str]] = {}

_UNEVALUATED: Final = ("unevaluatedProperties", "unevaluatedItems")


class Regex(NamedTuple):
    """A regular expression of a schema."""

    place: SchemaPlace
    keyword: str
    """``pattern`` or ``patternProperties``."""
    text: str

    @property
    def at(self) -> str:
        """JSON Pointer to it."""
        below = f"/{escaped(self.text)}" if self.keyword == "patternProperties" else ""
        return f"{self.place.at}/{self.keyword}{below}"


def regexes(outline: SchemaIndex) -> Iterator[Regex]:
    """Every regular expression that the engine compiles."""
    for place in outline.order:
        if isinstance(place.schema, dict):
            if isinstance(place.schema.get("pattern"), str):
                yield Regex(place, "pattern", place.schema["pattern"])
            named = place.schema.get("patternProperties")
            yield from (Regex(place, "patternProperties", key) for key in (named if isinstance(named, dict) else ()))


def without(outline: SchemaIndex, patterns: Collection[str], instead: Mapping[str, str] = _NOTHING) -> Schema | None:
    """
    The schema without the regular expressions *patterns* and without the references that lead out of it.

    *instead* says how some `pattern` is spelt. None if no such schema can be told, because a reference leads into what
    would have to go.
    """
    if not isinstance(outline.document, dict):
        return outline.document
    copy = deepcopy(outline.document)
    # Found before anything changes: later the pointers may lead elsewhere.
    nodes = [(place, looked_up(copy, place.at)) for place in outline.order]
    doubtful = _doubtful(outline, patterns)
    removed: set[str] = set()
    for place, node in nodes:
        if isinstance(node, dict):
            removed.update(_Left(outline, place, node, doubtful, patterns).out())
            if isinstance(node.get("pattern"), str):
                node["pattern"] = instead.get(node["pattern"], node["pattern"])
    return None if removed and _leads_into(outline, removed) else copy


def foreign(outline: SchemaIndex, place: SchemaPlace) -> list[str]:
    """The keywords of *place* whose reference leads out of the document."""
    return [keyword for keyword, reference in outline.references(place) if outline.is_remote(place, reference)]


def _doubtful(outline: SchemaIndex, patterns: Collection[str]) -> set[str]:
    """The places whose word depends on what is left out, by their pointers."""
    above: dict[str, list[str]] = {}
    found = {regex.place.at for regex in regexes(outline) if regex.text in patterns}
    for place in outline.order:
        for keyword, _, below in outline.inside(place):
            if keyword not in _APART:
                above.setdefault(below.at, []).append(place.at)
        for keyword, reference in outline.references(place):
            target = outline.referred(place, reference)
            # Where a dynamic reference leads depends on the way taken.
            if target is None or keyword != "$ref":
                found.add(place.at)
            else:
                above.setdefault(target.at, []).append(place.at)
    waiting = list(found)
    for at in waiting:  # which grows meanwhile
        new = [one for one in above.get(at, ()) if one not in found]
        found.update(new)
        waiting += new
    return found


def _leads_into(outline: SchemaIndex, removed: Collection[str]) -> bool:
    """Whether a reference leads into what was *removed*; of a dynamic one nobody can tell."""
    for place in outline.order:
        for keyword, reference in outline.references(place):
            target = outline.target(place, reference)
            if keyword != "$ref" or (target is not None and any(at in removed for at in _line(target))):
                return True
    return False


def _line(pointer: str) -> Iterator[str]:
    """*pointer* and those to all that it passes."""
    while pointer:
        yield pointer
        pointer = pointer.rpartition("/")[0]


class _Left:
    """One place of the copy, from which things are left out."""

    __slots__ = ("_doubtful", "_node", "_outline", "_patterns", "_place")

    def __init__(
        self,
        outline: SchemaIndex,
        place: SchemaPlace,
        node: dict[str, Any],
        doubtful: set[str],
        patterns: Collection[str],
    ) -> None:
        self._outline = outline
        self._place = place
        self._node = node
        self._doubtful = doubtful
        self._patterns = patterns

    def out(self) -> Iterator[str]:
        """Changes the node; yields the pointers to what is no longer where it was."""
        node = self._node
        remote = foreign(self._outline, self._place)
        if self._outline.draft.lone_reference and "$ref" in node:
            if remote:
                # Without the reference its neighbours, which it hides, would count.
                for keyword in set(node) - _APART - {"$schema"}:
                    del node[keyword]
                    yield f"{self._place.at}/{escaped(keyword)}"
            return
        for keyword in remote:
            del node[keyword]
        if isinstance(node.get("pattern"), str) and node["pattern"] in self._patterns:
            del node["pattern"]
        yield from self._names()
        yield from self._branches()
        if self._place.at in self._doubtful:
            for keyword in set(_UNEVALUATED) & set(node):
                node[keyword] = True
                yield f"{self._place.at}/{keyword}"

    def _names(self) -> Iterator[str]:
        """A name that matches may be one that nothing else allows."""
        named = self._node.get("patternProperties")
        named = named if isinstance(named, dict) else {}
        gone = [key for key in named if key in self._patterns]
        for key in gone:
            del named[key]
            yield f"{self._place.at}/patternProperties/{escaped(key)}"
        if gone and "additionalProperties" in self._node:
            self._node["additionalProperties"] = True
            yield f"{self._place.at}/additionalProperties"

    def _branches(self) -> Iterator[str]:
        """What is stricter the milder its parts are."""
        node, at = self._node, self._place.at
        dropped = ["not"] if self._doubts("not") else []
        dropped += ["if", "then", "else"] if self._doubts("if") else []
        for keyword in dropped:
            if keyword in node:
                del node[keyword]
                yield f"{at}/{keyword}"
        if self._doubts("contains"):
            node.pop("maxContains", None)
        # What is no array the engine will refuse.
        if self._doubts("oneOf") and isinstance(node.get("allOf", []), list):
            choice = {"anyOf": node.pop("oneOf")}
            node["allOf"] = [*node.get("allOf", ()), choice]
            yield f"{at}/oneOf"

    def _doubts(self, keyword: str) -> bool:
        inside = self._outline.inside(self._place)
        return any(below.at in self._doubtful for held, _, below in inside if held == keyword)


def left_out(outline: SchemaIndex) -> list[SchemaRefusal]:
    """The references that lead out of the document, each as what is not judged by."""
    return [
        SchemaRefusal("contract/remote-ref", f"{place.at}/{keyword}", "a reference inside the schema", reference[:60])
        for place in outline.order
        for keyword, reference in outline.references(place)
        if outline.is_remote(place, reference)
    ]

"""
Leaves out the parts of a schema that no engine supports; the rest refuses nothing that the whole would accept.

Without a part most keywords accept more, but some accept less: `not` refuses more, two branches of a `oneOf` may match
at once, and a property that a pattern covered becomes an additional one. These keywords are left out as well. Nothing
is compiled or judged here.
"""

from collections.abc import Collection, Iterator, Mapping
from copy import deepcopy
from typing import Any, Final, NamedTuple

from assay.engine.drafts import Schema
from assay.engine.fault import SchemaRefusal
from assay.engine.pointers import escaped, looked_up
from assay.engine.schema_index import SchemaIndex, SchemaPlace

_APART: Final = frozenset({"$defs", "definitions", "contentSchema"})
"""Keywords whose schemas judge only through a reference, or never."""

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
        """The JSON Pointer of the pattern."""
        below = f"/{escaped(self.text)}" if self.keyword == "patternProperties" else ""
        return f"{self.place.at}/{self.keyword}{below}"


def regexes(outline: SchemaIndex) -> Iterator[Regex]:
    """Yield every regular expression that the engine compiles."""
    for place in outline.order:
        if isinstance(place.schema, dict):
            if isinstance(place.schema.get("pattern"), str):
                yield Regex(place, "pattern", place.schema["pattern"])
            named = place.schema.get("patternProperties")
            yield from (Regex(place, "patternProperties", key) for key in (named if isinstance(named, dict) else ()))


def without(outline: SchemaIndex, patterns: Collection[str], instead: Mapping[str, str] = _NOTHING) -> Schema | None:
    """
    Return the schema without the regular expressions *patterns* and without references to other documents.

    *instead* has other spellings of some patterns. None if a reference leads into a part that has to be left out.
    """
    if not isinstance(outline.document, dict):
        return outline.document
    copy = deepcopy(outline.document)
    # Looked up before anything changes: later the pointers may lead elsewhere.
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
    """Return the keywords of *place* whose reference leads to another document."""
    return [keyword for keyword, reference in outline.references(place) if outline.is_remote(place, reference)]


def _doubtful(outline: SchemaIndex, patterns: Collection[str]) -> set[str]:
    """Return the pointers of the places whose result depends on what is left out."""
    above: dict[str, list[str]] = {}
    found = {regex.place.at for regex in regexes(outline) if regex.text in patterns}
    for place in outline.order:
        for keyword, _, below in outline.inside(place):
            if keyword not in _APART:
                above.setdefault(below.at, []).append(place.at)
        for keyword, reference in outline.references(place):
            target = outline.referred(place, reference)
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


def _leads_into(outline: SchemaIndex, removed: Collection[str]) -> bool:
    """Whether a reference leads into what was *removed*; a dynamic one counts as such."""
    for place in outline.order:
        for keyword, reference in outline.references(place):
            target = outline.target(place, reference)
            if keyword != "$ref" or (target is not None and any(at in removed for at in _line(target))):
                return True
    return False


def _line(pointer: str) -> Iterator[str]:
    """Yield *pointer* and the pointers to everything above it."""
    while pointer:
        yield pointer
        pointer = pointer.rpartition("/")[0]


class _Left:
    """One place of the copy, from which parts are left out."""

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
        """Change the node, and yield the pointers to what is no longer there."""
        node = self._node
        remote = foreign(self._outline, self._place)
        if self._outline.draft.lone_reference and "$ref" in node:
            if remote:
                # Without the reference the keywords beside it, which it hides, would apply.
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
        """Leave out patterns for names; a name that matched one may be allowed by nothing else."""
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
        """Leave out keywords that accept less if their parts accept more."""
        node, at = self._node, self._place.at
        dropped = ["not"] if self._doubts("not") else []
        dropped += ["if", "then", "else"] if self._doubts("if") else []
        for keyword in dropped:
            if keyword in node:
                del node[keyword]
                yield f"{at}/{keyword}"
        if self._doubts("contains"):
            node.pop("maxContains", None)
        # The engine refuses anything but an array.
        if self._doubts("oneOf") and isinstance(node.get("allOf", []), list):
            choice = {"anyOf": node.pop("oneOf")}
            node["allOf"] = [*node.get("allOf", ()), choice]
            yield f"{at}/oneOf"

    def _doubts(self, keyword: str) -> bool:
        inside = self._outline.inside(self._place)
        return any(below.at in self._doubtful for held, _, below in inside if held == keyword)


def left_out(outline: SchemaIndex) -> list[SchemaRefusal]:
    """Return a refusal for each reference to another document."""
    return [
        SchemaRefusal("contract/remote-ref", f"{place.at}/{keyword}", "a reference inside the schema", reference[:60])
        for place in outline.order
        for keyword, reference in outline.references(place)
        if outline.is_remote(place, reference)
    ]

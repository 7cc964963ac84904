"""
Compile schema files that refer to each other.

The engine compiles one document. So every file gets an identifier of ours, references are rewritten to these, and a
schema is compiled as one document with all files it refers to. Nothing is ever fetched.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import urldefrag, urljoin, urlsplit

from assay.assets.json_files import File, name_of
from assay.schema.admission import SchemaRefusal, compile_untrusted
from assay.schema.compiled import Compiled
from assay.schema.drafts import DRAFT_2020_12, Draft, draft_of, subschemas
from assay.schema.pointers import from_fragment, looked_up

# A reserved name that no real host can have (RFC 2606).
_OURS = "https://catalogue.invalid"

_VERSION = re.compile(r"(?<![\w.])v?(\d+\.\d+\.\d+(?:-[0-9A-Za-z-]+(?:\.\d+)*)?)(?!\w|\.\d)")
"""Three numbers, and optionally a pre-release, that are not part of a longer word."""


@dataclass(frozen=True, slots=True)
class SchemaFile:
    """A schema from a file."""

    name: str
    """Its file name without the ending."""
    version: str
    file: File


def version_of(schema: dict[str, Any]) -> str:
    """Return the version in `version`, `x-schema-version` or the path of `$id` of *schema*; else ""."""
    for keyword in ("version", "x-schema-version"):
        if isinstance(schema.get(keyword), str) and schema[keyword]:
            return str(schema[keyword])
    name = schema.get("$id")
    try:
        parts = urlsplit(name if isinstance(name, str) else "")
    except ValueError:
        return ""
    found = _VERSION.search(f"{parts.path}?{parts.query}")
    return found[1] if found else ""


class Library:
    """The schemas of one directory. Each is compiled on first use, and kept."""

    files: tuple[SchemaFile, ...]
    """By name, version and path."""

    def __init__(self, files: Iterable[File] = ()) -> None:
        schemas = [SchemaFile(name_of(file.base), version_of(file.value), file) for file in files]
        self.files = tuple(sorted(schemas, key=lambda one: (one.name, one.version, one.file.path)))
        newest = sorted(self.files, key=lambda one: (_age(one.version), one.file.path))
        self._by_name = {one.name: one for one in newest}
        self._compiled: dict[str, Compiled | SchemaRefusal] = {}

    def find(self, name: str) -> SchemaFile | None:
        """Return the schema with this name; the newest if there are several."""
        return self._by_name.get(name)

    def judge(self, name: str) -> Compiled | SchemaRefusal | None:
        """Return the compiled schema *name*, or why it is unusable; None if it is unknown. Always the same object."""
        file = self.find(name)
        if file is None:
            return None
        if name not in self._compiled:
            usable = compile_untrusted(_bundled(self._shelf, self.files.index(file)))
            self._compiled[name] = _as_written(usable, self._shelf) if isinstance(usable, SchemaRefusal) else usable
        return self._compiled[name]

    @cached_property
    def _shelf(self) -> "list[_Volume]":
        """A volume for every file, in their order."""
        shelf = [_Volume(one.file.value, one) for one in self.files]
        resources: dict[str, _Resource] = {}
        places = [place for number, volume in enumerate(shelf) for place in _surveyed(volume, number, resources)]
        _rewrite(shelf, places, resources)
        return shelf


def _age(version: str) -> tuple[list[int], bool, str]:
    """Return the sort key of a version: numbers as numbers, a pre-release before its release."""
    head, dash, _ = version.partition("-")
    numbers = [int(part) for part in head.removeprefix("v").split(".") if part.isascii() and part.isdecimal()]
    return numbers, not dash, version


@dataclass(slots=True)
class _Volume:
    """
    A copy of a schema file with our identifiers and references.

    Up to draft 7 a file whose root is a reference cannot have an identifier: keywords beside `$ref` are ignored. Such a
    file is wrapped in another schema. It stays complete, because pointers may lead into the ignored parts.
    """

    schema: dict[str, Any]
    file: SchemaFile
    at: str = ""
    """Where the file is in `schema`: at its root, unless it is wrapped."""
    leads_to: set[int] = field(default_factory=set)
    draft: Draft = field(init=False)

    def __post_init__(self) -> None:
        self.draft = draft_of(self.schema) or DRAFT_2020_12


@dataclass(frozen=True, slots=True, eq=False)
class _Resource:
    """A schema with a URI: a file, or a part with an identifier."""

    uri: str
    """The URI that we gave it."""
    base: str
    """Its original URI: the base of its references."""
    number: int
    """The volume it is in."""
    schema: dict[str, Any]
    """The schema as in its file."""
    at: str = ""
    """Its place below the schema with the URI."""

    def reference(self, fragment: str) -> str:
        """Return the reference to *fragment* of it."""
        return f"{self.uri}#{self.at if fragment[:1] in ('', '/') else ''}{fragment}"


_Place = tuple[dict[str, Any], _Resource]
"""A subschema and its resource."""


def _surveyed(volume: _Volume, number: int, resources: dict[str, _Resource]) -> list[_Place]:
    """Collect the places of one volume; parts with an identifier get one of ours, and are entered by their own."""
    file, schema, draft = volume.file.file, volume.schema, volume.draft
    # For a file without an identifier, or with a relative one, its path counts (specs/001 §8).
    base = urldefrag(_joined(file.uri, _identifier(schema, draft))).url
    if draft.lone_reference and "$ref" in schema:
        volume.at = "/definitions/file"
        volume.schema = {"allOf": [{"$ref": f"#{volume.at}"}], "definitions": {"file": schema}}
    root = _Resource(f"{_OURS}/{number}", base, number, schema, volume.at)
    volume.schema[draft.identifier] = root.uri
    # Of two with the same identifier the first counts. By its path, each can be referred to.
    resources.setdefault(base, root)
    resources.setdefault(file.uri, root)
    places = [(schema, root)]
    for outer, resource in places:  # which grows meanwhile
        for one in _inside(outer, draft):
            name, sign, fragment = _identifier(one, draft).partition("#")
            inner = resource
            if name:
                inner = _Resource(f"{root.uri}/{len(places)}", _joined(resource.base, name), number, one)
                one[draft.identifier] = inner.uri + sign + fragment
                resources.setdefault(inner.base, inner)
            places.append((one, inner))
    return places


def _rewrite(shelf: list[_Volume], places: list[_Place], resources: dict[str, _Resource]) -> None:
    """Rewrite the references of all *places* to ours, if their targets are here."""
    seen = {id(schema) for schema, _ in places}
    for schema, resource in places:  # which grows meanwhile
        volume = shelf[resource.number]
        reached = [(one, resource) for one in _inside(schema, volume.draft)]
        for keyword in sorted(volume.draft.references & schema.keys()):
            written = schema[keyword]
            if not isinstance(written, str):
                continue
            uri, _, fragment = written.partition("#")
            # By identifier (RFC 3986); else as a path beside the file, for identifiers that are not laid out like the
            # directory.
            names = (_joined(resource.base, uri), _joined(volume.file.file.uri, uri))
            found = next(filter(None, map(resources.get, names)), None) if uri else resource
            if found is None:
                continue
            if uri or found.at:
                schema[keyword] = found.reference(fragment)
                volume.leads_to.add(found.number)
            target = looked_up(found.schema, from_fragment(fragment) or "")
            reached += [(target, found)] if isinstance(target, dict) else []
        # A value that becomes a schema only by a reference may have references itself.
        for one, inner in reached:
            if id(one) not in seen:
                seen.add(id(one))
                places.append((one, inner))


def _joined(base: str, reference: str) -> str:
    try:
        return urljoin(base, reference)
    except ValueError:
        # An invalid URI, for example with brackets in the wrong place, has no target.
        return reference


def _inside(schema: dict[str, Any], draft: Draft) -> list[dict[str, Any]]:
    """Return the subschemas directly below *schema*."""
    return [one for _, _, one in subschemas(schema, draft) if isinstance(one, dict)]


def _identifier(schema: dict[str, Any], draft: Draft) -> str:
    """Return the identifier of *schema*; beside a reference it is ignored (up to draft 7)."""
    name = schema.get(draft.identifier)
    return name if isinstance(name, str) and not (draft.lone_reference and "$ref" in schema) else ""


def _bundled(shelf: list[_Volume], number: int) -> dict[str, Any]:
    """Return one document for volume *number*, with all volumes it refers to."""
    reached = [number]
    for one in reached:  # which grows meanwhile
        reached += sorted(shelf[one].leads_to.difference(reached))
    draft = shelf[number].draft
    holder = "definitions" if draft.lone_reference else "$defs"
    return {
        "$schema": draft.uri,
        "allOf": [{"$ref": f"{_OURS}/{number}"}],
        holder: {str(one): shelf[one].schema for one in sorted(reached)},
    }


def _as_written(refusal: SchemaRefusal, shelf: list[_Volume]) -> SchemaRefusal:
    """Return *refusal* with the places and identifiers of the files in place of those of the bundle."""
    keyword, _, rest = refusal.at.removeprefix("/").partition("/")
    number, slash, below = rest.partition("/")
    if keyword not in ("$defs", "definitions") or not number.isdecimal():
        return refusal
    volume = shelf[int(number)]
    at = (slash + below).removeprefix(volume.at)
    written = looked_up(volume.file.file.value, at)
    found = written[:60] if refusal.found.startswith(_OURS) and isinstance(written, str) else refusal.found
    return SchemaRefusal(refusal.rule, f"{volume.file.file.path}#{at}", refusal.expected, found)

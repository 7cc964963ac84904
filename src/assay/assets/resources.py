"""Schemas and examples as MCP resources, ``resource://schemas/<name>`` and ``resource://examples/<path>``."""

import json
from typing import Any, Final
from urllib.parse import quote, unquote

from assay.assets.asset_sources import Catalogue

SCHEMAS: Final = "resource://schemas/"
EXAMPLES: Final = "resource://examples/"

Listing = dict[str, Any]

_TEMPLATES: Final[list[Listing]] = [
    {
        "uriTemplate": SCHEMAS + "{name}",
        "name": "schema",
        "title": "A schema",
        "description": "A JSON Schema of the catalogue, by its name.",
        "mimeType": "application/schema+json",
    },
    {
        "uriTemplate": EXAMPLES + "{+path}",
        "name": "example",
        "title": "An example",
        "description": "An example asset, by its path: as list_examples gives it, or below the examples directory.",
        "mimeType": "application/json",
    },
]


class Resources:
    """The resources of a catalogue, which is immutable: everything is computed once."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        names = dict.fromkeys(one.name for one in catalogue.schemas)
        self._names = {
            SCHEMAS + "{name}": ("name", list(names)),
            EXAMPLES + "{+path}": ("path", [one.file.inside for one in catalogue.examples]),
        }
        self._listed = [
            _entry(SCHEMAS + quote(name, safe=""), name, f"The JSON Schema {name}", "application/schema+json")
            for name in names
        ] + [
            _entry(
                EXAMPLES + quote(one.file.inside), one.file.inside, f"An example of {one.schema}", "application/json"
            )
            for one in catalogue.examples
        ]

    def listed(self) -> list[Listing]:
        """Return every resource: schemas by name, then examples by component and path."""
        return self._listed

    def templates(self) -> list[Listing]:
        """Return the templates of resource URIs."""
        return _TEMPLATES

    def read(self, uri: str) -> Listing | None:
        """Return the contents of *uri*; None if it is unknown. Reads only the catalogue, never a directory."""
        if uri.startswith(SCHEMAS):
            schema = self._catalogue.schema(unquote(uri.removeprefix(SCHEMAS)))
            return None if schema is None else _contents(uri, "application/schema+json", schema.file.value)
        if uri.startswith(EXAMPLES):
            example = self._catalogue.example(unquote(uri.removeprefix(EXAMPLES)))
            return None if example is None else _contents(uri, "application/json", example.file.value)
        return None

    def completions(self, template: str, argument: str, begun: str) -> list[str] | None:
        """Return completions of *argument* of *template* that start with *begun*; None for an unknown one."""
        known = self._names.get(template)
        if known is None or known[0] != argument:
            return None
        return _going_on(known[1], begun)

    def names(self, begun: str) -> list[str]:
        """Return the names of schemas that start with *begun*."""
        return _going_on(self._names[SCHEMAS + "{name}"][1], begun)

    def of_schema(self, name: str) -> Listing | None:
        """Return the contents of the schema *name*; None if it is unknown."""
        return self.read(SCHEMAS + quote(name, safe=""))


def _going_on(values: list[str], begun: str) -> list[str]:
    return [value for value in values if value.casefold().startswith(begun.casefold())]


def _entry(uri: str, name: str, description: str, kind: str) -> Listing:
    return {"uri": uri, "name": name, "description": description, "mimeType": kind}


def _contents(uri: str, kind: str, value: Any) -> Listing:
    return {"uri": uri, "mimeType": kind, "text": json.dumps(value, indent=2, ensure_ascii=False)}

"""
The catalogue as MCP resources, ``resource://schemas/<name>`` and ``resource://examples/<path>``, and prompts, which ask
a model to write or correct an asset. No I/O.
"""

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import quote, unquote

from assay.assets.asset_sources import Catalogue

SCHEMAS: Final = "resource://schemas/"
EXAMPLES: Final = "resource://examples/"

Listing = dict[str, Any]

TEMPLATES: Final[list[Listing]] = [
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

_SCHEMA: Final = {
    "name": "schema",
    "description": "The name of the schema, as list_schemas gives it.",
    "required": True,
}


class Prompt(NamedTuple):
    """One prompt: its description for clients, and its text for the model."""

    title: str
    description: str
    arguments: tuple[Listing, ...]
    text: str
    """The text with placeholders for the arguments."""


PROMPTS: Final[Mapping[str, Prompt]] = {
    "write_asset": Prompt(
        "Write an asset",
        "Asks the model to write a new asset that matches a schema of the catalogue, and to validate it.",
        (_SCHEMA, {"name": "idea", "description": "A sentence that describes the asset.", "required": False}),
        "Write an asset that matches the JSON Schema `{schema}`, which follows.{idea}\n"
        "Then call validate_asset with it, correct the reported errors, and repeat until no errors are left. "
        "Return the asset as JSON.",
    ),
    "mend_asset": Prompt(
        "Correct an asset",
        "Asks the model to find and correct the errors of an asset, with as few changes as possible.",
        (_SCHEMA, {"name": "asset", "description": "The asset, as JSON.", "required": True}),
        "The asset below should match the JSON Schema `{schema}`, which follows. Call validate_asset, correct only the "
        "reported places, and repeat until no errors are left. Show your changes with diff_assets.\n\n"
        "{asset}",
    ),
}


class Content:
    """The resources and prompts of a catalogue, which is immutable."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        names = list(dict.fromkeys(one.name for one in catalogue.schemas))
        files = [one.file.inside for one in catalogue.examples]
        self.resources: list[Listing] = [
            *(
                _listed(SCHEMAS + quote(name, safe=""), name, f"The JSON Schema {name}", "application/schema+json")
                for name in names
            ),
            *(
                _listed(EXAMPLES + quote(inside), inside, f"An example of {one.schema}", "application/json")
                for inside, one in zip(files, catalogue.examples, strict=True)
            ),
        ]
        """Every resource: schemas by name, then examples by component and path."""
        self._values = {
            ("ref/resource", SCHEMAS + "{name}", "name"): names,
            ("ref/resource", EXAMPLES + "{+path}", "path"): files,
            **{
                ("ref/prompt", prompt, each["name"]): names if each is _SCHEMA else []
                for prompt, known in PROMPTS.items()
                for each in known.arguments
            },
        }

    def read(self, uri: str) -> Listing | None:
        """Return the contents of *uri*; None if it is unknown. Reads only the catalogue, never a directory."""
        if uri.startswith(SCHEMAS):
            schema = self._catalogue.schema(unquote(uri.removeprefix(SCHEMAS)))
            return None if schema is None else _contents(uri, "application/schema+json", schema.file.value)
        example = self._catalogue.example(unquote(uri.removeprefix(EXAMPLES))) if uri.startswith(EXAMPLES) else None
        return None if example is None else _contents(uri, "application/json", example.file.value)

    def completions(self, kind: str, named: str, argument: str, begun: str) -> list[str] | None:
        """Return the values of *argument* that start with *begun*; None for an unknown template, prompt or argument."""
        known = self._values.get((kind, named, argument))
        return known and [value for value in known if value.casefold().startswith(begun.casefold())]

    def filled(self, name: str, arguments: Mapping[str, str]) -> Listing | str:
        """Return the messages of prompt *name*, or an error."""
        prompt = PROMPTS.get(name)
        if prompt is None:
            return "Unknown prompt"
        missing = [each["name"] for each in prompt.arguments if each["required"] and each["name"] not in arguments]
        if missing:
            return f"Missing argument: {', '.join(missing)}"
        resource = self.read(SCHEMAS + quote(arguments["schema"], safe=""))
        if resource is None:
            return "Unknown schema"
        values = {each["name"]: arguments.get(each["name"], "") for each in prompt.arguments}
        if values.get("idea"):
            values["idea"] = " " + values["idea"]
        said = prompt.text.format_map(values)
        return {
            "description": prompt.description,
            "messages": [
                {"role": "user", "content": {"type": "text", "text": said}},
                {"role": "user", "content": {"type": "resource", "resource": resource}},
            ],
        }


def listed_prompts(titles: bool) -> list[Listing]:
    """Return every prompt; *titles* is whether the revision has titles."""
    return [
        {
            "name": name,
            **({"title": each.title} if titles else {}),
            "description": each.description,
            "arguments": [dict(argument) for argument in each.arguments],
        }
        for name, each in PROMPTS.items()
    ]


def _listed(uri: str, name: str, description: str, kind: str) -> Listing:
    return {"uri": uri, "name": name, "description": description, "mimeType": kind}


def _contents(uri: str, kind: str, value: Any) -> Listing:
    return {"uri": uri, "mimeType": kind, "text": json.dumps(value, indent=2, ensure_ascii=False)}

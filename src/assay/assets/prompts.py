"""Prompts of a catalogue, which ask a model to write or correct an asset. No I/O."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from assay.assets.asset_sources import Catalogue
from assay.assets.resources import Resources

Listing = dict[str, Any]

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


class Prompts:
    """The prompts of a catalogue."""

    __slots__ = ("_catalogue", "_resources")

    def __init__(self, catalogue: Catalogue, resources: Resources) -> None:
        self._catalogue = catalogue
        self._resources = resources

    def listed(self, titles: bool) -> list[Listing]:
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

    def filled(self, name: str, arguments: Mapping[str, str]) -> Listing | str:
        """Return the messages of prompt *name*, or an error."""
        prompt = PROMPTS.get(name)
        if prompt is None:
            return "Unknown prompt"
        missing = [each["name"] for each in prompt.arguments if each["required"] and each["name"] not in arguments]
        if missing:
            return f"Missing argument: {', '.join(missing)}"
        resource = self._resources.of_schema(arguments["schema"])
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

    def completions(self, name: str, argument: str, begun: str) -> list[str] | None:
        """Return completions of *argument* of prompt *name* that start with *begun*; None for an unknown one."""
        prompt = PROMPTS.get(name)
        if prompt is None or all(each["name"] != argument for each in prompt.arguments):
            return None
        return self._resources.names(begun) if argument == "schema" else []

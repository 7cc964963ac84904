"""Prompts over a catalogue: what a person picks in a client to have a model write or mend an asset. No I/O."""

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
    """One prompt: what a client is told about it, and what it says to the model."""

    title: str
    description: str
    arguments: tuple[Listing, ...]
    text: str
    """With the arguments to be filled in."""


PROMPTS: Final[Mapping[str, Prompt]] = {
    "write_asset": Prompt(
        "Write an asset",
        "Has the model write a new asset that fits a schema of the catalogue, and check it before it answers.",
        (_SCHEMA, {"name": "idea", "description": "What the asset is to be like, in a sentence.", "required": False}),
        "Write an asset that fits the JSON Schema `{schema}`, which follows.{idea}\n"
        "Then call validate_asset with it, mend what is reported, and repeat until nothing is. Give the asset as JSON.",
    ),
    "mend_asset": Prompt(
        "Mend an asset",
        "Has the model find and mend what is wrong with an asset, changing as little as possible.",
        (_SCHEMA, {"name": "asset", "description": "The asset, as JSON.", "required": True}),
        "The asset below is meant to fit the JSON Schema `{schema}`, which follows. Call validate_asset, mend the "
        "places that are reported and nothing else, and repeat until nothing is. Show what you changed with "
        "diff_assets.\n\n"
        "{asset}",
    ),
}


class Prompts:
    """The prompts, filled in from a catalogue."""

    __slots__ = ("_catalogue", "_resources")

    def __init__(self, catalogue: Catalogue, resources: Resources) -> None:
        self._catalogue = catalogue
        self._resources = resources

    def listed(self, titles: bool) -> list[Listing]:
        """Every prompt; *titles* says whether the revision has any."""
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
        """The messages of prompt *name*, or why there are none."""
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
        """What *argument* of prompt *name* can be, going on from *begun*; None for one that there is not."""
        prompt = PROMPTS.get(name)
        if prompt is None or all(each["name"] != argument for each in prompt.arguments):
            return None
        return self._resources.names(begun) if argument == "schema" else []

"""
The catalogue as MCP resources, ``resource://schemas/<name>`` and ``resource://examples/<path>``, and prompts, which ask
a model to write or correct an asset; the methods of MCP for both. No I/O.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import quote, unquote

from assay.assets.asset_sources import Catalogue, Example
from assay.assets.library import SchemaFile
from assay.model.errors import CanonicalError
from assay.spec.revisions import features_of, handshake

PAGE: Final = 100
"""Entries of a list in one page: 100 resources are about 15 KB."""

SCHEMAS: Final = "resource://schemas/"
EXAMPLES: Final = "resource://examples/"
_SCHEMA_TYPE: Final = "application/schema+json"
_JSON_TYPE: Final = "application/json"

Params = Mapping[str, Any]
Result = dict[str, Any]
Method = Callable[[Params, str], Result]
"""The answer to a method: from params, which are already judged, and the revision, to the result."""

TEMPLATES: Final[list[Result]] = [
    {
        "uriTemplate": SCHEMAS + "{name}",
        "name": "schema",
        "title": "A schema",
        "description": "A JSON Schema of the catalogue, by its name.",
        "mimeType": _SCHEMA_TYPE,
    },
    {
        "uriTemplate": EXAMPLES + "{+path}",
        "name": "example",
        "title": "An example",
        "description": "An example asset, by its path: as list_examples gives it, or below the examples directory.",
        "mimeType": _JSON_TYPE,
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
    arguments: tuple[Result, ...]
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


class MethodError(Exception):
    """A valid request that cannot be answered; *code* is a canonical error."""

    def __init__(self, code: str, message: str | None = None, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message
        self.data = dict(data) if data else None

    def error(self) -> dict[str, Any]:
        """Code and message for JSON-RPC."""
        error: dict[str, Any] = CanonicalError.to_jsonrpc_error(self.code)
        return {**error, "message": self.message} if self.message else error


def page(member: str, entries: Sequence[Result], params: Params) -> Result:
    """Return one page of *entries*; the cursor is the start of the next one."""
    cursor = params.get("cursor", "0")
    begin = int(cursor) if cursor.isascii() and cursor.isdigit() and len(cursor) < 10 else -1
    if not 0 <= begin <= len(entries):
        raise MethodError("INVALID_PARAMS", "Invalid cursor", {"cursor": cursor[:100]})
    result: Result = {member: list(entries[begin : begin + PAGE])}
    if begin + PAGE < len(entries):
        result["nextCursor"] = str(begin + PAGE)
    return result


class Content:
    """The resources and prompts of a catalogue, which is immutable."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        names = list(dict.fromkeys(one.name for one in catalogue.schemas))
        files = [one.file.inside for one in catalogue.examples]
        # Schemas by name, then examples by component and path.
        rows = [
            *((SCHEMAS + quote(name, safe=""), name, f"The JSON Schema {name}", _SCHEMA_TYPE) for name in names),
            *(
                (EXAMPLES + quote(one.file.inside), one.file.inside, f"An example of {one.schema}", _JSON_TYPE)
                for one in catalogue.examples
            ),
        ]
        resources = [dict(zip(("uri", "name", "description", "mimeType"), row, strict=True)) for row in rows]
        self._values = {
            ("ref/resource", SCHEMAS + "{name}", "name"): names,
            ("ref/resource", EXAMPLES + "{+path}", "path"): files,
            **{
                ("ref/prompt", prompt, each["name"]): names if each is _SCHEMA else []
                for prompt, known in PROMPTS.items()
                for each in known.arguments
            },
        }
        self.methods: dict[str, Method] = {
            "resources/list": lambda params, _: page("resources", resources, params),
            "resources/templates/list": lambda params, _: page("resourceTemplates", TEMPLATES, params),
            "resources/read": self._read,
            "prompts/list": _prompts,
            "prompts/get": self._prompt,
            "completion/complete": self._complete,
        }

    def _found(self, uri: str) -> Result | None:
        """Return the contents of *uri*; None if it is unknown. Reads only the catalogue, never a directory."""
        found: SchemaFile | Example | None = None
        if uri.startswith(SCHEMAS):
            found = self._catalogue.schema(unquote(uri.removeprefix(SCHEMAS)))
        elif uri.startswith(EXAMPLES):
            found = self._catalogue.example(unquote(uri.removeprefix(EXAMPLES)))
        if found is None:
            return None
        kind = _JSON_TYPE if isinstance(found, Example) else _SCHEMA_TYPE
        return {"uri": uri, "mimeType": kind, "text": json.dumps(found.file.value, indent=2, ensure_ascii=False)}

    def _read(self, params: Params, revision: str) -> Result:
        uri = params["uri"]
        found = self._found(uri)
        if found is None:
            code = "RESOURCE_NOT_FOUND" if handshake(revision) else "INVALID_PARAMS"
            raise MethodError(code, "Resource not found", {"uri": uri[:1000]})
        return {"contents": [found]}

    def _prompt(self, params: Params, _: str) -> Result:
        """Return the messages of a prompt."""
        name, arguments = params["name"], params.get("arguments", {})
        prompt = PROMPTS.get(name)
        if prompt is None:
            raise MethodError("INVALID_PARAMS", "Unknown prompt", {"name": name[:100]})
        missing = [each["name"] for each in prompt.arguments if each["required"] and each["name"] not in arguments]
        if missing:
            raise MethodError("INVALID_PARAMS", f"Missing argument: {', '.join(missing)}", {"name": name[:100]})
        resource = self._found(SCHEMAS + quote(arguments["schema"], safe=""))
        if resource is None:
            raise MethodError("INVALID_PARAMS", "Unknown schema", {"name": name[:100]})
        values = {each["name"]: arguments.get(each["name"], "") for each in prompt.arguments}
        if values.get("idea"):
            values["idea"] = " " + values["idea"]
        text = prompt.text.format_map(values)
        return {
            "description": prompt.description,
            "messages": [
                {"role": "user", "content": {"type": "text", "text": text}},
                {"role": "user", "content": {"type": "resource", "resource": resource}},
            ],
        }

    def _complete(self, params: Params, _: str) -> Result:
        """Return the values of an argument that start with the given text."""
        reference, argument = params["ref"], params["argument"]
        what, member = ("template", "uri") if reference["type"] == "ref/resource" else ("prompt", "name")
        named, begun = reference[member], argument["value"].casefold()
        known = self._values.get((reference["type"], named, argument["name"]))
        if known is None:
            raise MethodError("INVALID_PARAMS", f"No such {what} or argument", {what: named[:1000]})
        values = [value for value in known if value.casefold().startswith(begun)]
        return {"completion": {"values": values[:100], "total": len(values), "hasMore": len(values) > 100}}


def _prompts(params: Params, revision: str) -> Result:
    listed = []
    for name, each in PROMPTS.items():
        title = {"title": each.title} if features_of(revision).titles else {}
        arguments = [dict(argument) for argument in each.arguments]
        listed.append({"name": name, **title, "description": each.description, "arguments": arguments})
    return page("prompts", listed, params)

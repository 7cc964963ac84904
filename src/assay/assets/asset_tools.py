"""
The seven tools of specs/001, as functions over a catalogue, and the table that describes them.

Their arguments match the input schema. The functions raise nothing, whatever the assets, and the same arguments give
the same bytes.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from assay.assets import own_tools as contracts
from assay.assets import patch, store_backend
from assay.assets.asset_sources import ALIASES, REFERENCE, Catalogue
from assay.assets.json_text import why_not_json, written
from assay.model.limits import DEFAULT
from assay.schema.admission import SchemaRefusal
from assay.schema.compiled import Compiled
from assay.schema.wording import name as quoted
from assay.spec.schema import closest

TOO_LARGE: Final = {
    "ok": False,
    "reason": "validation_failed",
    "errors": [{"path": "", "msg": "payload_too_large"}],
}
"""The response to a frame over the limit, for bare methods (specs/001 §6)."""

Result = dict[str, Any]

Error = dict[str, str]
"""``{"path": …, "msg": …}``: a JSON Pointer and a message."""

VALID: Mapping[str, Any] = MappingProxyType({"ok": True, "errors": []})
"""The result for a valid asset."""

EVERYTHING = "all"
"""The value of `component` for all components."""


def list_schemas(catalogue: Catalogue) -> Result:
    """List every schema, by name, version and path."""
    rows = [{"name": one.name, "version": one.version, "path": one.file.path} for one in catalogue.schemas]
    return {"ok": True, "schemas": rows}


def get_schema(catalogue: Catalogue, name: str) -> Result:
    """Return one schema as in its file."""
    found = catalogue.schema(name)
    if found is None:
        return _not_found()
    return {"ok": True, "schema": found.file.value, "version": found.version}


def list_examples(catalogue: Catalogue, component: str = EVERYTHING) -> Result:
    """List the examples of *component*: those with this name, and those of the schema with this name."""
    wanted = ALIASES.get(component, component)
    rows = [
        {"component": one.component, "path": one.file.path}
        for one in catalogue.examples
        if wanted in (EVERYTHING, one.component, one.schema)
    ]
    return {"ok": True, "examples": rows}


def get_example(catalogue: Catalogue, path: str) -> Result:
    """Return one example, its schema, and whether it is valid now."""
    found = catalogue.example(path)
    if found is None:
        return _not_found()
    example = found.file.value
    errors = _errors(catalogue, example, found.schema)
    return {"ok": True, "example": example, "schema": found.schema, "validated": not errors}


def validate_asset(catalogue: Catalogue, asset: Any, schema: str) -> Result:
    """Validate *asset* against *schema*; an unknown or unusable schema is an error like any other."""
    errors = _errors(catalogue, asset, schema)
    return _invalid(errors) if errors else dict(VALID)


def diff_assets(_: Catalogue, base: Any, new: Any) -> Result:
    """Return the patch that turns *base* into *new*."""
    return {"ok": True, "patch": patch.difference(base, new)}


def populate_backend(catalogue: Catalogue, asset: Any, validate_first: bool = True) -> Result:
    """Send *asset* to the backend; by default only if it is valid."""
    if catalogue.backend is None:
        return store_backend.unsupported("SYN_BACKEND_URL is not set")
    errors = _errors(catalogue, asset, catalogue.schema_of(asset)) if validate_first else []
    if errors:
        return _invalid(errors)
    try:
        body = written("asset", asset)
    except ValueError as error:
        return _invalid([{"path": "", "msg": str(error)}])
    return store_backend.store(catalogue.backend, body)


def _not_found() -> Result:
    return {"ok": False, "reason": "not_found"}


def _invalid(errors: list[Error]) -> Result:
    return {"ok": False, "reason": "validation_failed", "errors": errors}


def _errors(catalogue: Catalogue, asset: Any, schema: str) -> list[Error]:
    """
    Return the errors of *asset* by *schema*, sorted by path and message; empty if it is valid. Raises nothing.

    The asset must be JSON with at most the levels of a frame: the engine overflows its stack, and ends the process, on
    values with some thousand levels.
    """
    judge = catalogue.judge(schema)
    if not isinstance(judge, Compiled):
        return [{"path": "", "msg": _no_judge(catalogue, schema, judge)}]
    judged = asset
    if isinstance(asset, dict) and REFERENCE in asset:
        # specs/001 §9 requires this for the alias. The member only selects the schema: without this, no example of
        # the reference data would match its own schema. A schema that defines the member gets it.
        file = catalogue.schema(schema)
        document = file.file.value if file is not None else {}
        if not any(REFERENCE in (document.get(key) or ()) for key in ("properties", "required")):
            judged = {key: value for key, value in asset.items() if key != REFERENCE}
    if judge.always_affordable and (judge.is_valid(judged) or (judged is not asset and judge.is_valid(asset))):
        return []
    faults = judge.faults(judged, most=DEFAULT.violations)
    found = {(fault.at, f"expected {fault.expected}, found {fault.found}") for fault in faults.listed}
    if faults.more:
        found.add(("", f"{faults.more} more are not listed"))
    return [{"path": path, "msg": msg} for path, msg in sorted(found)]


def _no_judge(catalogue: Catalogue, schema: str, refusal: SchemaRefusal | None) -> str:
    if refusal is not None:
        where = f" at {refusal.at}" if refusal.at else ""
        return f"schema {quoted(schema)} cannot be used: expected {refusal.expected}, found {refusal.found}{where}"
    names = sorted({one.name for one in catalogue.schemas} | {one for one in ALIASES if catalogue.schema(one)})
    if not names:
        return f"unknown schema {quoted(schema)}: there are no schemas here"
    near = closest(schema[:80], names)
    return f"unknown schema {quoted(schema)}" + (f": did you mean {quoted(near[0])}?" if near else "; see list_schemas")


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool: its description for clients, its schemas and its function."""

    name: str
    title: str
    description: str
    annotations: Mapping[str, bool]
    """MCP's hints: `readOnlyHint`, `destructiveHint`, `idempotentHint`, `openWorldHint`."""
    input: contracts.Schema
    output: contracts.Schema
    function: Callable[..., Result]
    """The function, for arguments that were parsed from a frame: `call` accepts any."""

    def call(self, catalogue: Catalogue, arguments: Mapping[str, Any]) -> Result:
        """Return the tool's result for *arguments*, which must match `input`."""
        why = why_not_json(arguments.get("asset"), DEFAULT.depth)
        if why is not None:
            return _invalid([{"path": "", "msg": f"expected JSON of at most {DEFAULT.depth} levels, found {why}"}])
        return self.function(catalogue, **arguments)


_READS: Mapping[str, bool] = MappingProxyType(
    {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False}
)
_STORES: Mapping[str, bool] = MappingProxyType(
    {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": False, "openWorldHint": True}
)


def _tool(
    function: Callable[..., Result], title: str, description: str, annotations: Mapping[str, bool] = _READS
) -> Tool:
    name = function.__name__
    return Tool(name, title, description, annotations, *contracts.TOOLS[name], function)


TOOLS: Mapping[str, Tool] = MappingProxyType(
    {
        tool.name: tool
        for tool in (
            _tool(
                list_schemas,
                "List schemas",
                "Lists the JSON Schemas of the catalogue: name, version and file path of each. Start here: the names "
                "are what get_schema and validate_asset take.",
            ),
            _tool(
                get_schema,
                "Get a schema",
                "Returns one JSON Schema by its name, whole, with its version. Read it before you write an asset of "
                "that kind. An unknown name gives ok: false with reason not_found.",
            ),
            _tool(
                list_examples,
                "List examples",
                "Lists example assets: component and path of each. `component` narrows the list to one component or to "
                'the examples of one schema; "all", the default, lists every example. The paths are what get_example '
                "takes.",
            ),
            _tool(
                get_example,
                "Get an example",
                "Returns one example asset by its path, with the name of its schema and whether it fits that schema "
                "now. A good model to start a new asset from. A path that list_examples does not list gives ok: false "
                "with reason not_found.",
            ),
            _tool(
                validate_asset,
                "Validate an asset",
                "Checks an asset against a schema of the catalogue (JSON Schema Draft 2020-12). Gives ok: true, or ok: "
                "false with errors, each with the JSON Pointer of the wrong place and what is expected there. Correct "
                "those places and validate again. A top-level $schemaRef in the asset is ignored: `schema` decides.",
            ),
            _tool(
                diff_assets,
                "Diff two assets",
                "Compares two assets and returns the JSON Patch (RFC 6902) that turns `base` into `new`, made of add, "
                "remove and replace. Arrays that differ are replaced whole. An empty patch means there is no "
                "difference.",
            ),
            _tool(
                populate_backend,
                "Store an asset",
                "Stores an asset in the configured backend and returns the id it got there. By default the asset is "
                "validated first, against the schema its $schemaRef names, else as a synesthetic-asset; if it does not "
                "fit, nothing is sent. Calling it twice stores two assets. Without a configured backend it gives ok: "
                "false with reason unsupported.",
                _STORES,
            ),
        )
    }
)
"""By name, in the order of specs/001."""

"""Validate an asset against a schema of the catalogue; the errors are those of specs/001. No I/O."""

from typing import Any

from assay.assets.asset_sources import ALIASES, REFERENCE, Catalogue
from assay.base.json_values import why_not_json
from assay.base.limits import DEFAULT
from assay.engine.admission import SchemaRefusal
from assay.engine.compiled import Compiled
from assay.engine.fault import Faults
from assay.engine.wording import name as quoted
from assay.spec.schema import closest

Error = dict[str, str]
"""``{"path": …, "msg": …}``: a JSON Pointer and a message."""


def check(catalogue: Catalogue, asset: Any, schema: str) -> list[Error]:
    """
    Return the errors of *asset* by *schema*, sorted by path and message; empty if it is valid. Raises nothing.

    The asset must have passed `check_json`.
    """
    judge = catalogue.judge(schema)
    if not isinstance(judge, Compiled):
        return [_error("", _no_judge(catalogue, schema, judge))]
    judged = _without_reference(asset, catalogue, schema)
    if judge.always_affordable and (judge.is_valid(judged) or (judged is not asset and judge.is_valid(asset))):
        return []
    return _errors(judge.faults(judged, most=DEFAULT.violations))


def check_json(asset: Any) -> list[Error]:
    """
    Return why *asset* cannot be judged or serialized at all; empty for any value that was parsed from a frame.

    The engine overflows its stack, and ends the process, on values with some thousand levels.
    """
    why = why_not_json(asset, DEFAULT.depth)
    return [_error("", f"expected JSON of at most {DEFAULT.depth} levels, found {why}")] if why else []


def _without_reference(asset: Any, catalogue: Catalogue, schema: str) -> Any:
    """
    Return *asset* without a top-level `$schemaRef`, unless the schema defines it.

    specs/001 §9 requires this for the alias. The member only selects the schema: without this, no example of the
    reference data would match its own schema.
    """
    if not isinstance(asset, dict) or REFERENCE not in asset:
        return asset
    file = catalogue.schema(schema)
    if file is not None and any(REFERENCE in (file.file.value.get(key) or ()) for key in ("properties", "required")):
        return asset
    return {key: value for key, value in asset.items() if key != REFERENCE}


def _errors(faults: Faults) -> list[Error]:
    found = {(fault.at, f"expected {fault.expected}, found {fault.found}") for fault in faults.listed}
    if faults.more:
        found.add(("", f"{faults.more} more are not listed"))
    return [_error(path, msg) for path, msg in sorted(found)]


def _no_judge(catalogue: Catalogue, schema: str, refusal: SchemaRefusal | None) -> str:
    if refusal is not None:
        where = f" at {refusal.at}" if refusal.at else ""
        return f"schema {quoted(schema)} cannot be used: expected {refusal.expected}, found {refusal.found}{where}"
    names = sorted({one.name for one in catalogue.schemas} | {one for one in ALIASES if catalogue.schema(one)})
    if not names:
        return f"unknown schema {quoted(schema)}: there are no schemas here"

    near = closest(schema[:80], names)
    return f"unknown schema {quoted(schema)}" + (f": did you mean {quoted(near[0])}?" if near else "; see list_schemas")


def _error(path: str, msg: str) -> Error:
    return {"path": path, "msg": msg}

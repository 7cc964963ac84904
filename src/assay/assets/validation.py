"""Whether an asset fits a schema of the catalogue, and the errors of specs/001 if not. No I/O."""

from typing import Any

import orjson

from assay.assets.asset_sources import ALIASES, REFERENCE, Catalogue
from assay.base.limits import DEFAULT
from assay.engine.admission import SchemaRefusal
from assay.engine.compiled import Compiled
from assay.engine.fault import Faults
from assay.engine.wording import name as quoted

Error = dict[str, str]
"""``{"path": …, "msg": …}``: where, as a JSON Pointer, and what."""

# orjson writes this many levels, and refuses one more.
_DEEPEST_DUMP = 254


def check(catalogue: Catalogue, asset: Any, schema: str) -> list[Error]:
    """
    What is wrong with *asset* by *schema*, sorted by path and message; nothing if it fits. Raises nothing.

    The asset is one that `check_json` has nothing against.
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
    Why *asset* cannot be judged or written at all; nothing for all that a frame can hold.

    The engine overflows its stack, and ends the process, on values that are nested some thousand deep.
    """
    if _plainly_json(asset):
        return []
    wrapped = asset
    for _ in range(_DEEPEST_DUMP - DEFAULT.depth):
        wrapped = [wrapped]
    try:
        orjson.dumps(wrapped)
    except orjson.JSONEncodeError:
        # Too deep, no JSON, or an integer beyond 64 bits: only the last is fine.
        found = _why_not(asset)
        return [_error("", found)] if found else []
    return []


def _plainly_json(asset: Any) -> bool:
    """Whether *asset* can be written and has too few brackets to be too deep: true of nearly all."""
    try:
        text = orjson.dumps(asset)
    except orjson.JSONEncodeError:
        return False
    return len(text) <= 2 * DEFAULT.depth or text.count(b"{") + text.count(b"[") <= DEFAULT.depth


def _why_not(asset: Any) -> str:
    level = [asset]
    for _ in range(DEFAULT.depth + 1):
        wrong = next((value for value in level if not _is_json(value)), None)
        if wrong is not None:
            return f"expected JSON, found a {type(wrong).__name__} that JSON cannot write"
        containers = [value for value in level if isinstance(value, dict | list)]
        level = [one for value in containers for one in (value.values() if isinstance(value, dict) else value)]
    # What is inside the level past the last one allowed does not matter: that there is such a level does.
    return f"expected at most {DEFAULT.depth} levels of nesting, found more" if containers else ""


def _is_json(value: Any) -> bool:
    if isinstance(value, str):
        return _is_text(value)
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_text(key) for key in value)
    return value is None or isinstance(value, bool | int | float | list)


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _without_reference(asset: Any, catalogue: Catalogue, schema: str) -> Any:
    """
    *asset* without a top-level `$schemaRef`, unless the schema has something to say about it.

    specs/001 §9 asks for it where the alias is used. It says which schema to use, whichever it is: without this, no
    example of the reference data would fit the very schema it names.
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
    import difflib  # noqa: PLC0415 - four milliseconds that only a slip costs

    near = difflib.get_close_matches(schema[:80], names, n=1)
    return f"unknown schema {quoted(schema)}" + (f": did you mean {quoted(near[0])}?" if near else "; see list_schemas")


def _error(path: str, msg: str) -> Error:
    return {"path": path, "msg": msg}

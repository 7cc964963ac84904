"""Catalogues to ask, and a way of asking that holds every answer to its contract."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from assay.assets.asset_sources import Catalogue
from assay.assets.asset_tools import TOOLS
from assay.schema.compiled import compile_schema
from kit.places import ROOT

BUNDLED = ROOT / "examples" / "catalogue"

_INPUTS = {name: compile_schema(tool.input) for name, tool in TOOLS.items()}
_OUTPUTS = {name: compile_schema(tool.output) for name, tool in TOOLS.items()}


def answer(catalogue: Catalogue, tool: str, /, **arguments: Any) -> dict[str, Any]:
    """What *tool* answers: to arguments that fit its contract, in a shape that does."""
    assert _INPUTS[tool].faults(arguments).listed == ()
    result = TOOLS[tool].call(catalogue, arguments)
    assert _OUTPUTS[tool].faults(result).listed == ()
    return result


def variables(directory: Path, **more: str) -> dict[str, str]:
    """The variables of specs/001 for a directory with `jsonschema` and `examples`."""
    return {
        "SYN_SCHEMAS_DIR": str(directory / "jsonschema"),
        "SYN_EXAMPLES_DIR": str(directory / "examples"),
        **more,
    }


def bundled(**more: str) -> Catalogue:
    """The catalogue in `examples`."""
    return Catalogue.read(variables(BUNDLED, **more), ROOT)


def written(directory: Path, files: Mapping[str, Any]) -> Path:
    """*directory* with *files* in it: bytes as they are, everything else as JSON."""
    for name, content in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return directory


def of_schemas(directory: Path, files: Mapping[str, Any]) -> Catalogue:
    """A catalogue of schemas only, by file name."""
    written(directory / "jsonschema", files)
    return Catalogue.read(variables(directory), directory)

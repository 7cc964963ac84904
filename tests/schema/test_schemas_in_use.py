"""The schemas of all tools in the recordings: each of them can be judged by, as what a tool takes and what it gives."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from assay.rules.policy import Policy
from kit.rows import rows
from kit.toolbox import Mode, Sample, found_in


def tools_of(value: Any) -> Iterator[dict[str, Any]]:
    """The tools that a recorded message lists."""
    result = value.get("result") if isinstance(value, dict) else None
    tools = result.get("tools") if isinstance(result, dict) else None
    yield from (tool for tool in tools or () if isinstance(tool, dict))


@pytest.fixture(scope="module")
def recorded(shared: Path) -> dict[str, Sample]:
    """Each schema once."""
    found: dict[bytes, Any] = {}
    for path in sorted((shared / "transcripts").glob("*.jsonl")):
        for line in path.read_bytes().splitlines():
            for tool in tools_of(said(line)):
                schemas = [tool[member] for member in ("inputSchema", "outputSchema") if member in tool]
                found |= {orjson.dumps(schema): schema for schema in schemas}
    return {f"t{number}": Sample(schema) for number, schema in enumerate(found.values())}


def said(line: bytes) -> Any:
    """The message in a line of a recording, if there is one that can be read."""
    try:
        return orjson.loads(orjson.loads(line)["msg"])
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return None


@rows("mode", ["enforce", "audit"])
def test_the_schemas_of_real_tools_can_be_judged_by(recorded: dict[str, Sample], mode: Mode) -> None:
    """A strict policy lets nothing pass that is not judged."""
    assert len(recorded) > 500
    assert found_in(recorded, mode, policy=Policy(strict=True)) == {}

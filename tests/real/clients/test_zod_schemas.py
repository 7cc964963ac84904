"""Schemas as zod writes them, for every type that it has, in three drafts: all of them can be judged by."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from assay.rules.policy import Policy
from kit.rows import rows
from kit.toolbox import Sample, found_in

HERE = Path(__file__).parent
SECONDS = 60


@pytest.fixture(scope="module")
def zod() -> dict[str, Any]:
    """What zod wrote."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    if not (HERE / "node_modules" / "zod").exists():
        pytest.skip("zod is not installed: make test")
    done = subprocess.run([node, str(HERE / "zod_schemas.mjs")], capture_output=True, timeout=SECONDS, check=True)
    written: dict[str, Any] = json.loads(done.stdout)
    return written


def samples(zod: dict[str, Any], target: str, io: str) -> dict[str, Sample]:
    """The schemas of one draft, of what a type takes or of what it gives."""
    chosen = [each for each in zod["written"] if (each["target"], each["io"]) == (target, io)]
    return {each["name"]: Sample(each["schema"], inside(each["good"]), inside(each["bad"])) for each in chosen}


def inside(values: list[Any]) -> list[Any]:
    """Each value as zod's object around it has it."""
    return [{"value": value} for value in values]


@rows("io", ["input", "output"])
@rows("target", ["draft-2020-12", "draft-7", "draft-4"])
def test_every_type_can_be_judged_by(zod: dict[str, Any], target: str, io: str) -> None:
    """A strict policy lets nothing pass that is not judged. Every format of texts is among them."""
    assert set(zod["formats"]) - {each["name"] for each in zod["written"]} == set()
    chosen = samples(zod, target, io)
    assert len(chosen) > 100
    assert found_in(chosen, "enforce", policy=Policy(strict=True)) == {}


def test_schemas_for_openapi_take_no_tool_away(zod: dict[str, Any]) -> None:
    """They name no draft, and some are none of 2020-12. What may be null they say in a way of their own."""
    chosen = {name: Sample(each.schema) for name, each in samples(zod, "openapi-3.0", "input").items()}
    found = found_in(chosen, "enforce")
    assert {(each.rule, each.action) for some in found.values() for each in some} == {
        ("contract/unknown-dialect", "report")
    }
    assert {name.split()[0] for name in found} == {"number", "every"}

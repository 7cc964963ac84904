"""Our facts against the official schema files, where these are at hand."""

import hashlib
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import pytest

from assay.cli.schemas import run_export
from assay.spec.extensions.official import EXTENSIONS, Extension
from assay.spec.revisions import PROVED, REVISIONS
from kit.rows import rows


@rows("revision", REVISIONS)
def test_the_facts_were_proved_equal_to_these_very_files(shared: Path, revision: str) -> None:
    official = (shared / "mcp-schema" / revision / "schema.json").read_bytes()
    assert hashlib.sha256(official).hexdigest() == PROVED[revision]


def test_every_definition_is_proved_equal(shared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_export(Namespace(directory=str(tmp_path), literal=True)) == 0
    program = shared / "schema-diff" / "schema_diff.py"
    run = subprocess.run(
        [sys.executable, program, tmp_path, "--skip-proved"], capture_output=True, text=True, timeout=300, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
    for count in (79, 83, 91, 145, 155):
        assert f"proved equal     {count} of {count} " in run.stdout
    assert "129 of 129 same verdict, 129 valid" in run.stdout


PROVED_EXTENSIONS = [each for each in EXTENSIONS.values() if each.proved is not None]


@pytest.mark.parametrize("extension", PROVED_EXTENSIONS, ids=lambda each: each.name)
def test_the_facts_of_an_extension_were_proved_equal_to_this_very_file(shared: Path, extension: Extension) -> None:
    official = (shared / "mcp-schema" / "extensions" / f"{extension.name}.schema.json").read_bytes()
    assert hashlib.sha256(official).hexdigest() == extension.proved


def test_every_definition_of_an_extension_is_proved_equal(shared: Path, tmp_path: Path) -> None:
    assert run_export(Namespace(directory=str(tmp_path), literal=True)) == 0
    program = shared / "schema-diff" / "schema_diff.py"
    reference = shared / "mcp-schema" / "extensions"
    names = [word for each in PROVED_EXTENSIONS for word in ("--rev", each.name)]
    command = [sys.executable, str(program), str(tmp_path), "--reference", str(reference), "--skip-proved", *names]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "proved equal     76 of 76 " in run.stdout

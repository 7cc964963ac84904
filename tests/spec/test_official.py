"""Our facts against the official schema files, where these are at hand."""

import hashlib
import runpy
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


def compared(shared: Path, exported: Path, monkeypatch: pytest.MonkeyPatch, *options: str) -> int:
    """Export our schemas, and compare them with the official ones; return the status of the program that does."""
    assert run_export(Namespace(directory=str(exported), literal=True)) == 0
    program = shared / "schema-diff" / "schema_diff.py"
    monkeypatch.setattr(sys, "argv", [str(program), str(exported), "--skip-proved", *options])
    try:
        runpy.run_path(str(program), run_name="__main__")
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def test_every_definition_is_proved_equal(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    status = compared(shared, tmp_path, monkeypatch)
    shown = capsys.readouterr().out
    assert status == 0, shown
    for count in (79, 83, 91, 145, 155):
        assert f"proved equal     {count} of {count} " in shown
    assert "129 of 129 same verdict, 129 valid" in shown


PROVED_EXTENSIONS = [each for each in EXTENSIONS.values() if each.proved is not None]


@rows("extension", PROVED_EXTENSIONS, ids=lambda each: each.name)
def test_the_facts_of_an_extension_were_proved_equal_to_this_very_file(shared: Path, extension: Extension) -> None:
    official = (shared / "mcp-schema" / "extensions" / f"{extension.name}.schema.json").read_bytes()
    assert hashlib.sha256(official).hexdigest() == extension.proved


def test_every_definition_of_an_extension_is_proved_equal(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    reference = shared / "mcp-schema" / "extensions"
    names = [word for each in PROVED_EXTENSIONS for word in ("--rev", each.name)]
    status = compared(shared, tmp_path, monkeypatch, "--reference", str(reference), *names)
    shown = capsys.readouterr().out
    assert status == 0, shown
    assert "proved equal     76 of 76 " in shown

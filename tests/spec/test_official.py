"""Our facts against the official schema files, where these are at hand."""

import hashlib
import runpy
import sys
from argparse import Namespace
from pathlib import Path

import pytest

from assay.cli.schemas import run_export
from assay.spec.extensions import EXTENSIONS
from assay.spec.revisions import PROVED, REVISIONS
from kit.rows import rows

PROVED_EXTENSIONS = {each.name: each.proved for each in EXTENSIONS.values() if each.proved is not None}
FILES = {f"{revision}/schema.json": PROVED[revision] for revision in REVISIONS} | {
    f"extensions/{name}.schema.json": proved for name, proved in PROVED_EXTENSIONS.items()
}


@rows(("name", "proved"), FILES.items())
def test_the_facts_were_proved_equal_to_these_very_files(shared: Path, name: str, proved: str) -> None:
    assert hashlib.sha256((shared / "mcp-schema" / name).read_bytes()).hexdigest() == proved


@pytest.mark.parametrize("of_extensions", [False, True])
def test_every_definition_is_proved_equal(
    shared: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    of_extensions: bool,
) -> None:
    """Our schemas are exported, and compared with the official ones by a program that is no part of the project."""
    assert run_export(Namespace(directory=str(tmp_path), literal=True)) == 0
    program = shared / "schema-diff" / "schema_diff.py"
    names = [word for name in PROVED_EXTENSIONS for word in ("--rev", name)]
    options = ["--reference", str(shared / "mcp-schema" / "extensions"), *names] if of_extensions else []
    monkeypatch.setattr(sys, "argv", [str(program), str(tmp_path), "--skip-proved", *options])
    with pytest.raises(SystemExit) as end:
        runpy.run_path(str(program), run_name="__main__")
    shown = capsys.readouterr().out
    assert not end.value.code, shown
    for count in (76,) if of_extensions else (79, 83, 91, 145, 155):
        assert f"proved equal     {count} of {count} " in shown
    assert of_extensions or "129 of 129 same verdict, 129 valid" in shown

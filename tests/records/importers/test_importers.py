"""`assay check` on recordings of other programs: the same conversation gives the same findings in every format."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from renderings import DUPLICATES, FAULTS, IN_CONSEQUENCE, RENDERINGS, Rendering, native

from assay.cli.main import main
from assay.records.importers.importer_table import IMPORTERS, recognised
from kit.places import ROOT
from kit.rows import rows

EVERY = rows("rendering", [pytest.param(each, id=name) for name, each in RENDERINGS.items()])


class Checked:
    """What `assay check` says of a file."""

    def __init__(self, status: int, out: str, errors: str) -> None:
        self.status, self.errors = status, errors
        self.records: list[dict[str, Any]] = [json.loads(line) for line in out.splitlines()]

    @property
    def faults(self) -> list[tuple[str, str, str]]:
        """The findings: the party, the rule and the place."""
        return [(each["party"], it["rule"], it["at"]) for each in self.records for it in each["violations"]]


def check(capsys: pytest.CaptureFixture[str], file: Path | str, *options: str) -> Checked:
    """Run `assay check`."""
    status = main(["check", "--format", "ndjson", *options, str(file)])
    return Checked(status, *capsys.readouterr())


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file without a name that would give its format away."""
    return tmp_path / "recording"


def expected(rendering: Rendering) -> list[tuple[str, str, str]]:
    """The findings that are visible in a format."""
    further = [each for rule, each in IN_CONSEQUENCE.items() if rule not in rendering.hides]
    return [each for each in FAULTS if each[1] not in rendering.hides] + further


@EVERY
def test_the_same_conversation_has_the_same_findings(
    file: Path, capsys: pytest.CaptureFixture[str], rendering: Rendering
) -> None:
    file.write_bytes(rendering.write())
    checked = check(capsys, file, *rendering.options)
    assert checked.faults == expected(rendering)
    assert checked.status == 1
    importer = next(each for each in IMPORTERS if each.format.name == rendering.source)
    assert [line for line in checked.errors.splitlines() if "not observed" in line] == (
        [f"assay check: {file}: read as {importer.format.title}; not observed: {'; '.join(importer.format.cannot)}"]
        if importer.format.cannot
        else []
    )


@EVERY
def test_a_format_is_recognized(rendering: Rendering) -> None:
    found = recognised(rendering.write(), "recording")
    assert (found.format.name if found is not None else "map") == rendering.source


def test_every_format_has_a_rendering() -> None:
    assert {each.source for each in RENDERINGS.values()} == {each.format.name for each in IMPORTERS}


def test_what_is_hidden_is_declared() -> None:
    for rendering in RENDERINGS.values():
        declared = " ".join(next(each for each in IMPORTERS if each.format.name == rendering.source).format.cannot)
        assert ("repeated keys" in declared) == (DUPLICATES in rendering.hides)


@EVERY
@rows("packed", ["gzip", "zstd", "crlf", "bom"])
def test_a_file_is_read_however_it_is_packed(
    file: Path, capsys: pytest.CaptureFixture[str], rendering: Rendering, packed: str
) -> None:
    from backports import zstd

    written = rendering.write()
    if packed == "bom" and rendering.source == "assay":
        # It would not be from our recorder.
        return
    packings: dict[str, Callable[[bytes], bytes]] = {
        "gzip": gzip.compress,
        "zstd": zstd.compress,
        "crlf": lambda data: data.replace(b"\n", b"\r\n"),
        "bom": lambda data: b"\xef\xbb\xbf" + data,
    }
    file.write_bytes(packings[packed](written))
    assert check(capsys, file, *rendering.options).faults == expected(rendering)


@EVERY
def test_times_are_kept(rendering: Rendering) -> None:
    from assay.records.importers.importer import ImportOptions
    from assay.records.importers.importer_table import BY_NAME
    from assay.records.importers.mapped import parsed

    options = ImportOptions(fields=parsed(rendering.options[1]) if rendering.options else {})
    written = rendering.write().splitlines(keepends=True)
    times = [row.time for row in BY_NAME[rendering.source].read(written, options) if "msg" in row.members]
    if rendering.source in {"assay", "messages"}:
        assert set(times) == {None}
    else:
        known = [each for each in times if each is not None]
        assert known == times == sorted(known)
        assert known[0] == 1784858594.089
        assert 0.1 < known[-1] - known[0] < 1


def test_standard_input_is_read_without_seeking(tmp_path: Path) -> None:
    from kit.command import assay

    for name, rendering in RENDERINGS.items():
        done = assay("check", "--format", "ndjson", *rendering.options, "-", said=gzip.compress(rendering.write()))
        assert done.stdout.count(b"\n") >= len(expected(rendering)) - 1, name
        assert done.returncode == 1


def test_our_own_recording_has_no_remark(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_bytes(native())
    assert check(capsys, file).errors == ""


def test_the_page_has_every_format() -> None:
    page = (ROOT / "docs" / "check.md").read_text(encoding="utf-8")
    for each in IMPORTERS:
        about = each.format
        assert f"| `{about.name}` | {about.title} | {about.where} | {'; '.join(about.cannot) or '–'} |" in page

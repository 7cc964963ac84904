"""`assay check` on recordings of other programs: the same conversation gives the same findings in every format."""

import gzip
from collections.abc import Callable
from pathlib import Path

from backports import zstd
from renderings import DUPLICATES, EVERY, RENDERINGS, Rendering, check, expected, file, judged

from assay.records.importers.importer import ImportOptions
from assay.records.importers.importer_table import BY_NAME, IMPORTERS, recognised
from assay.records.importers.message_lines import mapping_of
from kit.places import ROOT
from kit.rows import rows

__all__ = ["file"]


@EVERY
def test_the_same_conversation_has_the_same_findings(file: Path, rendering: Rendering) -> None:
    checked = judged(file, rendering.write(), *rendering.options)
    assert (checked.faults, checked.status) == (expected(rendering), 1)
    about = BY_NAME[rendering.source]
    remark = f"assay check: {file}: read as {about.title}; not observed: {'; '.join(about.cannot)}"
    assert [line for line in checked.errors.splitlines() if "not observed" in line] == [remark] * bool(about.cannot)
    assert ("repeated keys" in " ".join(about.cannot)) == (DUPLICATES in rendering.hides)
    found = recognised(rendering.write(), "recording")
    assert (found.name if found is not None else "map") == rendering.source


@EVERY
@rows("packed", ["gzip", "zstd", "crlf", "bom"])
def test_a_file_is_read_however_it_is_packed(file: Path, rendering: Rendering, packed: str) -> None:
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
    assert judged(file, packings[packed](written), *rendering.options).faults == expected(rendering)


@EVERY
def test_times_are_kept(rendering: Rendering) -> None:
    options = ImportOptions(fields=mapping_of(rendering.options[1]) if rendering.options else {})
    written = rendering.write().splitlines(keepends=True)
    times = [row.time for row in BY_NAME[rendering.source].read(written, options) if "msg" in row.members]
    if rendering.source in {"assay", "messages"}:
        assert set(times) == {None}
    else:
        known = [each for each in times if each is not None]
        assert known == times == sorted(known)
        assert known[0] == 1784858594.089
        assert 0.1 < known[-1] - known[0] < 1


@EVERY
def test_standard_input_is_read_without_seeking(rendering: Rendering) -> None:
    checked = check("-", *rendering.options, said=gzip.compress(rendering.write()))
    assert (checked.faults, checked.status) == (expected(rendering), 1)


def test_the_page_has_every_format() -> None:
    assert {each.source for each in RENDERINGS.values()} == {each.name for each in IMPORTERS}
    page = (ROOT / "docs" / "check.md").read_text(encoding="utf-8")
    for about in IMPORTERS:
        assert f"| `{about.name}` | {about.title} | {about.where} | {'; '.join(about.cannot) or '–'} |" in page

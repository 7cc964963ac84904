"""How a guard introduces itself on stderr: which server, which mode, and where the journal is."""

from pathlib import Path

import pytest

from assay.base.printable import labelled
from assay.edges.stderr_writer import hello


def test_the_first_line_names_the_server_the_mode_the_journal_and_the_url(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert hello("time", "audit", "/a/b/run.jsonl") == "assay: guarding time (audit), journal /a/b"
    assert hello("time", "audit", "runs/a.jsonl") == f"assay: guarding time (audit), journal {tmp_path}/runs"
    assert hello("time", "enforce", None) == "assay: guarding time (enforce), no journal"
    line = hello("time", "audit", None, "http://127.0.0.1:80/mcp")
    assert line == "assay: guarding time (audit), no journal, at http://127.0.0.1:80/mcp"


def test_a_label_follows_what_begins_every_line_of_ours() -> None:
    said: list[str] = []
    labelled(said.append, "a\x1bb")("assay: something")
    labelled(said.append, "")("assay: else")
    assert said == ["assay: [a·b] something", "assay: else"]

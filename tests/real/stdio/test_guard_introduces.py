"""The guard introduces itself on stderr: which server, which mode, which revision, and where the journal is."""

import os
import pty
from pathlib import Path

import pytest

from assay.base.printable import labelled
from assay.edges.stderr_writer import hello
from kit.guard_process import enforcing, guarded, initialize, request

WAITING = b"assay: waiting for an MCP client on standard input; a client starts this command itself"


def test_the_line_has_the_url_last() -> None:
    assert hello("time", "audit", "/a/b/run.jsonl") == "assay: guarding time (audit), journal /a/b"
    assert hello("time", "enforce", None) == "assay: guarding time (enforce), no journal"
    line = hello("time", "audit", None, "http://127.0.0.1:80/mcp")
    assert line == "assay: guarding time (audit), no journal, at http://127.0.0.1:80/mcp"


def test_a_relative_journal_is_shown_with_its_whole_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert hello("time", "audit", "runs/a.jsonl") == f"assay: guarding time (audit), journal {tmp_path}/runs"


def test_the_first_line_comes_before_the_client_says_anything(tmp_path: Path) -> None:
    with guarded(tmp_path, "--journal", str(tmp_path / "verdicts")) as one:
        first = one.log.next()
        assert first.decode() == f"assay: guarding lying_server (audit), journal {tmp_path}/verdicts"
        one.ask(initialize("2025-06-18"))
        assert one.log.next() == b"assay: lying_server speaks MCP 2025-06-18"
        one.close()
        assert one.ended() == 0
        [counts] = one.log.rest()
    assert counts == b"assay: [lying_server] 1 message from the client, 1 from the server, 0 findings"


def test_a_given_name_is_used(tmp_path: Path) -> None:
    with enforcing(tmp_path, "--name", "my files", "--journal", "off") as one:
        assert one.log.next() == b"assay: guarding my files (enforce), no journal"


def test_quiet_silences_the_introduction(tmp_path: Path) -> None:
    with guarded(tmp_path, "--quiet") as one:
        one.ask(initialize())
        one.close()
        assert one.ended() == 0
        assert one.log.rest() == []


def test_the_revision_of_a_probe_that_the_server_refuses_is_not_told(tmp_path: Path) -> None:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "a", "version": "1"},
    }
    no = {"jsonrpc": "2.0", "id": "$id", "error": {"code": -32601, "message": "no"}}
    with guarded(tmp_path, on={"server/discover": [["say", no]]}) as one:
        one.log.next()
        assert "error" in one.ask(request(0, "server/discover", {"_meta": meta}))
        one.ask(initialize("2025-11-25"))
        assert one.log.next() == b"assay: lying_server speaks MCP 2025-11-25"


def test_in_a_terminal_the_guard_says_what_it_waits_for(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    try:
        with guarded(tmp_path, streams={"stdin": theirs}) as one:
            one.log.next()
            assert one.log.next() == WAITING
            os.write(ours, b"\x04")
            assert one.ended() == 0
    finally:
        os.close(ours)
        os.close(theirs)


def test_a_label_follows_what_begins_every_line_of_ours() -> None:
    said: list[str] = []
    labelled(said.append, "a\x1bb")("assay: something")
    labelled(said.append, "")("assay: else")
    assert said == ["assay: [a·b] something", "assay: else"]

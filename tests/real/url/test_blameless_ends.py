"""Requests that stay open because the client left or the guard was stopped are no fault of the server."""

import signal
from pathlib import Path
from typing import Any

import pytest

from kit import journals
from kit.command import assay
from kit.guard_process import call, guarded
from kit.rows import rows


def in_journal(directory: Path) -> list[dict[str, Any]]:
    """Return the records of the one run in *directory*."""
    [run] = directory.glob("2*.jsonl")
    return journals.records(run)


def missing(directory: Path) -> list[dict[str, Any]]:
    """Return the records of missing answers."""
    return [each for each in in_journal(directory) if each["metadata"]["kind"] == "missing"]


def blamed(directory: Path) -> list[Any]:
    """Return the findings against the server."""
    every = [each for each in in_journal(directory) if each["metadata"]["party"] == "server" and each["error"]]
    return [violation for each in every for violation in each["error"]["violations"]]


@rows("how", ["stopped", "gone"])
def test_over_stdio_the_server_is_not_blamed(tmp_path_factory: pytest.TempPathFactory, how: str) -> None:
    """The request has its error in the records, and no violation: in the journal and in what replays it."""
    directory = tmp_path_factory.mktemp(how)
    journal, recording = directory / "j", directory / "session.jsonl"
    options = ("--mode", "enforce", "--journal", str(journal), "--record", str(recording), "--fail-on", "report")
    with guarded(directory, *options, "--set", "journal.payloads=true", received=True, on={"tools/call": []}) as one:
        one.open()
        one.say(call(1))
        while b"tools/call" not in one.received.next():
            pass
        if how == "stopped":
            one.process.send_signal(signal.SIGTERM)
        else:
            assert one.process.stdout is not None
            one.close()
            one.process.stdout.close()
        assert one.ended() == 0
        assert b" 0 findings" in one.log.all()
    assert blamed(journal) == []
    [record] = missing(journal)
    assert (record["status"], record["error"]["code"]) == ("failed", "UPSTREAM_FAILURE")
    for line in (["check", "--fail-on", "report", recording], ["check", "--fail-on", "report", journal]):
        assert assay(*map(str, line)).returncode == 0
    assert assay("replay", str(journal)).returncode == 0

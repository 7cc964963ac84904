"""Requests that stay open because the client left or the guard was stopped are no fault of the server."""

import signal
from pathlib import Path
from typing import Any

import pytest

from assay.spec.revisions import LATEST
from kit import journals
from kit.command import assay
from kit.guard_process import call, frame_of, guarded, request
from kit.guard_process import scripted as scripted_command
from kit.http_client import SECONDS, meta, modern, until
from kit.rows import rows
from kit.scripted_http import REVISION, Received, WirePeer, answering, guarding, listening, scripted


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


def test_a_server_that_does_not_answer_before_the_client_closes_its_input_is_blamed(tmp_path: Path) -> None:
    """The client still reads, so the server could have answered."""
    options = ("--mode", "enforce", "--timeout", "0.2", "--journal", str(tmp_path / "j"))
    with guarded(tmp_path, *options, on={"tools/call": []}) as one:
        one.open()
        one.say(call(1))
        one.close()
        assert one.answer()["error"]["code"] in {-31011, -31012}
        one.ended()
    assert [each["rule"] for each in blamed(tmp_path / "j")] == ["protocol/unanswered"]


def test_over_http_the_server_of_a_deleted_session_or_a_stopped_guard_is_not_blamed(tmp_path: Path) -> None:
    options = ("--mode", "enforce", "--journal", str(tmp_path / "j"))
    received = tmp_path / "received"
    command = scripted_command(received=str(received), on={"tools/call": []})
    with listening(tmp_path, *options, "--", *command) as guard:
        sessions = [guard.session(REVISION) for _ in range(2)]
        wires = [guard.open() for _ in sessions]
        for count, (wire, headers) in enumerate(zip(wires, sessions, strict=True), 1):
            wire.say("POST", "/mcp", frame_of(call(1)), headers)
            until(lambda count=count: received.read_bytes().count(b"tools/call") == count)  # type: ignore[misc]  # of now
        assert guard.ask("DELETE", headers=sessions[0]).status == 200
        assert b"-31011" in wires[0].until(b"No answer came")
        # The second one ends it at once.
        for each in (signal.SIGTERM, signal.SIGINT):
            guard.signal(each)
        assert guard.process.wait(SECONDS) == 0
    assert len(missing(tmp_path / "j")) == 2
    assert blamed(tmp_path / "j") == []


def test_a_server_at_a_url_is_not_blamed_for_a_subscription_when_the_guard_stops(tmp_path: Path) -> None:
    def listens(_: Received, peer: WirePeer) -> None:
        peer.events(b": listening\n\n")
        peer.wait()

    options = ("--mode", "enforce", "--journal", str(tmp_path / "j"))
    script = answering(listens, "subscriptions/listen")
    with scripted(script) as server, guarding(tmp_path, server.url, *options) as guard:
        message = request("s", "subscriptions/listen", {"notifications": {}, "_meta": meta(LATEST)})
        wire = guard.open()
        wire.say("POST", "/mcp", frame_of(message), modern(message))
        wire.head()
        guard.signal(signal.SIGTERM)
        assert b"-31011" in wire.until(b"the guard was stopped")
    assert blamed(tmp_path / "j") == []

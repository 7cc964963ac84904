"""Requests that stay open because the client left or the guard was stopped are no fault of the server."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from assay.core.conversation import Conversation
from assay.guard.deliveries import ClientTraits, Loss, LossReason, ServerTraits
from assay.guard.session import GuardedSession
from assay.guard.sinks import Sinks
from assay.spec.revisions import LATEST
from kit import journals
from kit.command import assay_process
from kit.guard_process import Guarded, call, frame_of, guarded, liar, request
from kit.http_client import BOTH, SECONDS, Service, Wire, initialize, meta, modern, until
from kit.scripted_http import REVISION, Peer, Received, good, listening, lying


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


def left(one: Guarded, how: str) -> None:
    """The client leaves, or the guard is stopped."""
    assert one.process.stdout is not None
    if how == "stopped":
        one.process.send_signal(signal.SIGTERM)
    else:
        one.close()
        one.process.stdout.close()


@pytest.mark.parametrize("mode", ["audit", "enforce"])
@pytest.mark.parametrize("how", ["stopped", "gone"])
def test_over_stdio_the_server_is_not_blamed(tmp_path: Path, mode: str, how: str) -> None:
    journal, recording = tmp_path / "j", tmp_path / "session.jsonl"
    options = ("--mode", mode, "--journal", str(journal), "--record", str(recording), "--fail-on", "report")
    with guarded(tmp_path, *options, "--set", "journal.payloads=true", received=True, on={"tools/call": []}) as one:
        one.open()
        one.say(call(1))
        while b"tools/call" not in one.received.next():
            pass
        left(one, how)
        assert one.ended() == 0
        assert b" 0 findings" in one.log.all()
    assert blamed(journal) == []
    assert assay_process("check", "--fail-on", "report", str(recording)).returncode == 0
    assert assay_process("check", "--fail-on", "report", str(journal)).returncode == 0
    assert assay_process("replay", str(journal)).returncode == 0


def test_the_record_of_such_a_request_has_its_error_and_no_violation(tmp_path: Path) -> None:
    options = ("--mode", "enforce", "--journal", str(tmp_path / "j"))
    with guarded(tmp_path, *options, received=True, on={"tools/call": []}) as one:
        one.open()
        one.say(call(1))
        while b"tools/call" not in one.received.next():
            pass
        left(one, "stopped")
        assert one.ended() == 0
    [record] = missing(tmp_path / "j")
    assert (record["status"], record["error"]["code"], record["error"]["violations"]) == (
        "failed",
        "UPSTREAM_FAILURE",
        [],
    )


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


def opened(service: Service) -> dict[str, str]:
    """Return the headers of a new session."""
    answer = service.post(initialize(REVISION))
    return {**BOTH, "mcp-session-id": answer.header("mcp-session-id") or ""}


def begun(service: Service, headers: Any) -> Wire:
    """Return the connection of a call that waits for its answer."""
    wire = service.open()
    wire.say("POST", "/mcp", frame_of(call(1)), headers)
    return wire


@pytest.mark.parametrize("how", ["stopped", "deleted"])
def test_over_http_the_server_of_an_ended_session_is_not_blamed(tmp_path: Path, how: str) -> None:
    options = ("--mode", "enforce", "--journal", str(tmp_path / "j"), "--set", "http.grace_seconds=1")
    received = tmp_path / "received"
    with listening(tmp_path, *options, "--", *liar(received=str(received), on={"tools/call": []})) as service:
        headers = opened(service)
        wire = begun(service, headers)
        until(lambda: b"tools/call" in received.read_bytes())
        if how == "deleted":
            assert service.ask("DELETE", headers=headers).status == 200
            assert b"-31011" in wire.until(b"No answer came")
        service.signal(signal.SIGTERM)
        assert service.process.wait(SECONDS) == 0
    assert len(missing(tmp_path / "j")) == 1
    assert blamed(tmp_path / "j") == []


def test_a_server_at_a_url_is_not_blamed_for_a_subscription_when_the_guard_stops(tmp_path: Path) -> None:
    options = ("--mode", "enforce", "--journal", str(tmp_path / "j"))

    def listens(received: Received, peer: Peer) -> None:
        if received.body and received.message.get("method") == "subscriptions/listen":
            peer.events(b": listening\n\n")
            peer.wait()
        else:
            good(received, peer)

    with lying(listens) as server, listening(tmp_path, "--target", server.url, *options) as service:
        message = request("s", "subscriptions/listen", {"notifications": {}, "_meta": meta(LATEST)})
        wire = service.open()
        wire.say("POST", "/mcp", frame_of(message), modern(message))
        wire.head()
        service.signal(signal.SIGTERM)
        assert b"-31011" in wire.until(b"the guard was stopped")
    assert blamed(tmp_path / "j") == []


@pytest.mark.parametrize(
    ("reason", "excused"),
    [
        ("closed", True),
        ("stopped", True),
        ("slow_client", True),
        ("internal", True),
        ("exited", False),
        ("broken", False),
        ("timeout", False),
        ("unstartable", False),
        ("session_gone", False),
    ],
)
def test_only_the_server_is_blamed_for_its_own_end(reason: LossReason, excused: bool) -> None:
    judge = Conversation(revision="2025-11-25")
    session = GuardedSession(judge, Sinks(), ClientTraits("stdio"), ServerTraits("child"))
    session.from_client(frame_of(request(1, "ping")))
    [failed] = session.close(Loss(reason, "something happened")).failed
    error = json.loads(failed.answer)["error"]
    assert "something happened" in error["message"]
    assert ("violations" not in error["data"]) is excused
    assert (failed.verdict.violations == ()) is excused

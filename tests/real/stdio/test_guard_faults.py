"""An internal error of the guard outside of its judge: one answer for each request, and the guard goes on."""

import json
from pathlib import Path
from typing import Any

import pytest

from kit.faulting import INTERNAL_ERROR, JUDGED, LISTED, RECORDED, WATCHED, assert_logged_once, fault_at
from kit.guard_process import guarded, notification, request, result
from kit.journals import records

SINKS = {"recorded": RECORDED, "noted": LISTED, "watched": WATCHED}
"""Where a message is recorded: an error there never affects the message."""

JUDGING = {
    "judged": JUDGED,
    "acted": "assay.guard.routing:Router.act",
    "timed": "assay.guard.deadlines:Deadlines.note",
}
PLACES = {**SINKS, **JUDGING}


def options(mode: str, directory: Path) -> list[str]:
    return ["--mode", mode, "--journal", str(directory / "journal")]


@pytest.mark.parametrize("mode", ["enforce", "audit"])
@pytest.mark.parametrize("place", SINKS)
def test_a_message_that_cannot_be_recorded_is_forwarded_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, mode: str
) -> None:
    fault_at(monkeypatch, SINKS[place])
    with guarded(tmp_path, *options(mode, tmp_path)) as guard:
        guard.open()
        for ident in (6, 7):
            asked = request(ident, "ping", {"_meta": {"fault": 1}})
            assert guard.ask(asked) == result(ident, {})
        guard.close()
        assert guard.ended() == 0
        assert_logged_once(guard.log.all().decode())


@pytest.mark.parametrize("place", JUDGING)
def test_under_enforce_the_client_gets_one_error_and_the_server_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    fault_at(monkeypatch, PLACES[place])
    # Something is wrong with these, so that there is something to be done about them.
    params = {"_meta": {"fault": 1}, **({"cursor": 5} if place == "acted" else {})}
    with guarded(tmp_path, *options("enforce", tmp_path), received=True) as guard:
        guard.open()
        for ident in (6, 7):
            told = guard.ask(request(ident, "resources/list", params))
            assert told["id"] == ident
            assert told["error"]["code"] == INTERNAL_ERROR
            assert guard.ask(request(f"ping {ident}", "ping"))["result"] == {}
        guard.close()
        assert guard.out.rest() == []
        assert guard.ended() == 0
        assert b"fault" not in guard.received.all()
        assert_logged_once(guard.log.all().decode())


@pytest.mark.parametrize("place", PLACES)
def test_under_audit_every_frame_goes_on_as_it_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    fault_at(monkeypatch, PLACES[place])
    params = {"_meta": {"fault": 1}, **({"cursor": 5} if place == "acted" else {})}
    with guarded(tmp_path, *options("audit", tmp_path), received=True) as guard:
        guard.open()
        for ident in (7, 8):
            assert guard.ask(request(ident, "resources/list", params)) == result(ident, {})
        guard.close()
        assert guard.ended() == 0
        heard = [json.loads(line) for line in guard.received.rest()]
        assert [each["id"] for each in heard if "fault" in str(each)] == [7, 8]
        if place != "timed":
            # Under audit nobody keeps the time.
            assert_logged_once(guard.log.all().decode())


@pytest.mark.parametrize("mode", ["enforce", "audit"])
@pytest.mark.parametrize("place", ["judged", "timed"])
def test_an_answer_of_the_server_that_fails_here_is_still_an_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, mode: str
) -> None:
    fault_at(monkeypatch, PLACES[place])
    answers: Any = {"on": {"resources/list": [["result", {"resources": [], "_meta": {"fault": 1}}]]}}
    with guarded(tmp_path, *options(mode, tmp_path), **answers) as guard:
        guard.open()
        for ident in (6, 7):
            told = guard.ask(request(ident, "resources/list"))
            assert told["id"] == ident
            if mode == "audit":
                assert told["result"]["_meta"] == {"fault": 1}
            elif place != "timed":
                assert told["error"]["code"] == INTERNAL_ERROR
        assert guard.ask(request(8, "ping"))["result"] == {}


@pytest.mark.parametrize("mode", ["enforce", "audit"])
def test_what_comes_before_and_after_keeps_its_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    """All of them arrive at once, so that good frames wait to be written while one fails."""
    fault_at(monkeypatch, PLACES["judged"])
    with guarded(tmp_path, *options(mode, tmp_path), received=True) as guard:
        guard.open()
        notes = [notification("notifications/cancelled", {"requestId": f"{each}"}) for each in (1, 2, "fault", 3)]
        guard.say(*notes, request(9, "ping"))
        assert guard.answer()["id"] == 9
        guard.close()
        guard.ended()
        heard = [json.loads(line) for line in guard.received.rest()]
        found = [each["params"]["requestId"] for each in heard if each["method"] == "notifications/cancelled"]
        assert found == [each for each in ("1", "2", "fault", "3") if each != "fault" or mode == "audit"]


def test_each_request_of_a_batch_that_fails_is_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fault_at(monkeypatch, PLACES["judged"])
    with guarded(tmp_path, *options("enforce", tmp_path)) as guard:
        guard.open(revision="2025-03-26")
        told: Any = guard.ask([request(1, "ping"), request("fault", "ping"), notification("notifications/none")])
        assert {each["id"]: each["error"]["code"] for each in told} == {1: INTERNAL_ERROR, "fault": INTERNAL_ERROR}
        assert guard.ask(request(1, "ping"))["result"] == {}


@pytest.mark.parametrize("mode", ["enforce", "audit"])
def test_a_line_of_the_journal_that_cannot_be_written_loses_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    fault_at(monkeypatch, "assay.records.journal.journal_output:JournalOutput.write")
    with guarded(tmp_path, *options(mode, tmp_path)) as guard:
        guard.open()
        tool = {"name": "fault", "arguments": {"words": "sea"}}
        guard.say(request(1, "ping"), request(2, "tools/call", tool), request(3, "ping"))
        assert {guard.answer()["id"] for _ in range(3)} == {1, 2, 3}
        guard.close()
        assert guard.ended() == 0
    [written] = (tmp_path / "journal").glob("*.jsonl")
    ids = [each["metadata"]["id"] for each in records(written)]
    assert ids.count(1) == 2
    assert ids.count(3) == 2

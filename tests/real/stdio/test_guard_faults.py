"""An internal error of the guard: one answer for each request, and the guard goes on."""

import json
from pathlib import Path

import pytest

from kit.faulting import INTERNAL_ERROR, JUDGED, assert_logged_once, fault_at
from kit.guard_process import guarded, notification, request, result
from kit.rows import rows

FAULT = {"_meta": {"fault": 1}}
ACTED = "assay.guard.routing:Router.act"
TIMED = "assay.guard.deadlines:Deadlines.note"


@rows("mode", ["enforce", "audit"])
def test_a_message_that_cannot_be_judged_fails_alone_or_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    """Under enforce each request gets one error, and its server nothing; under audit all goes on as it came."""
    fault_at(monkeypatch, f"{JUDGED},{ACTED},{TIMED}")
    received = tmp_path / mode
    on = {"resources/list": [["result", {"resources": [], **FAULT}]]}
    with guarded(tmp_path, "--mode", mode, "--journal", "off", received=str(received), on=on) as guard:
        guard.open(revision="2025-03-26")
        # All of them arrive at once, so that good frames wait to be written while one fails.
        notes = [notification("notifications/cancelled", {"requestId": f"{each}"}) for each in (1, 2, "fault", 3)]
        guard.say(*notes, request(6, "ping", FAULT), request(7, "resources/list"), request(8, "ping"))
        answers = {each["id"]: each for each in (guard.answer() for _ in range(3))}
        if mode == "enforce":
            assert [answers[ident]["error"]["code"] for ident in (6, 7)] == [INTERNAL_ERROR] * 2
            batch = guard.ask([request(1, "ping"), request("fault", "ping"), notification("notifications/none")])
            assert {each["id"]: each["error"]["code"] for each in batch} == dict.fromkeys((1, "fault"), INTERNAL_ERROR)
        else:
            assert answers[6] == result(6, {})
            assert answers[7]["result"]["_meta"] == {"fault": 1}
        assert answers[8] == result(8, {})
        guard.close()
        assert guard.out.rest() == []
        assert guard.ended() == 0
        assert_logged_once(guard.log.all().decode())
    heard = [json.loads(line) for line in received.read_bytes().splitlines()]
    said = [each["params"]["requestId"] for each in heard if each["method"] == "notifications/cancelled"]
    assert said == [each for each in ("1", "2", "fault", "3") if each != "fault" or mode == "audit"]
    assert ("fault" in received.read_text()) is (mode == "audit")

"""An internal error of the guard in front of a URL: one answer for each request, and the guard goes on."""

from pathlib import Path

import pytest
from stdio_to_url import call, notification, remotely, request
from url_server import elsewhere

from kit.faulting import INTERNAL_ERROR, JUDGED, RECORDED, WATCHED, assert_logged_once, fault_at

PLACES = {"judged": JUDGED, "recorded": RECORDED, "watched": WATCHED}


@pytest.mark.parametrize("mode", ["enforce", "audit"])
@pytest.mark.parametrize("place", PLACES)
def test_a_request_is_answered_or_passes_and_the_next_is_as_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, mode: str
) -> None:
    fault_at(monkeypatch, PLACES[place])
    journal = ("--journal", str(tmp_path / "journal"))
    with elsewhere() as server, remotely(tmp_path, server.url, "--mode", mode, *journal) as guard:
        guard.open()
        for _ in range(2):
            told = guard.ask(request(7, "tools/list", {"_meta": {"fault": 1}}))
            assert told["id"] == 7
            if place == "judged" and mode == "enforce":
                assert told["error"]["code"] == INTERNAL_ERROR
            else:
                assert "tools" in told["result"]
            assert "result" in guard.ask(request(7, "tools/list"))
        guard.say(notification("notifications/cancelled", requestId="fault"))
        assert guard.ask(request(8, "tools/list"))["id"] == 8
        assert guard.rest() == []
        assert guard.ended() == 0
        # An error of a record never affects the message.
        assert any(b"fault" in each.body for each in server.heard()) is (mode == "audit" or place != "judged")
        assert_logged_once(guard.log)


@pytest.mark.parametrize("mode", ["enforce", "audit"])
@pytest.mark.parametrize("place", PLACES)
def test_an_answer_that_fails_here_is_still_an_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, mode: str
) -> None:
    fault_at(monkeypatch, PLACES[place])
    journal = ("--journal", str(tmp_path / "journal"))
    with elsewhere() as server, remotely(tmp_path, server.url, "--mode", mode, *journal) as guard:
        guard.open()
        server.on("resources/list", lambda line, said: line.result(said, {"resources": [], "_meta": {"fault": 1}}))
        for _ in range(2):
            told = guard.ask(request(7, "resources/list"))
            assert told["id"] == 7
            if place == "judged" and mode == "enforce":
                assert told["error"]["code"] == INTERNAL_ERROR
            else:
                assert told["result"]["_meta"] == {"fault": 1}
        assert "result" in guard.ask(request(8, "tools/list"))


@pytest.mark.parametrize("mode", ["enforce", "audit"])
def test_a_message_that_cannot_be_sent_fails_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    fault_at(monkeypatch, "assay.edges.stdio_url:StdioUrl._send")
    with elsewhere() as server, remotely(tmp_path, server.url, "--mode", mode) as guard:
        guard.open()
        for _ in range(2):
            told = guard.ask(call(7, words="fault"))
            assert told["id"] == 7
            assert told["error"]["code"] == INTERNAL_ERROR
        assert "result" in guard.ask(request(7, "tools/list"))
        assert guard.rest() == []
        assert guard.ended() == 0
        assert_logged_once(guard.log)

"""The guard where somebody ends or keeps others waiting, over pipes: nobody hangs, and nothing is left behind."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from kit.guard_process import INITIALIZED, Watched, call, enforcing, initialize, notification, request, result, tool

# ── servers that end ─────────────────────────────────────────────────────────────────────────────────────────────────

LAST_WORDS = ["log", "Traceback (most recent call last):\nValueError: no\n"]
ENDS: dict[str, tuple[list[Any], str]] = {
    "exits": ([["exit", 7]], "it exited with status 7"),
    "exits-well": ([["exit", 0]], "it exited with status 0"),
    "killed": ([["die"]], "it was ended by SIGKILL"),
    "closes-its-output": ([["close", "stdout"]], "it closed its output"),
    "leaves-a-child": ([["spawn"], ["exit", 1]], "it exited with status 1"),
    "in-the-middle": ([["raw", '{"jsonrpc":"2.0","id":1,'], ["exit", 1]], "it exited with status 1"),
}


@pytest.mark.parametrize("how", ENDS)
def test_every_open_request_gets_one_error_when_the_server_ends(tmp_path: Path, how: str) -> None:
    """With its last words, and exit status 3."""
    actions, reason = ENDS[how]
    on: dict[str, Any] = {f"#{number}": [] for number in (4, 5, 6)}
    with enforcing(tmp_path, received=str(tmp_path / "told"), on={**on, "#7": [LAST_WORDS, *actions]}) as one:
        one.open()
        one.say(call(1), request("two", "ping"), call(3), INITIALIZED)
        errors = [one.answer() for _ in range(3)]
        assert one.out.rest() == []
        assert one.ended() == 3
        log = one.log.rest()
    assert [each["id"] for each in errors] == [1, "two", 3]
    for each in errors:
        assert each["error"]["code"] == -31011
        assert each["error"]["data"]["stderr"] == ["Traceback (most recent call last):", "ValueError: no"]
        [violation] = each["error"]["data"]["violations"]
        assert violation["rule"] == "protocol/unanswered"
        assert violation["found"] == f"none: {reason}"
        told = reason.replace("it ", "the server ", 1)
        assert each["error"]["message"] == f"No answer came: {told}: ValueError: no"
    assert f"assay: the server ended first: {reason}".encode() in log


def test_last_words_count_until_the_last(tmp_path: Path) -> None:
    """Also those that come when its output is closed."""
    on = {"ping": [["close", "stdout"], LAST_WORDS, ["exit", 1]]}
    with enforcing(tmp_path, on=on) as one:
        one.open()
        failed = one.ask(request(1, "ping"))
        assert failed["error"]["data"]["stderr"] == ["Traceback (most recent call last):", "ValueError: no"]


def test_a_server_that_reads_no_more_counts_as_ended(tmp_path: Path) -> None:
    """As soon as there is something that it does not read."""
    deaf = [["close", "stdin"], ["tell", "deaf"], ["stay"]]
    with enforcing(tmp_path, received=True, on={"#4": deaf}) as one:
        one.open()
        one.say(call(1))
        while one.received.next() != b"deaf":
            pass
        one.say(request(2, "ping"))
        errors = [one.answer(), one.answer()]
        assert one.out.rest() == []
        assert one.ended() == 3
    assert [each["id"] for each in errors] == [1, 2]
    assert {each["error"]["data"]["violations"][0]["found"] for each in errors} == {"none: it closed its input"}


def test_a_server_that_does_not_start_properly_fails_what_was_asked_by_then(tmp_path: Path) -> None:
    start = [["await", str(tmp_path / "go")], ["log", "no such module\n"], ["exit", 1]]
    os.mkfifo(tmp_path / "go")
    with enforcing(tmp_path, start=start) as one:
        one.say(initialize(), INITIALIZED, request(2, "ping"))
        (tmp_path / "go").write_bytes(b"")
        first, second = one.answer(), one.answer()
        assert one.out.rest() == []
        assert one.ended() == 3
    assert (first["id"], second["id"]) == ("open", 2)
    assert first["error"]["data"]["stderr"] == ["no such module"]
    # Before the handshake it was no request that a server could have answered.
    assert second["error"]["data"]["violations"][0]["rule"] in {"protocol/before-initialized", "protocol/unanswered"}


def test_what_is_said_between_the_last_answer_and_the_end_still_arrives(tmp_path: Path) -> None:
    """Half a line of a server that is gone does not, and does not run into what we say for it."""
    on = {"tools/call": [["good"], ["notes", 500, 200], ["raw", '{"jsonrpc":"2.0","method":"notif'], ["exit", 0]]}
    with enforcing(tmp_path, on=on) as one:
        one.open()
        one.say(call(1), call(2))
        assert one.answer()["id"] == 1
        notes = [one.answer()["params"]["data"].partition(" ")[0] for _ in range(500)]
        assert notes == [str(number) for number in range(500)]
        assert one.answer()["error"]["code"] == -31011
        assert one.out.rest() == []
        assert one.ended() == 3


def test_a_last_answer_without_a_newline_is_one(tmp_path: Path) -> None:
    last = '{"jsonrpc":"2.0","id":$id,"result":{}}'
    with enforcing(tmp_path, on={"ping": [["raw", last], ["exit", 0]]}) as one:
        one.open()
        one.say(request(1, "ping"), request(2, "ping"))
        assert one.answer() == result(1, {})
        assert one.answer()["error"]["code"] == -31011
        assert one.out.rest() == []


# ── time ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_request_that_waits_too_long_fails_once_and_the_server_is_told(tmp_path: Path) -> None:
    """The answer that comes after that is not delivered."""
    late = {"tools/call": [], "notifications/cancelled": [["say", result(1, {"content": []})], ["log", "late\n"]]}
    with enforcing(tmp_path, "--timeout", "6", received=True, on=late) as one:
        one.open()
        for _ in range(3):
            one.received.next()
        failed = one.ask(call(1))
        assert failed["id"] == 1
        assert failed["error"]["code"] == -31012
        assert json.loads(one.received.next())["id"] == 1
        told = json.loads(one.received.next())
        assert told["method"] == "notifications/cancelled"
        assert told["params"]["requestId"] == 1
        while one.log.next() != b"late":
            pass
        assert one.ask(request(2, "ping")) == result(2, {})
        one.close()
        assert one.out.rest() == []
        assert one.ended() == 0
        assert any(b"protocol/answered-twice" in line for line in one.log.rest())


def test_of_initialize_no_cancellation_is_sent(tmp_path: Path) -> None:
    """2025-11-25, basic/utilities/cancellation: a client must not."""
    with enforcing(tmp_path, "--timeout", "0.2", received=True, on={"initialize": []}) as one:
        assert one.ask(initialize())["error"]["code"] == -31012
        one.say(notification("notifications/cancelled", {"requestId": "mark"}))
        assert json.loads(one.received.next())["id"] == "open"
        assert json.loads(one.received.next())["params"]["requestId"] == "mark"


# ── the end of the client ────────────────────────────────────────────────────────────────────────────────────────────


def test_when_the_client_says_no_more_the_server_is_told_and_what_it_owes_still_comes(tmp_path: Path) -> None:
    """However long it takes: it was asked, and somebody may still read."""
    on: dict[str, Any] = {"tools/call": []}
    end = [["await", str(tmp_path / "go")], ["say", result(1, {"content": []})], ["say", result(2, {"content": []})]]
    os.mkfifo(tmp_path / "go")
    with enforcing(tmp_path, tools=[tool("slow")], on=on, end=end) as one:
        one.open()
        one.say(call(1, "slow"), call(2, "slow"))
        one.close()
        (tmp_path / "go").write_bytes(b"")
        assert [one.answer()["id"], one.answer()["id"]] == [1, 2]
        assert one.out.rest() == []
        assert one.ended() == 0


def test_a_last_request_without_a_newline_is_one(tmp_path: Path) -> None:
    with enforcing(tmp_path) as one:
        one.open()
        one.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}')
        one.close()
        assert one.answer() == result(1, {})
        assert one.ended() == 0


def test_a_server_that_fails_once_the_client_has_left_is_no_failure(tmp_path: Path) -> None:
    with enforcing(tmp_path, end=[["exit", 1]]) as one:
        one.open()
        one.close()
        assert one.out.rest() == []
        assert one.ended() == 0


STUBBORN = [["stubborn"], ["pid"], ["spawn"]]


@pytest.mark.parametrize("how", ["closes", "vanishes", "signal"])
def test_nothing_of_a_stubborn_server_stays_when_the_client_goes(tmp_path: Path, how: str) -> None:
    """It ignores the end of its input and SIGTERM, and has started a process that does, too."""
    with enforcing(tmp_path, received=True, start=STUBBORN, end=[["stay"]]) as one:
        processes = [Watched(int(one.received.next())) for _ in range(2)]
        one.open()
        assert all(each.is_alive() for each in processes)
        if how == "signal":
            one.process.send_signal(signal.SIGTERM)
        else:
            one.close()
        if how == "vanishes" and one.process.stdout is not None:
            one.process.stdout.close()
        assert one.ended() == 0
        assert all(each.ends() for each in processes)


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_guard_and_server_and_what_is_open_gets_an_answer(tmp_path: Path, sign: signal.Signals) -> None:
    with enforcing(tmp_path, received=True, start=[["pid"]], on={"tools/call": []}) as one:
        server = Watched(int(one.received.next()))
        one.open()
        one.say(call(1))
        while b"tools/call" not in one.received.next():
            pass
        one.process.send_signal(sign)
        failed = one.answer()
        assert (failed["id"], failed["error"]["code"]) == (1, -31011)
        assert failed["error"]["message"] == "No answer came: the guard was stopped"
        assert failed["error"]["data"]["detail"] == "the guard was stopped"
        assert "violations" not in failed["error"]["data"]
        assert one.out.rest() == []
        assert one.ended() == 0
        assert server.ends()


def test_a_client_that_reads_no_more_has_left(tmp_path: Path) -> None:
    """That is noticed although nothing is being said."""
    with enforcing(tmp_path, received=True, start=[["pid"]]) as one:
        server = Watched(int(one.received.next()))
        one.open()
        assert one.process.stdout is not None
        one.process.stdout.close()
        assert one.ended() == 0
        assert server.ends()

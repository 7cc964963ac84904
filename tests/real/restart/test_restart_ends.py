"""Servers that end in every way, and the next one: each request is answered once, and the conversation goes on."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from restarting import GOOD, dies, ends, mortal, paused

from kit.guard_process import INITIALIZED, call, enforcing, frame_of, initialize, request, result

LAST_WORDS = ["log", "Traceback (most recent call last):\nValueError: no\n"]
HALF = '{"jsonrpc":"2.0","id":"die","result":{"content":[{"type":"text","te'

ENDS: dict[str, tuple[list[Any], str]] = {
    "exits": ([["exit", 7]], "it exited with status 7"),
    "exits-well": ([["exit", 0]], "it exited with status 0"),
    "killed": ([["die"]], "it was ended by SIGKILL"),
    "in-the-middle-of-a-line": ([["raw", '{"jsonrpc":"2.0","id":"die",'], ["exit", 1]], "it exited with status 1"),
    "closes-its-output": ([["pid"], ["close", "stdout"], ["stay"]], "it closed its output"),
    "closes-its-output-and-ignores-signals": (
        [["pid"], ["stubborn"], ["close", "stdout"], ["stay"]],
        "it closed its output",
    ),
    "leaves-a-child-behind": ([["spawn"], ["exit", 1]], "it exited with status 1"),
    "closes-its-output-and-leaves-a-child": ([["spawn"], ["close", "stdout"], ["exit", 1]], "it exited with status 1"),
}


@pytest.mark.parametrize("how", ENDS)
def test_what_is_open_fails_once_and_the_next_server_goes_on(tmp_path: Path, how: str) -> None:
    """The next one hears the client's own handshake, and the client hears nothing of it but that lists may differ."""
    actions, reason = ENDS[how]
    with mortal(tmp_path, dies(LAST_WORDS, *actions), GOOD) as one:
        one.open()
        one.say(call(1, "wait"), request("two", "tools/call", {"name": "wait"}), call("die", "die"))
        errors = [one.answer() for _ in range(3)]
        assert [each["id"] for each in errors] == [1, "two", "die"]
        for each in errors:
            assert each["error"]["code"] == -31011
            assert each["error"]["data"]["stderr"] == ["Traceback (most recent call last):", "ValueError: no"]
            assert each["error"]["data"]["violations"][0]["found"] == f"none: {reason}"
        received = [one.received.next() for _ in range(6)]
        processes = []
        if actions[0] in (["pid"], ["spawn"]):
            processes.append(int(one.received.next()))
        one.say(call(4))
        one.reopened()
        assert one.answer()["id"] == 4
        assert [one.received.next() for _ in range(3)] == [*received[:2], frame_of(call(4))]
        assert all(ends(each) for each in (*processes, one.pids()[0]))
        one.close()
        assert one.out.rest() == []
        assert one.ended() == 0
        told = one.lines()
    assert f"assay: the server ended: {reason}; restarting in 0.1 s" in told
    assert told[-1] == "assay: the client left; the server was restarted once"
    assert len(one.pids()) == 2


def test_half_an_answer_fails_what_it_was_to_answer(tmp_path: Path) -> None:
    with mortal(tmp_path, dies(["raw", HALF], ["exit", 1]), GOOD) as one:
        one.open()
        one.say(call(1, "wait"), call("die", "die"))
        errors = {each["id"]: each["error"]["code"] for each in (one.answer(), one.answer())}
        assert errors == {1: -31011, "die": -31010}
        one.reopened()
        assert one.ask(request(2, "ping")) == result(2, {})


def test_a_server_that_reads_no_more_is_followed_by_another(tmp_path: Path) -> None:
    with mortal(tmp_path, dies(["close", "stdin"], ["tell", "deaf"], ["stay"]), GOOD) as one:
        one.open()
        one.say(call(1, "die"))
        while one.received.next() != b"deaf":
            pass
        one.say(request(2, "ping"))
        assert [one.answer()["id"], one.answer()["id"]] == [1, 2]
        one.reopened()
        assert one.ask(request(3, "ping")) == result(3, {})


@pytest.mark.parametrize(
    ("policy", "how", "again"),
    [
        ("never", ["exit", 1], False),
        ("never", ["exit", 0], False),
        ("on-failure", ["exit", 0], False),
        ("on-failure", ["exit", 1], True),
        ("on-failure", ["die"], True),
        ("always", ["exit", 0], True),
    ],
)
def test_the_policy_decides_whether_there_is_another(tmp_path: Path, policy: str, how: list[Any], again: bool) -> None:
    with mortal(tmp_path, dies(how), GOOD, policy=policy) as one:
        one.open()
        assert one.ask(call(1, "die"))["error"]["code"] == -31011
        if again:
            one.reopened()
            assert one.ask(request(2, "ping")) == result(2, {})
        else:
            assert one.out.rest() == []
            assert one.ended() == 3
            assert one.lines()[-1].startswith("assay: the server ended first: it ")
        assert len(one.pids()) == 1 + again


# ── the handshake ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_if_it_ends_in_the_handshake_the_client_may_try_again(tmp_path: Path) -> None:
    """The conversation is as new; nothing is said for the client that it has not said."""
    with mortal(tmp_path, {"on": {"initialize": [["exit", 1]]}}, GOOD) as one:
        failed = one.ask(initialize())
        assert (failed["id"], failed["error"]["code"]) == ("open", -31011)
        again = initialize("2025-06-18")
        assert one.ask(again)["result"]["protocolVersion"] == "2025-06-18"
        one.say(INITIALIZED)
        assert one.ask(request(1, "ping")) == result(1, {})
        assert [one.received.next() for _ in range(3)] == [
            frame_of(initialize()),
            frame_of(again),
            frame_of(INITIALIZED),
        ]


def test_if_it_ends_before_the_client_is_ready_only_the_first_half_is_said_again(tmp_path: Path) -> None:
    with mortal(tmp_path, {"on": {"ping": [["exit", 1]]}}, GOOD) as one:
        assert "result" in one.ask(initialize())
        assert one.ask(request(1, "ping"))["error"]["code"] == -31011
        one.say(INITIALIZED, request(2, "ping"))
        assert one.answer() == result(2, {})
        received = [json.loads(one.received.next())["method"] for _ in range(5)]
    assert received == ["initialize", "ping", "initialize", "notifications/initialized", "ping"]


def test_if_the_next_one_ends_in_the_handshake_there_is_one_after_it(tmp_path: Path) -> None:
    """What was waiting for the one that did not come up has failed with it."""
    go = tmp_path / "go"
    os.mkfifo(go)
    lives = [
        dies(),
        {"on": {"initialize": [["await", str(go)], ["raw", '{"jsonrpc'], ["exit", 2]]}},
        {"start": [["die"]]},
    ]
    with mortal(tmp_path, *lives, GOOD) as one:
        one.open()
        assert one.ask(call(1, "die"))["error"]["code"] == -31011
        one.until_told("it exited with status 7")
        one.say(request(2, "ping"))
        go.write_bytes(b"")
        failed = one.answer()
        assert (failed["id"], failed["error"]["code"]) == (2, -31011)
        assert failed["error"]["data"]["violations"][0]["found"] == "none: it exited with status 2"
        one.until_told("it was ended by SIGKILL")
        one.reopened()
        assert one.ask(request(3, "ping")) == result(3, {})
        assert len(one.pids()) == 4


def answering(result: Any) -> dict[str, Any]:
    """A life that answers initialize with that."""
    return {"on": {"initialize": [["result", result]]}}


INFO = {"name": "other", "version": "2"}
SAME = {
    "tools": {"listChanged": True},
    "logging": {},
    "resources": {"subscribe": True},
    "prompts": {},
    "completions": {},
}
NO_GOOD: dict[str, tuple[dict[str, Any], str]] = {
    "another-revision": (
        answering({"protocolVersion": "2025-06-18", "capabilities": SAME, "serverInfo": INFO}),
        "it answered initialize with another revision than before",
    ),
    "less": (
        answering({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": INFO}),
        "it answered initialize with other capabilities than before",
    ),
    "more": (
        answering({"protocolVersion": "2025-11-25", "capabilities": {**SAME, "tasks": {}}, "serverInfo": INFO}),
        "it answered initialize with other capabilities than before",
    ),
    "error": (
        {"on": {"initialize": [["say", {"jsonrpc": "2.0", "id": "$id", "error": {"code": -5, "message": "busy"}}]]}},
        "it refused initialize: error -5",
    ),
    "broken": (answering({"protocolVersion": "2025-11-25"}), "its answer to initialize broke the contract"),
    "no-object": (answering("fine"), "its answer to initialize broke the contract"),
    "unreadable": (
        {"on": {"initialize": [["raw", '{"jsonrpc":"2.0","id":"open","result":{"x":NaN}}\n']]}},
        "its answer to initialize could not be read",
    ),
    "too-long": (
        {"on": {"initialize": [["long", '{"result":{"x":"', 100_000, '"},"jsonrpc":"2.0","id":"open"}\n']]}},
        "its answer to initialize could not be read",
    ),
    "batch": (
        {"on": {"initialize": [["raw", '[{"jsonrpc":"2.0","id":"open","result":{}}]\n']]}},
        "its answer to initialize could not be read",
    ),
}


@pytest.mark.parametrize("how", NO_GOOD)
def test_a_next_server_that_is_not_as_the_one_before_is_given_up(tmp_path: Path, how: str) -> None:
    script, reason = NO_GOOD[how]
    go = tmp_path / "go"
    os.mkfifo(go)
    answers = [["await", str(go)], *script["on"]["initialize"]]
    stubborn = {"start": [["pid"], ["log", "up\n"]], "on": {"initialize": answers}}
    with mortal(tmp_path, dies(), stubborn, options=("--set", "guard.frame_bytes=50000")) as one:
        one.open()
        assert one.ask(call(1, "die"))["error"]["code"] == -31011
        one.say(request(2, "ping"))
        go.write_bytes(b"")
        failed = one.answer()
        assert (failed["id"], failed["error"]["code"]) == (2, -31011)
        assert reason in failed["error"]["data"]["violations"][0]["found"]
        assert one.out.rest() == []
        assert one.ended() == 3
        last = one.lines()[-1]
    assert last.startswith(f"assay: the server ended first: the restarted server could not be used: {reason}")
    assert last.endswith("; it was restarted once")


def test_a_next_server_with_another_name_and_chatter_is_as_good(tmp_path: Path) -> None:
    """What it prints goes to stderr, what it notes goes to the client, before its answer and in the same breath."""
    note = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "up"}}
    answer = result("$id", {"protocolVersion": "2025-11-25", "capabilities": SAME, "serverInfo": INFO})
    text = (
        "banner\n"
        + json.dumps(note)
        + "\n"
        + json.dumps(answer).replace('"$id"', "$id")
        + "\n"
        + json.dumps(note)
        + "\n"
    )
    with mortal(tmp_path, dies(), {"on": {"initialize": [["raw", text]]}}) as one:
        one.open()
        assert one.ask(call(1, "die"))["error"]["code"] == -31011
        assert one.answer() == note
        one.reopened()
        assert one.answer() == note
        assert one.ask(request(2, "ping")) == result(2, {})
        one.until_told("banner")


def test_a_next_server_that_does_not_answer_in_time_is_given_up(tmp_path: Path) -> None:
    with mortal(tmp_path, dies(), {"on": {"initialize": []}}, options=("--timeout", "6")) as one:
        one.open()
        assert one.ask(call(1, "die"))["error"]["code"] == -31011
        one.say(request(2, "ping"))
        assert one.answer()["error"]["code"] in {-31011, -31012}
        assert one.out.rest() == []
        assert one.ended() == 3
        assert "the next server did not answer initialize in time" in one.lines()[-1]


# ── too often ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_who_ends_too_often_is_given_up(tmp_path: Path) -> None:
    with mortal(
        tmp_path, {"start": [["log", "no such module\n"], ["exit", 1]]}, options=("--set", "guard.restarts=3")
    ) as one:
        assert one.out.rest() == []
        assert one.ended() == 3
        told = one.lines()
    assert told.count("no such module") == 4
    assert [line.rpartition(" in ")[2] for line in told if "restarting in" in line] == ["0.1 s", "0.2 s", "0.4 s"]
    ended = "it exited with status 1, too often within 60 seconds; it was restarted 3 times"
    assert told[-1] == f"assay: the server ended first: {ended}"
    assert len(one.pids()) == 4


def test_a_command_that_is_gone_is_tried_again_and_then_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Status 2 is for one that could never be started. The client asks again before the guard gives up."""
    monkeypatch.setattr("guarded.GUARD", paused(2.0))
    script = tmp_path / "server"
    script.write_text('#!/bin/sh\nrm "$0"\necho last words >&2\nread line\nexit 1\n')
    script.chmod(0o700)
    options = ("--restart", "on-failure", "--set", "guard.restarts=2")
    with enforcing(tmp_path, *options, command=[str(script)]) as one:
        failed = one.ask(initialize())["error"]["data"]
        assert failed["stderr"] == ["last words"]
        one.say(initialize())
        failed = one.answer()["error"]["data"]
        assert "stderr" not in failed
        assert failed["violations"][0]["found"].startswith("none: cannot start ")
        assert one.out.rest() == []
        assert one.ended() == 3
        told = one.log.rest()
    reason = f"cannot start {script}: No such file or directory"
    assert f"assay: the server ended: {reason}; restarting in 2 s".encode() in told
    assert told[-1] == (
        f"assay: the server ended first: {reason}, too often within 60 seconds; it was restarted 2 times".encode()
    )

"""Servers that end in every way, and the next one: each request is answered once, and the conversation goes on."""

import os
import random
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

from restarting import GOOD, TOOLS, Mortal, dies, ends, mortal, restarting

from kit.guard_process import INITIALIZED, call, frame_of, initialize, request, result

MANY = ("--set", "guard.restarts=1000", "--quiet")

LAST_WORDS = ["log", "Traceback (most recent call last):\nValueError: no\n"]
WAYS: dict[str, tuple[list[Any], str]] = {
    "exits": ([["exit", 7]], "it exited with status 7"),
    "exits-well": ([["exit", 0]], "it exited with status 0"),
    "killed": ([["die"]], "it was ended by SIGKILL"),
    "in-the-middle-of-a-line": ([["raw", '{"jsonrpc":"2.0","id":"die",'], ["exit", 1]], "it exited with status 1"),
    "closes-its-output-and-ignores-signals": (
        [["pid"], ["stubborn"], ["close", "stdout"], ["stay"]],
        "it closed its output",
    ),
    "leaves-a-child-behind": ([["spawn"], ["exit", 1]], "it exited with status 1"),
}
HALF = '{"jsonrpc":"2.0","id":"die","result":{"content":[{"type":"text","te'
REVISED = "it answered initialize with another revision than before"
DEAF = [["close", "stdin"], ["tell", "deaf"], ["stay"]]


def descriptors(one: Mortal) -> list[str]:
    """What the guard has open, by name; pipes are all alike."""
    directory = Path(f"/proc/{one.process.pid}/fd")
    return sorted(os.readlink(each).partition(":")[0] for each in directory.iterdir())


def children(one: Mortal) -> list[int]:
    """The processes that the guard has started and not collected."""
    text = Path(f"/proc/{one.process.pid}/task/{one.process.pid}/children").read_text()
    return [int(each) for each in text.split()]


def test_whichever_way_a_server_ends_what_is_open_fails_once_and_the_next_one_goes_on(tmp_path: Path) -> None:
    """The next one hears the client's own handshake, and the client hears nothing of it but that lists may differ."""
    lives = [dies(LAST_WORDS, *actions) for actions, _ in WAYS.values()]
    lives += [dies(["raw", HALF], ["exit", 1]), dies(*DEAF), GOOD]
    handshake = [frame_of(initialize()), frame_of(INITIALIZED)]
    processes: list[int] = []
    with mortal(tmp_path, *lives, options=("--set", "guard.restarts=1000")) as one:
        one.open()
        files = descriptors(one)
        assert one.taken(request("list", "tools/list")) == handshake

        def goes_on() -> None:
            """The next server has taken the place of the last one, and nothing of that is left."""
            one.reopened()
            assert one.ask(call(4))["id"] == 4
            *before, first, second = one.taken(call(4))
            assert [first, second] == handshake
            processes.extend(int(line) for line in before if line.isdigit())
            assert descriptors(one) == files
            assert len(children(one)) == 1

        for _, reason in WAYS.values():
            one.say(call(1, "wait"), request("two", "tools/call", {"name": "wait"}), call("die", "die"))
            errors = [one.answer() for _ in range(3)]
            assert [(each["id"], each["error"]["code"]) for each in errors] == [
                (1, -31011),
                ("two", -31011),
                ("die", -31011),
            ]
            for each in errors:
                assert each["error"]["data"]["stderr"] == ["Traceback (most recent call last):", "ValueError: no"]
                assert (
                    each["error"]["data"]["violations"][0]["found"]
                    == f"none: {reason.replace('it ', 'the server ', 1)}"
                )
            goes_on()
        # Half an answer fails what it was to answer, for itself.
        one.say(call(1, "wait"), call("die", "die"))
        assert {each["id"]: each["error"]["code"] for each in (one.answer(), one.answer())} == {
            1: -31011,
            "die": -31010,
        }
        goes_on()
        # A server that reads no more is noticed by what it does not take.
        one.say(call("die", "die"))
        while one.received.next() != b"deaf":
            pass
        one.say(request(2, "ping"))
        assert [one.answer()["id"], one.answer()["id"]] == ["die", 2]
        goes_on()
        one.close()
        assert one.out.rest() == []
        assert one.ended() == 0
        log = one.lines()
    for _, reason in WAYS.values():
        assert f"assay: the server ended: {reason}; restarting in 0.01 s" in log
    assert log[-1] == f"assay: the client left; the server was restarted {len(WAYS) + 2} times"
    assert len(processes) == 2
    assert all(ends(each) for each in (*processes, *one.pids()))


def test_a_server_that_ends_in_the_handshake_is_followed_by_one_that_hears_what_the_client_has_said(
    tmp_path: Path,
) -> None:
    go = tmp_path / "go"
    os.mkfifo(go)
    lives: list[dict[str, Any]] = [
        {"on": {"initialize": [["exit", 1]]}},
        {"on": {"ping": [["exit", 7]]}},
        {"on": {"initialize": [["await", str(go)], ["raw", '{"jsonrpc'], ["exit", 2]]}},
        {"start": [["die"]]},
    ]
    with mortal(tmp_path, *lives, GOOD) as one:
        # In the client's own: it may try again, and nothing is said for it that it has not said.
        failed = one.ask(initialize())
        assert (failed["id"], failed["error"]["code"]) == ("open", -31011)
        again = initialize("2025-06-18")
        assert one.ask(again)["result"]["protocolVersion"] == "2025-06-18"
        assert one.taken(again) == [frame_of(initialize())]
        # Before the client was ready, and the next one amid the handshake: what waited for that has failed with it.
        assert one.ask(request(1, "ping"))["error"]["code"] == -31011
        one.until_logged("it exited with status 7")
        one.say(request(2, "ping"))
        go.write_bytes(b"")
        failed = one.answer()
        assert (failed["id"], failed["error"]["code"]) == (2, -31011)
        assert failed["error"]["data"]["violations"][0]["found"] == "none: the server exited with status 2"
        one.until_logged("it was ended by SIGKILL")
        one.say(INITIALIZED, request(3, "ping"))
        assert one.answer() == result(3, {})
        assert one.taken(request(3, "ping")) == [
            *(frame_of(request(1, "ping")), frame_of(again), frame_of(again)),
            frame_of(INITIALIZED),
        ]
        assert len(one.pids()) == 5


# ── no other one ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_where_no_other_server_may_follow_the_guard_ends_with_status_3_and_the_reason(tmp_path: Path) -> None:
    other = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "a", "version": "1"}}
    revised = {"on": {"initialize": [["result", other]]}}
    broken = {"start": [["log", "no such module\n"], ["exit", 1]]}
    gone = tmp_path / "server"
    gone.write_text('#!/bin/sh\nrm "$0"\necho last words >&2\nread line\nexit 1\n')
    gone.chmod(0o700)
    rows: list[tuple[str, tuple[dict[str, Any], ...], list[str], str]] = [
        ("well", (dies(["exit", 0]),), ["on-failure"], "it exited with status 0"),
        (
            "often",
            (dies(["exit", 1]), broken),
            ["on-failure", "--set", "guard.restarts=3"],
            "it exited with status 1, too often within 60 seconds; it was restarted 3 times",
        ),
        (
            "revised",
            (dies(), revised),
            ["always"],
            f"the restarted server could not be used: {REVISED}; it was restarted once",
        ),
    ]
    for name, lives, options, reason in rows:
        with mortal(tmp_path / name, *lives, policy=options[0], options=tuple(options[1:])) as one:
            one.open()
            assert one.ask(call(1, "die"))["error"]["code"] == -31011, name
            assert one.out.rest() == [], name
            assert one.ended() == 3, name
            assert one.lines()[-1] == f"assay: the server ended first: {reason}"
    options = ["--restart", "always", "--set", "guard.restarts=2"]
    with restarting(tmp_path, *options, "--", str(gone)) as guard:
        assert guard.ask(initialize())["error"]["data"]["stderr"] == ["last words"]
        assert guard.out.rest() == []
        assert guard.ended() == 3
        reason = f"cannot start {gone}: No such file or directory, too often within 60 seconds"
        last = f"assay: the server ended first: {reason}; it was restarted 2 times"
        assert guard.log.rest()[-1].decode() == last
    with restarting(tmp_path, *options, "--", "false", mode="audit") as guard:
        assert guard.out.rest() == [], "under audit the guard adds nothing"
        assert guard.ended() == 3
        log = [line.decode() for line in guard.log.rest()]
        assert "assay: --restart needs --mode enforce; under audit a server that ends is not restarted" in log
        assert log[-1] == "assay: the server ended first: it exited with status 1"


# ── whenever it ends ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_each_of_many_requests_is_answered_once_whenever_the_server_is_killed(tmp_path: Path) -> None:
    """Whether it was answered, lost with its server, or came while there was none."""
    chance = random.Random(0)  # noqa: S311 - to be the same each time
    with mortal(tmp_path, {"tools": TOOLS, "received": None}, options=MANY) as one:
        one.open()
        answers: list[Any] = []
        failed = 0
        for start in range(0, 400, 25):
            one.say(*(call(number, words="x" * chance.randrange(2000)) for number in range(start, start + 25)))
            if chance.random() < 0.6:
                # One that has come so far as to say that it is there: others are killed before they have begun.
                while start % 50 and not set(children(one)) & set(one.pids()):
                    failed += _take(one, answers)
                for pid in children(one):
                    with suppress(ProcessLookupError):
                        signal.pidfd_send_signal(os.pidfd_open(pid), signal.SIGKILL)
            # Some are left open, so that there is always something to lose.
            while len(answers) < start - 30:
                failed += _take(one, answers)
        while len(answers) < 400:
            failed += _take(one, answers)
        assert sorted(answers) == list(range(400))
        one.say(request("last", "ping"))
        while _take(one, answers) or answers[-1] != "last":
            pass
        assert len(children(one)) == 1
        one.close()
        assert one.out.rest() == []
        assert one.ended() == 0
        assert all(ends(pid) for pid in one.pids())
    assert 0 < failed < 400


def _take(one: Mortal, answers: list[Any]) -> int:
    """The next message, of which only answers count; how many of them are errors."""
    message = one.answer()
    if "id" in message:
        answers.append(message["id"])
        assert "result" in message or message["error"]["code"] in {-31010, -31011}, message
    return "error" in message

"""Many restarts: nothing is answered twice or never, nothing leaks, nothing stays behind."""

import json
import os
import random
import select
import signal
from contextlib import suppress
from pathlib import Path

import pytest
from restarting import QUICK, TOOLS, Mortal, dies, ends, mortal

from kit.guard_process import call, peak, request, result

IDLE = 5
"""Seconds without a sign, after which nothing more is going to happen."""

MANY = ("--set", "guard.restarts=1000", "--quiet")


def descriptors(one: Mortal) -> list[str]:
    """What the guard has open, by name; pipes are all alike."""
    directory = Path(f"/proc/{one.process.pid}/fd")
    return sorted(os.readlink(each).partition(":")[0] for each in directory.iterdir())


def children(one: Mortal) -> list[int]:
    """The processes that the guard has started and not collected."""
    text = Path(f"/proc/{one.process.pid}/task/{one.process.pid}/children").read_text()
    return [int(each) for each in text.split()]


def kill(one: Mortal) -> None:
    """Ends the server that runs now, if any, in the middle of whatever it does."""
    for pid in children(one):
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(os.pidfd_open(pid), signal.SIGKILL)


def test_nothing_leaks_over_fifty_restarts(tmp_path: Path) -> None:
    """No descriptor, no process, no memory; in all ways to end by turns."""
    ways = [
        dies(["exit", 1]),
        dies(["die"]),
        dies(["spawn"], ["exit", 1]),
        dies(["close", "stdout"], ["exit", 0]),
        dies(["raw", '{"jsonrpc":"2.0",'], ["exit", 1]),
    ]
    with mortal(tmp_path, *(ways * 11), options=MANY, pause=QUICK) as one:
        one.open()
        seen = []
        for number in range(50):
            assert one.ask(call(number, "die"))["error"]["code"] == -31011
            one.reopened()
            assert one.ask(request("p", "ping")) == result("p", {})
            seen.append((descriptors(one), len(children(one)), peak(one.process)))
        assert {len(names) for names, _, _ in seen} == {len(seen[0][0])}
        assert {number for _, number, _ in seen} == {1}
        assert seen[-1][2] - seen[10][2] < 4 << 20
        one.close()
        assert one.out.rest() == []
        assert one.ended() == 0
        assert all(ends(pid) for pid in one.pids())
        assert one.lines()[-1] == "assay: the client left; the server was restarted 50 times"
        spawned = [int(line) for line in _waiting(one).split(b"\n") if line.isdigit()]
    assert len(spawned) == 10
    assert all(ends(pid) for pid in spawned)


def _waiting(one: Mortal) -> bytes:
    """What is in the pipe of what the servers have received."""
    os.set_blocking(one.received.descriptor, False)
    data = b""
    with suppress(BlockingIOError):
        while chunk := os.read(one.received.descriptor, 1 << 16):
            data += chunk
    return data


@pytest.mark.parametrize("seed", range(3))
def test_each_of_a_thousand_requests_is_answered_once_whenever_the_server_is_killed(tmp_path: Path, seed: int) -> None:
    """Whether it was answered, lost with its server, or came while there was none."""
    chance = random.Random(seed)  # noqa: S311 - to be the same each time
    good = {"tools": TOOLS, "received": None}
    with mortal(tmp_path, good, options=MANY, pause=QUICK) as one:
        one.open()
        numbers = list(range(1000))
        answers: list[int] = []
        failed = kills = 0
        for start in range(0, 1000, 25):
            one.say(*(call(number, words="x" * chance.randrange(2000)) for number in numbers[start : start + 25]))
            if chance.random() < 0.5:
                kills += 1
                # The first of them have come so far as to say that they are there; on a busy machine others have not.
                while kills < 8 and not set(children(one)) & set(one.pids()):
                    failed += _take(one, answers)
                kill(one)
            # Some are left open, so that there is always something to lose.
            while len(answers) < start - 30:
                failed += _take(one, answers)
        while len(answers) < 1000:
            failed += _take(one, answers)
        assert sorted(answers) == numbers
        one.say(request("last", "ping"))
        while (last := one.answer()).get("id") != "last":
            assert last["method"] == "notifications/tools/list_changed"
        assert last == result("last", {})
        assert len(children(one)) == 1
        one.close()
        assert one.out.rest() == []
        assert one.ended() == 0
        assert all(ends(pid) for pid in one.pids())
        told = one.lines()[-1]
    # Some were killed before they could say that they are there.
    assert int(told.split()[-2]) >= len(one.pids()) - 1
    assert 0 < failed < 1000
    assert len(one.pids()) > 5


def _take(one: Mortal, answers: list[int]) -> int:
    """The next message, of which only answers count; how many of them are errors."""
    message = one.answer()
    if "id" in message:
        answers.append(message["id"])
        assert "result" in message or message["error"]["code"] in {-31010, -31011}, message
    return "error" in message


def test_a_client_that_does_not_read_holds_nobody_up_and_costs_no_memory(tmp_path: Path) -> None:
    """Errors that it does not take are so many, and then nothing more is heard from it."""
    big = ["log", "x" * 400 + "\n"]
    life = dies(*[big] * 10, ["exit", 1], received=None)
    with mortal(tmp_path, life, options=(*MANY, "--set", "guard.flights=off"), pause=QUICK) as one:
        one.open(listing=False)
        before = peak(one.process)
        os.set_blocking(one.sink, False)
        said = (json.dumps(call(number, "wait" if number % 50 else "die")).encode() for number in range(1, 60_000))
        data = memoryview(b"\n".join(said))
        while data:
            told, free, _ = select.select([one.log.descriptor], [one.sink], [], IDLE)
            if told:
                one.log.read()
            elif free:
                data = data[os.write(one.sink, data) :]
            else:
                break
        assert data, "all was read, although none of the answers were"
        assert peak(one.process) - before < 32 << 20
        one.process.send_signal(signal.SIGTERM)
        assert one.process.stdout is not None
        one.process.stdout.close()
        assert one.ended() == 0

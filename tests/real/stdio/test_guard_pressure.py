"""Peers that do not read what they are sent: nobody waits for ever, nothing is lost, memory stays bounded."""

import json
import os
import select
import threading
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest

from kit.guard_process import call, enforcing, frame_of, notification, peak, request, result

MEGABYTE = 1 << 20
ROOM = 24 * MEGABYTE
"""What a guard may take beyond what it starts with: several times what it keeps, and much less than what is sent."""

MOMENT = 1.0
"""Seconds in which nothing is expected to happen; without a bound it would, in a fraction of that."""


def numbers(notes: list[Any]) -> list[int]:
    return [int(each["params"]["data"].partition(" ")[0]) for each in notes]


@pytest.mark.timeout(240)  # It has much to do, and other tests run beside it.
def test_a_client_that_stops_reading_holds_up_the_server_and_nothing_is_lost(tmp_path: Path) -> None:
    on = {"ping": [["notes", 6400, 10_000], ["good"], ["tell", "done"]]}
    with enforcing(tmp_path, received=True, on=on) as one:
        one.open()
        for _ in range(3):
            one.received.next()
        before = peak(one.process)
        one.say(request(1, "ping"))
        one.received.next()
        assert not select.select([one.received.descriptor], [], [], MOMENT)[0], "all of 64 MB were taken"
        # What the client says still arrives.
        one.say(notification("notifications/cancelled", {"requestId": "nothing"}))
        assert numbers([one.answer() for _ in range(6400)]) == list(range(6400))
        assert one.answer() == result(1, {})
        assert one.received.next() == b"done"
        assert peak(one.process) - before < ROOM


def test_a_server_that_stops_reading_holds_up_the_client_and_nothing_is_lost(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "go")
    on = {"#4": [["good"], ["await", str(tmp_path / "go")]]}
    calls = [call(number, words="x" * 10_000) for number in range(6400)]
    with enforcing(tmp_path, on=on) as one:
        one.open()
        assert one.ask(request("a", "ping")) == result("a", {})
        before = peak(one.process)
        writing = threading.Thread(target=one.say, args=calls, daemon=True)
        writing.start()
        writing.join(MOMENT)
        assert writing.is_alive(), "all of 64 MB were taken"
        (tmp_path / "go").write_bytes(b"")
        writing.join(60)
        assert not writing.is_alive()
        assert [one.answer()["id"] for _ in calls] == list(range(6400))
        assert peak(one.process) - before < ROOM


def test_both_sides_writing_at_once_never_wait_for_each_other(tmp_path: Path) -> None:
    """
    A server that writes all of an answer before it reads on, and a client that has much more to say than fits anywhere.

    If the guard stopped reading from the server because that does not read, neither would ever go on.
    """
    head = '{"jsonrpc":"2.0","id":$id,"result":{"structuredContent":{"hits":1},"content":[{"type":"text","text":"'
    with enforcing(tmp_path, on={"tools/call": [["long", head, 300_000, '"}]}}\n']]}) as one:
        one.open()
        one.say(*(call(number, words="x" * 50_000) for number in range(80)))
        assert [one.answer()["id"] for _ in range(80)] == list(range(80))


def test_answers_longer_than_anything_that_is_kept_pass(tmp_path: Path) -> None:
    text = ["long", '{"jsonrpc":"2.0","id":$id,"result":{"content":[{"type":"text","text":"', 9 * MEGABYTE, '"}]}}\n']
    with enforcing(
        tmp_path, tools=[{"name": "long", "inputSchema": {"type": "object"}}], on={"tools/call": [text]}
    ) as one:
        one.open()
        for number in range(3):
            assert len(one.ask(call(number, "long"))["result"]["content"][0]["text"]) == 9 * MEGABYTE


def written(descriptor: int, data: bytes) -> int:
    """How much of *data* is taken by somebody who then takes no more."""
    os.set_blocking(descriptor, False)
    size = 0
    while select.select([], [descriptor], [], MOMENT)[1]:
        size += os.write(descriptor, data[size:])
    return size


def test_what_was_not_even_read_when_the_server_died_fails_like_all_the_rest(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "go")
    on = {"ping": [["tell", "waiting"], ["await", str(tmp_path / "go")], ["exit", 1]]}
    said = [frame_of(call(number, words="x" * 1000)) + b"\n" for number in range(2000)]
    with enforcing(tmp_path, "--quiet", received=True, on=on) as one:
        one.open()
        one.say(request("ping", "ping"))
        while one.received.next() != b"waiting":
            pass
        taken = written(one.sink, b"".join(said))
        whole = sum(end <= taken for end in accumulate(map(len, said)))
        assert 1000 < whole < 2000
        (tmp_path / "go").write_bytes(b"")
        failed = [json.loads(line) for line in one.out.rest()]
        assert [each["id"] for each in failed[: whole + 1]] == ["ping", *range(whole)]
        assert {each["error"]["code"] for each in failed[: whole + 1]} == {-31011}
        assert one.ended() == 3


# ── stderr ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_server_that_floods_its_log_is_never_held_up_by_who_does_not_read_it(tmp_path: Path) -> None:
    """Our own stderr is a pipe that nobody reads; the last words are kept all the same."""
    reader, writer = os.pipe()
    on = {"ping": [["logs", 20_000_000], ["good"]], "tools/call": [["log", "the end\n"], ["exit", 1]]}
    try:
        with enforcing(tmp_path, on=on, streams={"stderr": writer}) as one:
            one.open()
            before = peak(one.process)
            assert one.ask(request(1, "ping")) == result(1, {})
            assert peak(one.process) - before < ROOM
            failed = one.ask(call(2))
            assert failed["error"]["data"]["stderr"][-1] == "the end"
            assert one.ended() == 3
    finally:
        os.close(reader)
        os.close(writer)


def test_a_server_that_floods_its_output_with_what_is_no_message_is_not_held_up_either(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    try:
        # More than is kept for a pipe.
        on = {"ping": [["often", 20_000, "this is no message".ljust(60) + "\n"], ["good"]]}
        with enforcing(tmp_path, on=on, streams={"stderr": writer}) as one:
            one.open()
            before = peak(one.process)
            assert one.ask(request(1, "ping")) == result(1, {})
            assert peak(one.process) - before < ROOM
            one.close()
            assert one.ended() == 0
    finally:
        os.close(reader)
        os.close(writer)


def test_a_log_that_somebody_reads_is_passed_on_whole(tmp_path: Path) -> None:
    with enforcing(tmp_path, on={"ping": [["logs", 2_000_000], ["good"]]}) as one:
        one.open()
        lines: list[bytes] = []
        reading = threading.Thread(target=lambda: lines.extend(one.log.rest()), daemon=True)
        reading.start()
        assert one.ask(request(1, "ping")) == result(1, {})
        one.close()
        assert one.ended() == 0
        reading.join(60)
    dropped = [line for line in lines if b"were dropped" in line]
    logged = sum(len(line) + 1 for line in lines if line.startswith(b"a line of a log"))
    assert dropped or logged >= 2_000_000


# ── those who ask in vain ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.timeout(240)  # It has much to do, and other tests run beside it.
def test_a_client_that_does_not_read_our_answers_is_not_heard_for_ever(tmp_path: Path) -> None:
    """Each bad request gets an answer that is longer than itself."""
    idents = [f"{number:0900}" for number in range(40_000)]
    flood = b"".join(b'{"jsonrpc":"2.0","id":"%b"}\n' % ident.encode() for ident in idents)
    with enforcing(tmp_path, "--quiet") as one:
        one.open()
        before = peak(one.process)
        writing = threading.Thread(target=write_all, args=(one.sink, flood), daemon=True)
        writing.start()
        writing.join(MOMENT)
        assert writing.is_alive(), "all were taken"
        assert peak(one.process) - before < ROOM
        assert [one.answer()["id"] for _ in idents] == idents
        writing.join(60)


def write_all(descriptor: int, data: bytes) -> None:
    os.set_blocking(descriptor, True)
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def test_a_server_that_does_not_read_our_answers_is_not_heard_for_ever(tmp_path: Path) -> None:
    """And what the client was to get is not lost, nor is anybody else held up for ever: requests have their time."""
    bad = ["often", 40_000, f'{{"jsonrpc":"2.0","id":"{"s" * 900}","method":"nope"}}\n']
    with enforcing(tmp_path, "--quiet", "--timeout", "6", on={"ping": [bad, ["good"]]}) as one:
        one.open()
        before = peak(one.process)
        assert one.ask(request(1, "ping"))["error"]["code"] == -31012
        assert peak(one.process) - before < ROOM
        one.close()
        assert one.ended() == 0


def test_half_a_line_holds_up_nobody_else(tmp_path: Path) -> None:
    """What the client says still arrives, and what is wrong with it is still said."""
    half = [["raw", '{"jsonrpc":"2.0","id":1,"res'], ["tell", "half"]]
    with enforcing(tmp_path, received=True, on={"tools/call": half, "ping": [["raw", 'ult":{"content":[],']]}) as one:
        one.open()
        one.say(call(1))
        while one.received.next() != b"half":
            pass
        assert "error" in one.ask({"jsonrpc": "2.0", "id": 5})
        one.say(request(2, "ping"))
        assert json.loads(one.received.next()) == request(2, "ping")
        one.process.terminate()
        failed = [one.answer(), one.answer()]
        assert [each["id"] for each in failed] == [1, 2]
        assert one.ended() == 0


def test_a_line_that_comes_byte_by_byte_is_a_line(tmp_path: Path) -> None:
    slowly = [["raw", each] for each in '{"jsonrpc":"2.0","id":1,"result":{}}\n']
    with enforcing(tmp_path, on={"ping": slowly}) as one:
        one.open()
        for byte in b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n':
            one.write(bytes([byte]))
        assert one.out.next() == b'{"jsonrpc":"2.0","id":1,"result":{}}'

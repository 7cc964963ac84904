"""Peers of a guard that do not read what they are sent, in bulk: what is taken from the others is bounded."""

import json
import os
import select
import threading
from pathlib import Path
from typing import Any

import pytest

from kit.guard_process import call, enforcing, frame_of, notification, request, result

pytestmark = pytest.mark.timeout(240)

COUNT, SIZE = 3200, 10_000
BOUND = 4 << 20
"""Bytes that may be on their way: several times what a guard and its pipes keep, and much less than what is sent."""

MOMENT = 1.0
"""Seconds after which it counts that nothing more is taken."""


def taken(descriptor: int, data: bytes) -> int:
    """How much of *data* is taken by a guard that then takes no more."""
    os.set_blocking(descriptor, False)
    size = 0
    while size < len(data) and select.select([], [descriptor], [], MOMENT)[1]:
        size += os.write(descriptor, data[size : size + (1 << 16)])
    return size


def idents(answers: list[Any]) -> list[Any]:
    return [each["id"] for each in answers]


def test_a_server_that_stops_reading_holds_up_the_client_and_nothing_is_lost(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "go")
    on = {"#4": [["good"], ["await", str(tmp_path / "go")]]}
    said = b"".join(frame_of(call(number, words="x" * SIZE)) + b"\n" for number in range(COUNT))
    with enforcing(tmp_path, on=on) as one:
        one.open()
        assert one.ask(request("a", "ping")) == result("a", {})
        size = taken(one.sink, said)
        assert size < BOUND
        (tmp_path / "go").write_bytes(b"")
        one.write(said[size:])
        assert idents([one.answer() for _ in range(COUNT)]) == list(range(COUNT))


def test_a_client_that_stops_reading_holds_up_the_server_and_nothing_is_lost(tmp_path: Path) -> None:
    sent = tmp_path / "sent"
    with enforcing(tmp_path, received=True, sent=str(sent), on={"ping": [["notes", COUNT, SIZE], ["good"]]}) as one:
        one.open()
        one.say(request(1, "ping"))
        sizes = [0]
        while sizes[-1] == 0 or sizes[-1] != sizes[-2]:
            threading.Event().wait(MOMENT)
            sizes.append(sent.stat().st_size)
        assert sizes[-1] < BOUND
        # What the client says still arrives, later.
        one.say(notification("notifications/cancelled", {"requestId": "nothing"}))
        notes = [one.answer()["params"]["data"].split()[0] for _ in range(COUNT)]
        assert notes == [str(number) for number in range(COUNT)]
        assert one.answer() == result(1, {})
        assert any(b"notifications/cancelled" in one.received.next() for _ in range(5))


def test_a_peer_that_does_not_read_refusals_is_not_read_for_ever(tmp_path: Path) -> None:
    """Each bad request gets an answer that is longer than itself. Others go on: requests have their time."""
    bad = [f"{number:0900}" for number in range(8000)]
    flood = b"".join(b'{"jsonrpc":"2.0","id":"%b"}\n' % ident.encode() for ident in bad)
    with enforcing(tmp_path, "--quiet") as one:
        one.open()
        size = taken(one.sink, flood)
        assert size < BOUND
        one.write(flood[size:])
        one.close()
        assert idents([json.loads(line) for line in one.out.rest()]) == bad
    asked = ["often", len(bad), f'{{"jsonrpc":"2.0","id":"{"s" * 900}","method":"nope"}}\n']
    on = {"ping": [asked, ["good"]]}
    with enforcing(tmp_path, "--quiet", "--timeout", "3", on=on) as one:
        one.open()
        assert one.ask(request(1, "ping"))["error"]["code"] == -31012
        one.close()
        assert one.ended() == 0

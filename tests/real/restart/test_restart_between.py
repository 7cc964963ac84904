"""Between two servers: what the client says meanwhile, what it had said before, what the last one had asked."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from restarting import GOOD, SLOW, TOOLS, Mortal, dies, ends, mortal

from kit.command import assay, assay_text
from kit.guard_process import call, frame_of, initialize, notification, request
from kit.journals import records


@pytest.fixture
def go(tmp_path: Path) -> Path:
    """A named pipe that the next server waits for before it answers initialize."""
    path = tmp_path / "go"
    os.mkfifo(path)
    return path


def slowly(go: Path) -> dict[str, Any]:
    """A life that answers initialize when it may."""
    return {"tools": TOOLS, "on": {"initialize": [["await", str(go)], ["good"]]}}


def bereft(one: Mortal) -> None:
    """The first server is opened, and ends."""
    one.open()
    assert one.ask(call("die", "die"))["error"]["code"] == -31011
    one.until_logged("restarting")


# ── what the client says meanwhile ───────────────────────────────────────────────────────────────────────────────────


def test_what_is_said_meanwhile_goes_on_in_order_after_the_handshake(tmp_path: Path, go: Path) -> None:
    """Byte for byte; what is wrong with it is answered at once."""
    said = [request(number, "ping") for number in range(100)]
    changed = notification("notifications/roots/list_changed")
    with mortal(tmp_path, dies(), slowly(go)) as one:
        bereft(one)
        one.say(*said[:50], request("bad", "tools/nope"), changed, *said[50:])
        assert one.answer()["id"] == "bad"
        go.write_bytes(b"")
        one.reopened()
        assert [one.answer()["id"] for _ in said] == list(range(100))
        one.taken(call("die", "die"))
        assert one.taken(changed) == [
            *map(frame_of, (initialize(), notification("notifications/initialized"), *said[:50]))
        ]


def test_when_the_client_leaves_meanwhile_there_is_no_next_server_and_what_waits_is_answered(
    tmp_path: Path, go: Path
) -> None:
    """Nothing is left of the one that was being started."""
    for how, who in (
        ("closes", "the client left"),
        ("vanishes", "the client left"),
        ("signal", "the guard was stopped"),
    ):
        in_pause = how == "signal"
        lives = [{"start": [["exit", 1]]}] if in_pause else [dies(), slowly(go)]
        with mortal(tmp_path / how, *lives, pause=SLOW if in_pause else 0.01) as one:
            if in_pause:
                one.until_logged("restarting in 600 s")
            else:
                bereft(one)
                one.taken(call("die", "die"))
                assert one.received.next() == frame_of(initialize())
            lives_so_far = one.pids()
            if how == "signal":
                one.process.send_signal(signal.SIGTERM)
            else:
                one.close()
            if how == "vanishes" and one.process.stdout is not None:
                one.process.stdout.close()
            assert one.ended() == 0
            assert one.pids() == lives_so_far
            assert all(ends(pid) for pid in lives_so_far)
            assert one.lines()[-1].startswith(f"assay: {who}; the server was restarted ")
    with mortal(tmp_path / "waits", dies(), slowly(go)) as one:
        bereft(one)
        one.say(request(1, "ping"), request(2, "ping"))
        one.close()
        failed = [json.loads(line) for line in one.out.rest()]
        assert [(each["id"], each["error"]["code"]) for each in failed] == [(1, -31011), (2, -31011)]
        assert one.ended() == 3


# ── other revisions, records ─────────────────────────────────────────────────────────────────────────────────────────


def test_restarts_are_recorded_and_the_records_are_judged_and_replayed_as_the_guard_judged(tmp_path: Path) -> None:
    """Every line after a restart says so; each handshake is a conversation of its own. Two servers ask under one id."""
    journal, flights = tmp_path / "journal", tmp_path / "flights"
    options = ("--journal", str(journal), "--set", "journal.payloads=true", "--set", f"guard.flights={flights}")
    asks = {"ping": [["say", request("s", "roots/list")], ["good"]]}
    with mortal(tmp_path, dies(on=asks), dies(on=asks), GOOD, options=(*options, "--record", "session.jsonl")) as one:
        one.open()
        for number in range(2):
            one.say(request(f"ping {number}", "ping"))
            assert [one.answer()["id"], one.answer()["id"]] == ["s", f"ping {number}"]
            one.say(call(number, "wait"), call(f"die {number}", "die"))
            assert one.answer()["method"] == "notifications/cancelled"
            assert {one.answer()["id"], one.answer()["id"]} == {number, f"die {number}"}
            one.reopened()
        assert "result" in one.ask(request("last", "tools/list"))
        assert one.ask(call("unknown", "nothing"))["id"] == "unknown"
        one.close()
        assert one.out.rest() == []
        assert one.ended() == 0
        assert sum("the last messages of this session are in" in line for line in one.lines()) == 2
    assert len(list(flights.iterdir())) == 2
    lines = records(journal / ".latest")
    marks = [line["metadata"].get("restarts", 0) for line in lines]
    assert marks == sorted(marks)
    assert set(marks) == {0, 1, 2}
    again = [line for line in lines if "session" in line["metadata"]]
    assert [line["method"] for line in again] == 2 * ["initialize", "initialize", "notifications/initialized"]
    assert len({line["metadata"]["session"] for line in again}) == 2
    missing = [("missing", "wait"), ("missing", "die")]
    for name in ("session.jsonl", "journal"):
        done = assay_text("check", "--format", "ndjson", str(tmp_path / name))
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        assert [(row["kind"], row["tool"]) for row in rows] == [*missing, *missing, ("request", "nothing")], name
    replayed = assay("replay", str(journal / ".latest"))
    assert replayed.returncode == 0, replayed.stdout

"""Between two servers: what the client says meanwhile, what it had said before, what the last one had asked."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from restarting import GOOD, SLOW, TOOLS, Mortal, dies, ends, mortal

from kit.guard_process import (
    CAPABILITIES,
    SECONDS,
    Guarded,
    call,
    enforcing,
    frame_of,
    guarded,
    notification,
    request,
    result,
)
from kit.journals import records

STATELESS = {
    "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
}


@pytest.fixture
def go(tmp_path: Path) -> Path:
    """A named pipe that the next server waits for before it answers initialize."""
    path = tmp_path / "go"
    os.mkfifo(path)
    return path


def slowly(go: Path, **script: Any) -> dict[str, Any]:
    """A life that answers initialize when it may."""
    return {"tools": TOOLS, **script, "on": {"initialize": [["await", str(go)], ["good"]], **script.get("on", {})}}


def bereft(one: Mortal) -> None:
    """The first server is opened, and ends."""
    one.open()
    assert one.ask(call("die", "die"))["error"]["code"] == -31011
    one.until_told("restarting")


def received(one: Guarded, number: int) -> list[Any]:
    """The next lines that the server receives."""
    return [json.loads(one.received.next()) for _ in range(number)]


# ── what the client says meanwhile ───────────────────────────────────────────────────────────────────────────────────


def test_what_is_said_meanwhile_goes_on_in_order(tmp_path: Path, go: Path) -> None:
    """Byte for byte, after the handshake; what is wrong with it is answered at once."""
    said = [request(number, "ping") for number in range(100)]
    with mortal(tmp_path, dies(), slowly(go)) as one:
        bereft(one)
        one.say(*said[:50], request("bad", "tools/nope"), notification("notifications/roots/list_changed"), *said[50:])
        assert one.answer()["id"] == "bad"
        go.write_bytes(b"")
        one.reopened()
        assert [one.answer()["id"] for _ in said] == list(range(100))
        assert [one.received.next() for _ in range(6)][4:] == [
            frame_of(each) for each in ({"jsonrpc": "2.0", **_handshake()}, notification("notifications/initialized"))
        ]
        assert [one.received.next() for _ in range(50)] == [frame_of(each) for each in said[:50]]
        assert json.loads(one.received.next())["method"] == "notifications/roots/list_changed"


def _handshake() -> dict[str, Any]:
    info = {"name": "a", "version": "1"}
    params = {"protocolVersion": "2025-11-25", "capabilities": CAPABILITIES, "clientInfo": info}
    return {"id": "open", "method": "initialize", "params": params}


def test_what_is_too_much_to_wait_fails_at_once(tmp_path: Path, go: Path) -> None:
    """Each request is answered once, whichever way."""
    with mortal(tmp_path, dies(), slowly(go, received=None)) as one:
        bereft(one)
        one.say(*(call(number, words="x" * 10_000) for number in range(200)))
        turned = [one.answer() for _ in range(140)]
        assert {each["error"]["code"] for each in turned} == {-31011}
        found = {each["error"]["data"]["violations"][0]["found"] for each in turned}
        assert found == {"none: too much waits for the next server already"}
        go.write_bytes(b"")
        answers = [one.answer() for _ in range(61)]
        answers.remove(notification("notifications/tools/list_changed"))
        assert sorted(each["id"] for each in turned + answers) == list(range(200))
        assert sum("result" in each for each in answers) > 40


def test_a_request_that_waits_too_long_fails_for_that(tmp_path: Path, go: Path) -> None:
    with mortal(tmp_path, dies(), slowly(go), options=("--timeout", "6")) as one:
        bereft(one)
        one.say(request(1, "ping"))
        failed = one.answer()
        assert (failed["id"], failed["error"]["code"]) in {(1, -31012), (1, -31011)}
        assert one.out.rest() == []
        assert one.ended() == 3


def test_of_a_batch_that_is_too_much_every_request_is_answered_once(tmp_path: Path, go: Path) -> None:
    """Also one that is refused for itself; and one whose id another has that waits, which goes on waiting."""
    batch = [call(number, words="x" * 10_000) for number in range(60)]
    late = [request("late", "ping"), request("bad", "tools/nope"), request(0, "ping"), request("later", "ping")]
    with mortal(tmp_path, dies(), slowly(go, received=None)) as one:
        one.open(revision="2025-03-26")
        assert one.ask(call("die", "die"))["error"]["code"] == -31011
        one.until_told("restarting")
        one.say(batch, late)
        assert [each["id"] for each in one.answer()] == ["bad", 0]
        assert [one.answer()["id"], one.answer()["id"]] == ["late", "later"]
        one.close()
        assert sorted(json.loads(line)["id"] for line in one.out.rest()) == list(range(60))


LEAVING = ["closes", "vanishes", "signal"]


@pytest.mark.parametrize("how", LEAVING)
@pytest.mark.parametrize("when", ["back-off", "handshake"])
def test_when_the_client_leaves_meanwhile_there_is_no_next_server(
    tmp_path: Path, go: Path, how: str, when: str
) -> None:
    """And nothing is left of the one that was being started."""
    lives = [{"start": [["exit", 1]]}] if when == "back-off" else [dies(), slowly(go)]
    with mortal(tmp_path, *lives, pause=SLOW if when == "back-off" else None) as one:
        if when == "back-off":
            one.until_told("restarting in 600 s")
        else:
            bereft(one)
            while b"initialize" not in one.received.next() or len(one.pids()) < 2:
                pass
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
        who = "the guard was stopped; the server" if how == "signal" else "the client left; the server"
        assert one.lines()[-1].startswith(f"assay: {who} was restarted ")


def test_what_waits_when_the_client_says_no_more_is_answered(tmp_path: Path, go: Path) -> None:
    with mortal(tmp_path, dies(), slowly(go)) as one:
        bereft(one)
        one.say(request(1, "ping"), request(2, "ping"))
        one.close()
        failed = [json.loads(line) for line in one.out.rest()]
        assert [(each["id"], each["error"]["code"]) for each in failed] == [(1, -31011), (2, -31011)]
        assert one.ended() == 3


# ── what was said before ─────────────────────────────────────────────────────────────────────────────────────────────


def test_the_log_level_and_subscriptions_are_set_again(tmp_path: Path) -> None:
    """As they were last; the client hears nothing of the answers."""
    with mortal(tmp_path, dies(), GOOD) as one:
        one.open()
        for number, (method, params) in enumerate(
            [
                ("logging/setLevel", {"level": "debug"}),
                ("logging/setLevel", {"level": "error"}),
                ("resources/subscribe", {"uri": "file:///a"}),
                ("resources/subscribe", {"uri": "file:///b"}),
                ("resources/subscribe", {"uri": "file:///ü"}),
                ("resources/unsubscribe", {"uri": "file:///a"}),
            ]
        ):
            assert "result" in one.ask(request(number, method, params))
        assert one.ask(call("die", "die"))["error"]["code"] == -31011
        one.reopened()
        assert one.ask(request("last", "ping")) == result("last", {})
        said = received(one, 16)[10:]
        one.close()
        assert one.out.rest() == []
    assert [each["method"] for each in said[:2]] == ["initialize", "notifications/initialized"]
    assert [each["params"] for each in said[2:5]] == [{"level": "error"}, {"uri": "file:///b"}, {"uri": "file:///ü"}]
    assert said[5] == request("last", "ping")


def test_what_cannot_be_set_again_is_counted_in_the_summary(tmp_path: Path) -> None:
    refused = {"jsonrpc": "2.0", "id": "$id", "error": {"code": -32002, "message": "no such resource"}}
    with mortal(tmp_path, dies(), {"tools": TOOLS, "on": {"resources/subscribe": [["say", refused]]}}) as one:
        one.open()
        assert "result" in one.ask(request(1, "resources/subscribe", {"uri": "file:///a"}))
        assert one.ask(call("die", "die"))["error"]["code"] == -31011
        one.reopened()
        assert one.ask(request(2, "ping")) == result(2, {})
        one.close()
        assert one.out.rest() == []
        assert "assay: 1 subscription or log level was lost when the server was restarted" in one.lines()


def test_contracts_stand_until_the_next_list(tmp_path: Path) -> None:
    """Arguments are held to what was listed; a tool that was not listed may be new."""
    strict = {"name": "strict", "inputSchema": {"type": "object", "required": ["a"]}}
    with mortal(tmp_path, dies() | {"tools": [*TOOLS, strict]}, GOOD) as one:
        one.open()
        assert one.ask(call(1, "strict"))["result"]["isError"] is True
        assert "result" in one.ask(call(2, "unheard-of"))
        assert one.ask(call("die", "die"))["error"]["code"] == -31011
        one.reopened()
        assert one.ask(call(3, "strict"))["result"]["isError"] is True
        assert "result" in one.ask(call(4, "unheard-of"))
        assert len(one.ask(request("again", "tools/list"))["result"]["tools"]) == len(TOOLS)
        # Under another name: what is wrong again in the same way is only counted.
        assert "result" in one.ask(call(5, "unheard-of-too"))
        one.close()
        told = [line for line in one.lines() if "contract/unknown-tool]" in line]
    assert [line.partition("#")[2][0] for line in told] == ["2", "5"]


# ── what the server had asked ────────────────────────────────────────────────────────────────────────────────────────


def test_what_the_last_server_had_asked_is_taken_back_and_answers_to_it_stay_here(tmp_path: Path) -> None:
    """The next one may ask under the same id."""
    asks = [["say", request("s", "roots/list")]]
    with mortal(tmp_path, dies(on={"ping": asks}), {"tools": TOOLS, "on": {"ping": [*asks, ["good"]]}}) as one:
        one.open()
        assert one.ask(request(1, "ping")) == request("s", "roots/list")
        one.say(call("die", "die"))
        taken_back = one.answer()
        assert taken_back["method"] == "notifications/cancelled"
        assert taken_back["params"]["requestId"] == "s"
        assert [one.answer()["id"], one.answer()["id"]] == [1, "die"]
        one.reopened()
        late = result("s", {"roots": [{"uri": "file:///old"}]})
        one.say(late, request(2, "ping"))
        assert [one.answer(), one.answer()] == [request("s", "roots/list"), result(2, {})]
        fresh = result("s", {"roots": [{"uri": "file:///new"}]})
        one.say(fresh, request(3, "tools/list"))
        assert one.answer()["id"] == 3
        said = [one.received.next() for _ in range(10)]
    assert frame_of(late) not in said
    assert said[8:] == [frame_of(fresh), frame_of(request(3, "tools/list"))]


def test_an_answer_to_what_the_last_server_had_cancelled_stays_here(tmp_path: Path) -> None:
    """One that crosses a cancellation may pass, but not to a server that never asked."""
    cancels = [
        ["say", request("s", "roots/list")],
        ["say", notification("notifications/cancelled", {"requestId": "s"})],
        ["good"],
    ]
    with mortal(tmp_path, dies(on={"ping": cancels}), GOOD) as one:
        one.open()
        one.say(request(1, "ping"))
        assert [one.answer().get("id") for _ in range(3)] == ["s", None, 1]
        assert one.ask(call("die", "die"))["error"]["code"] == -31011
        one.reopened()
        one.say(result("s", {"roots": []}), request(2, "ping"))
        assert one.answer() == result(2, {})
        assert received(one, 8)[7] == request(2, "ping")


# ── other revisions, other modes ─────────────────────────────────────────────────────────────────────────────────────


def test_without_a_handshake_there_is_nothing_to_say_again(tmp_path: Path) -> None:
    """Subscriptions end with an error, so that the client asks again."""
    listens = {"on": {"subscriptions/listen": [], "tools/call": [["exit", 1]]}}
    called = request(2, "tools/call", {"name": "search", "arguments": {"words": "a"}, **STATELESS})
    with mortal(tmp_path, listens, GOOD) as one:
        one.say(request(1, "subscriptions/listen", {"notifications": {}, **STATELESS}), called)
        assert [(each["id"], each["error"]["code"]) for each in (one.answer(), one.answer())] == [
            (1, -31011),
            (2, -31011),
        ]
        assert "result" in one.ask(called)
        sent = [each["id"] for each in received(one, 4)]
        assert [each for each in sent if not str(each).startswith("assay-list-")] == [1, 2, 2]
        one.close()
        assert one.out.rest() == []


def test_a_last_answer_without_a_newline_does_not_run_into_the_next_server(tmp_path: Path) -> None:
    last = '{"jsonrpc":"2.0","id":$id,"result":{"content":[],"resultType":"complete"}}'
    called = request(2, "tools/call", {"name": "search", "arguments": {"words": "a"}, **STATELESS})
    with mortal(tmp_path, {"on": {"tools/call": [["raw", last], ["exit", 0]]}}, GOOD) as one:
        one.say(called)
        one.until_told("restarting")
        one.say({**called, "id": 3})
        assert [one.answer()["id"], one.answer()["id"]] == [2, 3]


def test_under_audit_the_end_is_the_end(tmp_path: Path) -> None:
    """The guard adds nothing, and says at the start that it will not."""
    with guarded(tmp_path, "--restart", "always", on={"ping": [["exit", 1]]}) as one:
        one.open()
        one.say(request(1, "ping"))
        assert one.out.rest() == []
        assert one.ended() == 3
        told = one.log.rest()
    assert b"assay: --restart needs --mode enforce; under audit a server that ends is not restarted" in told
    assert told[-1] == b"assay: the server ended first: it exited with status 1"


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--restart", "sometimes"], b"invalid choice"),
        (["--set", "guard.restart=sometimes"], b"guard.restart: expected one of never, on-failure, always, found"),
        (["--set", "guard.restarts=0"], b"restarts must be 1 to 1000"),
    ],
)
def test_a_slip_is_status_2(tmp_path: Path, options: list[str], reason: bytes) -> None:
    with enforcing(tmp_path, *options) as one:
        assert one.ended() == 2
        assert reason in one.log.all()


# ── what is left of it ───────────────────────────────────────────────────────────────────────────────────────────────


def test_restarts_are_on_record(tmp_path: Path) -> None:
    """Every line after one says so; the handshake is on record as a conversation of its own, and can be replayed."""
    journal = tmp_path / "journal"
    flights = tmp_path / "flights"
    options = ("--journal", str(journal), "--set", "journal.payloads=true", "--set", f"guard.flights={flights}")
    with mortal(tmp_path, dies(), dies(), GOOD, options=options) as one:
        one.open()
        for number in range(2):
            assert one.ask(call(number, "die"))["error"]["code"] == -31011
            one.reopened()
        assert one.ask(request("last", "ping")) == result("last", {})
        one.close()
        assert one.out.rest() == []
        assert one.ended() == 0
        told = one.lines()
    lines = records(journal / ".latest")
    marks = [line["metadata"].get("restarts", 0) for line in lines]
    assert marks == sorted(marks)
    assert set(marks) == {0, 1, 2}
    again = [line for line in lines if "session" in line["metadata"]]
    assert [line["method"] for line in again] == 2 * ["initialize", "initialize", "notifications/initialized"]
    assert len({line["metadata"]["session"] for line in again}) == 2
    assert [line["metadata"]["id"] for line in lines if line["metadata"]["kind"] == "missing"] == [0, 1]
    assert len(list(flights.iterdir())) == 2
    assert sum("the last messages of this session are in" in line for line in told) == 2


def test_a_journal_with_restarts_can_be_replayed(tmp_path: Path) -> None:
    """Also where two servers ask under the same id."""
    journal = tmp_path / "journal"
    asks = {"ping": [["say", request("s", "roots/list")], ["good"]]}
    options = ("--journal", str(journal), "--set", "journal.payloads=true")
    with mortal(tmp_path, dies(on=asks), {"tools": TOOLS, "on": asks}, options=options) as one:
        one.open()
        one.say(request(1, "ping"))
        assert [one.answer()["id"], one.answer()["id"]] == ["s", 1]
        one.say(call("die", "die"))
        assert one.answer()["method"] == "notifications/cancelled"
        assert one.answer()["id"] == "die"
        one.reopened()
        one.say(request(2, "ping"))
        assert [one.answer()["id"], one.answer()["id"]] == ["s", 2]
        one.close()
        assert one.out.rest() == []
    command = [sys.executable, "-m", "assay", "replay", str(journal / ".latest")]
    done = subprocess.run(command, capture_output=True, timeout=SECONDS, check=False, encoding="utf-8")
    assert done.returncode == 0, done.stdout + done.stderr

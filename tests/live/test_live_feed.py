"""The live feed of a guard on standard streams: what a listener gets, and that the guard never notices it."""

import json
import os
import signal
import socket
import stat
import sys
from collections.abc import Callable, Iterator
from errno import ENAMETOOLONG
from pathlib import Path
from typing import Any

import pytest
from guarded import call, initialize, liar, request, result, tool
from listening import DYING, Listener, guard, live, only_socket, short_state, sockets

from assay.records.live import live_sockets
from assay.records.live.feed_reader import feed

Listen = Callable[[], Listener]

SEARCH = tool("search", inputSchema={"type": "object", "properties": {"limit": {"type": "integer"}}})
SERVER = liar(tools=[SEARCH])
SECRET = {"password": "hunter2-hunter2"}


@pytest.fixture
def state() -> Iterator[Path]:
    """A state directory of its own."""
    yield from short_state()


@pytest.fixture
def listen(state: Path) -> Iterator[Listen]:
    """Connects a listener to the only guard; all of them are closed in the end."""
    made: list[Listener] = []

    def connect() -> Listener:
        made.append(Listener(only_socket(state)))
        return made[-1]

    yield connect
    for each in made:
        each.close()


def journal_of(hello: dict[str, Any]) -> bytes:
    """What the journal of the only server has from where the feed began."""
    [row] = hello["servers"]
    data = Path(row["journal"]["path"]).read_bytes()
    return data[row["journal"]["bytes"] :]


def test_hello_says_what_is_known(state: Path, listen: Listen) -> None:
    with guard("--mode", "enforce", "--name", "books", "--", *SERVER, "--token", "s3cr3t-Value-93", state=state) as one:
        one.open()
        hello = listen().item()
        [row] = hello["servers"]
        [session] = hello["sessions"]
        assert hello["event"] == "hello"
        assert (hello["feed"], hello["kind"], hello["transport"], hello["mode"]) == (1, "guard", "stdio", "enforce")
        assert hello["pid"] == one.process.pid
        assert hello["payloads"] is False
        assert (row["name"], row["state"], row["lock"]) == ("books", "running", "none")
        assert "s3cr3t" not in row["command"]
        assert row["tools"]["count"] == 1
        assert row["revisions"] == [session["revision"]]
        assert session["client"] == {"name": "a", "version": "1", "capabilities": ["roots", "sampling", "elicitation"]}


@pytest.mark.parametrize("payloads", [False, True])
def test_records_are_the_lines_of_the_journal(state: Path, listen: Listen, payloads: bool) -> None:
    setting = f"journal.payloads={str(payloads).lower()}"
    with guard("--mode", "enforce", "--set", setting, "--", *SERVER, state=state) as one:
        one.open()
        listener = listen()
        hello = listener.item()
        assert hello["payloads"] is payloads
        one.ask(call(1, limit=3))
        assert one.ask(call(2, limit=[], **SECRET))["result"]["isError"] is True
        one.ask(call(3, limit=4))
        lines = listener.records(5)
        assert b"".join(lines) == journal_of(hello)
        assert b"hunter2" not in b"".join(lines)
        assert ['"frame":' in line.decode() for line in lines] == [payloads] * 5
        assert json.loads(lines[2])["error"]["violations"][0]["rule"] == "contract/input"


def test_a_guard_without_a_journal_has_a_feed(state: Path, listen: Listen) -> None:
    with guard("--journal", "off", "--", *SERVER, state=state) as one:
        one.open()
        listener = listen()
        assert listener.item()["servers"][0]["journal"] is None
        one.ask(call(1, limit="x"))
        first, second = map(json.loads, listener.records(2))
        assert (first["status"], first["metadata"]["passed"], second["status"]) == ("refused", True, "ok")
        assert first["metadata"]["mode"] == "audit"
        assert "frame" not in first["metadata"]


def test_events_are_about_sessions_tools_and_the_end(state: Path, listen: Listen) -> None:
    with guard("--", *SERVER, state=state) as one:
        # The server is ready, and so is the guard: a request before the handshake is answered.
        one.ask(request("early", "ping"))
        listener = listen()
        assert listener.item()["sessions"] == []
        one.open()
        opened = listener.until("session")
        assert (opened["state"], opened["client"]["name"]) == ("opened", "a")
        listed = listener.until("tools")
        assert (listed["changed"], listed["count"], listed["more"]) == (False, 1, False)
        one.close()
        events = [each["event"] for each in listener.rest() if "event" in each]
        assert events[-1] == "bye"
        assert one.ended() == 0
        assert sockets(state) == []


def test_a_restart_and_a_failure_are_events(state: Path, listen: Listen) -> None:
    options = ("--mode", "enforce", "--restart", "always")
    with guard(*options, "--", sys.executable, "-c", DYING, state=state) as one:
        one.ask(initialize())
        listener = listen()
        assert listener.item()["servers"][0]["state"] == "running"
        one.say(request(1, "tools/list"))
        assert listener.until("restart")["restarts"] == 1
        failed = listener.until("state")
        assert failed["state"] == "failed"
        assert "status 3" in failed["why"]
        assert "giving up" in failed["stderr"]
        assert "a1B2a1B2" not in failed["stderr"]
        assert listener.until("state")["state"] == "running"


def test_sockets_are_for_this_user_alone(state: Path) -> None:
    with guard("--", *SERVER, state=state) as one:
        one.open()
        assert stat.S_IMODE(live(state).stat().st_mode) == 0o700
        assert stat.S_IMODE(only_socket(state).stat().st_mode) == 0o600


def test_a_listener_that_does_not_read_delays_nothing_and_gets_its_drops(state: Path, listen: Listen) -> None:
    calls, burst = 16_000, 400
    with guard("--journal", "off", "--", *SERVER, state=state) as one:
        one.open()
        idle = listen()
        assert idle.item()["event"] == "hello"
        frames = [json.dumps(call(number, limit=number)).encode() for number in range(calls)]
        for first in range(0, calls, burst):
            one.say(*frames[first : first + burst])
            for number in range(first, first + burst):
                assert one.answer()["id"] == number
        records = dropped = 0
        while records + dropped < 2 * calls:
            each = idle.item()
            records += "event" not in each
            dropped += each["count"] if each.get("event") == "dropped" else 0
        assert dropped > 0
        assert records + dropped == 2 * calls


def test_what_a_listener_sends_is_ignored_and_bounded(state: Path, listen: Listen) -> None:
    with guard("--", *SERVER, state=state) as one:
        one.open()
        listener = listen()
        listener.item()
        listener.socket.sendall(b"tools/call\n" * 100)
        assert "result" in one.ask(call(1))
        assert len(listener.records(2)) == 2
        with pytest.raises(OSError, match=r"."):
            listener.socket.sendall(b"x" * (64 << 20))
        assert "result" in one.ask(call(2))


def test_one_listener_too_many_is_refused_politely(state: Path, listen: Listen) -> None:
    with guard("--", *SERVER, state=state) as one:
        one.open()
        listeners = [listen() for _ in range(8)]
        assert [each.item()["event"] for each in listeners] == ["hello"] * 8
        ninth = listen()
        assert ninth.item()["event"] == "refused"
        assert ninth.line() == b""
        listeners.pop().close()
        one.ask(call(1))
        assert len(listeners[0].records(2)) == 2
        assert listen().item()["event"] == "hello"


def test_a_listener_that_dies_is_forgotten(state: Path, listen: Listen) -> None:
    with guard("--", *SERVER, state=state) as one:
        one.open()
        for number in range(20):
            listener = listen()
            listener.item()
            one.say(call(f"a{number}"))
            listener.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            listener.close()
            assert one.answer()["id"] == f"a{number}"


def test_a_killed_guard_leaves_a_socket_that_the_next_one_removes(state: Path, listen: Listen) -> None:
    with guard("--", *SERVER, state=state) as one:
        one.open()
        listener = listen()
        listener.item()
        one.process.send_signal(signal.SIGKILL)
        one.process.wait()
        assert listener.rest() == []
    [left] = sockets(state)
    beside = live(state) / "notes.txt"
    beside.write_text("not a socket")
    named = live(state) / f"{one.process.pid}-00000000.sock"
    named.write_text("not a socket either")
    with guard("--", *SERVER, state=state) as other:
        other.open()
        assert left not in sockets(state)
        assert beside.exists()
        assert named.exists()
        assert len(sockets(state)) == 2


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a way around the length of an address")
def test_a_long_state_directory_has_a_feed_where_that_can_be_reached(state: Path) -> None:
    deep = state / ("d" * 60) / ("e" * 60)
    deep.mkdir(parents=True)
    with guard("--", *SERVER, state=deep) as one:
        one.open()
        [path] = sockets(deep)
        assert len(str(path)) > 120
        reading = feed(str(path))
        assert next(reading).event == "hello"
        one.ask(call(1))
        assert next(reading).data["method"] == "tools/call"
        reading.close()
        one.process.send_signal(signal.SIGKILL)
        one.process.wait()
    with guard("--", *SERVER, state=deep) as other:
        other.open()
        assert path not in sockets(deep)


def test_a_path_that_is_too_long_is_an_error(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_sockets, "_OPEN_FILES", str(state / "nowhere"))
    with pytest.raises(OSError, match="the path of a socket may have") as raised:
        live_sockets.listening(str(state / ("d" * 60) / ("e" * 60)))
    assert raised.value.errno == ENAMETOOLONG


def test_a_guard_that_cannot_have_a_feed_says_so_and_goes_on(state: Path) -> None:
    live(state).parent.mkdir(parents=True)
    live(state).write_text("in the way")
    with guard("--", *SERVER, state=state) as one:
        one.open()
        assert "result" in one.ask(call(1))
        one.close()
        assert b"assay: no live feed: " in one.log.all()


def test_a_feed_can_be_switched_off(state: Path) -> None:
    with guard("--set", "guard.feed=false", "--", *SERVER, state=state) as one:
        one.open()
        assert not live(state).exists()


def test_a_project_file_cannot_switch_it_off(state: Path) -> None:
    (state / "assay.toml").write_text("[guard]\nfeed = false\n")
    with guard("--", *SERVER, state=state) as one:
        one.open()
        assert len(sockets(state)) == 1


def test_a_directory_that_is_a_link_is_not_used(state: Path) -> None:
    elsewhere = state / "elsewhere"
    elsewhere.mkdir()
    live(state).parent.mkdir(parents=True)
    os.symlink(elsewhere, live(state))
    with guard("--", *SERVER, state=state) as one:
        one.open()
        assert list(elsewhere.iterdir()) == []


def test_traffic_is_the_same_with_a_listener(state: Path, listen: Listen) -> None:
    answers = []
    for listens in (False, True):
        with guard("--", *SERVER, state=state) as one:
            one.open()
            listener = listen() if listens else None
            one.say(*(call(number, limit=number) for number in range(100)), result(7, {}), b"no json")
            one.close()
            answers.append(one.out.all())
            if listener is not None:
                assert listener.rest()[-1]["event"] == "bye"
    assert answers[0] == answers[1]

"""The live feed of every other kind of guard, and of the asset server: the records are those of the journal."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from listening import (
    ASSAY,
    ASSETS,
    DYING,
    LISTING,
    HttpTalk,
    Listener,
    address,
    guard,
    list_schemas,
    only_socket,
    short_state,
    started,
)

Ask = Callable[[Any], Any]


@pytest.fixture
def state() -> Iterator[Path]:
    """A state directory of its own."""
    yield from short_state()


@contextmanager
def upstream(state: Path) -> Iterator[str]:
    """The URL of a server without a feed."""
    command = (*ASSETS, "--http", "127.0.0.1:0", "--journal", "off", "--set", "guard.feed=false")
    with started(*command, state=state) as process:
        yield address(process)


@contextmanager
def over_http(*command: str, state: Path, path: str = "") -> Iterator[Ask]:
    """Calls a server or guard over HTTP."""
    with started(*command, state=state) as process:
        url = address(process)
        talk = HttpTalk(url if not path else url.rpartition(":")[0] + ":" + url.rpartition(":")[2].split("/")[0] + path)
        talk.open()
        try:
            yield talk.ask
        finally:
            talk.close()


@contextmanager
def url_to_stdio(state: Path) -> Iterator[Ask]:
    """A client on standard streams, a server at a URL."""
    with upstream(state) as url, guard("--target", url, state=state) as one:
        one.open()
        yield one.ask


@contextmanager
def command_over_http(state: Path) -> Iterator[Ask]:
    """A client over HTTP, a child process."""
    listen = (*ASSAY, "guard", "--listen", "127.0.0.1:0", "--", *ASSETS, "--set", "guard.feed=false")
    with over_http(*listen, state=state) as ask:
        yield ask


@contextmanager
def url_over_http(state: Path) -> Iterator[Ask]:
    """A client over HTTP, a server at a URL."""
    with (
        upstream(state) as url,
        over_http(*ASSAY, "guard", "--listen", "127.0.0.1:0", "--target", url, state=state) as ask,
    ):
        yield ask


@contextmanager
def host(state: Path) -> Iterator[Ask]:
    """Two servers of a client's file, of which one is used."""
    words = [*ASSETS, "--set", "guard.feed=false"]
    environ = {"PYTHONPATH": ""}
    entry = {"command": words[0], "args": words[1:], "env": environ}
    (state / "mcp.json").write_text(json.dumps({"mcpServers": {"one": entry, "two": entry}}))
    listen = (*ASSAY, "guard", "--listen", "127.0.0.1:0", "--config", "mcp.json")
    with over_http(*listen, state=state, path="/two/mcp") as ask:
        yield ask


@contextmanager
def assets_over_stdio(state: Path) -> Iterator[Ask]:
    """The asset server on standard streams."""
    with started(*ASSETS, state=state) as process:
        from guarded import Guarded, Lines

        one = Guarded(process, Lines(-1))
        one.open()
        yield one.ask


@contextmanager
def assets_over_http(state: Path) -> Iterator[Ask]:
    """The asset server over HTTP."""
    with over_http(*ASSETS, "--http", "127.0.0.1:0", state=state) as ask:
        yield ask


KINDS = {
    "url": (url_to_stdio, "guard", "stdio"),
    "http-command": (command_over_http, "guard", "http"),
    "http-url": (url_over_http, "guard", "http"),
    "host": (host, "guard", "http"),
    "assets": (assets_over_stdio, "assets", "stdio"),
    "assets-http": (assets_over_http, "assets", "http"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_records_are_those_of_the_journal(state: Path, kind: str) -> None:
    make, what, transport = KINDS[kind]
    with ExitStack() as stack:
        ask = stack.enter_context(make(state))
        ask(LISTING)
        listener = Listener(only_socket(state))
        stack.callback(listener.close)
        hello = listener.item()
        assert (hello["kind"], hello["transport"]) == (what, transport)
        for number in range(3):
            ask(list_schemas(number))
        lines = listener.records(6)
        row = next(each for each in hello["servers"] if each["journal"] is not None)
        assert b"".join(lines) == Path(state / row["journal"]["path"]).read_bytes()[row["journal"]["bytes"] :]
        assert {json.loads(line)["metadata"]["server"] for line in lines} == {row["name"]}


@pytest.mark.parametrize("kind", KINDS)
def test_without_a_journal_there_is_a_feed(state: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make, _, transport = KINDS[kind]
    monkeypatch.setattr("listening.JOURNAL", {"ASSAY_JOURNAL": "off"})
    with ExitStack() as stack:
        ask = stack.enter_context(make(state))
        for round_number in range(2):
            # The second listener comes after the first has gone, and nothing was recorded between them.
            listener = Listener(only_socket(state))
            stack.callback(listener.close)
            assert all(each["journal"] is None for each in listener.item()["servers"])
            ask(list_schemas(round_number))
            asked, answered = map(json.loads, listener.records(2))
            assert asked["metadata"]["id"] == answered["metadata"]["id"] == round_number
            assert asked["transport"] == transport
            listener.close()
            ask(list_schemas(9))


def test_a_host_announces_a_server_when_it_is_used(state: Path) -> None:
    with ExitStack() as stack:
        stack.enter_context(host(state))
        listener = Listener(only_socket(state))
        stack.callback(listener.close)
        hello = listener.item()
        assert {each["name"]: each["state"] for each in hello["servers"]} == {"one": "idle", "two": "running"}
        assert hello["sessions"][0]["server"] == "two"
        other = HttpTalk(hello["address"].rstrip("/") + "/one/mcp")
        stack.callback(other.close)
        other.open()
        announced = listener.until("server")
        assert announced["name"] == "one"
        assert announced["journal"]["run"] in announced["journal"]["path"]
        opened = listener.until("session")
        assert (opened["server"], opened["state"]) == ("one", "opened")
        first = json.loads(listener.records(1)[0])
        assert first["metadata"]["server"] == "one"
        assert first["metadata"]["session"] == opened["session"]


def test_a_child_that_fails_over_http_is_an_event(state: Path) -> None:
    listen = (*ASSAY, "guard", "--listen", "127.0.0.1:0", "--", sys.executable, "-c", DYING)
    with ExitStack() as stack:
        process = stack.enter_context(started(*listen, state=state))
        talk = HttpTalk(address(process))
        stack.callback(talk.close)
        talk.open()
        listener = Listener(only_socket(state))
        stack.callback(listener.close)
        assert listener.item()["servers"][0]["state"] == "running"
        talk.post(LISTING)
        failed = listener.until("state")
        assert (failed["state"], "status 3" in failed["why"]) == ("failed", True)
        assert "giving up" in failed["stderr"]
        assert "a1B2a1B2" not in failed["stderr"]

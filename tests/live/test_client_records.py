"""What records and the feed of a guard over HTTP have of a client: its principal, its HTTP requests, its streams."""

import hashlib
import json
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from guarded import INITIALIZED, SECONDS, frame_of, initialize, request
from listening import ASSAY, ASSETS, Listener, address, list_schemas, only_socket, short_state, started

from assay.base.meta import CAPABILITIES_KEY, REVISION_KEY
from assay.spec.revisions import LATEST

KEYS = {"alice": "a" * 43, "bob": "b" * 43}


@pytest.fixture
def state() -> Iterator[Path]:
    """A state directory of its own, with the settings of a guard that authenticates two principals."""
    for made in short_state():
        hashes = {name: hashlib.sha256(key.encode()).hexdigest() for name, key in KEYS.items()}
        keys = "".join(f'[auth.keys.{name}]\nhash = "sha256:{each}"\n' for name, each in hashes.items())
        (made / "auth.toml").write_text(keys)
        yield made


OPEN = ExitStack()
"""The connections of one test."""


@pytest.fixture(autouse=True)
def closing() -> Iterator[None]:
    """Close all connections of a test at its end."""
    with OPEN:
        yield


def listening(state: Path) -> Listener:
    """A listener at the feed of the only guard."""
    made = Listener(only_socket(state))
    OPEN.callback(made.close)
    return made


@contextmanager
def upstream(state: Path) -> Iterator[list[str]]:
    """The options of a guard for a server at a URL."""
    command = (*ASSETS, "--http", "127.0.0.1:0", "--journal", "off", "--set", "guard.feed=false")
    with started(*command, state=state) as process:
        yield ["--target", address(process)]


@contextmanager
def child(_: Path) -> Iterator[list[str]]:
    """The options of a guard for a server that it starts."""
    yield ["--", *ASSETS, "--set", "guard.feed=false", "--journal", "off"]


@contextmanager
def guard(state: Path, kind: str, *options: str) -> Iterator[str]:
    """The URL of a guard over HTTP."""
    with (child if kind == "child" else upstream)(state) as server:
        command = (*ASSAY, "guard", "--name", "lib", *options, "--listen", "127.0.0.1:0", *server)
        with started(*command, state=state) as process:
            yield address(process)


class Client:
    """A client of one principal, or of none."""

    def __init__(self, url: str, principal: str = "") -> None:
        parts = urlsplit(url)
        self.path = parts.path
        self.connection = HTTPConnection(parts.hostname or "", parts.port or 0, timeout=SECONDS)
        OPEN.callback(self.connection.close)
        self.headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "User-Agent": "tester/1 token=ghp_" + "a1B2" * 9,
            "Cookie": "secret=1234567890",
            "X-Custom": "hidden value",
        }
        if principal:
            self.headers["Authorization"] = f"Bearer {KEYS[principal]}"

    def post(self, message: Any, **more: str) -> tuple[int, dict[str, str]]:
        """The status and the headers of the response."""
        given = {name.replace("_", "-"): value for name, value in more.items()}
        self.connection.request("POST", self.path, frame_of(message), self.headers | given)
        answer = self.connection.getresponse()
        answer.read()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}

    def open(self) -> None:
        """The handshake."""
        opening = initialize()
        status, headers = self.post(opening)
        assert status == 200
        self.headers["Mcp-Session-Id"] = headers["mcp-session-id"]
        self.headers["MCP-Protocol-Version"] = opening["params"]["protocolVersion"]
        assert self.post(INITIALIZED)[0] == 202

    def call_alone(self) -> int:
        """Call a tool without a session."""
        message = list_schemas(1)
        message["params"]["_meta"] = {REVISION_KEY: LATEST, CAPABILITIES_KEY: {}}
        named = {"MCP_Protocol_Version": LATEST, "Mcp_Method": "tools/call", "Mcp_Name": "list_schemas"}
        return self.post(message, **named)[0]

    def listen(self) -> Any:
        """Open a stream, and return its response."""
        self.connection.request("GET", self.path, headers=self.headers | {"Accept": "text/event-stream"})
        return self.connection.getresponse()


def records(listener: Listener, count: int) -> list[dict[str, Any]]:
    """The next records of the feed."""
    return [json.loads(line) for line in listener.records(count)]


def without_lists(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without the guard's own request for the tools, which no client has sent, and its answer."""
    return [each for each in found if each["method"] != "tools/list"]


@pytest.mark.parametrize("kind", ["child", "url"])
@pytest.mark.parametrize("journal", [(), ("--journal", "off")])
def test_records_name_the_principal(state: Path, kind: str, journal: tuple[str, ...]) -> None:
    with guard(state, kind, "--config", str(state / "auth.toml"), *journal) as url:
        listener = listening(state)
        listener.until("hello")
        alice, bob = Client(url, "alice"), Client(url, "bob")
        alice.open()
        bob.open()
        assert alice.post(list_schemas(1))[0] == bob.post(list_schemas(1))[0] == 200
        # Requests without a session share one child.
        assert [each.call_alone() for each in (alice, bob, alice)] == [200, 200, 200]
        found = records(listener, 16)
        text = json.dumps(found)
        assert not [key for key in KEYS.values() if key in text]
        named = [(each["metadata"]["principal"], "session" in each["metadata"]) for each in found]
        # The first request of each client opens the session, so it has none in a record of a server at a URL.
        assert {who for who, _ in named} == {"alice", "bob"}
        alone = [who for who, has in named[10:] if not has]
        assert alone == ["alice", "alice", "bob", "bob", "alice", "alice"]
        sessions = {(each["metadata"].get("session"), each["metadata"]["principal"]) for each in found}
        assert len({session for session, _ in sessions if session}) == 2
        late = listening(state)
        hello = late.until("hello")
        assert sorted(each["principal"] for each in hello["sessions"]) == ["alice", "bob"]


def test_without_keys_no_principal_is_named(state: Path) -> None:
    with guard(state, "child") as url:
        listener = listening(state)
        listener.until("hello")
        client = Client(url)
        client.open()
        assert client.call_alone() == 200
        found = records(listener, 5)
        assert not [each for each in found if "principal" in each["metadata"] or "http" in each["metadata"]]


HIDDEN = ("ghp_a1B2", "1234567890", "hidden value", KEYS["alice"])


@pytest.mark.parametrize("kind", ["child", "url"])
@pytest.mark.parametrize("journal", [(), ("--journal", "off")])
def test_with_payloads_records_have_the_http_exchange(state: Path, kind: str, journal: tuple[str, ...]) -> None:
    options = ("--config", str(state / "auth.toml"), "--set", "journal.payloads=true", "--mode", "enforce", *journal)
    with guard(state, kind, *options) as url:
        listener = listening(state)
        listener.until("hello")
        client = Client(url, "alice")
        client.open()
        # A call that waits for the guard's own list has no HTTP exchange in its records.
        assert client.post(request(0, "tools/list"))[0] == 200
        assert client.post(list_schemas(1))[0] == 200
        # A call without a name is refused: the guard answers at once.
        status = client.post(request(2, "tools/call", {}))[0]
        found = without_lists(records(listener, 8))
        text = json.dumps(found)
        assert not [each for each in (*HIDDEN, client.headers["Mcp-Session-Id"]) if each in text]
        opening, opened, noted, called, answered, stopped = (each["metadata"].get("http") for each in found)
        assert (opening["method"], opening["path"], "status" in opening) == ("POST", "/mcp", False)
        assert opened == answered == {"status": 200}
        assert (noted["method"], noted.get("status")) == ("POST", None if kind == "url" else 202)
        headers = called["headers"]
        assert headers["Accept"] == client.headers["Accept"]
        assert headers["MCP-Protocol-Version"] == client.headers["MCP-Protocol-Version"]
        assert headers["Mcp-Session-Id"] == found[3]["metadata"]["session"]
        assert headers["User-Agent"].startswith("tester/1 token=")
        assert [headers[name] for name in ("Authorization", "Cookie", "X-Custom")] == ["(present)"] * 3
        assert (found[5]["status"], stopped["status"]) == ("refused", status)
        assert client.call_alone() == 200
        if kind == "child":
            return
        asked, result = (each["metadata"]["http"] for each in without_lists(records(listener, 4)))
        assert (asked["headers"]["Mcp-Name"], result) == ("list_schemas", {"status": 200})


@pytest.mark.parametrize("kind", ["child", "url"])
def test_the_feed_counts_the_streams_of_a_session(state: Path, kind: str) -> None:
    with guard(state, kind) as url:
        listener = listening(state)
        listener.until("hello")
        client = Client(url)
        client.open()
        opened = listener.until("session")
        assert (opened["state"], opened["streams"]) == ("opened", 0)
        reader = Client(url)
        reader.headers |= client.headers
        response = reader.listen()
        assert response.status == 200
        first = listener.until("streams")
        assert (first["server"], first["session"], first["count"]) == ("lib", opened["session"], 1)
        late = listening(state)
        assert [each["streams"] for each in late.until("hello")["sessions"]] == [1]
        response.close()
        reader.connection.close()
        assert listener.until("streams")["count"] == 0


SLOW = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    result = {}
    if message["method"] == "initialize":
        result = {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}},
                  "serverInfo": {"name": "slow", "version": "1"}}
    elif "id" in message:
        open(sys.argv[1]).close()
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


def test_a_response_that_becomes_a_stream_counts(state: Path) -> None:
    pipe = state / "go"
    os.mkfifo(pipe)
    command = (*ASSAY, "guard", "--name", "lib", "--listen", "127.0.0.1:0", "--", sys.executable, "-c", SLOW, str(pipe))
    with started(*command, state=state) as process:
        client = Client(address(process))
        listener = listening(state)
        client.open()
        client.connection.request("POST", client.path, frame_of(request(2, "ping")), client.headers)
        answer = client.connection.getresponse()
        assert (answer.status, answer.headers["content-type"]) == (200, "text/event-stream")
        assert listener.until("streams")["count"] == 1
        pipe.write_bytes(b"")
        answer.read()
        assert listener.until("streams")["count"] == 0

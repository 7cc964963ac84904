"""What records of a guard over HTTP have of a client: its principal, and its HTTP requests."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from assay.model.json_values import CAPABILITIES_KEY, REVISION_KEY
from assay.spec.revisions import LATEST
from kit.guard_process import request
from kit.journal_guards import ASSAY, ASSETS, HttpTalk, address, events, lines, list_schemas, started

KEYS = {"alice": "a" * 43, "bob": "b" * 43}


SERVER = ("--", *ASSETS, "--journal", "off")


def settings(state: Path) -> Path:
    """A state directory of its own, with the settings of a guard that authenticates two principals."""
    state.mkdir()
    hashes = {name: hashlib.sha256(key.encode()).hexdigest() for name, key in KEYS.items()}
    keys = "".join(f'[auth.keys.{name}]\nhash = "sha256:{each}"\n' for name, each in hashes.items())
    (state / "auth.toml").write_text(keys)
    return state


@contextmanager
def guard(state: Path, *options: str) -> Iterator[str]:
    """The URL of a guard over HTTP."""
    with started(*ASSAY, "guard", "--listen", "127.0.0.1:0", *options, state=state) as process:
        yield address(process)


class Client(HttpTalk):
    """A client of one principal, or of none."""

    def __init__(self, url: str, principal: str = "") -> None:
        super().__init__(url)
        self.headers |= {
            "User-Agent": "tester/1 token=ghp_" + "a1B2" * 9,
            "Cookie": "secret=1234567890",
            "X-Custom": "hidden value",
        }
        if principal:
            self.headers["Authorization"] = f"Bearer {KEYS[principal]}"

    def call_alone(self) -> int:
        """Call a tool without a session."""
        message = list_schemas(1)
        message["params"]["_meta"] = {REVISION_KEY: LATEST, CAPABILITIES_KEY: {}}
        named = {"MCP_Protocol_Version": LATEST, "Mcp_Method": "tools/call", "Mcp_Name": "list_schemas"}
        return self.post(message, **named)[0]


def records(state: Path, begin: int, count: int) -> list[dict[str, Any]]:
    """So many records of the journal, which has no more, from a place on."""
    found = [each for each in lines(state, server="lib") if "event" not in each][begin:]
    assert len(found) == count
    return found


def without_lists(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without the guard's own request for the tools, which no client has sent, and its answer."""
    return [each for each in found if each["method"] != "tools/list"]


def test_records_name_the_principal_and_without_keys_none(tmp_path: Path) -> None:
    state = settings(tmp_path / "keys")
    config = ("--config", str(state / "auth.toml"))
    with (
        guard(state, "--name", "lib", *config, *SERVER) as url,
        Client(url, "alice") as alice,
        Client(url, "bob") as bob,
    ):
        alice.open()
        bob.open()
        assert alice.post(list_schemas(1))[0] == bob.post(list_schemas(1))[0] == 200
        # Requests without a session share one child.
        assert [each.call_alone() for each in (alice, bob, alice)] == [200, 200, 200]
        found = records(state, 0, 16)
        text = json.dumps(found)
        assert not [key for key in KEYS.values() if key in text]
        named = [(each["metadata"]["principal"], "session" in each["metadata"]) for each in found]
        assert {who for who, _ in named} == {"alice", "bob"}
        alone = [who for who, has in named[10:] if not has]
        assert alone == ["alice", "alice", "bob", "bob", "alice", "alice"]
        sessions = {(each["metadata"].get("session"), each["metadata"]["principal"]) for each in found}
        assert len({session for session, _ in sessions if session}) == 2
        opened = [each for each in events(state, server="lib") if each.get("state") == "opened"]
        assert [each["principal"] for each in opened] == ["alice", "bob"]
    with guard(settings(tmp_path / "open"), "--name", "lib", *SERVER) as url, Client(url) as client:
        client.open()
        assert client.call_alone() == 200
        found = records(tmp_path / "open", 0, 5)
        assert not [each for each in found if "principal" in each["metadata"] or "http" in each["metadata"]]


HIDDEN = ("ghp_a1B2", "1234567890", "hidden value", KEYS["alice"])


def test_with_payloads_records_have_the_http_exchange(tmp_path: Path) -> None:
    """The first request opens the session, so it has none in a record of a server at a URL."""
    state = settings(tmp_path / "keys")
    options = ("--config", str(state / "auth.toml"), "--set", "journal.payloads=true", "--mode", "enforce")
    with (
        guard(state, "--journal", "off", *SERVER) as server,
        guard(state, "--name", "lib", *options, "--target", server) as url,
        Client(url, "alice") as client,
    ):
        client.open()
        # A call that waits for the guard's own list has no HTTP exchange in its records.
        assert client.post(request(0, "tools/list"))[0] == 200
        assert client.post(list_schemas(1))[0] == 200
        # A call without a name is refused: the guard answers at once.
        status = client.post(request(2, "tools/call", {}))[0]
        found = without_lists(records(state, 0, 8))
        text = json.dumps(found)
        assert not [each for each in (*HIDDEN, client.headers["Mcp-Session-Id"]) if each in text]
        opening, opened, noted, called, answered, stopped = (each["metadata"].get("http") for each in found)
        assert (opening["method"], opening["path"], "status" in opening) == ("POST", "/mcp", False)
        assert opened == answered == {"status": 200}
        assert noted["method"] == "POST"
        headers = called["headers"]
        assert headers["Accept"] == client.headers["Accept"]
        assert headers["MCP-Protocol-Version"] == client.headers["MCP-Protocol-Version"]
        assert headers["Mcp-Session-Id"] == found[3]["metadata"]["session"]
        assert headers["User-Agent"].startswith("tester/1 token=")
        assert [headers[name] for name in ("Authorization", "Cookie", "X-Custom")] == ["(present)"] * 3
        assert (found[5]["status"], stopped["status"]) == ("refused", status)
        assert client.call_alone() == 200
        asked, result = (each["metadata"]["http"] for each in without_lists(records(state, 8, 4)))
        assert (asked["headers"]["Mcp-Name"], result) == ("list_schemas", {"status": 200})

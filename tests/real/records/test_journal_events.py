"""Lines of a journal that are no records: the server of every kind of guard, its state, its sessions and its tools."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from kit.journal_guards import (
    ASSAY,
    ASSETS,
    DYING,
    LISTING,
    HttpTalk,
    address,
    events,
    guard,
    lines,
    list_schemas,
    started,
)
from kit.rows import rows

Ask = Callable[[Any], Any]

SECRET = "ghp_" + "a1B2" * 9


@contextmanager
def upstream(state: Path) -> Iterator[str]:
    """The URL of a server without a journal."""
    with started(*ASSETS, "--http", "127.0.0.1:0", "--journal", "off", state=state) as process:
        yield address(process)


@contextmanager
def over_http(*options: str, state: Path, path: str = "") -> Iterator[Ask]:
    """Asks a guard over HTTP."""
    with (
        started(*ASSAY, "guard", "--listen", "127.0.0.1:0", *options, state=state) as process,
        HttpTalk(address(process).rstrip("/") + path) as talk,
    ):
        talk.open()
        yield talk.ask


COMMAND = ("--", *ASSETS, "--journal", "off")


@contextmanager
def guard_of(kind: str, state: Path) -> Iterator[Ask]:
    """Asks a guard of this kind: for a child process, a server at a URL, or one of two servers of a client's file."""
    with ExitStack() as stack:
        if kind == "stdio":
            one = stack.enter_context(guard(*COMMAND, state=state))
            one.open()
            yield one.ask
        elif kind == "http-url":
            url = stack.enter_context(upstream(state))
            yield stack.enter_context(over_http("--target", url, state=state))
        else:
            entry = {"command": COMMAND[1], "args": COMMAND[2:], "env": {"PYTHONPATH": ""}}
            (state / "mcp.json").write_text(json.dumps({"mcpServers": {"one": entry, "two": entry}}))
            yield stack.enter_context(over_http("--config", "mcp.json", state=state, path="/two/mcp"))


KINDS = {"stdio": "stdio", "http-url": "http", "host": "http"}
"""Kinds of guards, and the transport of their clients."""


@rows("kind", KINDS)
def test_a_journal_has_the_server_its_session_and_its_tools(tmp_path: Path, kind: str) -> None:
    transport = KINDS[kind]
    tmp_path = tmp_path / kind
    tmp_path.mkdir()
    with guard_of(kind, tmp_path) as ask:
        ask(LISTING)
        ask(list_schemas(1))
        first, *rest = lines(tmp_path)
        assert (first["event"], first["transport"], first["mode"], first["lock"]) == (
            *("server", transport, "audit", "none"),
        )
        assert first["address"].startswith("http://127.0.0.1:") is (transport == "http")
        assert first["what"].startswith("http" if "url" in kind else sys.executable)
        assert {each["metadata"]["server"] for each in rest if "event" not in each} == {first["server"]}
        [opened] = [each for each in events(tmp_path) if each["event"] == "session"]
        assert (opened["state"], opened["server"], opened["revision"]) == ("opened", first["server"], "2025-11-25")
        assert opened["client"]["name"]
        of_records = {each["metadata"].get("session") for each in rest if "event" not in each}
        assert opened.get("session") in of_records
        tools = next(each for each in events(tmp_path) if each["event"] == "tools")
        assert tools["count"] > 3
        assert tools["bytes"] > 500
        assert not [each for each in events(tmp_path) if each.get("state") == "failed"]
        if kind == "host":
            # Of two servers, the one that is used has a journal.
            assert first["address"].endswith("/two/mcp")
            with pytest.raises(ValueError, match="not enough values"):
                lines(tmp_path, server="one")


def test_a_server_that_fails_or_is_restarted_is_an_event(tmp_path: Path) -> None:
    listen = (*ASSAY, "guard", "--listen", "127.0.0.1:0", "--", sys.executable, "-c", DYING)
    with started(*listen, state=tmp_path) as process:
        url = address(process)
        for _ in range(2):
            with HttpTalk(url) as talk:
                talk.open()
                talk.post(LISTING)
    states = [each for each in events(tmp_path) if each["event"] == "state"]
    assert [each["state"] for each in states][:3] == ["running", "failed", "running"]
    assert "status 3" in states[1]["why"]
    assert "giving up" in states[1]["stderr"]
    assert SECRET not in json.dumps(lines(tmp_path))
    (tmp_path / "restarted").mkdir()
    options = ("--mode", "enforce", "--restart", "on-failure", "--", sys.executable, "-c", DYING)
    with guard(*options, state=tmp_path / "restarted") as one:
        one.open(listing=False)
        assert "error" in one.ask(LISTING)
        # The answer of the next server comes after its handshake.
        assert "error" in one.ask(LISTING)
    found = [
        (each["event"], each.get("state"))
        for each in events(tmp_path / "restarted")
        if each["event"] in ("state", "restart")
    ]
    assert found[:3] == [("restart", None), ("state", "failed"), ("state", "running")]

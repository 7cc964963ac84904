"""The store of a console: its bounds, and a page that reads slowly."""

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from assay.console import sources
from assay.console.events import MOST_BEHIND, ChangeSignal, EventStream
from assay.console.message import message_answer
from assay.console.performance import MOST_LINES
from assay.console.rows import COLUMNS
from assay.console.servers import MOST_RUNS, ConsoleSource
from assay.console.sessions import MOST_SESSIONS
from assay.console.state import ConsoleState
from assay.records import run_files
from assay.records.digest import MOST_GROUPS
from assay.records.record import Event, Record, read_line, written_record
from assay.rules.sentences import sentence
from kit.consoles import SECONDS, parsed
from kit.records import FINDING, record_with
from kit.rows import rows

SOURCE = ConsoleSource("test", "file", "test.jsonl")


def record(number: int = 1, **changes: Any) -> Record:
    """Return a record; *changes* replace members, those of the metadata too."""
    return record_with(**{"requestId": f"r{number}", "id": number, "server": "lib", **changes})


def fed(state: ConsoleState, records: Iterator[Record]) -> ConsoleState:
    """Return *state* after it has taken *records*."""
    for each in records:
        state.take(SOURCE, each, 0.0)
    return state


def refused(number: int, at: str, **changes: Any) -> Record:
    """Return a record with a finding."""
    error = {"code": "INVALID_TOOL_INPUT", "violations": [{**FINDING, "at": at}]}
    return record(number, status="refused", error=error, **changes)


def test_random_names_of_a_peer_do_not_grow_the_memory() -> None:
    state = fed(
        ConsoleState(most_rows=1_000),
        (
            refused(each, f"/params/arguments/x{each}", tool=f"t{each}", server=f"s{each % 900}", session=f"c{each}")
            for each in range(3 * MOST_GROUPS)
        ),
    )
    groups = state.findings.answer()["groups"]
    assert len(groups) <= MOST_GROUPS + 1
    assert sum(each["count"] for each in groups) + state.dropped["groups"] == 3 * MOST_GROUPS
    assert len(state.sessions.answer()) == MOST_SESSIONS
    assert len(state.servers) == MOST_RUNS
    assert len(state.performance.answer()) <= MOST_LINES + 1


def test_progress_and_cancellation_belong_to_their_request() -> None:
    def message(number: int, method: str, params: dict[str, Any], **more: Any) -> Record:
        frame = orjson.dumps({"jsonrpc": "2.0", "method": method, "params": params}).decode()
        return record(number, method=method, frame=frame, **more)

    state = fed(
        ConsoleState(),
        iter(
            [
                message(7, "tools/call", {"_meta": {"progressToken": "p"}}),
                message(8, "tools/call", {}),
                message(0, "notifications/progress", {"progressToken": "p"}, party="server", kind="notification"),
                message(0, "notifications/cancelled", {"requestId": 8}, kind="notification", id=None),
                message(0, "notifications/cancelled", {"requestId": 99}, kind="notification", id=None),
                record(7, kind="result", party="server"),
            ]
        ),
    )
    assert [row[9] for row in map(orjson.loads, state.store.after(0))] == [1, 2, 1, 2, None, 1]
    assert (state.store.related(6), state.store.related(5)) == ([1, 3, 6], [5])


def test_an_older_server_that_does_not_know_the_probe_has_not_failed() -> None:
    """Clients of several revisions ask `server/discover` first: in every session with a server of 2025."""
    answer = {"party": "server", "kind": "error", "status": "failed", "error": {"jsonrpcCode": -32601}}
    for method, word, codes in (("server/discover", "ok", {}), ("tools/list", "failed", {"-32601": 1})):
        state = fed(ConsoleState(), iter([record(1, method=method), record(1, method=method, **answer)]))
        assert orjson.loads(state.store.after(0)[1])[COLUMNS.index("verdict")] == word
        assert [each["errors"] for each in state.performance.answer() if each["method"] == method] == [codes]


def test_a_repaired_message_shows_what_was_delivered() -> None:
    frame = '{"jsonrpc":"2.0","id":1,"error":{"code":-32002,"message":"no"}}'
    repairs = [
        {"op": "replace", "path": "/error/code", "value": -32602, "was": -32002},
        {"op": "replace", "path": "/error/message"},
    ]
    state = fed(ConsoleState(), iter([record(1, frame=frame, repairs=repairs, kind="error", party="server")]))
    message = message_answer(state, 1)
    assert message is not None
    assert message["delivered"]["state"] == "changed"
    assert orjson.loads(message["delivered"]["text"] or "")["error"] == {"code": -32602, "message": "no"}
    assert any("1 changed value" in each for each in message["notes"])
    assert message["row"][COLUMNS.index("verdict")] == "repaired"


def test_a_message_shows_both_halves_of_its_http_exchange() -> None:
    headers = {"Accept": "application/json", "Cookie": "(present)"}
    sent = {"method": "POST", "path": "/mcp", "headers": headers}
    common = {"transport": "http", "route": "/mcp"}
    answer = record(1, kind="result", party="server", http={"status": 200}, principal="alice", **common)
    state = fed(ConsoleState(), iter([record(1, http=sent, principal="alice", **common), answer, record(2, **common)]))
    assert {each["principal"]: each["messages"] for each in state.sessions.answer()} == {"alice": 2, None: 1}
    for seq in (1, 2):
        found = message_answer(state, seq)
        assert found is not None
        assert found["http"] == {"route": "/mcp", "method": "POST", "headers": headers, "status": 200}
        assert (found["row"][COLUMNS.index("principal")], found["notes"]) == ("alice", [])
    bare = message_answer(state, 3)
    assert bare is not None
    assert bare["http"] == {"route": "/mcp", "method": None, "headers": None, "status": None}
    assert bare["notes"] == ["the headers of the HTTP request are not recorded"]


def event(kind: Any, **members: Any) -> Event:
    """Return an event of the server."""
    return Event(event=kind, ts="2026-11-15T22:39:04.000000Z", server="lib", **members)


def test_a_session_is_opened_and_closed_by_events() -> None:
    state = fed(ConsoleState(), iter([record(1, session="s1", principal="alice")]))
    client = {"name": "tester", "version": "1", "capabilities": ["roots"]}
    state.take(SOURCE, event("session", session="s1", state="opened", client=client, revision="2025-11-25"), 0.0)
    [opened] = state.sessions.answer()
    assert (opened["principal"], opened["client"], opened["revision"]) == ("alice", client, "2025-11-25")
    assert (opened["state"], opened["open"]) == ("open", 1)
    state.take(SOURCE, event("session", session="s1", state="closed", why="the client left"), 0.0)
    [closed] = state.sessions.answer()
    assert (closed["state"], closed["why"], closed["open"]) == ("closed", "the client left", 0)


def test_the_state_of_a_server_is_that_of_its_last_event() -> None:
    state = ConsoleState()
    about = {"transport": "http", "mode": "enforce", "lock": "locked", "payloads": True}
    state.take(SOURCE, event("server", what="npx lib", address="http://127.0.0.1:1/mcp", **about), 0.0)
    state.live(SOURCE, grows=True)
    [server] = state.server_answers(0.0)
    assert {name: server["runs"][0].get(name, server.get(name)) for name in about} == about
    assert (server["label"], server["address"], server["state"]) == ("npx lib", "http://127.0.0.1:1/mcp", "running")
    state.take(SOURCE, event("state", state="failed", why="status 3", stderr="boom"), 0.0)
    state.take(SOURCE, event("restart", restarts=2), 0.0)
    state.take(SOURCE, event("tools", count=5, bytes=400), 0.0)
    state.live(SOURCE, grows=True)
    [server] = state.server_answers(0.0)
    assert (server["state"], server["why"], server["stderr"]) == ("failed", "status 3", "boom")
    assert (server["runs"][0]["restarts"], server["tools"], server["tokens"]) == (2, 5, 100)
    state.take(SOURCE, event("state", state="made up"), 0.0)
    state.live(SOURCE, grows=False)
    [server] = state.server_answers(0.0)
    assert (server["state"], server["why"], server["address"]) == ("failed", "status 3", "")
    state.take(SOURCE, event("state", state="idle"), 0.0)
    state.live(SOURCE, grows=False)
    assert state.server_answers(0.0)[0]["state"] == "ended"


def test_a_journal_that_is_found_before_its_first_line_is_of_a_running_server(tmp_path: Path) -> None:
    """A guard may create the file a moment before it writes."""
    state = ConsoleState()

    async def watched() -> list[str]:
        changed = asyncio.Event()
        descriptor, _ = run_files.create(str(tmp_path))
        pump = asyncio.create_task(sources.JournalPump(state, changed.set, lambda: [str(tmp_path)]).run())
        try:
            async with asyncio.timeout(SECONDS):
                await changed.wait()
                changed.clear()
                os.write(descriptor, b'{"event":"server","ts":"2026-01-01T00:00:00Z","server":"lib"}\n')
                await changed.wait()
            return [each["state"] for each in state.server_answers(0.0)]
        finally:
            pump.cancel()
            os.close(descriptor)

    assert asyncio.run(watched()) == ["running"]


def test_a_long_journal_is_read_from_near_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its first lines say what its server is."""
    descriptor, _ = run_files.create(str(tmp_path))
    introduced = {"event": "server", "ts": "2026-01-01T00:00:00Z", "server": "lib", "what": "lib --run"}
    lines = [json.dumps(introduced).encode(), *(written_record(record(each)) for each in range(50))]
    os.write(descriptor, b"".join(line + b"\n" for line in lines))
    os.close(descriptor)
    monkeypatch.setattr(sources, "_PAST_BYTES", 10 * len(lines[-1]))
    state, changed = ConsoleState(), asyncio.Event()

    async def read() -> None:
        pump = asyncio.create_task(sources.JournalPump(state, changed.set, lambda: [str(tmp_path)]).run())
        async with asyncio.timeout(SECONDS):
            await changed.wait()
        pump.cancel()

    asyncio.run(read())
    shown = [orjson.loads(each)[COLUMNS.index("id")] for each in state.store.after(0)]
    assert 5 <= len(shown) <= 10
    assert shown == list(range(50 - len(shown), 50))
    [server] = state.server_answers(0.0)
    assert server["label"] == "lib --run"


@rows("kind", ["server", "session", "restart", "state", "tools"])
@rows("value", [None, 5, -(1 << 70), "x" * 10_000, [], {"name": 1}])
def test_an_event_is_taken_or_is_none(kind: str, value: Any) -> None:
    """An event with a member of another type is not an event."""
    names = ("server", "session", "state", "client", "why", "count", "bytes", "restarts", "what", "address", "ts")
    for members in (dict.fromkeys(names, value), *({name: value} for name in names)):
        line = json.dumps({"ts": "2026-11-15T22:39:04.000000Z", "event": kind, **members}).encode()
        state, item = ConsoleState(), read_line(line)
        if item is not None:
            state.take(SOURCE, item, 0.0)
        orjson.dumps([*state.server_answers(0.0), *state.sessions.answer()])


def listed(mode: str) -> Record:
    """Return the record of a list with an invalid tool."""
    entry = {"kind": "tool", "name": "legacy"}
    fault = {**FINDING, "rule": "contract/schema", "at": "/result/tools/0", "entry": entry}
    error = {"violations": [fault], "quarantined": [entry]}
    frame = orjson.dumps({"jsonrpc": "2.0", "id": 1, "result": {"tools": [{"name": "legacy"}, {"name": "good"}]}})
    members = {"kind": "result", "party": "server", "mode": mode, "frame": frame.decode()}
    return record(1, method="tools/list", status="reported", error=error, **members)


@pytest.mark.parametrize("mode", ["audit", "enforce"])
def test_what_was_not_removed_is_not_quarantined(mode: str) -> None:
    """The list itself is reported in both modes: quarantined is what becomes of a tool."""
    state, removed = fed(ConsoleState(), iter([listed(mode)])), mode == "enforce"
    found = message_answer(state, 1)
    assert found is not None
    assert (found["row"][COLUMNS.index("verdict")], found["removed"]) == ("reported", removed)
    assert found["delivered"]["state"] == ("changed" if removed else "same")
    server = state.server(found["server"])
    assert server is not None
    legacy, good = state.contract(server)["lists"][0]["entries"]
    assert (legacy["quarantined"], legacy["wouldQuarantine"]) == (removed, not removed)
    assert (good["quarantined"], good["wouldQuarantine"]) == (False, False)
    [group] = state.findings.answer()["groups"]
    assert (group["quarantined"], group["wouldQuarantine"]) == (int(removed), int(not removed))


def test_a_tool_with_a_long_name_is_found_by_its_place() -> None:
    """A finding has the beginning of the name."""
    entry = {"kind": "tool", "name": "x" * 59 + "…"}
    fault = {**FINDING, "rule": "contract/schema", "at": "/result/tools/1/inputSchema", "entry": entry}
    tools = [{"name": "good"}, {"name": "x" * 200, "inputSchema": {}}]
    frame = orjson.dumps({"jsonrpc": "2.0", "id": 1, "result": {"tools": tools}}).decode()
    error = {"violations": [fault], "quarantined": [entry]}
    members = {"kind": "result", "party": "server", "mode": "enforce", "method": "tools/list", "frame": frame}
    state = fed(ConsoleState(), iter([record(1, status="reported", error=error, **members)]))
    [server] = state.servers
    [listing] = state.contract(server)["lists"]
    assert [each["quarantined"] for each in listing["entries"]] == [False, True]
    found = message_answer(state, 1)
    assert found is not None
    assert orjson.loads(found["delivered"]["text"])["result"]["tools"] == tools[:1]
    # Both screens estimate the same.
    assert server.answer(0.0)["tokens"] == listing["tokens"] == sum(each["tokens"] for each in listing["entries"])


# ── slow pages ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("rows", [MOST_BEHIND + 2_001, MOST_BEHIND])
def test_a_page_that_is_too_slow_is_asked_to_load_again(rows: int) -> None:
    async def scenario() -> list[str]:
        state, signal = ConsoleState(), ChangeSignal()
        fed(state, iter([record()]))
        stream = EventStream(state, "epoch", 0, 0).run(signal)
        # The page reads one part, and nothing for a while.
        parts = [await anext(stream), await anext(stream)]
        fed(state, (record(each) for each in range(rows)))
        if rows <= MOST_BEHIND:
            signal.end()
        async with asyncio.timeout(SECONDS):
            parts += [part async for part in stream]
        return [kind for kind, _, _ in parsed(iter(b"".join(parts).decode().split("\n")))]

    found = asyncio.run(scenario())
    # The server comes before its first row, which a page may choose by the name of the server.
    assert found[:2] == ["servers", "rows"]
    assert found[-1] == ("reset" if rows > MOST_BEHIND else "bye")


def test_runs_of_one_server_are_one_server() -> None:
    """A guard starts a run each time that a client starts it; people look for a server."""
    state, runs = ConsoleState(), [ConsoleSource(f"run {each}", "journal") for each in range(10)]
    for number, source in enumerate(runs):
        state.take(source, refused(number, "/a", server="lib"), 0.0)
        state.take(source, record(number, server="lib"), 0.0)
    state.take(runs[0], record(1, server="other"), 0.0)
    state.live(runs[3], grows=True)
    lib, other = state.server_answers(0.0)
    assert (lib["name"], lib["messages"], lib["findings"], lib["blocked"]) == ("lib", 20, 10, 10)
    assert (lib["runCount"], len(lib["runs"]), lib["state"]) == (10, 8, "running")
    assert (other["name"], other["runCount"], other["messages"]) == ("other", 1, 1)
    # The same finding of all runs is one, and each run has sessions of its own. All screens count the same.
    assert [each["count"] for each in state.findings.answer()["groups"]] == [10]
    assert len(state.sessions.answer()) == 11
    assert sum(each["findings"] for each in state.sessions.answer()) == lib["findings"]


def test_a_row_says_why() -> None:
    failed = {"party": "server", "kind": "result", "status": "failed", "error": {}}
    error = {"party": "server", "kind": "error", "status": "failed", "error": {"message": "no such city"}}
    state = fed(ConsoleState(), iter([record(1), refused(2, "/a"), record(1, **failed), record(2, **error)]))
    blamed = state.store.record(2)
    assert blamed is not None
    why = [row[COLUMNS.index("why")] for row in map(orjson.loads, state.store.after(0))]
    assert why == [None, sentence(blamed.findings[0]), "the tool returned isError", "no such city"]


@rows("meta", [True, False])
def test_a_session_has_the_name_of_its_client_in_both_eras(meta: bool) -> None:
    info = {"name": "editor", "version": "2"}
    params: dict[str, Any] = {"clientInfo": info, "capabilities": {"roots": {}}}
    if meta:
        prefix = "io.modelcontextprotocol"
        params = {"_meta": {f"{prefix}/clientInfo": info, f"{prefix}/clientCapabilities": {"roots": {}}}}
    frame = orjson.dumps({"jsonrpc": "2.0", "id": 1, "method": "m", "params": params}).decode()
    state = fed(ConsoleState(), iter([record(1, method="tools/list" if meta else "initialize", frame=frame)]))
    [session] = state.sessions.answer()
    assert session["client"] == {**info, "capabilities": ["roots"]}

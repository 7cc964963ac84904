"""A console beside running guards: what they write comes by itself, and goes on when one of them ends."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx

from kit.consoles import HANDSHAKE, SECONDS, console, http_guard, stdio_guard

PAYLOADS = ("--set", "journal.payloads=true")

HOSTILE = '<script>alert(1)</script>\x1b[2J\u202e\u2066 & "quotes" \' \u0000 \\ </pre>'


def by_kind(rows: list[dict[str, Any]], kind: str, method: str = "tools/call") -> list[dict[str, Any]]:
    """Return the rows of this kind and method."""
    return [each for each in rows if each["kind"] == kind and each["method"] == method]


def until(events: Iterator[tuple[str, Any, str]], method: str, count: int) -> Iterator[list[Any]]:
    """Yield rows until so many with *method* have come."""
    for kind, data, _ in events:
        if kind == "rows":
            yield from data["rows"]
            count -= sum(row[6] == method for row in data["rows"])
            if count <= 0:
                return


def test_what_a_guard_writes_comes_in_order_and_stays_when_it_ends(state: Path, tmp_path: Path) -> None:
    with console(state) as running:
        with stdio_guard(state, tmp_path, *PAYLOADS) as guard:
            guard.open()
            events = running.events()
            guard.call("look", count=1)
            seen = [*until(events, "tools/call", 2)]
            assert [row[0] for row in seen] == list(range(1, len(seen) + 1))
            request, answer = by_kind(running.rows(), "request")[0], by_kind(running.rows(), "result")[0]
            assert (request["tool"], request["of"], answer["of"]) == ("look", request["seq"], request["seq"])
            assert answer["latency"] >= request["guard"] >= 0
            [server] = running.get("api/state")["servers"]
            assert (server["name"], server["source"], server["state"]) == ("lib", "journal", "running")
            [session] = running.get("api/sessions")["sessions"]
            assert session["client"] == {"name": "tester", "version": "7", "capabilities": ["roots"]}
            assert (session["state"], session["open"], session["revision"]) == ("open", 0, "2025-11-25")

            # A page that was away gets what came after the place that it has seen.
            ident = next(ident for kind, _, ident in running.events() if kind == "place")
            guard.call("look", count="three")
            guard.call(HOSTILE, **{HOSTILE: HOSTILE})
            guard.call("look", count="x" * 500_000)
            missed = [*until(running.events(None, ident), "tools/call", 6)]
            assert missed[0][0] == int(ident.split("-")[1]) + 1

            found = running.get("api/findings")
            [group] = [each for each in found["groups"] if each["rule"] == "contract/input"]
            assert (group["tool"], group["at"], group["count"]) == ("look", "/params/arguments/count", 2)
            [line] = [each for each in running.get("api/performance")["lines"] if each["tool"] == "look"]
            assert line["count"] == sum(count for _, count in line["buckets"]) == 3
            assert line["p50"] <= line["p95"] <= line["p99"]
            [tools] = running.get("api/contracts")["contracts"][0]["lists"]
            assert [(each["name"], each["readOnly"]) for each in tools["entries"]] == [
                ("look", True),
                ("change", False),
            ]
            hostile, huge = by_kind(running.rows(), "request")[2:]
            assert hostile["tool"] == HOSTILE
            assert all(len(str(each)) < 1_000 for each in huge.values())
            assert len(running.get(f"api/messages/{huge['seq']}")["sent"]["text"]) > 500_000
        found = running.wait_for("api/state", lambda found: found["servers"][0]["state"] == "ended")
        assert found["newest"] == len(running.rows()) >= 13
        assert running.get("api/sessions")["sessions"][0]["state"] == "closed"


def test_a_console_ends_although_standard_input_does_not(state: Path) -> None:
    reading, writing = os.pipe()
    with open(reading, "rb") as pipe, open(writing, "wb"), console(state, "-", stdin=pipe) as running:
        running.wait_for("api/state", lambda found: found["loading"] == ["-"])


def test_a_request_comes_before_its_answer_and_a_guard_without_a_journal_not_at_all(
    state: Path, tmp_path: Path
) -> None:
    call = {"jsonrpc": "2.0", "id": "x", "method": "tools/call", "params": {"name": "wait", "arguments": {}}}
    with (
        console(state) as running,
        http_guard(state, tmp_path, *PAYLOADS) as url,
        stdio_guard(state, tmp_path, "--journal", "off") as unseen,
        stdio_guard(state, tmp_path) as guard,
    ):
        for each in (unseen, guard):
            each.open()
        guard.send(call)
        running.wait(lambda rows: any(each["tool"] == "wait" for each in rows))
        with httpx.Client(trust_env=False, timeout=SECONDS) as client:
            heads = {"Accept": "application/json, text/event-stream"}
            opening = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HANDSHAKE}
            heads["Mcp-Session-Id"] = client.post(url, json=opening, headers=heads).headers["mcp-session-id"]
            with client.stream("POST", url, json=call, headers=heads):
                running.wait(lambda rows: sum(each["tool"] == "wait" for each in rows) == 2)
        [server] = running.get("api/state")["servers"]
        assert sorted(each["transport"] for each in server["runs"]) == ["http", "stdio"]

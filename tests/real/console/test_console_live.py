"""A console in front of running guards: rows, findings, contracts and sessions as they come."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from kit.consoles import HANDSHAKE, SECONDS, console, http_guard, parsed, stdio_guard

PAYLOADS = ("--set", "journal.payloads=true")

HOSTILE = '<script>alert(1)</script>\x1b[2J\u202e\u2066 & "quotes" \' \u0000 \\ </pre>'


def by_kind(rows: list[dict[str, Any]], kind: str, method: str = "tools/call") -> list[dict[str, Any]]:
    """Return the rows of this kind and method."""
    return [each for each in rows if each["kind"] == kind and each["method"] == method]


def test_a_message_appears_while_the_guard_runs(state: Path, tmp_path: Path) -> None:
    with console(state) as running, stdio_guard(state, tmp_path, *PAYLOADS) as guard:
        guard.open()
        events = running.events()
        guard.call("look", count=1)
        seen = [row for kind, data, _ in _until(events, "tools/call", 2) if kind == "rows" for row in data["rows"]]
        assert [row[0] for row in seen] == list(range(1, len(seen) + 1))
        rows = running.rows()
        request, answer = by_kind(rows, "request")[0], by_kind(rows, "result")[0]
        assert (request["tool"], request["of"], answer["of"]) == ("look", request["seq"], request["seq"])
        assert answer["latency"] >= request["guard"] >= 0
        assert request["verdict"] == answer["verdict"] == "ok"
        found = running.get("api/state")["servers"]
        assert [(each["name"], each["source"], each["state"]) for each in found] == [("lib", "journal", "running")]


def _until(events: Iterator[tuple[str, Any, str]], method: str, count: int) -> Iterator[tuple[str, Any, str]]:
    """Yield events until so many rows with *method* have come."""
    for each in events:
        yield each
        if each[0] == "rows":
            count -= sum(row[6] == method for row in each[1]["rows"])
            if count <= 0:
                return


def test_findings_contracts_sessions_and_durations_are_known(state: Path, tmp_path: Path) -> None:
    with console(state) as running, stdio_guard(state, tmp_path, *PAYLOADS) as guard:
        guard.open()
        guard.call("look", count="three")
        guard.call("look", count="four")
        running.wait(lambda rows: len(by_kind(rows, "result")) == 2)
        found = running.get("api/findings")
        [group] = found["groups"]
        assert (group["rule"], group["tool"], group["at"]) == ("contract/input", "look", "/params/arguments/count")
        assert (group["count"], group["blocked"], group["wouldBlock"]) == (2, 0, 2)
        assert (found["wouldBlock"], sum(group["trend"]["counts"]), len(group["samples"])) == (2, 2, 2)
        assert found["rules"]["contract/input"]["asks"]

        [contract] = running.get("api/contracts")["contracts"]
        [tools] = contract["lists"]
        assert [(each["name"], each["judged"], each["readOnly"]) for each in tools["entries"]] == [
            ("look", True, True),
            ("change", True, False),
        ]
        assert tools["complete"]
        assert tools["tokens"] > 20

        [session] = running.get("api/sessions")["sessions"]
        assert session["client"] == {"name": "tester", "version": "7", "capabilities": ["roots"]}
        assert (session["state"], session["open"], session["revision"]) == ("open", 0, "2025-11-25")

        lines = running.get("api/performance")["lines"]
        [look] = [each for each in lines if each["tool"] == "look"]
        assert look["count"] == sum(count for _, count in look["buckets"]) == 2
        assert look["p50"] <= look["p95"] <= look["p99"]


def test_a_message_is_shown_in_full(state: Path, tmp_path: Path) -> None:
    with console(state) as running, stdio_guard(state, tmp_path, *PAYLOADS, "--mode", "enforce") as guard:
        guard.open()
        guard.call("look", count="three", password="hunter22")  # noqa: S106 - a value to be masked
        rows = running.wait(lambda rows: bool(by_kind(rows, "request")))
        [row] = by_kind(rows, "request")
        assert row["verdict"] == "blocked"
        message = running.get(f"api/messages/{row['seq']}")
        assert '"three"' in message["sent"]["text"]
        assert "hunter22" not in str(message)
        assert message["redacted"]
        assert message["delivered"]["state"] == "not"
        violation, *_ = message["violations"]
        assert (violation["rule"], violation["at"]) == ("contract/input", "/params/arguments/count")
        assert violation["about"]["why"]
        assert violation["schema"] == {"type": "integer"}
        assert message["related"] == [row["seq"]]
        assert running.http.get(f"api/messages/{row['seq']}/curl").json()["error"]["code"] == "unreachable"


def test_a_message_that_is_not_recorded_says_how_to_record_it(state: Path, tmp_path: Path) -> None:
    with console(state) as running, stdio_guard(state, tmp_path) as guard:
        guard.open()
        rows = running.wait(lambda rows: bool(by_kind(rows, "result", "tools/list")))
        message = running.get(f"api/messages/{rows[0]['seq']}")
        assert message["sent"]["text"] is None
        assert message["sent"]["why"] == "payload not recorded: run the guard with --set journal.payloads=true"
        [contract] = running.get("api/contracts")["contracts"]
        assert "journal.payloads=true" in contract["why"]
        assert running.get("api/state")["servers"][0]["payloads"] is False


def test_text_of_peers_stays_data(state: Path, tmp_path: Path) -> None:
    with console(state) as running, stdio_guard(state, tmp_path, *PAYLOADS) as guard:
        guard.open()
        guard.call(HOSTILE, **{HOSTILE: HOSTILE})
        guard.call("look", count="x" * 500_000)
        rows = running.wait(lambda rows: len(by_kind(rows, "result")) == 2)
        hostile, huge = by_kind(rows, "request")
        assert hostile["tool"] == HOSTILE
        assert running.get(f"api/messages/{hostile['seq']}")["row"][7] == HOSTILE
        assert all(len(str(each)) < 1_000 for each in huge.values())
        assert len(running.get(f"api/messages/{huge['seq']}")["sent"]["text"]) > 500_000
        for path in ("api/state", "api/rows", "api/findings", "api/contracts"):
            assert running.http.get(path).headers["content-type"] == "application/json"


def test_a_page_resumes_where_it_was(state: Path, tmp_path: Path) -> None:
    with console(state) as running, stdio_guard(state, tmp_path, *PAYLOADS) as guard:
        guard.open()
        ident = next(ident for kind, _, ident in running.events() if kind == "place")
        before = int(ident.split("-")[1])
        guard.call("look", count=1)
        found = [
            data["rows"] for kind, data, _ in _until(running.events(None, ident), "tools/call", 2) if kind == "rows"
        ]
        assert found[0][0][0] == before + 1


@pytest.mark.parametrize("last", ["0badcafe-1-1", "nonsense", "-"])
def test_a_page_of_another_start_is_asked_to_load_again(state: Path, last: str) -> None:
    with console(state) as running:
        events = list(running.events(None, last))
        assert [kind for kind, _, _ in events] == ["reset"]


def test_a_page_learns_that_the_console_ends(state: Path) -> None:
    with console(state) as running, running.http.stream("GET", "api/events?after=0") as stream:
        running.process.terminate()
        assert [kind for kind, _, _ in parsed(stream.iter_lines())][-1] == "bye"


def test_the_end_of_a_guard_is_shown_and_its_rows_stay(state: Path, tmp_path: Path) -> None:
    with console(state) as running:
        with stdio_guard(state, tmp_path, *PAYLOADS) as guard:
            guard.open()
            running.wait(bool)
        found = running.wait_for("api/state", lambda found: found["servers"][0]["state"] == "ended")
        assert found["newest"] >= 4
        assert running.get("api/sessions")["sessions"][0]["state"] == "closed"


def test_past_sessions_are_there(state: Path, tmp_path: Path) -> None:
    with stdio_guard(state, tmp_path, *PAYLOADS) as guard:
        guard.open()
        guard.call("look", count=1)
    with console(state) as running:
        rows = running.wait(lambda rows: bool(by_kind(rows, "result")))
        assert len(rows) == 7
        found = running.wait_for("api/state", lambda found: found["servers"][0]["state"] == "ended")
        assert [(each["name"], each["source"]) for each in found["servers"]] == [("lib", "journal")]


def test_a_guard_without_a_journal_is_not_shown(state: Path, tmp_path: Path) -> None:
    with console(state) as running, stdio_guard(state, tmp_path, "--journal", "off") as unseen:
        unseen.open()
        with stdio_guard(state, tmp_path, *PAYLOADS) as seen:
            seen.open()
            running.wait(lambda rows: bool(by_kind(rows, "result", "tools/list")))
            assert len(running.get("api/state")["servers"]) == 1


def test_a_request_appears_before_its_answer(state: Path, tmp_path: Path) -> None:
    call = {"jsonrpc": "2.0", "id": "x", "method": "tools/call", "params": {"name": "wait", "arguments": {}}}
    with (
        console(state) as running,
        http_guard(state, tmp_path, *PAYLOADS) as url,
        stdio_guard(state, tmp_path) as guard,
    ):
        guard.open()
        guard.send(call)
        running.wait(lambda rows: any(each["tool"] == "wait" for each in rows))
        with httpx.Client(trust_env=False, timeout=SECONDS) as client:
            heads = {"Accept": "application/json, text/event-stream"}
            opening = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HANDSHAKE}
            heads["Mcp-Session-Id"] = client.post(url, json=opening, headers=heads).headers["mcp-session-id"]
            with client.stream("POST", url, json=call, headers=heads):
                running.wait(lambda rows: sum(each["tool"] == "wait" for each in rows) == 2)

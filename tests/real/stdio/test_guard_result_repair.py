"""What a guard reports of results that it repairs: on stderr, in the journal, and in a recording judged again."""

import json
import sys
from pathlib import Path
from typing import Any

from assay.core.render import changes
from assay.engine.drafts import DRAFT_7
from assay.spec.revisions import LATEST
from kit.command import assay_process_text

META = {"io.modelcontextprotocol/protocolVersion": LATEST, "io.modelcontextprotocol/clientCapabilities": {}}
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": META}}
OLD = {"$schema": "https://json-schema.org/draft-07/schema#", "type": "object"}
TOOLS: list[Any] = [{"name": f"tool{number}", "inputSchema": OLD, "outputSchema": OLD} for number in range(4)]
REPAIRING = ("--mode", "enforce", "--set", 'guard.policy."protocol/*".repair=true', "--set", "guard.repair=false")
DIALECTS = ("--set", 'guard.policy."contract/unknown-dialect".repair=true')


def served(tools: list[Any]) -> list[str]:
    """The command of a server with these *tools* that answers once."""
    answer = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"tools": tools}})
    return [sys.executable, "-c", f"input(); print({answer!r})"]


def test_stderr_and_the_journal_name_each_change(tmp_path: Path) -> None:
    options = ("--journal", str(tmp_path / "runs"), *REPAIRING, *DIALECTS)
    done = assay_process_text(
        "guard", *options, "--", *served([*TOOLS, {"name": 5}]), said=json.dumps(LIST), cwd=tmp_path
    )
    result = json.loads(done.stdout)["result"]
    assert [tool["inputSchema"]["$schema"] for tool in result["tools"]] == [DRAFT_7.uri] * 4
    lines = done.stderr.splitlines()
    assert "assay: quarantined 1 tool in tools/list #1: number 5" in lines
    [changed] = [line for line in lines if "ttlMs as" in line]
    assert changed == (
        "assay:     added /result/resultType as complete, added /result/ttlMs as 0, "
        "added /result/cacheScope as private, "
        f"changed /result/tools/0/inputSchema/$schema to {DRAFT_7.uri}, "
        f"changed /result/tools/0/outputSchema/$schema to {DRAFT_7.uri}, and 6 more"
    )
    assert any(line.endswith("0 blocked, 11 repaired") for line in lines)
    shown = assay_process_text("journal", "show", str(tmp_path / "runs"))
    [row] = [line for line in shown.stdout.splitlines() if "repaired: " in line]
    assert row.count("$schema to") == 8
    written = "".join(file.read_text() for file in (tmp_path / "runs").glob("*.jsonl"))
    [record] = [json.loads(line) for line in written.splitlines() if "repairs" in line]
    assert len(record["metadata"]["repairs"]) == 11


def test_a_recording_of_repaired_messages_is_judged_again(tmp_path: Path) -> None:
    recording = str(tmp_path / "session.jsonl")
    options = ("--journal", str(tmp_path / "runs"), "--set", "journal.payloads=true", "--record", recording)
    assay_process_text(
        "guard", *options, *REPAIRING, *DIALECTS, "--", *served(TOOLS), said=json.dumps(LIST), cwd=tmp_path
    )
    checked = assay_process_text("check", "--fail-on", "refuse", recording)
    assert checked.returncode == 0, checked.stdout
    assert "2 messages" in checked.stdout
    replayed = assay_process_text("replay", str(tmp_path / "runs"))
    assert replayed.returncode == 0, replayed.stdout + replayed.stderr


def test_changes_are_described_briefly_and_a_strange_record_does_no_harm() -> None:
    added = {"op": "add", "path": "/a", "value": 1}
    assert changes([added]) == "added /a as 1"
    assert (
        changes([added, 5, {"op": "move"}, {"op": "remove", "path": "/b"}]) == "added /a as 1, removed /b, and 2 more"
    )
    assert changes([added] * 7, 1) == "added /a as 1, and 6 more"

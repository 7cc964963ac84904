"""The switch for drafts: each command has it, and records remember it."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from guarded import SERVER

from kit.command import assay_text

PREFIX = "io.modelcontextprotocol/"
META = {PREFIX + "protocolVersion": "2026-07-28", PREFIX + "clientCapabilities": {}}
TOOLS = [{"name": "a", "inputSchema": {"type": "object"}}]
LIST: dict[str, Any] = {"tools": TOOLS, "resultType": "complete", "ttlMs": 0, "cacheScope": "public", "tag": "t"}
SELF = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, **LIST}
SCRIPT = {
    "on": {
        "server/discover": [["result", SELF]],
        "#1": [["result", LIST]],
        "tools/list": [["result", {**LIST, "tools": []}]],
    }
}
SERVING = [sys.executable, "-IS", str(SERVER), json.dumps(SCRIPT)]
ASKED = "".join(
    json.dumps({"jsonrpc": "2.0", "id": ident, "method": "tools/list", "params": {"_meta": META}}) + "\n"
    for ident in (1, 2)
)
LIE = "[draft/tag]"


def run(place: Path, *arguments: str, said: str = "", **variables: str) -> str:
    """What a command says, on both outputs."""
    done = assay_text(*arguments, cwd=place, said=said, **{"COLUMNS": "200", "NO_COLOR": "1", **variables})
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    ("options", "variables", "found"),
    [
        ((), {}, False),
        (("--preview",), {}, True),
        (("--preview", "--mode", "enforce", "--set", "guard.strict=true"), {}, True),
        (("--set", "guard.preview=true"), {}, True),
        ((), {"ASSAY_GUARD_PREVIEW": "true"}, True),
    ],
)
def test_the_guard_judges_drafts_if_it_is_told_to_and_forwards_everything(
    tmp_path: Path, options: tuple[str, ...], variables: dict[str, str], found: bool
) -> None:
    done = run(tmp_path, "guard", "--journal", "off", *options, "--", *SERVING, said=ASKED, **variables)
    assert (LIE in done) is found
    assert '"id":1,"result":' in done
    assert '"id":2,"result":' in done


def test_a_trusted_file_is_not_needed_to_judge_more(tmp_path: Path) -> None:
    (tmp_path / "assay.toml").write_text("[guard]\npreview = true\n")
    assert LIE in run(tmp_path, "guard", "--journal", "off", "--", *SERVING, said=ASKED)


@pytest.mark.parametrize("previewed", [True, False])
def test_what_was_recorded_is_judged_as_the_guard_did_and_with_the_switch_in_any_case(
    tmp_path: Path, previewed: bool
) -> None:
    options = ("--preview",) if previewed else ()
    records = ("--record", "talk.jsonl", "--journal", "journal", "--set", "journal.payloads=true")
    run(tmp_path, "guard", *options, *records, "--", *SERVING, said=ASKED)
    for file in ("talk.jsonl", "journal"):
        assert ("draft/tag" in run(tmp_path, "check", file)) is previewed
        assert "draft/tag" in run(tmp_path, "check", "--preview", file)
    assert run(tmp_path, "replay", "journal").endswith("4 records: 4 the same\n")
    again = run(tmp_path, "replay", "--preview", "journal")
    assert ("3 the same, 1 different" in again) is not previewed
    lines = (tmp_path / "journal" / ".latest").read_text().splitlines()
    assert all(json.loads(line)["metadata"].get("preview") is (True if previewed else None) for line in lines)


def test_a_small_client_judges_drafts_too(tmp_path: Path) -> None:
    wrong = {"on": {**SCRIPT["on"], "#1": [["result", {**SELF, "tag": 7}]]}}
    (tmp_path / "script").write_text(json.dumps(wrong))
    # An object at the end of the command would be the arguments of a tool.
    serving = [*SERVING[:-1], "@script"]
    assert "draft/tag-shape" in run(tmp_path, "call", "--preview", "--", *serving)
    assert "draft/" not in run(tmp_path, "call", "--", *serving)


def test_no_policy_stops_a_draft(tmp_path: Path) -> None:
    done = run(tmp_path, "guard", "--preview", "--set", "guard.policy.draft/tag=refuse", "--", *SERVING)
    assert "refuse does not fit it, but pass does" in done

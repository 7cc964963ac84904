"""A journal of a guard is replayed as that guard judged: its mode, its longest message, and what its policy did."""

from pathlib import Path
from typing import Any

import pytest

from assay.cli.checking.evidence import CheckTerms, FileEnd, results_of
from assay.cli.checking.files import CheckedFile
from assay.judge.conversation import Conversation
from assay.model.limits import DEFAULT, Limits
from assay.model.verdict import Party
from assay.records.journal import Journal
from assay.records.reading import entries
from assay.rules.policy import REPAIRABLE, Excepted, Policy
from assay.schema.drafts import DRAFT_7
from assay.settings import Settings
from kit.talk import HITS, SEARCH, call, frame_of, notification, request, result

CLIENT, SERVER = Party.CLIENT, Party.SERVER
ODD = {"name": "odd", "inputSchema": {"type": "object", "properties": {"a": {"pattern": "(?=a)b"}}}}
BAD = {"name": 5}
OLD = {"name": "old", "inputSchema": {"$schema": "draft-07", "type": "object"}}
SHAPELESS = {"content": [{"type": "text", "text": "found"}], "structuredContent": [1]}

SAID: list[tuple[Party, Any]] = [
    (CLIENT, request(1, "tools/list")),
    (SERVER, result(1, {"tools": [SEARCH, ODD, BAD, OLD]})),
    (CLIENT, call(2, "odd", {"a": "b"})),
    (SERVER, result(2, {"content": []})),
    (CLIENT, call(3, "search", {"words": "a", "limit": "5"})),
    (SERVER, result(3, {"content": []})),
    (CLIENT, request(4, "tools/call", {"name": "search", "arguments": '{"words": "a", "limit": "5"}'})),
    (SERVER, result(4, HITS)),
    (SERVER, notification("notifications/progress", {"progressToken": "?", "progress": 1})),
    (CLIENT, b"no JSON"),
    (CLIENT, request(5, "tools/run")),
    (SERVER, result(5, {})),
    (CLIENT, request(6, "ping", {"_meta": {"long": "x" * 2000}})),
    (SERVER, result(6, {})),
    (CLIENT, call(7, "old", {})),
    (SERVER, result(7, SHAPELESS)),
]

POLICIES = {
    "none": None,
    "passing": Policy({"*": "pass"}),
    "strict": Policy({"*": "refuse", "syntax/*": "drop"}),
    "mending": Policy(repairs=["contract/input", "protocol/params"]),
    "mending results": Policy(repairs=REPAIRABLE),
    "open": Policy(fail_open=True),
    "excepted": Policy(
        exceptions=[Excepted("contract/*", "search", "pass", "why"), Excepted("protocol/*", None, "pass", "so")]
    ),
}


def journalled(directory: Path, mode: Any, policy: Policy | None, limits: Limits) -> Path:
    journal = Journal.open(directory, payloads=True, mode=mode, frame_bytes=limits.frame_bytes)
    assert journal is not None
    conversation = Conversation(mode=mode, policy=policy, limits=limits, revision="2025-11-25")
    for party, message in SAID:
        verdict = conversation.hear(party, frame_of(message))
        moment = journal.moment("http", "/mcp", verdict.method, verdict.frame, session="one")
        journal.write(journal.line(verdict, moment, 0))
    journal.close()
    return Path(journal.path)


@pytest.mark.parametrize("mode", ["audit", "enforce"])
@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("longest", [1000, 16 << 20])
def test_the_journal_of_a_guard_is_replayed_as_it_judged(tmp_path: Path, mode: str, name: str, longest: int) -> None:
    path = journalled(tmp_path, mode, POLICIES[name], Limits(frame_bytes=longest))
    [*_, end] = results_of(CheckTerms(Settings(), is_compared=True), CheckedFile(*3 * (str(path),)), lambda _: None)
    assert isinstance(end, FileEnd)
    assert end.compared == {"same": len(SAID)}


def test_each_repair_is_in_the_journal_as_an_operation(tmp_path: Path) -> None:
    with journalled(tmp_path, "enforce", POLICIES["mending results"], DEFAULT).open("rb") as file:
        records = [entry.record for entry in entries(file) if entry.record is not None]
    assert [each.metadata.repairs for each in records if each.metadata.repairs] == [
        [{"op": "replace", "path": "/result/tools/3/inputSchema/$schema", "value": DRAFT_7.uri}],
        [{"op": "replace", "path": "/params/arguments/limit"}],
        [{"op": "replace", "path": "/params/arguments"}, {"op": "replace", "path": "/params/arguments/limit"}],
        [{"op": "remove", "path": "/result/structuredContent"}],
    ]

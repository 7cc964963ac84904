"""
Recorded sessions of real servers, replayed.

Every violation that the recordings are known to hold is found, and no other message is refused. What is found beyond
that is listed here, with the clause, so that a change shows.
"""

from collections import Counter
from pathlib import Path

import pytest

from assay.judge.conversation import Conversation
from assay.model.verdict import Party
from assay.records.judging import Judging
from assay.records.rows import Judged, read

# Refused or reported messages of servers, by file: rule → how many messages. From the recordings' own README.
KNOWN: dict[str, dict[str, int]] = {
    "mcp-obsidian": {"protocol/result": 5},
    "office-word-mcp-server.2026-07-28": {"syntax/json": 4},
    "mcp-hello-world": {"syntax/json": 1},
    "server-everything.2025-03-26": {"protocol/result": 2},
    "server-everything.2025-06-18": {"protocol/params": 1},
    "duckduckgo-mcp-server": {"protocol/capability": 5},
    "mcp-mermaid": {"protocol/error-code": 1},
    "mcp-server-chart": {"protocol/error-code": 1},
    # Not in the README: progress 0 is sent twice; basic/utilities/progress: the value MUST increase each time.
    "azure-mcp": {"protocol/progress": 1},
}

# What the driving client did on purpose: wrong arguments, tools that are not there, and a tool called without the task
# that it requires (server/tools, execution.taskSupport).
BY_THE_CLIENT = {"contract/input", "contract/unknown-tool", "contract/task-support"}


@pytest.fixture(scope="module")
def replayed(shared: Path) -> dict[str, list[Judged]]:
    """Each recording, by name, judged."""
    found = {}
    for path in sorted((shared / "transcripts").glob("*.jsonl")):
        with path.open("rb") as file:
            judging = Judging(lambda _: Conversation(mode="audit"), every=True)
            found[path.stem] = [each for each in judging.follow(read(file)) if isinstance(each, Judged)]
    return found


def test_all_recordings_are_there_each_request_is_answered_and_nothing_is_changed_under_audit(
    replayed: dict[str, list[Judged]],
) -> None:
    assert len(replayed) == 75
    verdicts = [verdict for judged in replayed.values() for _, verdict, *_ in judged]
    assert len(verdicts) > 2500
    assert not [each for each in verdicts if each.kind == "missing"]
    assert all(each.onward is each.frame and each.back is None for each in verdicts)


def test_exactly_the_known_violations_of_servers_are_found(replayed: dict[str, list[Judged]]) -> None:
    found = {}
    for name, judged in replayed.items():
        rules = Counter(
            rule
            for _, verdict, *_ in judged
            if verdict.party is Party.SERVER
            for rule in {each.rule for each in verdict.violations}
        )
        if rules:
            found[name] = dict(rules)
    assert found == KNOWN


def test_clients_are_faulted_for_their_deliberately_wrong_calls_alone(replayed: dict[str, list[Judged]]) -> None:
    refused = 0
    for judged in replayed.values():
        for _, verdict, *_ in judged:
            if verdict.party is Party.CLIENT:
                assert {each.rule for each in verdict.violations} <= BY_THE_CLIENT
                refused += not verdict.accepted
    assert refused == 159


def test_a_call_that_breaks_its_contract_was_refused_by_the_server_too(replayed: dict[str, list[Judged]]) -> None:
    """
    The other way round: where we refuse arguments, the server answered with an error, or was lenient.

    Lenient answers are counted, because each is a good call that enforcement would stop only by the tool's own word.
    """
    lenient = 0
    for judged in replayed.values():
        wrong = {
            verdict.exchange.id
            for _, verdict, *_ in judged
            if verdict.exchange
            and verdict.kind == "request"
            and any(v.rule == "contract/input" for v in verdict.violations)
        }
        for _, verdict, *_ in judged:
            if verdict.kind == "result" and verdict.party is Party.SERVER and verdict.exchange:
                lenient += verdict.exchange.id in wrong and not verdict.value["result"].get("isError")
    assert lenient == 13

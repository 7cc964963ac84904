"""A recording judged again gives the verdicts of the conversation that wrote it, whatever was said in it."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from assay.judge.conversation import Conversation, Facts
from assay.judge.redaction import Redactor
from assay.model.limits import DEFAULT
from assay.model.verdict import Party, Verdict
from assay.records.judging import Judging, RecordingOpening
from assay.records.recording import Recording
from assay.records.rows import Judged, read
from assay.rules.policy import REPAIRABLE, REPAIRED, Excepted, Policy
from assay.schema.tool_contracts import Tools
from kit.rows import rows

SEED = os.environ.get("ASSAY_SEED", "recording")
SECRETS = ("^text$", "^message$", "^content$", "^limit$", "^query$", "^title$", "^structuredContent$", "^arguments$")
"""Names of members whose values are masked in some of the tests."""

MOST = 200
"""Frames that are said of each transcript."""

POLICIES: dict[str, Policy | None] = {
    "table": None,
    "repairing": Policy(repairs=REPAIRABLE),
    "lenient": Policy(
        {"contract/*": "pass", "protocol/result": "pass"},
        exceptions=[Excepted("protocol/method", None, "drop", "a test")],
        repairs=REPAIRED,
    ),
}


def shown(verdict: Verdict) -> Any:
    """What has to be the same of two verdicts."""
    found = verdict.findings
    parts = tuple(map(shown, verdict.parts))
    wrong = tuple((each.rule, each.at, each.action, each.found, each.entry) for each in verdict.violations)
    quarantined = () if found is None else found.quarantined
    return verdict.party, verdict.kind, verdict.method, verdict.tool, verdict.revision, wrong, parts, quarantined


def begin(opening: RecordingOpening) -> Conversation:
    """A conversation as `assay check` begins it."""
    return Conversation(
        mode=opening.mode,
        revision=opening.revision,
        limits=opening.limited(DEFAULT),
        policy=opening.effect,
        lines=opening.lines,
        tools=opening.tools,
    )


def judged(path: Path) -> tuple[list[Judged], Judging]:
    """What is found in the recording at *path*."""
    judging = Judging(begin)
    with path.open("rb") as file:
        return [each for each in judging.follow(read(file)) if isinstance(each, Judged)], judging


def recording(path: Path, redactor: Redactor | None = None, **more: Any) -> Recording:
    """A recording in a new file."""
    return Recording(str(path), most=more.get("most", 1 << 28), redactor=redactor, log=more.get("log", pytest.fail))


DEFECTS = (
    (b'"ttlMs"', b'"ttl"'),
    (b'"resultType"', b'"type"'),
    (b"http://json-schema.org/draft-07", b"https://json-schema.org/draft-07"),
    (b"-32602", b"-32002"),
)
"""Parts of messages, and what a defective server sends in their place that can be repaired."""


def frames(path: Path, random: Random) -> Iterator[tuple[Party, bytes]]:
    """What was said in a transcript, with something changed here and there."""
    rows = [json.loads(line) for line in path.read_bytes().splitlines()[:MOST]]
    for row in rows:
        party = Party.CLIENT if row["dir"] == "c2s" else Party.SERVER
        message = row["msg"]
        frame = message.encode() if isinstance(message, str) else json.dumps(message).encode()
        chance = random.random()
        if chance < 0.05:
            continue
        if chance < 0.1:
            yield party, frame
        elif chance < 0.15:
            at = random.randrange(len(frame))
            frame = frame[:at] + random.choice((b"", b"\xff", b'"', b"1", b"\r")) + frame[at + 1 :]
        elif chance < 0.18:
            frame = b"[" + frame + b"]"
        elif chance < 0.3:
            for spelt, other in DEFECTS:
                frame = frame.replace(spelt, other)
        yield party, frame


def converse(conversation: Conversation, path: Path, random: Random) -> Iterator[Verdict]:
    """Everything that a guard may do with a conversation; the verdicts."""
    for party, frame in frames(path, random):
        facts = Facts("http", headers={b"mcp-method": b"ping"}) if random.random() < 0.02 else Facts()
        verdict = conversation.hear(party, frame, facts)
        if verdict.kind != "blank":
            yield verdict
        waiting = conversation.open_requests(Party.CLIENT)
        chance = random.random()
        if waiting and chance < 0.03:
            missing = conversation.give_up(Party.CLIENT, random.choice(waiting).id, *random.choice(GIVEN_UP))
            assert missing is not None
            yield missing
        elif chance < 0.04:
            yield from conversation.end(Party.SERVER, "it was ended by SIGKILL")
            conversation.renew()
        elif chance < 0.05:
            conversation.forget_settled()
    yield from conversation.end(Party.SERVER)


GIVEN_UP = (("TIMEOUT",), ("UPSTREAM_INVALID", "its answer could not be read"))


def outcome(verdict: Verdict) -> Any:
    """What has to be the same of two verdicts if the message was masked for one of them."""
    return verdict.party, sorted((each.rule, each.action) for each in verdict.violations)


@rows("policy", POLICIES)
@rows("mode", ["audit", "enforce"])
@rows("is_masked", [False, True])
def test_a_recording_gets_the_verdicts_that_were_given(
    shared: Path, tmp_path: Path, mode: str, policy: str, is_masked: bool
) -> None:
    """Also where a mask breaks a rule that the secret does not break, or the other way round."""
    random = Random(f"{SEED} {mode} {policy} {is_masked}")  # noqa: S311 - no secret
    same, masked = outcome if is_masked else shown, 0
    for path in random.sample(sorted((shared / "transcripts").glob("*.jsonl")), 12):
        made = recording(tmp_path / "session.jsonl", Redactor(random.sample(SECRETS, 4)) if is_masked else None)
        conversation = made.judge("a server")(mode=mode, limits=DEFAULT, policy=POLICIES[policy], lines=True)
        said = [same(each) for each in converse(conversation, path, random)]
        made.close()
        again, judging = judged(tmp_path / "session.jsonl")
        assert [same(each.verdict) for each in again] == said, path.name
        assert not judging.unjudged
        assert {each.server for each in again} == {"a server"}
        masked += dict(judging.recorded).get("secrets were redacted", 0)
    assert (masked > 0) is is_masked


def test_conversations_of_one_file_are_distinguished_and_share_their_tools(shared: Path, tmp_path: Path) -> None:
    random = Random(SEED)  # noqa: S311 - no secret
    paths = random.sample(sorted((shared / "transcripts").glob("*2026-07-28.jsonl")), 3)
    made = recording(tmp_path / "session.jsonl")
    tools, said = Tools(DEFAULT.tools, DEFAULT.contract_bytes), []
    talks: list[tuple[Conversation, Iterator[tuple[Party, bytes]]]] = []
    for path in paths:
        rows = list(frames(path, random))
        talks.append((made.judge(path.stem)(mode="audit", limits=DEFAULT, tools=tools), iter(rows)))
    while talks:
        conversation, rest = random.choice(talks)
        row = next(rest, None)
        if row is None:
            talks = [each for each in talks if each[0] is not conversation]
            continue
        verdict = conversation.hear(*row)
        if verdict.kind != "blank":
            said.append(shown(verdict))
        if random.random() < 0.02:
            tools = made.hand_down(tools)
            talks.append((made.judge("next")(mode="audit", limits=DEFAULT, tools=tools), talks[0][1]))
    made.event(0, {"event": "close"})
    again, _ = judged(tmp_path / "session.jsonl")
    assert [shown(each.verdict) for each in again] == said
    assert len({each.conversation for each in again}) >= 3
    assert {path.stem for path in paths} <= {each.server for each in again}


def test_what_http_says_of_a_message_is_carried(tmp_path: Path) -> None:
    made = recording(tmp_path / "session.jsonl")
    conversation = made.judge("")(mode="audit", limits=DEFAULT, revision="2026-07-28")
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    headers = {b"mcp-protocol-version": b"2026-07-28", b"mcp-method": b"tools/call", b"authorization": b"Bearer x"}
    for facts in (
        Facts("http", "2026-07-28", headers),
        Facts("http", "2026-07-28", {**headers, b"mcp-method": (b"tools/list", b"tools/call")}),
        Facts("http", "1999-01-01", headers, served=True, spoken=frozenset({"2026-07-28"})),
        Facts("http"),
    ):
        message["id"] = id(facts)
        conversation.hear(Party.CLIENT, json.dumps(message).encode(), facts)
    made.close()
    first, *_ = again = judged(tmp_path / "session.jsonl")[0]
    assert "protocol/header-mismatch" in [each.rule for each in first.verdict.violations]
    assert len({tuple(each.rule for each in judged.verdict.violations) for judged in again}) > 1
    assert b"authorization" not in (tmp_path / "session.jsonl").read_bytes().lower()

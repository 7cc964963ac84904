"""Conversations that begin alike are judged once, and nobody can tell, by verdicts or by what is remembered."""

import json
from random import Random
from typing import Any

import pytest
from test_plain_rows import blocks_of, outcome

from assay.base.verdict import Exchange, Party
from assay.contracts.tool_contract import Contract
from assay.core.conversation import Conversation
from assay.core.conversation_mold import ConversationMold, MoldError
from assay.core.policy import Policy
from assay.records.recording import beginnings
from assay.records.recording.block_judging import BlockJudging
from assay.records.recording.rows import Effect
from assay.records.transcript import read
from kit.alike import handshake, recorded
from kit.archives import ADD, text

# ── copies of a conversation ─────────────────────────────────────────────────────────────────────────────────────────


def heard(messages: list[tuple[Party, bytes]], policy: Policy | None) -> Conversation:
    """A conversation in which *messages* were said."""
    made = Conversation(mode="audit", lines=True, policy=policy)
    for party, frame in messages:
        assert made.hear(party, frame).findings is None
    return made


OURS = ("assay.core", "assay.contracts.tool_contracts", "assay.engine.budget")
PLAIN = (str, int, float, bool, bytes, type(None))


def is_state(thing: Any) -> bool:
    """Whether *thing* is a part of a conversation that may change."""
    kind = type(thing)
    if kind is Contract or isinstance(thing, Policy):
        return False
    return kind is Exchange or kind in {dict, list, set} or kind.__module__.startswith(OURS)


def attributes(thing: Any) -> list[tuple[str, Any]]:
    """The attributes of *thing* that are set."""
    slots = [name for kind in type(thing).__mro__ for name in getattr(kind, "__slots__", ())]
    names = {*getattr(thing, "__dict__", {}), *slots} - {"__weakref__"}
    return [(name, getattr(thing, name)) for name in sorted(names) if hasattr(thing, name)]


def state(thing: Any, seen: dict[int, int]) -> Any:
    """All that is known of *thing*, with its parts; a part that was seen already by its number."""
    if type(thing) in PLAIN:
        return thing
    if isinstance(thing, Contract):
        return thing.name, thing.ready, thing.plain, thing.asks_back, thing._texts
    if isinstance(thing, Policy):
        return attributes(thing)
    if not is_state(thing):
        return thing if isinstance(thing, frozenset | tuple) else id(thing)
    if id(thing) in seen:
        return seen[id(thing)]
    seen[id(thing)] = len(seen)
    if isinstance(thing, dict):
        return [(key, state(each, seen)) for key, each in thing.items()]
    if isinstance(thing, list | set):
        return type(thing), sorted(map(repr, thing))
    return type(thing), [(name, state(each, seen)) for name, each in attributes(thing)]


def parts(thing: Any, found: dict[int, Any]) -> dict[int, Any]:
    """Everything that *thing* consists of and that may change, by identity."""
    if id(thing) in found or not is_state(thing):
        return found
    found[id(thing)] = thing
    inside = [*thing.values()] if isinstance(thing, dict) else [*thing] if isinstance(thing, list | set) else []
    for each in [*inside, *(value for _, value in attributes(thing))]:
        parts(each, found)
    return found


@pytest.mark.parametrize("length", range(1, 6))
@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_a_copy_has_the_same_state_and_shares_nothing_that_changes(length: int, revision: str) -> None:
    said = [*handshake([ADD], revision)][:length]
    own, other = Effect(), Effect()
    made = heard(said, own)
    mold = ConversationMold(made, own)
    copy, again = mold.copy(other), heard(said, other)
    assert state(copy, {}) == state(again, {}) == state(made, {})
    shared = parts(copy, {}).keys() & parts(made, {}).keys()
    assert not shared
    assert copy._policy is other
    assert not parts(copy, {}).keys() & parts(mold.copy(Effect()), {}).keys()


def test_what_is_said_in_a_copy_is_said_there_alone() -> None:
    own = Effect()
    made = heard([*handshake([ADD])], own)
    mold = ConversationMold(made, own)
    before = state(made, {})
    one, two = mold.copy(Effect()), mold.copy(Effect())
    call = text({"id": 2, "method": "tools/call", "params": {"name": "add", "arguments": {"n": 1}}}).encode()
    assert one.hear(Party.CLIENT, call).findings is None
    listed = text({"id": 3, "method": "tools/list"}).encode(), text({"id": 3, "result": {"tools": []}}).encode()
    assert one.hear(Party.CLIENT, listed[0]).findings is None
    assert one.hear(Party.SERVER, listed[1]).findings is None
    assert len(one.open_requests(Party.CLIENT)) == 1
    assert not one.tools.known
    assert state(made, {}) == before == state(two, {}) == state(mold.copy(Effect()), {})


def test_a_tool_that_asks_for_input_in_one_conversation_does_so_there_alone() -> None:
    made = heard([*handshake([ADD])], None)
    mold = ConversationMold(made, None)
    one, two = mold.copy(None), mold.copy(None)
    contract = one.tools.known["add"]
    assert two.tools.known["add"] is contract
    one.tools.asked_back(contract)
    assert one.tools.known["add"].asks_back
    assert not one.tools.known["add"].valid_input({"n": 1})
    assert not contract.asks_back
    assert two.tools.known["add"].valid_input({"n": 1})
    # An open request may have a contract that was listed again meanwhile.
    one.tools.asked_back(contract)
    assert not contract.asks_back


def late_tools() -> list[dict[str, Any]]:
    """Tools with more patterns than are compiled when they are listed, and at their end one that cannot be used."""
    many = [{"type": "string", "pattern": f"^x{{{count}}}$"} for count in range(40)]
    listed = [{"type": "object", "properties": {"a": each}} for each in [*many, {"$ref": "#/nowhere"}]]
    return [{"name": f"tool{index}", "inputSchema": each} for index, each in enumerate(listed)]


def test_a_schema_that_is_compiled_late_is_reported_in_each_conversation() -> None:
    made = heard([*handshake(late_tools())], None)
    mold = ConversationMold(made, None)
    call = text({"id": 2, "method": "tools/call", "params": {"name": "tool40", "arguments": {}}}).encode()
    # The conversation that the mold is made of goes on, and so do its copies.
    for each in (made, mold.copy(None), mold.copy(None)):
        assert [found.rule for found in each.hear(Party.CLIENT, call).violations] == ["contract/schema"]
        assert each.hear(Party.CLIENT, call.replace(b'"id":2', b'"id":3')).findings is None


def test_a_state_that_is_not_known_is_not_copied() -> None:
    made = heard([*handshake([ADD])], None)
    made._memory.tools.beyond = object()
    with pytest.raises(MoldError, match="object of the class object"):
        ConversationMold(made, None)
    with pytest.raises(MoldError, match="class Effect"):
        ConversationMold(heard([], Effect()), None)


# ── recordings ───────────────────────────────────────────────────────────────────────────────────────────────────────


def differs(file: bytes) -> None:
    """Check that a recording gives the same, however many rows are read at a time."""
    lines = file.splitlines(keepends=True)
    strict = outcome(lambda judging: judging.follow_rows(read(lines)), every=False)
    assert outcome(lambda judging: judging.follow_blocks(blocks_of(file, 700)), every=False) == strict
    assert outcome(lambda judging: judging.follow_blocks(blocks_of(file, 9000)), every=False) == strict


@pytest.mark.parametrize("seed", range(40))
def test_equal_beginnings_give_the_verdicts_of_each(seed: int) -> None:
    differs(recorded(Random(seed), 25))  # noqa: S311 - no secret


@pytest.mark.parametrize("seed", range(5))
def test_so_they_do_when_little_is_remembered(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beginnings, "_MOST_STEPS", 4)
    differs(recorded(Random(seed), 25))  # noqa: S311 - no secret


def test_the_state_after_a_handshake_is_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise it would be correct, and slow."""
    copied: list[Conversation] = []
    copy = ConversationMold.copy

    def counted(mold: ConversationMold, own: Policy | None) -> Conversation:
        copied.append(copy(mold, own))
        return copied[-1]

    monkeypatch.setattr(ConversationMold, "copy", counted)
    rows = [{"event": "recording", "version": 1}]
    call = {"id": 2, "method": "tools/call", "params": {"name": "add", "arguments": {"n": 1}}}
    for number in range(1, 11):
        head = {"conversation": number}
        rows.append({"event": "open", **head, "mode": "audit", "lines": True})
        for party, frame in [*handshake([ADD]), (Party.CLIENT, text(call).encode())]:
            rows.append({"dir": "c2s" if party is Party.CLIENT else "s2c", **head, "msg": frame.decode()})
        rows.append({"event": "release", **head})
    file = b"".join(json.dumps(row, separators=(",", ":")).encode() + b"\n" for row in rows)
    judging = BlockJudging(lambda opening: Conversation(mode=opening.mode, policy=opening.effect), every=False)
    assert len(list(judging.follow_blocks(blocks_of(file, 2000)))) == 10
    assert judging.good == 60
    # The first one sets the limits, the next one is remembered, and the state is kept when it is needed for the second
    # time.
    assert len(copied) == 6


@pytest.mark.parametrize("each_comes", [1, 2, 5])
def test_conversations_do_not_keep_more_messages_than_are_remembered(
    each_comes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(beginnings, "_MOST_BYTES", 20_000)
    rows = [{"event": "recording", "version": 1}]
    for number in range(1, 201):
        name = f"{number // each_comes} {'x' * 1000}"
        asked = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": name, "version": "1"}}
        message = text({"id": 0, "method": "initialize", "params": asked})
        rows.append({"event": "open", "conversation": number, "mode": "audit"})
        rows.append({"dir": "c2s", "conversation": number, "msg": message})
    file = b"".join(json.dumps(row, separators=(",", ":")).encode() + b"\n" for row in rows)
    judging = BlockJudging(lambda opening: Conversation(mode=opening.mode, policy=opening.effect), every=False)
    assert len(list(judging.follow_blocks(blocks_of(file, 5000)))) == 200
    assert judging.good == 200
    held = {talk.beginning for talk in judging._talks.values() if talk.beginning is not None}
    assert held
    assert sum(len(frame) for each in held for _, frame in each.said) <= 20_000
    differs(file)

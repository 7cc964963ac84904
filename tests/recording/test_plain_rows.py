"""The quick way through a recording gives what the strict way gives, row by row, whatever the rows are."""

import json
import re
from collections.abc import Callable, Iterable
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.core.conversation import Conversation
from assay.records.line_blocks import LineBlock, blank_lines, numbered_lines, split_blocks
from assay.records.recording import block_judging, judging
from assay.records.recording.block_judging import BlockJudging
from assay.records.recording.judged_talk import RecordingOpening
from assay.records.transcript import Judged, Meeting, TranscriptError, read
from kit.archives import archive, said
from kit.laws import law


def begun(opening: RecordingOpening) -> Conversation:
    """A conversation as `assay check` makes it."""
    return Conversation(
        mode=opening.mode, revision=opening.revision, policy=opening.effect, lines=opening.lines, tools=opening.tools
    )


Follow = Callable[[BlockJudging], Iterable[Judged | Meeting]]


def outcome(follow: Follow, *, every: bool) -> Any:
    """Return everything that judging gives: verdicts, counts, notes, and the error at its end."""
    judging, found, error = BlockJudging(begun, every=every), [], ""
    try:
        for each in follow(judging):
            if isinstance(each, Meeting):
                found.append(tuple(each))
            else:
                verdict = each.verdict
                what = (verdict.party, verdict.frame, verdict.kind, verdict.value, verdict.revision, verdict.findings)
                found.append((*each[:1], *each[2:], *map(repr, what)))
    except TranscriptError as wrong:
        error = str(wrong)
    counts = (judging.good, judging.is_incomplete, judging.revision)
    return found, counts, judging.notes, [*judging.unjudged], [*judging.recorded], error


def blocks_of(text: bytes, size: int = 1 << 40) -> Iterable[LineBlock]:
    """Return the lines of *text*, of which *size* bytes are read at a time, as a large file has them."""
    left = [text[at : at + size] for at in range(0, len(text), min(size, len(text) or 1))][::-1]
    return split_blocks(lambda _: left.pop() if left else b"", 1 << 40, lambda _: b"")


def same(text: bytes) -> None:
    """Check that the quick way and the strict way agree on a whole file."""
    lines = text.splitlines(keepends=True) if b"\r" not in text else [*_split(text)]
    for every in (True, False):
        strict = outcome(lambda judging: judging.follow_rows(read(lines)), every=every)
        # The first block has no batch: there is no conversation yet, whose limits it could have.
        for size in (300, 1500, 6000, 1 << 40):
            assert outcome(partial(_follow_blocks, text=text, size=size), every=every) == strict, size
        assert outcome(lambda judging: judging.follow_blocks([line] for line in lines), every=every) == strict


def timed(text: bytes) -> bytes:
    """Return the rows of *text* with the time of each message, as a guard writes them."""
    times = count(1_763_379_999_123_456, 789)
    return re.sub(rb'"msg":', lambda _: b'"time":%d,"msg":' % next(times), text)


def _follow_blocks(judging: BlockJudging, *, text: bytes, size: int) -> Iterable[Judged | Meeting]:
    return judging.follow_blocks(blocks_of(text, size))


def _split(text: bytes) -> Iterable[bytes]:
    """Yield the lines of *text*, which end with a newline only."""
    parts = text.split(b"\n")
    yield from (each + b"\n" for each in parts[:-1])
    if parts[-1]:
        yield parts[-1]


@pytest.mark.parametrize("seed", range(25))
def test_generated_recordings(tmp_path: Path, seed: int) -> None:
    text = archive(tmp_path / "a.jsonl", seed).read_bytes()
    same(timed(text) if seed % 2 else text)


def test_recorded_conversations(shared: Path) -> None:
    for path in sorted((shared / "transcripts").glob("*.jsonl"))[::3]:
        same(path.read_bytes())


def opened() -> list[bytes]:
    """The rows of a conversation with a tool, so that the next rows may take the quick way."""
    from random import Random

    messages = [*said(Random(1), 2)]  # noqa: S311 - no secret
    return [json.dumps({"dir": side, "conversation": 1, "msg": message}).encode() for side, message in messages]


OPENED = b"\n".join(line.replace(b", ", b",").replace(b": ", b":") for line in opened()) + b"\n"
GOOD = b'{"dir":"c2s","conversation":1,"msg":"{\\"jsonrpc\\":\\"2.0\\",\\"id\\":%d,\\"method\\":\\"ping\\"}"}'

ODD = [
    b'{"dir":"c2s","conversation":1,"msg":"{}"} ',
    b'{"dir":"c2s","conversation":1,"msg":"{}"}}',
    b'{"dir":"c2s","conversation":1,"msg":"{}"x}',
    b'{"dir":"c2s","conversation":1,"msg":"{}",}',
    b'{"dir":"c2s","conversation":1,"msg":"{}","dir":"s2c"}',
    b'{"dir":"c2s","conversation":1,"msg":"{}","msg":"[]"}',
    b'{"dir":"c2s","conversation":1,"msg":"{}","conversation":2}',
    b'{"dir":"c2s","conversation":1,"msg":"a","b":"c,\\"msg\\":"}',
    b'{"dir":"c2s","conversation":1,"msg":"\t"}',
    b'{"dir":"c2s","conversation":1,"msg":"\xff"}',
    b'{"dir":"c2s","conversation":1,"msg":"\\ud800"}',
    b'{"dir":"c2s","conversation":1,"msg":"\\u0000"}',
    b'{"dir":"c2s","conversation":1,"msg":7}',
    b'{"dir":"c2s","conversation":1,"msg":null}',
    b'{"dir":"c2s","conversation":1,"msg":{"jsonrpc":"2.0","id":9,"method":"ping"}}',
    b'{"dir":"c2s","conversation":1.0,"msg":"{}"}',
    b'{"dir":"c2s","conversation":true,"msg":"{}"}',
    b'{"dir":"c2s","conversation":1,"event":"gap","msg":"{}"}',
    b'{"event":"end","conversation":1,"dir":"s2c","why":"x,\\"msg\\":\\"y"}',
    b'{"event":"open","conversation":1,"mode":"enforce"}',
    b'{"event":"recording","version":1}',
    b'{"dir":"c2s","conversation":1,"http":{"revision":"2025-11-25"},"msg":"{}"}',
    b'{"dir":"c2s","conversation":1,"http":{"headers":{"mcp-method":"tools/list"}},"msg":"{}"}',
    b'{"dir":"c2s","conversation":1,"failed":"KeyError","msg":"{}"}',
    b'{"dir":"c2s","conversation":1,"redacted":true,"findings":[],"msg":"{}"}',
    b'{"dir":"c2s","dir":"s2c","conversation":1,"msg":"{}"}',
    b'{"dir":"sideways","conversation":1,"msg":"{}"}',
    b'\xef\xbb\xbf{"dir":"c2s","conversation":1,"msg":"{}"}',
    b'{"dir":"c2s","conversation":1,"msg":"{}"}\r',
    b'{"dir":"c2s","conversation":1,"time":176337999912345,"msg":"{}"}',
    b'{"dir":"c2s","conversation":1,"time":0763379999123456,"msg":"{}"}',
    b'{"dir":"c2s","conversation":1,"time":17633799991234567,"msg":"{}"}',
    b'{"dir":"c2s","conversation":1,"time":1763379999.12345,"msg":"{}"}',
    b'{"dir":"c2s","conversation":1,"time":"76337999912345","msg":"{}"}',
    b'{"dir":"c2s","conversation":1,"time":1763379999123456,"time":1763379999123456,"msg":"{}"}',
    b'{"dir":"c2s","conversation":1,"time":1763379999123456 ,"msg":"{}"}',
    b'{"dir":"c2s","conversation":1,"msg":"{}","time":1763379999123456}',
    b'{"time":1763379999123456,"dir":"c2s","conversation":1,"msg":"{}"}',
    b'{"time":1763379999123456,"msg":"{}"}',
    b'{"event":"end","conversation":1,"dir":"s2c","why":"","time":1763379999123456}',
    b"{}",
    b"",
    b" ",
    b"}",
    b',"msg":"x"}',
]


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: odd[-40:].decode(errors="replace"))
@pytest.mark.parametrize("ending", [b"\n", b""])
def test_odd_rows(odd: bytes, ending: bytes) -> None:
    same(OPENED + odd + ending)
    text = OPENED + odd + b"\n" + GOOD % 50 + b"\n" + odd + b"\n" + GOOD % 51 + ending
    same(text)
    same(timed(text))
    same(timed(OPENED) + odd + b"\n" + timed(GOOD % 50) + ending)


OPENING = b'{"event":"open","conversation":%d,"server":"s","mode":"audit","lines":true}\n'


def ping(number: int, ident: int) -> bytes:
    """The row of a request in a conversation."""
    return GOOD.replace(b'"conversation":1', b'"conversation":%d' % number) % ident + b"\n"


@pytest.mark.parametrize("order", [(1, 2, 3, 1), (1, 2, 1)], ids=["dropped", "dropped by itself"])
def test_a_dropped_conversation_that_is_opened_again_is_judged(
    monkeypatch: pytest.MonkeyPatch, order: tuple[int, ...]
) -> None:
    monkeypatch.setattr(judging, "MOST_CONVERSATIONS", 2)
    text = b"".join(OPENING % number + ping(number, at) for at, number in enumerate(order, 1))
    text += ping(1, 8) + ping(1, 9)
    same(text)
    _, (good, *_), _, unjudged, *_ = outcome(partial(_follow_blocks, text=text, size=300), every=False)
    assert (good, unjudged) == (len(order) + 2, [])


def test_heads_that_all_differ_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Headers that repeat arguments make every head another one, and a hostile one as long as a row may be."""
    monkeypatch.setattr(block_judging, "_MOST_HEADS", 10)
    heads = [b'{"dir":"c2s","conversation":1,"http":{"headers":{"mcp-param-n":"%d"}},' % each for each in range(50)]
    long = [b'{"dir":"c2s","conversation":1,"http":{"headers":{"mcp-param-n":"%s"}},' % (b"9" * 1000)]
    tail = GOOD[len(b'{"dir":"c2s","conversation":1,') :]
    text = OPENED + b"".join(head + tail % ident + b"\n" for ident, head in enumerate(long + heads, 50))
    same(text)
    judged = BlockJudging(begun, every=False)
    assert [*judged.follow_blocks(blocks_of(text))]
    [talk] = judged._talks.values()
    assert 0 < len(talk.heads) <= len(judged._heads) <= 10
    assert max(map(len, [*talk.heads, *judged._heads])) < 1000


PIECES = st.sampled_from(
    [*ODD, GOOD % 60, GOOD % 61, *OPENED.splitlines()[5:], b'"', b"\\", b",", b'"msg":', b'"conversation":', b"{", b"}"]
)
CHANGES = st.tuples(st.integers(0, 200), st.integers(0, 3), st.binary(max_size=3))


def changed(line: bytes, change: tuple[int, int, bytes]) -> bytes:
    """Return *line* with some bytes replaced."""
    at, length, new = change
    return (line[:at] + new + line[at + length :]).replace(b"\n", b"")


@law(300)
@given(st.lists(PIECES, max_size=8), st.lists(CHANGES, max_size=2), st.booleans(), st.booleans())
def test_any_rows(pieces: list[bytes], changes: list[tuple[int, int, bytes]], is_ended: bool, is_timed: bool) -> None:
    lines = [timed(line) if is_timed else line for line in pieces]
    lines = [changed(line, changes[index]) if index < len(changes) else line for index, line in enumerate(lines)]
    same((timed(OPENED) if is_timed else OPENED) + b"\n".join(lines) + (b"\n" if is_ended else b""))


@law(200)
@given(st.lists(st.binary(max_size=12), max_size=12), st.integers(2, 9), st.integers(1, 7))
def test_lines_are_split_as_a_file_splits_them(parts: list[bytes], longest: int, step: int) -> None:
    """A line with its newline has at most *longest* bytes, or is replaced. Blank lines may come as one item."""
    text = b"".join(parts)
    chunks = [text[at : at + step] for at in range(0, len(text), step)]
    blocks = list(split_blocks(lambda _: chunks.pop(0) if chunks else b"", longest, lambda size: b"(%d)\n" % size))
    wanted = []
    for line in _split(text):
        whole = line.endswith(b"\n")
        long = len(line) > longest or (len(line) == longest and not whole)
        wanted.append(b"(%d)\n" % len(line) if long else line)
    items = [line for block in blocks for line in block]
    assert [line for item in items for line in (_split(item) if item.isspace() else [item])] == wanted
    assert list(numbered_lines(items)) == [(at, line) for at, line in enumerate(wanted, 1) if not line.isspace()]
    assert sum(blank_lines(block) or len(block) for block in blocks) == len(wanted)

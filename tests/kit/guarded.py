"""Recordings of a guard with many conversations, at random and always the same, and rows that do not belong there."""

import json
from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import Any

from kit import alike
from kit.archives import conversation

PING = '"msg":"{\\"jsonrpc\\":\\"2.0\\",\\"id\\":77,\\"method\\":\\"ping\\"}"'
OPENING = '{"event":"open","conversation":%d,"server":"a","mode":"audit","revision":"2025-11-25"}'


def guarded_rows(random: Random, talks: int, *, strange: float = 0.5) -> Iterator[str]:
    """Yield the lines of a recording with *talks* conversations, some of them mixed, and this share of them strange."""
    yield '{"event":"recording","version":1,"assay":"0.1.0"}'
    live: dict[int, Iterator[dict[str, Any]]] = {}
    for index in range(1, talks + 1):
        # A number may be used again after its release.
        number = index if random.random() < 0.9 else random.randint(1, index)
        if number in live:
            continue
        live[number] = _talk(random, number, strange)
        while len(live) > 2:
            yield from _turn(random, live)
    while live:
        yield from _turn(random, live)
    if random.random() < 0.7:
        yield random.choice(['{"event":"close"}', '{"event":"stopped","why":"the disk is full"}'])


def _talk(random: Random, number: int, strange: float) -> Iterator[dict[str, Any]]:
    if random.random() >= strange:
        return conversation(random, number, by_guard=True, shared=None)
    # Some of these are never opened or never released, and some are opened twice.
    return alike.talk(random, number, None)


def _turn(random: Random, live: dict[int, Iterator[dict[str, Any]]]) -> Iterator[str]:
    number = random.choice([*live])
    row = next(live[number], None)
    if row is None:
        del live[number]
        return
    spaced = random.random() < 0.03
    yield json.dumps(row, separators=None if spaced else (",", ":"), ensure_ascii=False)
    if random.random() < 0.02:
        yield random.choice(["", "  "])


def plain_rows(conversations: int, messages: int, *, at_a_time: int = 2) -> list[str]:
    """Return the lines of the most ordinary recording: conversations that are opened, used and released."""
    rows = ['{"event":"recording","version":1}']
    for first in range(1, conversations + 1, at_a_time):
        numbers = range(first, min(first + at_a_time, conversations + 1))
        rows += [OPENING % number for number in numbers]
        rows += [f'{{"dir":"c2s","conversation":{number},{PING}}}' for _ in range(messages) for number in numbers]
        rows += [f'{{"event":"release","conversation":{number}}}' for number in numbers]
    return [*rows, '{"event":"close"}']


ODD: Mapping[str, Callable[[int], str]] = {
    "message": lambda number: f'{{"dir":"c2s","conversation":{number},{PING}}}',
    "never opened": lambda number: f'{{"dir":"c2s","conversation":{number + 90},{PING}}}',
    "opened": lambda number: OPENING % number,
    "released": '{{"event":"release","conversation":{}}}'.format,
    "shares tools": '{{"event":"open","conversation":{},"mode":"audit","tools":1}}'.format,
    "hands down tools": '{{"event":"tools","conversation":{},"from":1}}'.format,
    "gap": '{{"event":"gap","conversation":{}}}'.format,
    "unknown event": '{{"event":"party","conversation":{}}}'.format,
    "event of another type": '{{"event":[],"conversation":{}}}'.format,
    "recording": lambda _: '{"event":"recording"}',
    "close": lambda _: '{"event":"close"}',
    "stopped": lambda _: '{"event":"stopped","why":"x"}',
    "blank": lambda _: " ",
    "no JSON": lambda _: "no JSON",
    "no object": lambda _: "[]",
    "empty object": lambda _: "{}",
    "no number": lambda _: f'{{"dir":"c2s",{PING}}}',
    "number behind": lambda number: f'{{"dir":"c2s",{PING},"conversation":{number}}}',
    "number twice": lambda number: f'{{"dir":"c2s","conversation":{number},{PING},"conversation":{number + 1}}}',
    "number twice, escaped": lambda number: f'{{"dir":"c2s","conversation":{number},{PING},"\\u0063onversation":1}}',
    "number as text": lambda number: f'{{"dir":"c2s","conversation":"{number}",{PING}}}',
    "number with a fraction": lambda number: f'{{"dir":"c2s","conversation":{number}.0,{PING}}}',
    "large number": lambda number: f'{{"dir":"c2s","conversation":{number + 10**15},{PING}}}',
    "open without a number": lambda _: '{"event":"open","server":"a","mode":"audit"}',
    "release without a number": lambda _: '{"event":"release"}',
    "other spelling": lambda number: f'{{"conversation":{number}, "dir":"c2s",{PING}}}',
    "with HTTP": lambda number: f'{{"dir":"c2s","conversation":{number},"http":{{}},{PING}}}',
    "with HTTP, number behind": lambda number: f'{{"dir":"c2s","http":{{}},{PING},"conversation":{number}}}',
    "cut off in the middle": lambda number: f'{{"dir":"c2s","conversation":{number},"msg":"{{',
    "no message": '{{"dir":"c2s","conversation":{}}}'.format,
    "no side": lambda number: f'{{"dir":"up","conversation":{number},{PING}}}',
    "open behind": lambda number: f'{{"dir":"c2s","conversation":{number},{PING},"event":"open"}}',
    "open and number behind": lambda number: f'{{"dir":"c2s",{PING},"event":"open","conversation":{number}}}',
    "release behind": lambda number: f'{{"dir":"c2s","conversation":{number},{PING},"event":"release"}}',
    "recording behind": lambda number: f'{{"dir":"c2s","conversation":{number},{PING},"event":"recording"}}',
    "tools behind": lambda number: f'{{"dir":"c2s","conversation":{number},{PING},"event":"tools","from":1}}',
    "stopped behind": lambda number: f'{{"dir":"c2s","conversation":{number},{PING},"event":"stopped"}}',
    "message in an event": lambda number: f'{{"event":"release","conversation":{number},{PING}}}',
}
"""Rows that are odd at most places, by what is odd; each is made for a number."""

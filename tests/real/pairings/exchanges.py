"""
Exchanges by chance, good and broken, and what is to become of each: a model of the guard in a few lines.

It knows nothing of JSON Schema or JSON-RPC: what breaks an exchange knows how it was broken.
"""

import json
import random
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from obedient_server import BLANKS, ID_BLANK, LAST_WORD, PLACE, TOKEN_BLANK, blanked, key

from assay.spec.revisions import REVISIONS, handshake
from kit.valid_traffic import Exchanged, Speaker, opening


class Answer(NamedTuple):
    """An answer that is the guard's own, to the request of this id, as JSON; None for one that has no id."""

    ident: str | None
    as_result: bool = False
    """Whether it may be a result that says of itself that the call has failed."""


Item = bytes | Answer
"""What a party gets: these very bytes, or an answer that the guard makes."""


class Step(NamedTuple):
    """What the client says, what the server says to that, and what comes of both."""

    said: bytes
    answered: bytes = b""
    """What the server says."""
    passes: bool = True
    """Whether the server gets what the client says."""
    asks: str | None = None
    """The id of a request, as JSON, that has to be answered."""
    refused: tuple[Answer, ...] = ()
    """What the client gets at once."""
    gets: tuple[Item, ...] = ()
    """What the client gets of what the server says, in this order."""
    back: tuple[Answer, ...] = ()
    """What the server gets of what it says."""
    replies: tuple[tuple[bytes, bytes], ...] = ()
    """What the client says to a line that it gets."""


class Session(NamedTuple):
    """One conversation."""

    revision: str
    opening: list[Step]
    steps: list[Step]
    killed_after: int | None
    """After how many steps the server is killed, or kills itself; None if it is not."""
    burst: int
    """How many steps more are said in one breath with the last one."""
    pressing: int
    """How many are tried after that, when it may be too late."""
    window: int
    """How many requests are open at the same time."""
    again: Step
    """What is asked once there is a server again."""

    @property
    def stateless(self) -> bool:
        """Whether there is no handshake."""
        return not handshake(self.revision)

    @property
    def exchanges(self) -> int:
        """How many are made."""
        return len(self.steps) if self.killed_after is None else min(len(self.steps), self.killed_after + self.burst)


def sessions(number: int, seed: str) -> Iterator[Session]:
    """Conversations in which that many exchanges are made in all, before the server is killed."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    count = 0
    while number > 0:
        made = session(min(number, chance.choice((1, 10, 50, 100, 100))), f"{seed} {count}")
        yield made
        count += 1
        number -= made.exchanges


def session(size: int, seed: str) -> Session:
    """One with *size* exchanges."""
    maker = Maker(seed)
    chance = maker.chance
    killed_after = chance.randrange(1, size + 1) if chance.random() < 0.7 else None
    steps = [maker.step(may_hang=killed_after is not None) for _ in range(size)]
    if killed_after is not None and chance.random() < 0.5:
        steps[killed_after - 1] = maker.dying(steps[killed_after - 1])
    burst, pressing, window = chance.choice((0, 3, 20)), chance.choice((0, 0, 3)), chance.choice((1, 4, 32))
    return Session(maker.revision, maker.opening(), steps, killed_after, burst, pressing, window, maker.plain())


def script(made: Session, *, blanks: bool) -> dict[str, str]:
    """
    What the server says, by what it receives.

    With *blanks* for a server that sees other ids and progress tokens: blanks are in their places, on both sides.
    """
    steps = [step for step in (*made.opening, *made.steps, made.again) if step.answered]
    if blanks:
        found = {blanked(step.said): with_blanks(step, step.answered) for step in steps}
    else:
        found = {step.said: step.answered for step in steps}
    return {key(said.removesuffix(b"\n")): answered.decode("latin-1") for said, answered in found.items()}


# ── where ids are the guard's own ────────────────────────────────────────────────────────────────────────────────────


def with_blanks(step: Step, answered: bytes) -> bytes:
    """What is *answered* to a request, with blanks for its id and its token."""
    asked = json.loads(step.said)
    own = {ID_BLANK: asked.get("id"), TOKEN_BLANK: asked.get("params", {}).get("_meta", {}).get("progressToken")}
    return PLACE.sub(lambda found: _blank(found, own), answered)


def _blank(found: "re.Match[bytes]", own: dict[bytes, Any]) -> bytes:
    blank = BLANKS[found[2]]
    return found[1] + (blank if json.loads(found[3]) == own[blank] else found[3])


def respelt(step: Step) -> Step:
    """The same, with ids and tokens in what the client gets as the client has spelt them itself."""
    spelt = {BLANKS[name]: value for _, name, value in PLACE.findall(step.said)}

    def filled(item: Item) -> Item:
        if not isinstance(item, bytes):
            return item
        line = with_blanks(step, item)
        for blank, value in spelt.items():
            line = line.replace(blank, value)
        return line

    return step._replace(gets=tuple(filled(each) for each in step.gets))


class Numbered(Speaker):
    """No two requests are the same, their ids and tokens aside."""

    def meta(self) -> dict[str, Any]:
        """With a number."""
        return {**super().meta(), "com.example/number": self.count}


class Maker:
    """Makes one exchange after another."""

    def __init__(self, seed: str) -> None:
        self.chance = random.Random(seed)  # noqa: S311 - no secret
        self.revision = self.chance.choice(REVISIONS)
        self.stateless = not handshake(self.revision)
        self.speaker = Numbered(self.revision, seed)
        self.count = 0

    def plain(self) -> Step:
        """A good exchange, in which the server asks nothing."""
        while (step := self._good(self.speaker.exchange())).replies or step.asks is None:
            pass
        return step

    def opening(self) -> list[Step]:
        """The handshake, if there is one, and the list of tools."""
        return [self._good(each) for each in opening(self.revision)]

    def step(self, *, may_hang: bool) -> Step:
        """Any exchange."""
        kind = self.chance.random()
        if kind < 0.5:
            return self._good(self.speaker.exchange())
        if kind < 0.75:
            return self.broken_answer()
        if kind < 0.95 or not may_hang:
            return self.broken_request()
        return self.hanging()

    def _good(self, exchanged: Exchanged) -> Step:
        asked = json.loads(exchanged.asked)
        # Only the opening has a request of the client's with a reply, and no line is said twice.
        asking = [line for line in exchanged.answered if "method" in json.loads(line) and "id" in json.loads(line)]
        return Step(
            exchanged.asked,
            b"".join(exchanged.answered),
            asks=json.dumps(asked["id"]) if "id" in asked else None,
            gets=tuple(exchanged.answered),
            replies=tuple(zip(asking, exchanged.replies, strict=True)),
        )

    def hanging(self) -> Step:
        """A request that is never answered."""
        return self._good(self.speaker.exchange())._replace(answered=b"", gets=(), replies=())

    def dying(self, step: Step) -> Step:
        """The same, with a server that dies before it has said all of it."""
        if not step.passes:
            step = self._good(self.speaker.exchange())
        cut = self.chance.randrange(len(step.answered) + 1)
        return step._replace(answered=step.answered[:cut] + LAST_WORD)

    # ── the server breaks it ─────────────────────────────────────────────────────────────────────────────────────────

    def broken_answer(self) -> Step:
        """The server says something wrong, in place of the answer or beside it."""
        good = self._good(self.speaker.exchange())
        while good.replies or good.asks is None or len(good.gets) != 1:
            good = self._good(self.speaker.exchange())
        return self.chance.choice((self._in_place, self._in_place, self._beside, self._asking))(good)

    def _in_place(self, good: Step) -> Step:
        """The answer itself is wrong: the request fails."""
        said = self.chance.choice(
            (
                '{"jsonrpc":"2.0","id":%s,"result":{"x":NaN}}',
                '{"result":{"x":[1,]},"jsonrpc":"2.0","id":%s}',
                '{"jsonrpc":"2.0","id":%s,"result":{"a":1,"a":2}}',
                '{"jsonrpc":"2.0","id":%s}',
                '{"jsonrpc":"2.0","id":%s,"result":[]}',
                '{"jsonrpc":"2.0","id":%s,"error":{"code":"1"}}',
                '{"jsonrpc":"2.0","id":%s,"result":{},"error":{"code":1,"message":""}}',
                '{"jsonrpc":"2.0","id":%s,"result":{"_meta":5}}',
                '{"jsonrpc":"2.0","id":%s,"result":{"_meta":{"a":"\\ud800"}}}',
                '{"id":%s,"result":{}}',
                '{"jsonrpc":"2.0","id":%s,"result":{"half',
            )
        )
        as_result = self.revision >= "2025-11-25" and json.loads(good.said)["method"] == "tools/call"
        return good._replace(answered=(said % good.asks).encode() + b"\n", gets=(Answer(good.asks, as_result),))

    def _beside(self, good: Step) -> Step:
        """There is something wrong beside a good answer: that one arrives."""
        answer = good.answered
        self.count += 1
        noise = self.chance.choice(
            (
                b"a line of a log\n",
                b"\xff\xfe\n",
                b"\n\r\n \n",
                b"[]\n",
                b"null\n",
                b'{"level":"info"}\n',
                b'{"jsonrpc":"2.0","id":"unasked %d","result":{}}\n' % self.count,
                b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"loud"}}\n',
                b'{"jsonrpc":"2.0","method":"notifications/progress","params":[]}\n',
            )
        )
        every = (noise + answer, answer + noise, answer + answer, noise + answer + noise)
        return good._replace(answered=self.chance.choice(every))

    def _asking(self, good: Step) -> Step:
        """The server asks what it may not, and gets an error."""
        self.count += 1
        asked = f'"wrong {self.count}"'
        asking = f'{{"jsonrpc":"2.0","id":{asked},"method":"tools/list"}}\n'.encode()
        return good._replace(answered=asking + good.answered, back=(Answer(asked),))

    # ── the client breaks it ─────────────────────────────────────────────────────────────────────────────────────────

    def broken_request(self) -> Step:
        """The client says something wrong: the server never sees it."""
        self.count += 1
        ident = self.chance.choice((f'"bad {self.count}"', str(10_000_000 + self.count)))
        said = self.chance.choice(
            (
                '{"jsonrpc":"2.0","id":%s,"method":"roots/list"}',
                '{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":5}}',
                '{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":[]}',
                '{"jsonrpc":"2.0","id":%s,"method":"ping","method":"ping"}',
                '{"jsonrpc":"2.0","id":%s,"method":"ping","params":{"x":1e999}}',
                '{"params":{"x":"\\ud800"},"method":"ping","jsonrpc":"2.0","id":%s}',
                '{"id":%s,"method":"ping"}',
                CALL.replace("META", META if self.stateless else ""),
                "hello, %s?",
                "[]",
                "   \r",
                '{"jsonrpc":"2.0","method":"notifications/message"}',
                '{"jsonrpc":"2.0","id":%s,"result":{}}',
            )
        )
        line = (said % ident if "%s" in said else said).encode() + b"\n"
        if "method" in said and '"id"' in said:
            return Step(line, passes=False, asks=ident, refused=(Answer(ident),))
        silent = "notifications" in said or "result" in said or not said.strip()
        return Step(line, passes=False, refused=() if silent else (Answer(None),))


META = (
    ',"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}'
)
CALL = '{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"search","arguments":{"words":5}META}}'


def ident_of(line: bytes) -> tuple[str | None, Any]:
    """The id of a message as JSON, None where it has none or null, and the message."""
    message = json.loads(line)
    return (None if message.get("id") is None else json.dumps(message["id"])), message

"""
Thousands of exchanges by chance, good and broken, through the guard, while the server is killed at any moment.

Whatever happens: every request is answered exactly once, what passes arrives byte for byte and in order, and what does
not pass does not arrive. Where the guard outlives the server, the next one serves. `make test` does 250 for each pair
of transports, in a quarter of a minute; for 10,000 each, in ten minutes:

    ASSAY_RANDOM_EXCHANGES=10000 pytest tests/guard_random

ASSAY_RANDOM_SEED, any text, makes other ones; a failure names the conversation that it is about.
"""

import json
import os
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from exchanges import LAST_WORD, Answer, Item, Session, Step, blank_script, ident_of, respelt, script, sessions
from obedient_server import blanked
from pairings import PAIRINGS, Pairing

from kit.http_client import until

EXCHANGES = int(os.environ.get("ASSAY_RANDOM_EXCHANGES", "250"))
SEED = os.environ.get("ASSAY_RANDOM_SEED", "first")

FAILED = {-31010, -31011}
"""What the guard says of an answer that is broken, and of one that never came."""


class Run:
    """One conversation, carried out."""

    def __init__(self, told: Session, pairing: Pairing) -> None:
        self.told = told
        self.pairing = pairing
        self.said: list[Step] = []
        """What the client has said before the server was killed, and nobody heard."""
        self.pressed: list[Step] = []
        """What it has said after that."""
        self.replied: list[bytes] = []
        self.got: list[bytes] = []
        self._replies: dict[bytes, bytes] = {}
        self._open: set[str] = set()
        self.status = 0

    def carry_out(self) -> None:
        """All of it."""
        with self.pairing:
            for step in self.told.opening:
                self._say([step])
                self._wait(0)
            self._go_through()
            if self.told.killed_after is not None and not self.pairing.in_order:
                self._go_on()
            while self._listen():
                pass
            self.status = self.pairing.stop()

    def _go_on(self) -> None:
        """The guard goes on without the server: all are answered, and the next server serves."""
        self._open = {step.asks for step in self.said + self.pressed if step.asks is not None} - set(answers(self.got))
        self._wait(0)
        if self.pairing.reopens:
            # With the server, the session and its stream have ended.
            while self._listen():
                pass
        assert self.pairing.revive()
        done, self.got = self.got, []
        until(self._is_served)
        self.pairing.leave()
        while self._listen():
            pass
        # What nobody can be told of by an id may still have been under way.
        self.got = done + [line for line in self.got if ident_of(line)[0] is None and b'"error"' in line]

    def _is_served(self) -> bool:
        """Whether a good request gets its answer; else it is told that there is none."""
        for step in [*(self.told.opening if self.pairing.reopens else ()), self.told.again]:
            self.pairing.send([step.said])
            if step.asks is not None:
                self._open = {step.asks}
                self._wait(0)
                last = next(line for line in reversed(self.got) if step.asks in answers([line]))
                if not is_answer(bare(last), step):
                    assert ident_of(last)[1]["error"]["code"] == -31011, last
                    return False
        return True

    def _go_through(self) -> None:
        last = self.told.killed_after
        steps = self.told.steps
        for step in steps if last is None else steps[: last - 1]:
            self._say([step])
            self._wait(self.told.window)
        if last is None:
            self._wait(0)
            self.pairing.leave()
            return
        said = self.told.exchanges
        self._say(steps[last - 1 : said])
        if not steps[last - 1].told.endswith(LAST_WORD):
            self.pairing.kill()
        for step in steps[said : said + self.told.pressing]:
            self.pressed.append(step)
            if not self.pairing.send([step.said]):
                return

    def _say(self, steps: list[Step]) -> None:
        for step in steps:
            self.said.append(step)
            self._replies.update(step.replies)
            if step.asks is not None and (step.gets or step.refused):
                self._open.add(step.asks)
        assert self.pairing.send([step.said for step in steps])

    def _wait(self, most: int) -> None:
        """Until no more than *most* requests are open that will be answered."""
        while len(self._open) > most:
            assert self._listen(), f"the conversation has ended, and {sorted(self._open)} were not answered"

    def _listen(self) -> bool:
        lines = self.pairing.receive()
        for line in lines:
            self.got.append(line)
            reply = self._replies.pop(line, None)
            if reply is not None and self.pairing.send([reply]):
                self.replied.append(reply)
            elif line.startswith((b"{", b" ")):
                ident, message = ident_of(line)
                if "method" not in message:
                    self._open.discard(ident or "")
        return bool(lines)


def check_in_order(run: Run, received: list[bytes]) -> None:
    """What came of it is what the model says, in its order."""
    told = run.told
    steps = run.said + run.pressed
    refusals = {each.ident for step in steps for each in step.refused}
    refused, served = apart(run.got, refusals)
    # What was said after the end may not have been heard.
    expected = [each for step in run.said for each in step.refused]
    more = [each for step in run.pressed for each in step.refused]
    assert refused == (expected + more)[: len(refused)]
    assert len(refused) >= len(expected)
    if told.killed_after is None:
        assert is_same(served, [each for step in steps for each in step.gets])
        assert run.status == 0
    else:
        check_cut_off(run, served)
        assert run.status == 3
    check_received(run, received)


def apart(lines: list[bytes], refusals: set[str | None]) -> tuple[list[Answer], list[bytes]]:
    """What the guard has answered to bad requests, and all else."""
    refused: list[Answer] = []
    served: list[bytes] = []
    for line in lines:
        ident, message = ident_of(line)
        if "method" not in message and ident in refusals:
            refused.append(Answer(ident))
        else:
            served.append(line)
    return refused, served


def is_item(line: bytes, item: Item) -> bool:
    """Whether *line* is what was expected."""
    if isinstance(item, bytes):
        return line == item
    ident, message = ident_of(line)
    if item.as_result and message.get("result", {}).get("isError") is True:
        return ident == item.ident and b"broke its contract" in line
    return ident == item.ident and message.get("error", {}).get("code") in FAILED


def is_same(lines: list[bytes], items: list[Item]) -> bool:
    """Whether all of it is what was expected, in this order."""
    for line, item in zip(lines, items, strict=False):
        assert is_item(line, item), f"{line!r}, where {item!r} was expected"
    assert len(lines) == len(items)
    return True


def check_cut_off(run: Run, served: list[bytes]) -> None:
    """Up to some place all is as if nobody had been killed; then each open request fails, once."""
    items = [each for step in run.said for each in step.gets]
    good = 0
    while good < min(len(served), len(items)) and is_item(served[good], items[good]):
        good += 1
    answered = Counter(answers(served))
    owed = [step.asks for step in run.said if step.asks is not None and step.passes]
    late = [step.asks for step in run.pressed if step.asks is not None and step.passes]
    assert not answered - Counter(owed + late), "somebody was answered twice, or unasked"
    assert not Counter(owed) - answered, "somebody was not answered"
    assert [each for each in late if each in answered] == late[: sum(each in answered for each in late)]
    for number, line in enumerate(served[good:]):
        _, message = ident_of(line)
        code = message.get("error", {}).get("code")
        # The last line of the server may be half a one.
        assert code == -31011 or (number == 0 and code == -31010) or is_whole(line, run), line


def is_whole(line: bytes, run: Run) -> bool:
    """Whether *line* is the last one of a server that died before it could write the end of the line."""
    return any(step.told.endswith(LAST_WORD) and line.rstrip() in step.told for step in run.said)


def answers(lines: list[bytes]) -> list[str]:
    """The ids of the answers among *lines*."""
    found = (ident_of(line) for line in lines)
    return [ident for ident, message in found if ident is not None and "method" not in message]


def check_received(run: Run, received: list[bytes]) -> None:
    """The server has got what passes, in order and as it came, and what the guard says to it."""
    passing = [step.said for step in (*run.told.opening, *run.told.steps) if step.passes]
    sent = [step.said for step in run.said + run.pressed if step.passes]
    replies = set(run.replied)
    known = set(passing)
    got = [line for line in received if line in known and line not in replies]
    assert got == sent[: len(got)]
    own = [line for line in received if line not in known and line not in replies]
    back = [each for step in run.said for each in step.back]
    for line, answer in zip(own, back, strict=False):
        ident, message = ident_of(line)
        assert ident == answer.ident
        assert "error" in message
    assert len(own) <= len(back)
    if run.told.killed_after is None:
        assert len(got) == len(sent)
        assert len(own) == len(back)
        assert [line for line in received if line in replies] == run.replied


# ── where each answer comes by itself ────────────────────────────────────────────────────────────────────────────────


def check_scattered(run: Run, received: list[bytes]) -> None:
    """Every request has its one answer, the guard goes on, and only what was open fails with the server."""
    steps = run.said + run.pressed
    asking = [step for step in steps if step.asks is not None]
    assert Counter(answers(run.got)) == Counter(step.asks for step in asking), "not everybody was answered once"
    found = {ident: bare(line) for line in run.got for ident in answers([line])}
    failed = [step for step in asking if not (step.refused or is_answer(found[step.asks or ""], step))]
    for step in failed:
        code = ident_of(found[step.asks or ""])[1].get("error", {}).get("code")
        assert code in FAILED, f"{found[step.asks or '']!r}, where {step.gets[-1:]!r} was expected"
    assert len(failed) <= most_failures(run)
    check_unasked(run, steps)
    check_streams(run, asking)
    nobody = sum(each.ident is None for step in steps for each in step.refused) * run.pairing.tells_all
    assert sum(ident is None and "method" not in message for ident, message in map(ident_of, run.got)) == nobody
    assert run.status == 0
    check_arrived(run, received)


def bare(line: bytes) -> bytes:
    """
    Without the end of the line, which is no part of a message where it is a body or an event.

    In an event some characters are escaped, because readers of events split lines at them.
    """
    text = line.removesuffix(b"\n").removesuffix(b"\r")
    for each in "\x85\u2028\u2029":
        text = text.replace(each.encode(), b"\\u%04x" % ord(each))
    return text


def is_answer(line: bytes, step: Step) -> bool:
    """Whether *line* is what the server has answered, or what becomes of that."""
    if not step.gets:
        return False
    item = step.gets[-1]
    return line == bare(item) if isinstance(item, bytes) else is_item(line, item)


def most_failures(run: Run) -> int:
    """How many requests can have been open when the server ended, or came after that."""
    if run.told.killed_after is None:
        return 0
    hanging = sum(step.asks is not None and not step.gets and not step.refused for step in run.said)
    return run.told.window + 1 + run.told.burst + len(run.pressed) + hanging


def check_unasked(run: Run, steps: list[Step]) -> None:
    """Nothing that was said comes twice or changed, and nothing is missing while the server lives."""
    got = Counter(bare(line) for line in run.got if "method" in ident_of(line)[1])
    said = Counter(bare(each) for step in steps for each in step.gets if isinstance(each, bytes))
    assert not got - said
    if run.told.killed_after is None:
        assert {line for line in said - got if "method" in ident_of(line)[1]} == set()


def check_streams(run: Run, asking: list[Step]) -> None:
    """Progress comes in its order, and before the answer."""
    place = {bare(line): number for number, line in enumerate(run.got)}
    for step in asking:
        told = [bare(each) for each in step.gets if isinstance(each, bytes)]
        seen = [place[each] for each in told if each in place and (b"/progress" in each or b'"method"' not in each)]
        assert seen == sorted(seen), told


def check_arrived(run: Run, received: list[bytes]) -> None:
    """The server has got what passes, as it came, and what the guard says to it; nothing twice."""
    spelt = blanked if run.pairing.blanks else bytes
    alive = run.told.killed_after is None
    # A new session begins like the one before: with the handshake, and with the settings that the guard repeats.
    received = received if alive else [line for line in received if b'"id":"assay-again-' not in line]
    known = [] if alive else [bare(spelt(step.said)) for step in (*run.told.opening, run.told.again)]
    sent = Counter(bare(spelt(step.said)) for step in run.said + run.pressed if step.passes)
    sent += Counter(bare(spelt(reply)) for reply in run.replied)
    got = Counter(bare(spelt(line)) for line in received if bare(spelt(line)) not in known)
    own = got - sent
    back = Counter(each.ident for step in run.said + run.pressed for each in step.back)
    told = Counter(ident_of(line)[0] for line in received if bare(spelt(line)) in own)
    assert not told - back, f"{own} did not come from the client"
    assert all("error" in ident_of(line)[1] for line in received if bare(spelt(line)) in own)
    if alive:
        assert not sent - got
        assert told == back


def lines_of(data: bytes) -> list[bytes]:
    """Each with its newline."""
    return [each + b"\n" for each in data.split(b"\n")[:-1]]


def one(place: Path, told: Session, kind: type[Pairing]) -> Run:
    """One conversation, from its beginning to the judgement on it."""
    place.mkdir()
    pairing = kind(place, told.revision, "enforce")
    if pairing.blanks:
        (place / "script").write_text(json.dumps(blank_script(told)))
        opening, steps = [respelt(each) for each in told.opening], [respelt(each) for each in told.steps]
        told = told._replace(opening=opening, steps=steps, again=respelt(told.again))
    else:
        (place / "script").write_text(json.dumps(script(told)))
    run = Run(told, pairing)
    run.carry_out()
    check = check_in_order if pairing.in_order else check_scattered
    check(run, lines_of((place / "received").read_bytes()))
    assert b"Traceback" not in (place / "log").read_bytes()
    return run


@pytest.mark.parametrize("kind", PAIRINGS, ids=lambda kind: str(kind.name))
def test_whatever_is_said_and_whenever_the_server_dies_everybody_is_answered_once(
    tmp_path: Path, kind: type[Pairing]
) -> None:
    """Two conversations at a time."""
    made = list(sessions(EXCHANGES, SEED))
    assert sum(told.exchanges for told in made) == EXCHANGES
    figures: Counter[str] = Counter()
    with ThreadPoolExecutor(2) as pool:
        running = [pool.submit(one, tmp_path / str(number), told, kind) for number, told in enumerate(made)]
        for number, each in enumerate(running):
            try:
                figures.update(counted(each.result()))
            except (AssertionError, OSError, ValueError) as error:
                pool.shutdown(cancel_futures=True)
                log = tmp_path / str(number) / "log"
                words = log.read_text(errors="replace")[-3000:] if log.exists() else ""
                raise AssertionError(f"seed {SEED!r}, conversation {number}: {error!r}\n{words}") from error
    print(kind.name, dict(figures))
    assert figures["exchanges"] == EXCHANGES
    assert figures["kills"] > 0


def counted(run: Run) -> dict[str, int]:
    """What there was of it."""
    return {
        "exchanges": run.told.exchanges,
        "conversations": 1,
        "kills": run.told.killed_after is not None,
        "requests": sum(step.asks is not None for step in run.said + run.pressed),
        "answered": len(answers(run.got)),
    }

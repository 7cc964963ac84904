"""
Exchanges by chance, good and broken, through the guard, while the server is killed at any moment.

Whatever happens: every request is answered exactly once, what passes arrives byte for byte and in order, and what does
not pass does not arrive. Where the guard outlives the server, the next one serves. `check` finds in the recording what
the guard found. For 10,000 exchanges for each pair of transports, in ten minutes:

    RANDOM_EXCHANGES=10000 pytest tests/real/pairings/test_guard_random.py

RANDOM_SEED, any text, makes other ones; a failure names the conversation that it is about.
"""

import json
import os
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from exchanges import Item, Session, Step, ident_of, respelt, script, sessions
from obedient_server import LAST_WORD, blanked
from pairings import PAIRINGS, Pairing

from assay.records.record import session_digest
from kit import journals
from kit.command import assay
from kit.guard_process import SECONDS

EXCHANGES = int(os.environ.get("RANDOM_EXCHANGES", "160"))
SEED = os.environ.get("RANDOM_SEED", "first")
KEPT = ["--journal", "journal", "--record", "session.jsonl", "--set", "guard.record_secrets=true"]

FAILED = {-31010, -31011}
"""What the guard says of an answer that is broken, and of one that never came."""

REFUSED = 4
"""The exit status of a guard that has refused a message, where that was asked for."""


class Run:
    """One conversation, carried out."""

    def __init__(self, made: Session, pairing: Pairing) -> None:
        self.made = made
        self.pairing = pairing
        self.said: list[Step] = []
        """What the client has said before the server was killed, and before the guard knew of it."""
        self.pressed: list[Step] = []
        """What it has said after that."""
        self.replied: list[bytes] = []
        self.got: list[bytes] = []
        self._replies: dict[bytes, bytes] = {}
        self._open: set[str] = set()
        self.status = 0
        self.has_refused = False

    @property
    def ends_with_server(self) -> bool:
        """Whether the guard ends when the server is killed."""
        return self.made.killed_after is not None and self.pairing.in_order

    def carry_out(self) -> None:
        """All of it."""
        with self.pairing:
            for step in self.made.opening:
                self._say([step])
                self._wait(0)
            self._go_through()
            if self.made.killed_after is not None and not self.ends_with_server:
                self._go_on()
            while self._listen():
                pass
            status = self.pairing.stop()
        self.has_refused = status == REFUSED
        self.status = 0 if self.has_refused else status

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
        deadline = time.monotonic() + SECONDS
        while not self._is_served():
            assert time.monotonic() < deadline, "the next server never serves"
        self.pairing.leave()
        while self._listen():
            pass
        # What has no id to be answered by may still have been under way.
        self.got = done + [line for line in self.got if ident_of(line)[0] is None and b'"error"' in line]

    def _is_served(self) -> bool:
        """Whether a good request gets its answer, and not the error that there is no server yet."""
        for step in [*(self.made.opening if self.pairing.reopens else ()), self.made.again]:
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
        last = self.made.killed_after
        steps = self.made.steps
        for step in steps if last is None else steps[: last - 1]:
            self._say([step])
            self._wait(self.made.window)
        if last is None:
            self._wait(0)
            self.pairing.leave()
            return
        said = self.made.exchanges
        self._say(steps[last - 1 : said])
        if not steps[last - 1].answered.endswith(LAST_WORD):
            self.pairing.kill()
        for step in steps[said : said + self.made.pressing]:
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


def is_item(line: bytes, item: Item) -> bool:
    """Whether *line* is what was expected."""
    if isinstance(item, bytes):
        return line == item
    ident, message = ident_of(line)
    if item.as_result and message.get("result", {}).get("isError") is True:
        return ident == item.ident and b"broke its contract" in line
    return ident == item.ident and message.get("error", {}).get("code") in FAILED


def answers(lines: list[bytes]) -> list[str]:
    """The ids of the answers among *lines*."""
    found = (ident_of(line) for line in lines)
    return [ident for ident, message in found if ident is not None and "method" not in message]


def check(run: Run, received: list[bytes]) -> None:
    """Every request has its one answer, and only what was open fails with the server."""
    steps = run.said + run.pressed
    # A guard that ends with its server may not hear what is said after that.
    due = run.said if run.ends_with_server else steps
    answered = Counter(answers(run.got))
    assert not answered - Counter(step.asks for step in steps if step.asks is not None), (
        "a request was answered twice, or unasked"
    )
    assert not Counter(step.asks for step in due if step.asks is not None) - answered, "a request was not answered"
    found = {ident: bare(line) for line in run.got for ident in answers([line])}
    asking = [step for step in steps if step.asks in found]
    failed = [step for step in asking if not (step.refused or is_answer(found[step.asks or ""], step))]
    for step in failed:
        code = ident_of(found[step.asks or ""])[1].get("error", {}).get("code")
        assert code in FAILED, f"{found[step.asks or '']!r}, where {step.gets[-1:]!r} was expected"
    assert len(failed) <= most_failures(run)
    nameless = sum(ident is None and "method" not in message for ident, message in map(ident_of, run.got))
    assert refusals_without_id(due, run) <= nameless <= refusals_without_id(steps, run)
    assert run.status == (3 if run.ends_with_server else 0)
    check_unasked(run, steps)
    check_streams(run, asking)
    check_arrived(run, received)
    if run.pairing.in_order:
        check_order(run, received)


def refusals_without_id(steps: list[Step], run: Run) -> int:
    """How often the client gets an error without an id."""
    return sum(each.ident is None for step in steps for each in step.refused) * run.pairing.answers_all


def check_order(run: Run, received: list[bytes]) -> None:
    """All arrives in the order in which it was said, on both sides, and without a gap."""
    said = [each for step in run.said for each in step.gets if isinstance(each, bytes)]
    passing = [step.said for step in run.said + run.pressed if step.passes]
    for sent, arrived in ((said, run.got), (passing, received)):
        known = set(sent)
        seen = [line for line in arrived if line in known]
        assert seen == sent[: len(seen)]


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
    if run.made.killed_after is None:
        return 0
    hanging = sum(step.asks is not None and not step.gets and not step.refused for step in run.said)
    return run.made.window + 1 + run.made.burst + len(run.pressed) + hanging


def check_unasked(run: Run, steps: list[Step]) -> None:
    """Nothing that was said comes twice or changed, and nothing is missing while the server lives."""
    got = Counter(bare(line) for line in run.got if "method" in ident_of(line)[1])
    said = Counter(bare(each) for step in steps for each in step.gets if isinstance(each, bytes))
    assert not got - said
    if run.made.killed_after is None:
        assert {line for line in said - got if "method" in ident_of(line)[1]} == set()


def check_streams(run: Run, asking: list[Step]) -> None:
    """Progress comes in its order, and before the answer."""
    place = {bare(line): number for number, line in enumerate(run.got)}
    for step in asking:
        due = [bare(each) for each in step.gets if isinstance(each, bytes)]
        seen = [place[each] for each in due if each in place and (b"/progress" in each or b'"method"' not in each)]
        assert seen == sorted(seen), due


def check_arrived(run: Run, received: list[bytes]) -> None:
    """The server has got what passes, as it came, and what the guard says to it; nothing twice."""
    spelt = blanked if run.pairing.blanks else bytes
    alive = run.made.killed_after is None
    # A new session begins like the one before: with the handshake, and with the settings that the guard repeats.
    received = received if alive else [line for line in received if b'"id":"assay-again-' not in line]
    known = [] if alive else [bare(spelt(step.said)) for step in (*run.made.opening, run.made.again)]
    sent = Counter(bare(spelt(step.said)) for step in run.said + run.pressed if step.passes)
    sent += Counter(bare(spelt(reply)) for reply in run.replied)
    got = Counter(bare(spelt(line)) for line in received if bare(spelt(line)) not in known)
    own = got - sent
    back = Counter(each.ident for step in run.said + run.pressed for each in step.back)
    answered = Counter(ident_of(line)[0] for line in received if bare(spelt(line)) in own)
    assert not answered - back, f"{own} did not come from the client"
    assert all("error" in ident_of(line)[1] for line in received if bare(spelt(line)) in own)
    if alive:
        assert not sent - got
        assert answered == back


def lines_of(data: bytes) -> list[bytes]:
    """Each with its newline."""
    return [each + b"\n" for each in data.split(b"\n")[:-1]]


def one(place: Path, made: Session, kind: type[Pairing]) -> Run:
    """One conversation, from its beginning to the judgement on it."""
    place.mkdir()
    pairing = kind(place, made.revision, "enforce", ["--fail-on", "refuse", *KEPT])
    (place / "script").write_text(json.dumps(script(made, blanks=pairing.blanks)))
    if pairing.blanks:
        opening, steps = [respelt(each) for each in made.opening], [respelt(each) for each in made.steps]
        made = made._replace(opening=opening, steps=steps, again=respelt(made.again))
    run = Run(made, pairing)
    run.carry_out()
    check(run, lines_of((place / "received").read_bytes()))
    assert b"Traceback" not in (place / "log").read_bytes()
    return run


# ── what was found ───────────────────────────────────────────────────────────────────────────────────────────────────

RESTARTS = {session_digest(f"restart {number}") for number in range(1, 10)}
"""The handshakes that the guard repeats: like all messages of its own, they are not in the recording."""


def found_by_guard(place: Path) -> Counter[Any]:
    """What the journal says of each message."""
    found: Counter[Any] = Counter()
    for record in journals.records(place / "journal"):
        metadata, error = record["metadata"], record["error"] or {}
        # What the server asked before it was killed, the guard withdraws in a message of its own.
        is_own = metadata.get("session") in RESTARTS or record["method"] == "notifications/cancelled"
        if not is_own:
            found[shown(metadata, record["method"], error.get("violations", ()))] += metadata.get("repeated", 1)
    return found


def found_by_check(place: Path) -> Counter[Any]:
    """What `assay check` says of each message of the recording."""
    done = assay("check", "--messages", "--format", "ndjson", str(place / "session.jsonl"))
    assert done.stderr == b""
    assert done.returncode in {0, 1}
    records = [json.loads(line) for line in done.stdout.splitlines()]
    return Counter(shown(each, each["method"], each["violations"]) for each in records)


def shown(row: dict[str, Any], method: str | None, violations: list[dict[str, Any]]) -> Any:
    """What has to be the same."""
    wrong = tuple((each["rule"], each["at"], each.get("action"), each["found"]) for each in violations)
    # The journal knows the method of more answers than a verdict does.
    return row["party"], row["kind"], row["tool"], row["revision"], method if wrong else None, wrong


def check_found(place: Path, run: Run) -> None:
    """The recording has all that the guard has judged."""
    guard, check = found_by_guard(place), found_by_check(place)
    assert guard - check == Counter(), "the guard found more"
    assert check - guard == Counter(), "check found more"
    assert sum(guard.values()) > 0
    refused = assay("check", "--fail-on", "refuse", str(place / "session.jsonl")).returncode != 0
    # A server that was killed has precedence over what was found.
    assert run.has_refused is refused or run.status == 3


# ── all of it ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", PAIRINGS, ids=lambda kind: str(kind.name))
def test_whatever_is_said_and_whenever_the_server_dies_every_request_is_answered_once(
    tmp_path: Path, kind: type[Pairing]
) -> None:
    """Two conversations at a time."""
    every = list(sessions(EXCHANGES, SEED))
    assert sum(made.exchanges for made in every) == EXCHANGES
    assert any(made.killed_after is not None for made in every)
    with ThreadPoolExecutor(2) as pool:
        running = [pool.submit(one, tmp_path / str(number), made, kind) for number, made in enumerate(every)]
    for number, each in enumerate(running):
        place = tmp_path / str(number)
        try:
            check_found(place, each.result())
        except (AssertionError, OSError, ValueError) as error:
            log = (place / "log").read_text(errors="replace")[-3000:] if (place / "log").exists() else ""
            raise AssertionError(f"seed {SEED!r}, conversation {number}: {error!r}\n{log}") from error

"""
A server that lies, and a client that does, once for every rule there is; the guard as a real process between them.

Under enforce the client is served: every request gets its one answer, the next good one works, and the lie is named.
Under audit every byte passes as it came, and the same lie is named.
"""

import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from assay.rules import RULES
from kit import journals
from kit.broken_rules import CASES, ELSEWHERE, LATEST, Case, Outcome, frames, locks, modern, named, script
from kit.guard_process import INITIALIZED, SERVER, Guarded, guarded, initialize, peak, request

MEMORY = 120 << 20
"""What a guard may take, whatever it is told; it takes some 45 MB to begin with."""

CPU_SECONDS = 5.0
"""And how much work it may do, in seconds of a processor. It does a third of one to begin with."""

FATES = {"refuse": ["blocked: "], "quarantine": ["quarantined "], "report": ["reported: ", "failed: "]}
"""What is said of a message that breaks a rule, by what the rule does under enforce."""


class Telling:
    """One case, told through a guard."""

    def __init__(self, one: Guarded, case: Case) -> None:
        self.one = one
        self.case = case
        self.wrote = b""
        self.got: list[bytes] = []

    def say(self, *messages: bytes) -> None:
        """Says them, and remembers that."""
        data = b"".join(each + b"\n" for each in messages)
        self.wrote += data
        self.one.write(data)

    def until(self, *idents: Any) -> None:
        """Reads until each of these requests is answered."""
        missing = Counter(idents)
        while missing.total():
            self.got.append(self.one.out.next())
            for each in messages([self.got[-1]]):
                if "method" not in each and missing[each.get("id")] > 0:
                    missing[each.get("id")] -= 1

    def open(self) -> None:
        """The handshake, where there is one, and the list of tools."""
        case = self.case
        if case.revision != LATEST:
            self.say(frame(initialize(case.revision, **case.capabilities)))
            self.until("open")
            self.say(frame(INITIALIZED))
        if case.lists:
            self.say(frame(modern("list", "tools/list") if case.revision == LATEST else request("list", "tools/list")))
            self.until("list")

    def sync(self, ident: str) -> None:
        """One good request more: when it is answered, everything before it is."""
        self.say(frame(modern(ident, "tools/list") if self.case.revision == LATEST else request(ident, "ping")))
        self.until(ident)

    def tell(self, *, enforcing: bool) -> None:
        """All turns of the case; the good request at the end shows that all goes on."""
        if self.case.opened:
            self.open()
        # What is answered in a later turn cannot be waited for in this one.
        waited = [ident for ident, _ in self.case.gets] if enforcing and len(self.case.turns) == 1 else []
        for turn in frames(self.case):
            self.say(*turn)
            if not self.case.survives:
                return
            self.until(*waited)
            self.sync(f"sync {len(self.got)}")
        self.sync("next")


def frame(message: Any) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode()


def messages(lines: list[bytes]) -> Iterator[dict[str, Any]]:
    """The messages in *lines*, batches taken apart, and what is none left out."""
    for line in lines:
        try:
            value = json.loads(line)
        except ValueError:
            continue
        yield from (each for each in (value if isinstance(value, list) else [value]) if isinstance(each, dict))


def outcome(message: dict[str, Any]) -> Outcome:
    """What an answer says."""
    if "error" in message:
        return int(message["error"]["code"])
    return "isError" if message["result"].get("isError") else "result"


def work(pid: int) -> float:
    """Seconds of a processor that a process has had."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Heard(NamedTuple):
    """How a case went: all that was said on either side, and what the guard made of it."""

    wrote: bytes
    got: list[bytes]
    """Lines that came for the client."""
    log: list[str]
    """What was told on stderr."""
    rules: set[str]
    """What is on record."""
    received: bytes
    sent: bytes
    """What the server has seen, and what it has said."""
    status: int
    memory: int
    seconds: float


def told(place: Path, case: Case, mode: str) -> Heard:
    """One case in one mode, from beginning to end."""
    place.mkdir()
    command = [sys.executable, "-IS", str(SERVER), f"@{place / 'script'}"]
    locks(case, ["--", *command], place)
    script_of = {**script(case), "received": str(place / "received"), "sent": str(place / "sent")}
    (place / "script").write_text(json.dumps(script_of))
    options = ("--mode", mode, "--journal", str(place / "journal"), *case.options)
    with guarded(place, *options, command=command) as one:
        telling = Telling(one, case)
        telling.tell(enforcing=mode == "enforce")
        memory, seconds = (peak(one.process), work(one.process.pid)) if case.survives else (0, 0.0)
        one.close()
        rest = one.out.rest()
        log = [line.decode(errors="replace") for line in one.log.rest()]
        status = one.ended()
    records = journals.records(place / "journal" / ".latest")
    rules = {each["rule"] for record in records for each in (record["error"] or {}).get("violations", ())}
    received, sent = ((place / name).read_bytes() for name in ("received", "sent"))
    return Heard(telling.wrote, telling.got + rest, log, rules, received, sent, status, memory, seconds)


class Story(NamedTuple):
    """A case, told in either mode."""

    case: Case
    enforced: Future[Heard]
    audited: Future[Heard]


@pytest.fixture(scope="module", params=CASES, ids=named(CASES))
def story(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Story:
    """Both modes at the same time."""
    place = tmp_path_factory.mktemp("lie")
    with ThreadPoolExecutor(2) as pool:
        enforced, audited = (pool.submit(told, place / mode, request.param, mode) for mode in ("enforce", "audit"))
    return Story(request.param, enforced, audited)


def names(heard: Heard, rule: str) -> bool:
    """Whether people are told of *rule*, and it is on record."""
    assert not any("Traceback" in line for line in heard.log)
    return rule in heard.rules and any(f"[{rule}]" in line or f"× {rule}" in line for line in heard.log)


def test_under_enforce_the_client_is_served_and_the_lie_is_named(story: Story) -> None:
    """Every request has exactly one answer; what it costs is bounded."""
    case, heard = story.case, story.enforced.result()
    own = {"open", "list", "next"} - {ident for ident, _ in case.gets}
    answers = [each for each in messages(heard.got) if "method" not in each]
    got = Counter((each.get("id"), outcome(each)) for each in answers if not is_own(each.get("id"), own))
    assert got == Counter(case.gets)
    assert names(heard, case.rule), heard.log
    assert heard.status == (0 if case.survives else 3)
    assert heard.memory < MEMORY
    assert heard.seconds < CPU_SECONDS
    if case.listed is not None:
        lists = [each["result"]["tools"] for each in answers if "tools" in each.get("result", {})]
        assert {len(each) for each in lists} == {case.listed}


def test_under_enforce_what_a_rule_refuses_does_not_arrive(story: Story) -> None:
    """It is said what became of it, and it is so."""
    case, heard = story.case, story.enforced.result()
    if not case.survives:
        return
    action = case.fate or RULES[case.rule].action
    assert any(line.startswith(f"assay: {word}") for line in heard.log for word in FATES[action]), heard.log
    stopped = Counter(heard.wrote.splitlines()) - Counter(heard.received.splitlines())
    # What the guard asks for itself is answered to the guard.
    answered = [line for line in heard.sent.splitlines() if b'"assay-list-' not in line]
    stopped += Counter(answered) - Counter(heard.got)
    assert bool(stopped) is (action != "report")


def is_own(ident: Any, own: set[str]) -> bool:
    """Whether it is an answer to what every case asks."""
    return isinstance(ident, str) and (ident in own or ident.startswith("sync "))


def test_under_audit_every_byte_passes_and_the_lie_is_named(story: Story) -> None:
    """What the server receives is what the client has said, and the other way round."""
    case, heard = story.case, story.audited.result()
    assert heard.received == heard.wrote
    assert heard.sent.removesuffix(b"\n").split(b"\n") == heard.got
    assert names(heard, case.rule) is case.audited, heard.log
    assert heard.status == (0 if case.survives else 3)
    assert not any("blocked: " in line for line in heard.log)


def test_every_rule_has_its_lie() -> None:
    """Or is tested elsewhere, for a reason."""
    told = {case.rule for case in CASES}
    assert told.isdisjoint(ELSEWHERE)
    assert told | ELSEWHERE.keys() == RULES.keys()

"""
The same lies over HTTP: by a server in a child process, and by one at a URL.

The client is served, the next good request works, and the lie is on record. Most cases share one guard, each in a
session of its own; those that need other options, or have no session, have one for themselves.
"""

import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from scripted_over_http import read

from kit import journals
from kit.broken_rules import CASES, LATEST, UNTOLD, Case, Outcome, frames, locks, modern, named, over_http, script
from kit.front_client import FrontClient, asked
from kit.guard_process import INITIALIZED, SECONDS, SERVER, initialize, request
from kit.http_client import Log, until
from kit.places import TESTS

HTTP_SERVER = Path(__file__).with_name("scripted_over_http.py")
GUARD = [sys.executable, "-m", "assay", "guard"]
PAIRINGS = ("http-child", "http-http")


class House:
    """A guard that listens, and what it has written down."""

    def __init__(self, place: Path, process: subprocess.Popen[bytes]) -> None:
        self.place = place
        self.process = process
        self.log = Log(process.stderr)
        self.url = self.log.line("assay: guarding ").rpartition(" at ")[2]
        self._read = 0

    def rules(self) -> set[str]:
        """What was found since this was last asked."""
        records = journals.records(self.place / "journal" / ".latest")
        new, self._read = records[self._read :], len(records)
        violations = [each for record in new for each in (record["error"] or {}).get("violations", ())]
        return {each["rule"] for each in violations}


@contextmanager
def elsewhere(place: Path) -> Iterator[str]:
    """A lying server at a URL."""
    port = place / "port"
    text = f"import runpy, sys; sys.path.append({str(TESTS)!r})\n"
    text += f"runpy.run_path({str(HTTP_SERVER)!r}, run_name='__main__')"
    command = [sys.executable, "-c", text, str(place / "script"), str(port)]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL) as process:
        try:
            until(port.exists)
            yield f"http://127.0.0.1:{port.read_text()}/mcp"
        finally:
            process.kill()


@contextmanager
def house(place: Path, pairing: str, case: Case | None = None) -> Iterator[House]:
    """A guard under enforce, with the options of *case*, and a server that does what `script` says."""
    tell(place, case)
    with ExitStack() as stack:
        if pairing == "http-child":
            server = ["--", sys.executable, "-IS", str(SERVER), f"@{place / 'script'}"]
        else:
            server = ["--target", stack.enter_context(elsewhere(place))]
        if case is not None:
            locks(case, server, place)
            tell(place, case)
        options = ["--mode", "enforce", "--journal", str(place / "journal"), *(case.options if case else ())]
        process = stack.enter_context(
            subprocess.Popen(
                [*GUARD, "--listen", "127.0.0.1:0", *options, *server],
                cwd=place,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
            )
        )
        one = House(place, process)
        try:
            yield one
            process.send_signal(signal.SIGTERM)
            assert process.wait(SECONDS) == 0
        finally:
            process.kill()
            one.log.whole()


def tell(place: Path, case: Case | None) -> None:
    """Has the next server do what *case* says."""
    told = {"on": {}} if case is None else script(case)
    (place / "script.new").write_text(json.dumps({**told, "received": str(place / "received")}))
    (place / "script.new").replace(place / "script")


class Telling:
    """One case, told by a client."""

    def __init__(self, place: Path, url: str, case: Case) -> None:
        self.place = place
        self.case = case
        self.client = FrontClient(url, case.revision)

    def say(self, *lines: bytes) -> None:
        """One after the other: each has been answered, or has arrived, before the next."""
        for line in lines:
            self.client.send([line + b"\n"])
            if len(lines) > 1 and asked(line) is not None:
                until(partial(self._is_in_hand, line, len(self.client.history)))

    def _is_in_hand(self, line: bytes, before: int) -> bool:
        received = self.place / "received"
        return len(self.client.history) > before or (received.exists() and line in received.read_bytes())

    def ask(self, message: Any) -> None:
        """A request, up to its answer."""
        self.say(frame(message))
        self.until(message["id"])

    def until(self, *idents: Any) -> None:
        """Reads until each of these requests is answered."""
        missing = Counter(idents)
        for line in self.client.history:
            missing.subtract(each.get("id") for each in read(line) if "method" not in each)
        while +missing:
            lines = self.client.receive()
            assert lines, f"nothing more comes, and {missing} were not answered"
            missing.subtract(each.get("id") for line in lines for each in read(line) if "method" not in each)

    def open(self) -> None:
        """The handshake, where there is one, and the list of tools."""
        if self.case.revision != LATEST:
            self.ask(initialize(self.case.revision, **self.case.capabilities))
            self.say(frame(INITIALIZED))
        if self.case.lists:
            self.ask(modern("list", "tools/list") if self.case.revision == LATEST else request("list", "tools/list"))

    def go_on(self, ident: str) -> None:
        """One good request more."""
        if self.case.revision == LATEST:
            self.ask(modern(ident, "tools/list"))
        elif self.client.in_session:
            self.ask(request(ident, "ping"))

    def tell(self) -> None:
        """All of it."""
        if self.case.opened:
            self.open()
        for number, turn in enumerate(frames(self.case)):
            self.say(*turn)
            if len(turn) == 1:
                # What it is answered comes with it; a later turn may use its id again.
                self.until(*{ident for ident, _ in self.case.gets if json.dumps(ident) == asked(turn[0])})
            if self.case.survives:
                self.go_on(f"sync {number}")
        self.until(*(ident for ident, _ in self.case.gets if ident is not None and self._is_awaited(ident)))
        if self.case.survives:
            self.go_on("next")
        self.client.leave()

    def _is_awaited(self, ident: Any) -> bool:
        """Whether its answer comes to what is a request, if not a good one."""
        return any(asked(each) == json.dumps(ident) for turn in frames(self.case) for each in turn)


def frame(message: Any) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode()


def outcome(message: dict[str, Any]) -> Outcome:
    """What an answer says."""
    if "error" in message:
        return int(message["error"]["code"])
    return "isError" if message["result"].get("isError") else "result"


def is_alone(case: Case) -> bool:
    """Whether it needs a guard of its own."""
    return bool(case.options) or case.revision == LATEST or case.locked is not None or not case.survives


@pytest.fixture(scope="module", params=PAIRINGS)
def shared_house(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """One guard for all who need nothing else."""
    place = tmp_path_factory.mktemp(request.param)
    with house(place, request.param) as one:
        yield one


NAMES = named(CASES)


def told_over(*, alone: bool) -> list[Any]:
    """Each case that can be told: with a guard of its own, or with one for all."""
    every = [(name, over_http(name, case)) for name, case in zip(NAMES, CASES, strict=True) if name not in UNTOLD]
    return [pytest.param(case, id=name) for name, case in every if is_alone(case) is alone]


def told(place: Path, url: str, case: Case) -> Telling:
    """The case, told; the client has left."""
    telling = Telling(place, url, case)
    try:
        telling.tell()
    finally:
        telling.client.close()
    return telling


def check(telling: Telling, rules: set[str]) -> None:
    """The client was served as the table says, and the lie is on record."""
    case, client = telling.case, telling.client
    answers = [each for line in (*client.history, *client.beside) for each in read(line) if "method" not in each]
    own = {"open", "list", "next", "sync 0", "sync 1", "sync 2"} - {ident for ident, _ in case.gets}
    got = Counter((each.get("id"), outcome(each)) for each in answers if each.get("id") not in own)
    # Over HTTP everything has a response, also what has no id.
    nobody = Counter({key: number for key, number in got.items() if key[0] is None})
    assert got - nobody == Counter(each for each in case.gets if each[0] is not None)
    assert not Counter(each for each in case.gets if each[0] is None) - nobody
    assert case.rule in rules
    if case.listed is not None:
        lists = [each["result"]["tools"] for each in answers if "tools" in each.get("result", {})]
        assert {len(each) for each in lists} == {case.listed}


@pytest.mark.parametrize("case", told_over(alone=False))
def test_over_http_the_client_is_served_and_the_lie_is_named(shared_house: House, case: Case) -> None:
    """In a session of its own."""
    tell(shared_house.place, case)
    shared_house.rules()
    telling = told(shared_house.place, shared_house.url, case)
    check(telling, shared_house.rules())


@pytest.mark.parametrize("pairing", PAIRINGS)
@pytest.mark.parametrize("case", told_over(alone=True))
def test_over_http_a_lie_that_needs_a_guard_of_its_own_is_named_too(tmp_path: Path, pairing: str, case: Case) -> None:
    """With other options, without a session, or with a server that does not survive it."""
    with house(tmp_path, pairing, case) as one:
        telling = told(tmp_path, one.url, case)
        check(telling, one.rules())
    assert not any("Traceback" in line for line in one.log.whole())


def test_what_cannot_be_told_over_http_is_in_the_table_and_has_its_reason() -> None:
    for name, reason in UNTOLD.items():
        assert name in NAMES
        assert reason.endswith(".")

"""What is left of a guarded conversation: the journal, the summary, the last messages of a session that broke."""

import json
import os
import select
import stat
import sys
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from assay.base.limits import Limits
from assay.base.verdict import Party, Verdict
from assay.core.conversation import Conversation
from assay.edges.child import Child
from assay.edges.pipes import Outlet, Signals
from assay.edges.stdio_child import StdioChild
from assay.guard.deliveries import ClientTraits, ServerTraits
from assay.guard.factory import SessionFactory
from assay.guard.session import GuardedSession
from assay.guard.sinks import Sink, Sinks
from assay.guard.summary import FLIGHTS, KEPT, KEPT_BYTES, GuardSummary
from assay.guard.terms import Terms
from kit import journals
from kit.command import assay_process_text
from kit.guard_process import SECONDS, Guarded, call, frame_of, guarded, initialize, liar, notification, request, result

FLIGHT_DIRECTORY = Path("state/assay/servers/lying_server/flights")
MODES = ["audit", "enforce"]
TOOLS = [
    {"name": "good", "inputSchema": {"type": "object"}},
    {
        "name": "bad",
        "inputSchema": {"type": "object", "properties": {"limit": {"type": "integer"}}},
        "outputSchema": {"type": "object", "properties": {"hits": {"type": "integer"}}},
    },
    {"name": "unusable", "inputSchema": {"type": "object", "$ref": "https://example.com/"}},
]
LIES: dict[str, Any] = {
    "tools/call:bad": [["result", {"content": [], "structuredContent": {"hits": "3"}}]],
    "ping": [["raw", "a banner\n"], ["good"], ["good"]],
    "tools/call:nan": [["raw", '{"jsonrpc":"2.0","id":$id,"result":{"x":NaN}}\n']],
    "tools/call:late": [],
    "tools/call:last": [["log", "oh no\n"], ["exit", 1]],
}


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test has a state directory of its own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


assay = partial(assay_process_text, COLUMNS="120", NO_COLOR="1")


def records(directory: Path) -> list[dict[str, Any]]:
    """The journal of the one run."""
    return journals.records(directory / ".latest")


def broken(directory: Path, mode: str, *options: str) -> list[bytes]:
    """A session with everything in it, at whose end the server dies; what is told on stderr."""
    wanted = ("--mode", mode, "--journal", str(directory / "journal"), "--set", "journal.payloads=true", *options)
    with guarded(directory, *wanted, tools=TOOLS, on=LIES) as one:
        one.open()
        one.say(
            call(1, "good"),
            call(2, "bad", limit=5),
            call(3, "bad", limit="5"),
            request(4, "ping"),
            call(5, "nan"),
            call(6, "unusable"),
            b"",
            b"hello?",
            b"\xff",
            {"jsonrpc": "2.0", "id": 7},
            notification("notifications/cancelled", {"requestId": 99}),
            call(8, "late"),
            call(9, "last"),
        )
        one.out.all()
        assert one.ended() == 3
        return one.log.rest()


# ── the journal ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("mode", MODES)
def test_every_message_of_either_side_is_a_line(tmp_path: Path, mode: str) -> None:
    """A request and its answer have the same id; also if the answer never came."""
    broken(tmp_path, mode)
    found = records(tmp_path / "journal")
    assert {each["transport"] for each in found} == {"stdio"}
    said = Counter((each["metadata"]["party"], each["metadata"]["kind"]) for each in found)
    assert said["client", "request"] == 10
    by_id = {each["metadata"]["id"]: each for each in found if each["metadata"]["kind"] == "request"}
    answers = [each for each in found if each["metadata"]["kind"] in {"result", "error", "missing"}]
    for each in answers:
        if "protocol/answered-twice" not in json.dumps(each["error"]):
            assert each["requestId"] == by_id[each["metadata"]["id"]]["requestId"]
    assert len({each["requestId"] for each in by_id.values()}) == len(by_id)
    statuses = {each["metadata"]["id"]: each["status"] for each in answers}
    assert statuses[1] == "ok"
    assert statuses[2] == "refused"
    assert statuses[8] == statuses[9] == "failed"
    passed = [each for each in found if each["metadata"].get("passed")]
    assert bool(passed) is (mode == "audit")


@pytest.mark.parametrize("mode", MODES)
def test_the_journal_can_be_shown_and_replayed(tmp_path: Path, mode: str) -> None:
    """Heard again, the same frames get the same verdicts."""
    broken(tmp_path, mode)
    journal = str(tmp_path / "journal")
    shown = assay("journal", "show", journal)
    assert shown.returncode == 0
    assert "contract/output at /result/structuredContent/hits" in shown.stdout
    assert "never answered: tools/call last #9" in shown.stdout
    replayed = assay("replay", journal)
    total = len(records(tmp_path / "journal"))
    assert (replayed.returncode, replayed.stdout) == (0, f"{total} records: {total} the same\n")


def test_what_was_answered_is_on_record_even_if_the_guard_is_killed(tmp_path: Path) -> None:
    with guarded(tmp_path, "--journal", str(tmp_path / "journal")) as one:
        one.open()
        for number in range(20):
            one.ask(call(number))
        one.process.kill()
        one.process.wait(SECONDS)
    ids = [each["metadata"]["id"] for each in records(tmp_path / "journal")]
    assert ids[-40:] == [number for number in range(20) for _ in range(2)]


CHATTERBOX = (
    "import sys, time",
    "while True:",
    "    print('.', file=sys.stderr, flush=True)",
    "    time.sleep(0.05)",
)


def test_what_was_only_asked_is_soon_on_record_however_much_the_server_tells(tmp_path: Path) -> None:
    command = [sys.executable, "-ISc", "\n".join(CHATTERBOX)]
    with guarded(tmp_path, "--journal", str(tmp_path / "journal"), command=command) as one:
        one.say(request(1, "ping"))
        # Each of these takes a twentieth of a second at least.
        soon = any(one.log.next() and records(tmp_path / "journal") for _ in range(400))
        one.process.kill()
    assert soon


class Ahead(Sink):
    """Notes for each commit with something to write whether bytes have been sent to the client before it."""

    def __init__(self, reader: int) -> None:
        self.reader = reader
        self.seen: list[bool] = []
        self.sent = 0
        self.uncommitted = 0

    def passed(self, verdict: Verdict, *_: Any) -> None:
        """Hold the record back."""
        self.uncommitted += verdict.party is Party.SERVER

    def found(self, *_: Any) -> None:
        """Hold the record back."""
        self.uncommitted += 1

    def commit(self) -> None:
        """Look at what the client has got by now."""
        got = os.read(self.reader, 1 << 16) if select.select([self.reader], [], [], 0)[0] else b""
        self.sent += got.count(b"\n")
        if self.uncommitted:
            self.seen.append(bool(got))
        self.uncommitted = 0


def test_a_message_is_recorded_before_it_is_sent() -> None:
    """So that nothing that was answered is missing in the journal after a crash."""
    source, client_in = os.pipe()
    client_out, sink = os.pipe()
    ahead = Ahead(client_out)
    watch = GuardSummary(lambda _: None, lambda _: None, enforcing=True)
    factory = SessionFactory(Terms("enforce", Limits(), 0.0), Sinks((ahead,)), watch)
    session = factory.open(ClientTraits("stdio"), ServerTraits("child"))
    asked = b"".join(frame_of(each) + b"\n" for each in (initialize(), {"id": 1}, request(2, "ping")))
    try:
        with Signals() as signals, Child(liar()) as child:
            relay = StdioChild(session, child, signals, Outlet(2, shared=True), source=source, sink=sink)
            os.write(client_in, asked)
            os.close(client_in)
            assert relay.run() == 0
        assert ahead.seen[0] is False
        ahead.commit()
        assert ahead.sent == 3
    finally:
        for each in (source, sink, client_out):
            os.close(each)


class Failing(Sink):
    """A sink that cannot record anything."""

    def passed(self, *_: Any) -> None:
        """Fail."""
        raise OSError("no space")

    def found(self, *_: Any) -> None:
        """Fail."""
        raise OSError("no space")

    def commit(self) -> None:
        """Fail."""
        raise OSError("no space")


def test_a_sink_that_fails_is_counted_and_affects_no_message() -> None:
    ahead = Ahead(os.open(os.devnull, os.O_RDONLY))
    sinks = Sinks((Failing(), ahead))
    session = GuardedSession(Conversation(), sinks, ClientTraits("stdio"), ServerTraits("child"))
    assert [each.frame for each in session.from_client(frame_of(initialize())).to_server] == [frame_of(initialize())]
    assert session.from_client(b"{").refusal == "PARSE_ERROR"
    sinks.commit()
    os.close(ahead.reader)
    assert session.records.failures == 3


def test_without_a_place_for_it_there_is_no_journal_and_everything_goes_on(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with guarded(tmp_path, "--journal", str(tmp_path / "file" / "below")) as one:
        assert one.open() is not None
        one.close()
        assert one.ended() == 0
        assert any(line.startswith(b"assay: no journal: ") for line in one.log.rest())


# ── the summary ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_findings_are_told_as_they_come_and_counted_at_the_end(tmp_path: Path) -> None:
    log = [line.decode() for line in broken(tmp_path, "enforce")]
    assert (
        "assay: blocked: server result of tools/call bad #2: /result/structuredContent/hits: "
        'expected an integer, found the string "3" [contract/output]'
    ) in log
    [counts] = [line for line in log if line.startswith("assay: [lying_server] 12 messages from the client, ")]
    assert " blocked" in counts
    # The third call is repaired, and answered like the second.
    assert "assay:      2 × contract/output in bad: reported once per conversation, 1 more like it" in log
    assert "assay: the server sent: a banner" in log
    assert "assay: 1 line of the server's output went to stderr" in log
    assert "assay: the server ended first: it exited with status 1" in log


def test_under_audit_nothing_is_stopped(tmp_path: Path) -> None:
    log = b"\n".join(broken(tmp_path, "audit")).decode()
    assert "assay: would block: server result of tools/call bad #2" in log
    assert "blocked" not in log


def test_with_quiet_only_the_server_and_its_end_are_heard(tmp_path: Path) -> None:
    log = [line for line in broken(tmp_path, "enforce", "--quiet") if not line.startswith(b"assay: the server ended")]
    assert log == [b"assay: the server sent: a banner", b"oh no"]


def test_only_the_first_answer_tells_how_long_a_request_took() -> None:
    watch = GuardSummary(lambda _: None, lambda _: None, enforcing=True)
    conversation = Conversation(revision="2025-11-25")
    for ident, answered in ((1, (5.0, 9.0)), (2, (0.1, 7.0))):
        watch.passed(conversation.hear(Party.CLIENT, frame_of(request(ident, "ping"))), 0.0)
        for moment in answered:
            watch.heard(conversation.hear(Party.SERVER, frame_of(result(ident, {}))), moment)
    assert [line for line in watch.summary() if "slow" in line] == ["assay: slow: ping took 5.0 s"]


def test_what_peers_say_does_nothing_to_a_terminal(tmp_path: Path) -> None:
    evil = "\x1b[2J\x07evil\n"
    with guarded(tmp_path, tools=[{"name": evil, "inputSchema": 5}]) as one:
        one.open()
        one.say(request(1, evil), call(2, evil))
        one.close()
        one.ended()
        log = b"\n".join(one.log.rest())
    assert b"evil" in log
    assert b"\x1b" not in log
    assert b"\x07" not in log


def test_a_flood_of_findings_is_counted_and_not_shown(tmp_path: Path) -> None:
    with guarded(tmp_path) as one:
        one.open()
        one.say(*(request(number, f"nope/{number}") for number in range(3000)))
        one.close()
        one.out.all()
        one.ended()
        log = one.log.rest()
    assert len(log) < 150
    assert b"assay: further findings are counted, not shown" in log
    assert any(b"3,000 findings" in line for line in log)


# ── flights ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def flights(directory: Path) -> list[Path]:
    """The files of broken sessions."""
    return sorted((directory / FLIGHT_DIRECTORY).glob("flight-*.jsonl"))


def crashed(directory: Path, *messages: Any, **options: Any) -> Guarded:
    """A session in which *messages* are said, and then the server dies."""
    with guarded(directory, "--mode", "enforce", *options.pop("set", ()), on={**LIES, **options}) as one:
        one.open()
        for each in messages:
            one.ask(each)
        one.say(call("end", "last"))
        one.out.all()
        assert one.ended() == 3
        log = b"\n".join(one.log.rest())
        assert (b"the last messages of this session are in" in log) is bool(flights(directory))
        return one


def test_the_last_messages_of_a_broken_session_can_be_checked(tmp_path: Path) -> None:
    """Without secrets, for the owner only; and with nothing wrong in it but what was."""
    secret = {"password": "swordfish", "words": "Bearer abcdefghijklmnop"}
    ends = [["log", "password=swordfish was refused\noh no\n"], ["exit", 1]]
    crashed(tmp_path, call(1, "search", **secret), **{"tools/call:last": ends})
    [flight] = flights(tmp_path)
    assert stat.S_IMODE(flight.stat().st_mode) == 0o600
    text = flight.read_text()
    assert "swordfish" not in text
    assert "abcdefghijklmnop" not in text
    assert [json.loads(line)["dir"] for line in text.splitlines()][:3] == ["c2s", "s2c", "c2s"]
    *_, end = map(json.loads, text.splitlines())
    assert (end["event"], end["dir"], end["why"]) == ("end", "s2c", "it exited with status 1")
    assert end["stderr"][-1] == "oh no"
    checked = assay("check", str(flight))
    assert "never answered: tools/call" in checked.stdout
    assert "found none: it exited with status 1" in checked.stdout
    assert "contract/unknown-tool" in checked.stdout


def test_findings_in_masked_messages_of_a_flight_count(tmp_path: Path) -> None:
    broken = {"content": [{"type": "text", "text": "password=swordfish"}], "isError": "yes"}
    crashed(tmp_path, call(1), call(2, words="x" * 2 * KEPT_BYTES), **{"tools/call:search": [["result", broken]]})
    [flight] = flights(tmp_path)
    assert "swordfish" not in flight.read_text()
    checked = assay("check", "--format", "ndjson", str(flight))
    found = [json.loads(line) for line in checked.stdout.splitlines()]
    rules = [(each["violations"][0]["rule"], each.get("lacks")) for each in found]
    assert rules[:2] == [
        ("protocol/result", "secrets were redacted"),
        ("protocol/result", "the request is not in the recording"),
    ]
    assert "not judged" not in checked.stderr


def test_a_long_session_is_cut_where_it_can_still_be_judged(tmp_path: Path) -> None:
    """With the handshake, however long ago it was, and without answers whose requests are gone."""
    crashed(tmp_path, *(call(number) for number in range(2 * KEPT)))
    [flight] = flights(tmp_path)
    rows = flight.read_text().splitlines()
    assert KEPT <= len(rows) <= KEPT + 3
    assert "initialize" in rows[0]
    checked = assay("check", str(flight))
    rules = {line.split()[-1] for line in checked.stdout.splitlines() if " × " in line}
    # The list of tools, if there was one, is not kept.
    assert rules == {"protocol/unanswered", "contract/not-judged"}


def test_bytes_that_are_no_text_and_long_messages_are_kept_as_far_as_they_go(tmp_path: Path) -> None:
    crashed(tmp_path, b"\xff\xfe", call(1, words="x" * 2 * KEPT_BYTES))
    rows = [json.loads(line) for line in flights(tmp_path)[0].read_text().splitlines()]
    assert [row["base64"] for row in rows if "base64" in row] == ["//4="]
    [cut] = [row for row in rows if row.get("cut")]
    assert len(cut["msg"]) == KEPT_BYTES + 1
    assert assay("check", str(flights(tmp_path)[0])).returncode == 1


def test_old_flights_are_removed(tmp_path: Path) -> None:
    directory = tmp_path / FLIGHT_DIRECTORY
    directory.mkdir(parents=True)
    for number in range(FLIGHTS + 5):
        (directory / f"flight-2020{number:04}.jsonl").touch()
    (directory / "mine.jsonl").touch()
    crashed(tmp_path)
    assert len(flights(tmp_path)) == FLIGHTS
    assert (directory / "mine.jsonl").exists()


def test_flights_can_be_turned_off_and_there_are_none_of_what_went_well(tmp_path: Path) -> None:
    crashed(tmp_path, set=("--set", "guard.flights=off"))
    assert not flights(tmp_path)
    with guarded(tmp_path) as one:
        one.open()
        one.close()
        assert one.ended() == 0
    assert not flights(tmp_path)


def test_a_place_that_cannot_be_written_is_a_line_in_the_log(tmp_path: Path) -> None:
    (tmp_path / FLIGHT_DIRECTORY.parent).mkdir(parents=True)
    (tmp_path / FLIGHT_DIRECTORY).write_bytes(b"")
    with guarded(tmp_path, on=LIES) as one:
        one.open()
        one.say(call(1, "last"))
        assert one.ended() == 3
        assert any(line.startswith(b"assay: no flight recorder: ") for line in one.log.rest())

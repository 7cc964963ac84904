"""What is left of a guarded conversation: the journal, the recording, the last messages of a session that broke."""

import json
import os
import select
import stat
import sys
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

from assay.edges.child import Child
from assay.edges.pipes import Outlet, Signals
from assay.edges.stdio_child import StdioChild
from assay.guard.deliveries import ClientTraits, ServerTraits
from assay.guard.factory import SessionFactory
from assay.guard.sinks import Sink, Sinks
from assay.guard.summary import GuardSummary
from assay.guard.terms import Terms
from assay.model.limits import Limits
from assay.model.verdict import Party, Verdict
from kit import journals
from kit.command import assay_text
from kit.guard_process import SECONDS, call, frame_of, guarded, initialize, notification, request, scripted, tool
from kit.rows import rows

TOOLS = [
    tool("good"),
    {
        "name": "bad",
        "inputSchema": {"type": "object", "properties": {"limit": {"type": "integer"}}},
        "outputSchema": {"type": "object", "properties": {"hits": {"type": "integer"}}},
    },
    tool("unusable", inputSchema={"type": "object", "$ref": "https://example.com/"}),
]
ON: dict[str, Any] = {
    "tools/call:bad": [["result", {"content": [], "structuredContent": {"hits": "3"}}]],
    "ping": [["raw", "a banner \xff\n"], ["good"], ["good"]],
    "tools/call:broken": [["raw", '{"jsonrpc":"2.0","id":$id,"result":{"x":NaN}}\n']],
    "tools/call:late": [],
    "tools/call:last": [["log", "oh no\n"], ["exit", 1]],
}
SAID = [
    call(1, "good"),
    call(2, "bad", limit=5),
    call(3, "bad", limit="5"),
    request(4, "ping"),
    call(6, "unusable"),
    b"",
    b"hello?",
    b"\xff",
    {"jsonrpc": "2.0", "id": 7},
    notification("notifications/cancelled", {"requestId": 99}),
    call(8, "late"),
]
UNREADABLE = call(5, "broken")
"""Its answer cannot be read."""

assay = partial(assay_text, COLUMNS="120", NO_COLOR="1")


@rows(("mode", "blocked"), [("audit", "would block"), ("enforce", "blocked")])
def test_of_a_session_that_broke_every_message_is_in_the_journal_and_can_be_judged_again(
    tmp_path: Path, mode: str, blocked: str
) -> None:
    """A request and its answer have the same id; also if the answer never came."""
    place = tmp_path / mode
    options = ("--mode", mode, "--journal", str(place / "journal"), "--set", "journal.payloads=true")
    with guarded(tmp_path, *options, tools=TOOLS, on=ON) as one:
        one.open()
        one.say(*SAID, UNREADABLE, call(9, "last"))
        answered = [json.loads(line) for line in one.out.all().splitlines() if line.startswith(b"{")]
        assert one.ended() == 3
        log = [line.decode() for line in one.log.rest()]
    # Under audit nothing is said for a server that is gone.
    assert [each["id"] for each in answered if each.get("id") in {8, 9}] == ([] if mode == "audit" else [8, 9])
    found = journals.records(place / "journal" / ".latest")
    assert {each["transport"] for each in found} == {"stdio"}
    said = Counter((each["metadata"]["party"], each["metadata"]["kind"]) for each in found)
    assert said["client", "request"] == 10
    by_id = {each["metadata"]["id"]: each for each in found if each["metadata"]["kind"] == "request"}
    assert len({each["requestId"] for each in by_id.values()}) == len(by_id)
    answers = [each for each in found if each["metadata"]["kind"] in {"result", "error", "missing"}]
    for each in answers:
        if "protocol/answered-twice" not in json.dumps(each["error"]):
            assert each["requestId"] == by_id[each["metadata"]["id"]]["requestId"]
    statuses = {each["metadata"]["id"]: each["status"] for each in answers}
    assert [statuses[ident] for ident in (1, 2, 8, 9)] == ["ok", "refused", "failed", "failed"]
    assert any(each["metadata"].get("passed") for each in found) is (mode == "audit")
    shown = assay("journal", "show", str(place / "journal"))
    line = 'contract/output: `hits` must be an integer, not "3", at /result/structuredContent/hits'
    assert line in shown.stdout
    assert "never answered: tools/call last #9" in shown.stdout
    replayed = assay("replay", str(place / "journal"))
    assert (replayed.returncode, replayed.stdout) == (0, f"{len(found)} records: {len(found)} the same\n")
    assert any(line.startswith(f"assay: {blocked}: server result of tools/call bad #2") for line in log)
    assert "assay: the server ended first: it exited with status 1" in log
    [flight] = (place / "journal" / "flights").glob("flight-*.jsonl")
    assert any(line.startswith("assay: the last messages of this session are in ") for line in log)
    assert stat.S_IMODE(flight.stat().st_mode) == 0o600
    assert "never answered: tools/call" in assay("check", str(flight)).stdout


CHATTERBOX = ("import sys, time", "while True:", "    print('.', file=sys.stderr, flush=True)", "    time.sleep(0.05)")


def test_what_was_answered_or_asked_is_on_disk_if_the_guard_is_killed(tmp_path: Path) -> None:
    """Answers at once; a request without one soon, however much the server writes to its log."""
    options = ("--journal", str(tmp_path / "journal"), "--record", str(tmp_path / "session.jsonl"))
    with guarded(tmp_path, *options) as one:
        one.open()
        for number in range(20):
            one.ask(call(number))
        one.process.kill()
        one.process.wait(SECONDS)
    idents = [number for number in range(20) for _ in range(2)]
    assert [each["metadata"]["id"] for each in journals.records(tmp_path / "journal" / ".latest")][-40:] == idents
    lines = [json.loads(line) for line in (tmp_path / "session.jsonl").read_bytes().splitlines()]
    assert [json.loads(each["msg"]).get("id") for each in lines if "msg" in each][-40:] == idents
    checked = assay("check", str(tmp_path / "session.jsonl"))
    assert checked.returncode == 2
    assert "the recording has no end: later messages are missing" in checked.stderr
    command = [sys.executable, "-ISc", "\n".join(CHATTERBOX)]
    with guarded(tmp_path, "--journal", str(tmp_path / "asked"), command=command) as one:
        one.say(request(1, "ping"))
        # Each of these takes a twentieth of a second at least.
        assert any(one.log.next() and journals.records(tmp_path / "asked") for _ in range(400))


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
        with Signals() as signals, Child(scripted()) as child:
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

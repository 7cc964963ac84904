"""The way of a `tools/call` between two streams: how many functions of ours it passes, there and back."""

import json
import os
import sys
import threading
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import assay
from assay.base.limits import Limits
from assay.edges.child import Child
from assay.edges.pipes import Outlet, Signals
from assay.edges.recorder import Recorder, Records
from assay.edges.stdio_child import StdioChild
from assay.guard.deliveries import ClientTraits, ServerTraits
from assay.guard.factory import SessionFactory
from assay.guard.sinks import Sinks
from assay.guard.summary import GuardSummary
from assay.guard.terms import Terms
from assay.records.journal.writer import Journal
from kit.guard_process import initialize, liar, request, result

MOST_CALLS = 35
MOST_FILES = 16
TRIPS = 50
SOURCE = str(Path(assay.__file__).parent)
TOOL = {
    "name": "search",
    "inputSchema": {"type": "object", "properties": {"words": {"type": "string"}}, "required": ["words"]},
    "outputSchema": {"type": "object", "properties": {"hits": {"type": "integer"}}},
}
ANSWER = {"content": [], "structuredContent": {"hits": 3}}


class Client(threading.Thread):
    """A client that waits for each answer before it asks again. Its own calls are not counted."""

    def __init__(self, sink: int, source: int) -> None:
        super().__init__(daemon=True)
        self.sink, self.source = sink, os.fdopen(source, "rb")
        self.counts: Counter[tuple[str, str]] = Counter()
        self.counting = False

    def run(self) -> None:
        """Open the session, list the tools, and call one again and again."""
        self.ask(initialize())
        os.write(self.sink, b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        self.ask(request("list", "tools/list"))
        for ident in range(1, 50):
            self.ask(call(ident))
        self.counting = True
        for ident in range(50, 50 + TRIPS):
            assert self.ask(call(ident)) == result(ident, ANSWER)
        self.counting = False
        os.close(self.sink)

    def ask(self, message: dict[str, Any]) -> Any:
        """The answer to a request."""
        os.write(self.sink, json.dumps(message).encode() + b"\n")
        return json.loads(self.source.readline())

    def count(self, frame: FrameType, event: str, _: object) -> None:
        """A profile function: one more call."""
        if self.counting and event == "call" and frame.f_code.co_filename.startswith(SOURCE):
            self.counts[frame.f_code.co_filename, frame.f_code.co_name] += 1


def call(ident: int) -> dict[str, Any]:
    return request(ident, "tools/call", {"name": "search", "arguments": {"words": "sea"}})


def test_a_call_passes_few_functions_there_and_back(tmp_path: Path) -> None:
    source, client_in = os.pipe()
    client_out, sink = os.pipe()
    client = Client(client_in, client_out)
    journal = Journal.open(tmp_path)
    assert journal is not None
    recorder = Recorder("stdio", "stdio", Records(journal), holding=True)
    watch = GuardSummary(lambda _: None, lambda _: None, enforcing=True)
    factory = SessionFactory(Terms("enforce", Limits(), 600.0), Sinks(recorder.sinks), watch)
    session = factory.open(ClientTraits("stdio"), ServerTraits("child"), watch=watch)
    server = liar(tools=[TOOL], on={"tools/call:search": [["result", ANSWER]]})
    try:
        with Signals() as signals, Child(server) as child:
            relay = StdioChild(session, child, signals, Outlet(2, shared=True), source=source, sink=sink)
            client.start()
            sys.setprofile(client.count)
            try:
                assert relay.run() == 0
            finally:
                sys.setprofile(None)
    finally:
        journal.close()
        for each in (source, sink):
            os.close(each)
        client.source.close()
    shown = "\n".join(
        f"{number / TRIPS:5.1f} {Path(file).name} {name}" for (file, name), number in client.counts.most_common()
    )
    assert sum(client.counts.values()) / TRIPS <= MOST_CALLS, shown
    files = {file for (file, _), number in client.counts.items() if number >= TRIPS}
    assert len(files) <= MOST_FILES, files

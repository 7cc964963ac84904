"""Send the same requests to the demonstration server without and with the guard, and collect the guard's findings."""

import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final, NamedTuple

from assay.cli.demonstration.strict_client import DemoOutcome, StrictClient
from assay.edges.pipes import Signals
from assay.edges.probe.server_probe import InterruptedInquiryError
from assay.records.reading import Pages, entries
from assay.records.record import Record

SERVER: Final = (sys.executable, str(Path(__file__).with_name("demo_server.py")))
"""The command of the demonstration server."""

_CITY: Final = {"city": "Paris"}


class DemoRow(NamedTuple):
    """One request, and its outcome for a client without and with the guard."""

    request: str
    without: DemoOutcome
    guarded: DemoOutcome


class Finding(NamedTuple):
    """What the guard recorded about one fault of the server."""

    tool: str
    done: str
    place: str
    expected: str
    found: str
    rule: str
    hint: str


class Comparison:
    """A strict client that talks to the server, directly and through `assay guard`. `with` ends all processes."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._stack.__enter__()
        # First, so that a signal does not leave the directory behind.
        self._signals = self._stack.enter_context(Signals())
        self._journal = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="assay-demo-"))

    def __enter__(self) -> "Comparison":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Raise `InterruptedInquiryError` for a signal that came after the last response."""
        self._stack.close()
        if kind is None and self._signals.stopping:
            raise InterruptedInquiryError("interrupted")

    def rows(self) -> Iterator[DemoRow]:
        """Send each request both ways; yield each row as soon as it is complete. Raises `InquiryError`."""
        with (
            self._client(self._guarded()) as guarded,
            self._client(SERVER) as first,
            # The first connection does not survive the call of weather.
            self._client(SERVER) as second,
        ):
            yield DemoRow("list the tools", first.list_tools(), guarded.list_tools())
            yield DemoRow("call weather", first.call("weather", _CITY), guarded.call("weather", _CITY))
            yield DemoRow("call report", second.call("report", {}), guarded.call("report", {}))
            yield DemoRow("weather again", second.call("weather", _CITY), guarded.call("weather", _CITY))

    def findings(self) -> list[Finding]:
        """Return the findings in the guard's journal about the three faults, in order."""
        found: dict[str, Finding] = {}
        with Pages(self._journal) as pages:
            for entry in entries(pages):
                finding = _finding(entry.record) if entry.record is not None else None
                if finding is not None:
                    found.setdefault(finding.tool, finding)
        return list(found.values())

    def _client(self, command: Sequence[str]) -> StrictClient:
        return StrictClient(command, self._signals)

    def _guarded(self) -> list[str]:
        """Return the command of the guard. Settings and locks of the working directory are ignored."""
        options = ["--mode", "enforce", "--restart", "on-failure", "--name", "demo"]
        # An empty settings file replaces an assay.toml of the working directory.
        settings = os.path.join(self._journal, "assay.toml")
        Path(settings).touch()
        places = ["--journal", self._journal, "--lock", "off", "--config", settings, "--set", "guard.flights=off"]
        # -P: a module in the working directory must not run in place of one of ours.
        return [sys.executable, "-P", "-m", "assay", "guard", *options, *places, "--quiet", "--", *SERVER]


def _finding(record: Record) -> Finding | None:
    if not record.findings:
        return None
    first = record.findings[0]
    if first.rule.startswith("syntax/"):
        tool, done = "weather", "the stray line went to stderr, and the result to the client"
    elif first.entry is not None:
        tool, done = first.entry.name, "quarantined, so that the client can use the rest of the list"
    else:
        tool, done = record.metadata.tool or "", "the client got an answer, and the server was restarted"
    return Finding(tool, done, first.at, first.expected, first.found, first.rule, first.hint)

"""
Send the same requests to the demonstration server without and with the guard, and collect the guard's findings.

The client follows the protocol strictly, as clients on the official SDKs do. One tool with an invalid schema costs the
whole list. A line that is not a message, or a server that ends, costs the connection.
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

from assay.base.limits import DEFAULT
from assay.base.verdict import Party, Verdict
from assay.edges.pipes import Signals
from assay.edges.probe.child_line import ChildLine
from assay.edges.probe.server_probe import Inquiry, InterruptedInquiryError, LineError
from assay.records.reading import Pages, entries
from assay.records.record import Finding, Record

SERVER: Final = (sys.executable, str(Path(__file__).with_name("demo_server.py")))
"""The command of the demonstration server."""

_CITY: Final = {"city": "Paris"}

_SECONDS: Final = 60.0
"""Time limit for a whole conversation, which takes a fraction of a second."""


class DemoOutcome(NamedTuple):
    """The outcome of one request for a client."""

    good: bool
    text: str
    details: tuple[str, ...] = ()
    """The last lines of the server's stderr, if the response has them."""


class DemoRow(NamedTuple):
    """One request, and its outcome for a client without and with the guard."""

    request: str
    without: DemoOutcome
    guarded: DemoOutcome


class DemoFinding(NamedTuple):
    """What the guard recorded about one fault of the server."""

    tool: str
    done: str
    finding: Finding


class Comparison:
    """A strict client that talks to the server, directly and through `assay guard`. `with` ends all processes."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._stack.__enter__()
        # First, so that a signal does not leave the directory behind.
        self._signals = self._stack.enter_context(Signals())
        self._journal = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="assay-demo-"))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Raise `InterruptedInquiryError` for a signal that came after the last response."""
        self._stack.close()
        if kind is None and self._signals.stopping:
            raise InterruptedInquiryError("interrupted")

    def rows(self) -> Iterator[DemoRow]:
        """Send each request both ways; yield each row as soon as it is complete. Raises `InquiryError`."""
        with (
            _StrictClient(self._guarded(), self._signals) as guarded,
            _StrictClient(SERVER, self._signals) as first,
            # The first connection does not survive the call of weather.
            _StrictClient(SERVER, self._signals) as second,
        ):
            yield DemoRow("list the tools", first.list_tools(), guarded.list_tools())
            yield DemoRow("call weather", first.call("weather", _CITY), guarded.call("weather", _CITY))
            yield DemoRow("call report", second.call("report", {}), guarded.call("report", {}))
            yield DemoRow("weather again", second.call("weather", _CITY), guarded.call("weather", _CITY))

    def findings(self) -> list[DemoFinding]:
        """Return the findings in the guard's journal about the three faults, in order."""
        found: dict[str, DemoFinding] = {}
        with Pages(self._journal) as pages:
            for entry in entries(pages):
                if entry.record is not None and entry.record.findings:
                    one = _finding(entry.record, entry.record.findings[0])
                    found.setdefault(one.tool, one)
        return list(found.values())

    def _guarded(self) -> list[str]:
        """Return the command of the guard. Settings and locks of the working directory are ignored."""
        options = ["--mode", "enforce", "--restart", "on-failure", "--name", "demo"]
        # An empty settings file replaces an assay.toml of the working directory.
        settings = os.path.join(self._journal, "assay.toml")
        Path(settings).touch()
        places = ["--journal", self._journal, "--lock", "off", "--config", settings, "--set", "guard.flights=off"]
        # -P: a module in the working directory must not run in place of one of ours.
        return [sys.executable, "-P", "-m", "assay", "guard", *options, *places, "--quiet", "--", *SERVER]


def _finding(record: Record, first: Finding) -> DemoFinding:
    if first.rule.startswith("syntax/"):
        return DemoFinding("weather", "the stray line went to stderr, and the result to the client", first)
    if first.entry is not None:
        return DemoFinding(first.entry.name, "quarantined, so that the client can use the rest of the list", first)
    tool = record.metadata.tool or ""
    return DemoFinding(tool, "the client got an answer, and the server was restarted", first)


# ── the client ───────────────────────────────────────────────────────────────────────────────────────────────────────


class _HangUpError(Exception):
    """The server sent something that this client cannot read."""


class _StrictClient:
    """A connection to the server that *command* starts. `with` ends it."""

    def __init__(self, command: Sequence[str], signals: Signals) -> None:
        """Raises `InquiryError` if the server cannot be started."""
        self._line = ChildLine(command, signals, DEFAULT.frame_bytes)
        deadline = time.monotonic() + _SECONDS
        # Log lines are ignored: every finding arrives as a verdict.
        self._inquiry = Inquiry(self._line, lambda _: None, DEFAULT, deadline, heard=self._judge)
        self._open = False

    def __enter__(self) -> Self:
        self._line.__enter__()
        self._inquiry.initialize()
        self._open = True
        return self

    def __exit__(self, *_: object) -> None:
        self._line.__exit__(None, None, None)

    def list_tools(self) -> DemoOutcome:
        """Return the names of the tools, or an error."""
        return self._asked("tools/list", {}, _read_list)

    def call(self, tool: str, arguments: dict[str, Any]) -> DemoOutcome:
        """Return the text of a result, or the error that the client gets."""
        return self._asked("tools/call", {"name": tool, "arguments": arguments}, _read_result)

    def _asked(self, method: str, params: dict[str, Any], read: Callable[[Verdict], DemoOutcome]) -> DemoOutcome:
        if not self._open:
            return DemoOutcome(False, "connection closed")
        try:
            return read(self._inquiry.ask(method, params))
        except (_HangUpError, LineError) as error:
            self._open = False
            return DemoOutcome(False, f"connection closed{f': {error}' if isinstance(error, _HangUpError) else ''}")

    def _judge(self, verdict: Verdict) -> None:
        if verdict.party is Party.SERVER and verdict.kind == "unreadable":
            raise _HangUpError("a line is not JSON")


def _read_list(verdict: Verdict) -> DemoOutcome:
    if not verdict.accepted or verdict.quarantined:
        return DemoOutcome(False, "no tools: the client rejects the whole list")
    return DemoOutcome(True, ", ".join(tool["name"] for tool in verdict.value["result"]["tools"]))


def _read_result(verdict: Verdict) -> DemoOutcome:
    error = verdict.value.get("error")
    if error is not None:
        data = error.get("data")
        details = data.get("stderr", ()) if isinstance(data, dict) else ()
        return DemoOutcome(False, str(error["message"]), tuple(details))
    texts = [block["text"] for block in verdict.value["result"]["content"]]
    return DemoOutcome(verdict.value["result"].get("isError") is not True, " ".join(texts))

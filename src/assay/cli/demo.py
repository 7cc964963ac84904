"""``assay demo``: show a broken server without and with the guard, side by side; then serve both to try."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any, Final, NamedTuple, Self

from assay.cli.guard import add_parser as add_guard
from assay.cli.program import open_standard_streams, program
from assay.cli.terminal.style import Style
from assay.cli.terminal.table import Column, Row, Table
from assay.edges.hangup import end_with_reader, end_with_terminal
from assay.edges.pipes import Signals
from assay.edges.probe.child_line import ChildLine
from assay.edges.probe.server_probe import Inquiry, InquiryError, InterruptedInquiryError, LineError
from assay.edges.standard_streams import stop_without_reader
from assay.model.errors import UsageError
from assay.model.limits import DEFAULT
from assay.model.printable import plain
from assay.model.verdict import Party, Verdict
from assay.records.reading import Pages, entries
from assay.records.record import Finding
from assay.rules.sentences import located
from assay.settings import SettingsError
from assay.settings.extras import missing


def catalogue() -> Path:
    """Return the directory of the bundled assets: in a checkout it is below ``examples``."""
    here = Path(__file__).parent
    installed = here / "demonstration" / "catalogue"
    return installed if installed.is_dir() else here.parents[2] / "examples" / "catalogue"


_ADDRESS = "127.0.0.1:8800"

_FAULTS: Final = """
  weather  works, but prints to standard output, which belongs to the protocol
  search   is listed with a schema that no client accepts
  report   crashes
"""

_SERVER: Final = (sys.executable, str(Path(__file__).with_name("demonstration") / "demo_server.py"))
"""The command of the demonstration server."""

_CITY: Final = {"city": "Paris"}

_SECONDS: Final = 60.0
"""Time limit for a whole conversation, which takes a fraction of a second."""

_LABEL: Final = 15
"""Width of the column with the requests."""

_MOST_DETAILS: Final = 3
"""Maximal lines of the server's stderr to show."""

_EPILOG = """\
The demonstration server has three tools, with three faults of real servers: a schema that no client accepts,
a tool that prints to standard output, and a tool that crashes. A strict client calls it directly, and through
`assay guard`. Then the guard serves it at ADDRESS, with the asset server beside it, until Ctrl-C.

Exit status: 0 a signal came or standard output was closed, 2 the demonstration could not run, 130
interrupted during the comparison.
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register ``demo``."""
    parser = subparsers.add_parser(
        "demo",
        description="Show what a client gets from a broken server, without and with the guard.",
        epilog=_EPILOG,
    )
    parser.add_argument(
        "address",
        metavar="ADDRESS",
        nargs="?",
        default=_ADDRESS,
        help="where to serve afterwards; port 0 takes any free port; default: %(default)s",
    )
    parser.add_argument("--once", action="store_true", help="end after the comparison; serve nothing")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Show the comparison, then serve; return the exit status."""
    open_standard_streams()
    # The comparison and the server have their own handlers; between them a signal has to remove temporary files, too.
    before = [(each, signal.getsignal(each)) for each in (signal.SIGTERM, signal.SIGHUP)]
    end_with_terminal()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        if not args.once:
            _check(args.address)
        _compare()
        return 0 if args.once else _serve(args.address)
    except InterruptedInquiryError:
        return 130
    except InquiryError as error:
        raise UsageError(str(error)) from None
    finally:
        for each, handler in before:
            signal.signal(each, handler)


def _check(address: str) -> None:
    """Raise `SettingsError` if *address* cannot be used. Checked before the comparison, so that it fails at once."""
    try:
        from assay.edges.http.http_server import listening  # noqa: PLC0415 - an extra, which --once does not need
        from assay.edges.http.listen_address import parsed  # noqa: PLC0415 - as above
    except ImportError as error:
        raise SettingsError(f"assay demo --once needs no extra; serving needs {missing(error, 'http')}") from None
    host, port = parsed("ADDRESS", address)
    try:
        listening(host, port).close()
    except OSError as error:
        free = f"{host}:0"
        command = f"make run ADDRESS={free}" if "MAKELEVEL" in os.environ else f"{program()} demo {free}"
        raise SettingsError(f"{address}: {error.strerror}; to use any free port: {command}") from None


# ── the comparison ───────────────────────────────────────────────────────────────────────────────────────────────────


def _compare() -> None:
    """Send each request to the server directly and through the guard, and print what a client gets."""
    style = Style(sys.stdout)
    print(style.paint("One server, three tools, three faults, one strict client:", "bold"))
    print(_FAULTS)
    cell = (min(style.width, 100) - _LABEL - 4) // 2
    without, guarded = ("without the guard", "with the guard") if cell > 17 else ("without", "with")
    columns = [Column("", _LABEL, hanging=0), Column(without, cell, hanging=2), Column(guarded, cell, hanging=2)]
    table = Table(style, columns)
    print(table.head("bold"))
    # Signals first, so that none leaves the directory behind.
    with Signals() as signals, TemporaryDirectory(prefix="assay-demo-") as journal:
        details: tuple[str, ...] = ()
        for request, one, other in _rows(signals, journal):
            cells: Row = {"": request, without: one.shown, guarded: other.shown}
            print("\n".join(table.lines(cells)), flush=True)
            stop_without_reader()
            details = other.details or details
        print()
        print(style.paint("What the guard found:", "bold"))
        for tool, done, finding in _findings(journal):
            print("\n".join(["", *_finding_lines(tool, done, finding, details if tool == "report" else (), style)]))
    if signals.stopping:
        # The signal came after the last response.
        raise InterruptedInquiryError("interrupted")
    sys.stdout.flush()
    stop_without_reader()


def _rows(signals: Signals, journal: str) -> Iterator[tuple[str, DemoOutcome, DemoOutcome]]:
    """Yield each request, and its outcome without and with the guard, as soon as both are known."""
    with (
        _StrictClient(_guarded(journal), signals) as guarded,
        _StrictClient(_SERVER, signals) as first,
        # The first connection does not survive the call of weather.
        _StrictClient(_SERVER, signals) as second,
    ):
        yield "list the tools", first.list_tools(), guarded.list_tools()
        yield "call weather", first.call("weather", _CITY), guarded.call("weather", _CITY)
        yield "call report", second.call("report", {}), guarded.call("report", {})
        yield "weather again", second.call("weather", _CITY), guarded.call("weather", _CITY)


def _guarded(journal: str) -> list[str]:
    """Return the command of the guard. Settings and locks of the working directory are ignored."""
    options = ["--mode", "enforce", "--restart", "on-failure", "--name", "demo"]
    # An empty settings file replaces an assay.toml of the working directory.
    settings = os.path.join(journal, "assay.toml")
    Path(settings).touch()
    places = ["--journal", journal, "--lock", "off", "--config", settings, "--set", "guard.flights=off"]
    # -P: a module in the working directory must not run in place of one of ours.
    return [sys.executable, "-P", "-m", "assay", "guard", *options, *places, "--quiet", "--", *_SERVER]


def _findings(journal: str) -> list[tuple[str, str, Finding]]:
    """Return the first finding about each tool in the guard's journal, with the tool and what the guard did."""
    found: dict[str, tuple[str, str, Finding]] = {}
    with Pages(journal) as pages:
        for entry in entries(pages):
            if entry.record is None or not entry.record.findings:
                continue
            first = entry.record.findings[0]
            if first.rule.startswith("syntax/"):
                tool, done = "weather", "the stray line went to stderr, and the result to the client"
            elif first.entry is not None:
                tool, done = first.entry.name, "quarantined, so that the client can use the rest of the list"
            else:
                tool = entry.record.metadata.tool or ""
                done = "the client got an answer, and the server was restarted"
            found.setdefault(tool, (tool, done, first))
    return list(found.values())


def _finding_lines(tool: str, done: str, finding: Finding, details: Sequence[str], style: Style) -> Iterator[str]:
    """Return the lines for one finding: the fault, the rule, and the fix."""
    yield f"  {style.paint(plain(tool), 'bold')}: {done}"
    yield from style.wrapped(plain(located(finding)), 4)
    explain = style.wrapped(f"{finding.rule}; {program()} explain {finding.rule}", 4)
    yield from (style.paint(line, "dim") for line in explain)
    yield from style.wrapped(plain(f"→ {finding.hint}"), 4, 2)
    if details:
        yield "    The last lines of the server's stderr:"
        yield from (style.paint(f"    | {plain(line)}", "dim") for line in details[-_MOST_DETAILS:])


# ── what stays ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _serve(address: str) -> int:
    """Guard the demonstration server and the asset server over HTTP, until a signal comes."""
    from assay.cli.listen import serve  # noqa: PLC0415 - as above

    end_with_reader(1)
    with TemporaryDirectory(prefix="assay-demo-") as folder:
        config = os.path.join(folder, "demo.json")
        with open(config, "w", encoding="utf-8") as file:
            json.dump(_servers(folder), file)
        parser = argparse.ArgumentParser()
        add_guard(parser.add_subparsers())
        # Nothing here is secret, and the console shows messages only if they are recorded.
        shown = ["--set", "journal.payloads=true"]
        options = ["--mode", "enforce", "--lock", "off", "--listen", address, "--config", config, *shown]
        return serve(parser.parse_args(["guard", *options]), ready=_invite)


def _servers(folder: str) -> dict[str, object]:
    """Return a client's configuration with the two servers."""
    found = catalogue()
    sources = ["--schemas", str(found / "jsonschema"), "--examples", str(found / "examples")]
    assets = {
        "command": sys.executable,
        # -P: a module in the working directory must not run in place of one of ours.
        "args": ["-P", "-m", "assay", "serve", "--journal", "off", *sources],
        "env": {"MCP_READY_FILE": os.path.join(folder, "assets.ready")},
    }
    return {"mcpServers": {"demo": {"command": _SERVER[0], "args": list(_SERVER[1:])}, "assets": assets}}


def _invite(url: str) -> None:
    """Print what to try, once the guard serves at *url*."""
    style = Style(sys.stdout)
    assay = program()
    demo, assets = f"{url}/demo/mcp", f"{url}/assets/mcp"
    print(f"\n{style.paint('The guard now serves the same server over HTTP. Try it in another window:', 'bold')}\n")
    for command in (
        f"call {demo}",
        f'call {demo} weather \'{{"city": "Paris"}}\'',
        f"call {demo} weather '{{\"city\":5}}'",
        f"call {demo} report",
        "journal show --server demo",
        "console     # the same in a browser",
        f"call {assets}     # the asset server is beside it",
    ):
        print(f"  {assay} {command}")
    print(f"\nYour own servers: {assay} wrap --all, which shows every change and asks.")
    print("\nCtrl-C ends it.", flush=True)


# ── the client ───────────────────────────────────────────────────────────────────────────────────────────────────────


class DemoOutcome(NamedTuple):
    """The outcome of one request for a client."""

    good: bool
    text: str
    details: tuple[str, ...] = ()
    """The last lines of the server's stderr, if the response has them."""

    @property
    def shown(self) -> tuple[str, str]:
        """The cell of a table, with its colour."""
        return (f"✓ {self.text}", "green") if self.good else (f"✗ {self.text}", "red")


class _HangUpError(Exception):
    """The server sent something that this client cannot read."""


class _StrictClient:
    """
    A connection to the server that *command* starts. `with` ends it.

    The client follows the protocol strictly, as clients on the official SDKs do. One tool with an invalid schema costs
    the whole list. A line that is not a message, or a server that ends, costs the connection.
    """

    def __init__(self, command: Sequence[str], signals: Signals) -> None:
        """Raises `InquiryError` if the server cannot be started."""
        self._line = ChildLine(command, signals, DEFAULT.frame_bytes)
        deadline = monotonic() + _SECONDS
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
        verdict = self._asked("tools/list", {})
        if isinstance(verdict, DemoOutcome):
            return verdict
        if not verdict.accepted or verdict.quarantined:
            return DemoOutcome(False, "no tools: the client rejects the whole list")
        return DemoOutcome(True, ", ".join(tool["name"] for tool in verdict.value["result"]["tools"]))

    def call(self, tool: str, arguments: dict[str, Any]) -> DemoOutcome:
        """Return the text of a result, or the error that the client gets."""
        verdict = self._asked("tools/call", {"name": tool, "arguments": arguments})
        if isinstance(verdict, DemoOutcome):
            return verdict
        error = verdict.value.get("error")
        if error is not None:
            data = error.get("data")
            details = data.get("stderr", ()) if isinstance(data, dict) else ()
            return DemoOutcome(False, str(error["message"]), tuple(details))
        texts = [block["text"] for block in verdict.value["result"]["content"]]
        return DemoOutcome(verdict.value["result"].get("isError") is not True, " ".join(texts))

    def _asked(self, method: str, params: dict[str, Any]) -> Verdict | DemoOutcome:
        """Return the verdict on the response, or the outcome without one."""
        if not self._open:
            return DemoOutcome(False, "connection closed")
        try:
            return self._inquiry.ask(method, params)
        except (_HangUpError, LineError) as error:
            self._open = False
            return DemoOutcome(False, f"connection closed{f': {error}' if isinstance(error, _HangUpError) else ''}")

    def _judge(self, verdict: Verdict) -> None:
        if verdict.party is Party.SERVER and verdict.kind == "unreadable":
            raise _HangUpError("a line is not JSON")

"""``assay console``: what guards on this machine have judged and are judging, on a page in the browser."""

from __future__ import annotations

import argparse
import os
import secrets
import sys
import webbrowser
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from io import StringIO
from pathlib import Path
from shlex import split
from typing import TYPE_CHECKING, Final

from assay.cli.check import add_source
from assay.cli.checking.evidence import CheckTerms, FileEnd, opened
from assay.cli.checking.files import FoundFiles, resolved
from assay.cli.guard_plan import signed
from assay.cli.journal_choice import Chosen, Directories
from assay.cli.options import add_settings
from assay.cli.program import open_standard_streams, say
from assay.cli.reports.formats import FORMATS, digests_of, document_of, stream_of
from assay.cli.reports.result import ReportOptions, RunResult
from assay.cli.terminal.style import Style
from assay.console.access import ConsoleAccess
from assay.console.app import ConsoleApp, Pump
from assay.console.contracts import LockOf
from assay.console.exports import Exporter, ExportFile, Numbered
from assay.console.sources import EvidenceError, FilePump, JournalPump
from assay.console.state import ConsoleState
from assay.edges.hangup import end_with_terminal
from assay.lock.lock_file import FILE, LockError, read
from assay.lock.locked import Locked
from assay.lock.matching import entry_for
from assay.model.errors import UsageError
from assay.model.printable import counted
from assay.records.judged_records import JudgedRecord, JudgedRecords
from assay.records.reading import Pages, entries
from assay.records.record import Record, seconds_of
from assay.records.rows import Judged, TranscriptError
from assay.rules import RULES
from assay.settings import Settings, load
from assay.settings.extras import missing
from assay.settings.state_directory import make_folder, state_directory

if TYPE_CHECKING:
    import socket


_EPILOG = """\
Without FILE, the page shows the journals of all your guards, and follows them. With FILE, it shows only these files:
a journal with the verdicts of its guard, any other file judged as by assay check.
The first line of the output is the address of the page, with a token that changes with each start.

Exit status: 0 a signal came, 2 the console could not start.
"""

_HOST: Final = "127.0.0.1"


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register ``console``."""
    parser = subparsers.add_parser(
        "console",
        description="Watch all guards on this machine, live, in a browser.",
        epilog=_EPILOG,
    )
    parser.add_argument(
        "files", metavar="FILE", nargs="*", help="journal, recording or other file that assay check reads"
    )
    parser.add_argument("--port", metavar="N", type=_port, default=0, help="port (default: any free one)")
    parser.add_argument("--no-browser", action="store_true", help="print the address without opening a browser")
    parser.add_argument("--lock", metavar="FILE", default="auto", help="lock to compare servers with, or off")
    add_source(parser)
    add_settings(parser)
    parser.set_defaults(run=run)


def _port(text: str) -> int:
    if not text.isdecimal() or len(text) > 5 or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text}: expected a number up to 65535")
    return int(text)


def run(args: argparse.Namespace) -> int:
    """Serve the page until a signal comes; return the exit status."""
    open_standard_streams()
    end_with_terminal()
    settings = load(os.environ, os.curdir, file=args.config, flags=args.set, log=signed(say))
    if args.lock not in {"auto", "off"}:
        try:
            read(args.lock)
        except (OSError, LockError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise UsageError(f"--lock {args.lock}: {reason}") from None
    try:
        from assay.edges.http.http_server import listening  # noqa: PLC0415 - it needs an extra

        sock = listening(_HOST, args.port)
    except ImportError as error:
        say(f"assay console needs {missing(error, 'http')}")
        return 2
    except OSError as error:
        raise UsageError(f"--port {args.port}: {error.strerror}") from None
    with sock, ExitStack() as stack:
        return _serve(args, settings, sock, stack)


def _serve(args: argparse.Namespace, settings: Settings, sock: socket.socket, stack: ExitStack) -> int:
    from assay.edges.http.http_server import serve  # noqa: PLC0415 - as above

    port = sock.getsockname()[1]
    access = ConsoleAccess(port)
    state = ConsoleState(lock_of=locks(args.lock))
    app = ConsoleApp(state, access, report_exporters(), epoch=secrets.token_hex(4))

    try:
        pump: Pump = JournalPump(state, app.signal.changed, Directories(settings.journal).usual).run
        if args.files:
            pump = file_pump(args, settings, state, app.signal.changed).run
    except NothingToShowError as error:
        for line in str(error).splitlines():
            say(line, "console")
        return 2
    address = f"http://{_HOST}:{port}/?token={access.token}"

    def ready() -> None:
        print(address, flush=True)
        app.begin(pump)
        if sys.stdout.isatty() and not args.no_browser:
            _open_browser(address, stack)

    serve(app, sock, settings.http, ready)
    return 0


def locks(wish: str) -> LockOf:
    """Return a function that finds the lock of a server; *wish* is as for `assay guard --lock`."""
    path = FILE if wish == "auto" else wish

    def found(name: str, label: str) -> Locked | None:
        if wish == "off":
            return None
        url = label if "://" in label else ""
        command: list[str] = []
        with suppress(ValueError):
            command = [] if url else split(label)
        try:
            entry = entry_for(read(path), name=name, command=command, url=url)
        except FileNotFoundError:
            return None
        except LockError as error:
            raise ValueError(str(error)) from None
        return None if entry is None else entry.locked

    return found


def _open_browser(address: str, stack: ExitStack) -> None:
    """Open the page. The address is in a private file: other users see the arguments of a browser's process."""
    folder = state_directory(os.environ)
    if folder is None:
        return
    path = folder / f"console-{os.getpid()}.html"
    # Without a browser the printed address is enough.
    with suppress(OSError, webbrowser.Error):
        make_folder(str(folder))
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "w", encoding="ascii") as file:
            file.write(f'<!doctype html><meta http-equiv="refresh" content="0; url={address}">\n')
        stack.callback(lambda: path.unlink(missing_ok=True))
        webbrowser.open(Path(path).as_uri())


# ── files ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


class ConsoleEvidence:
    """One file."""

    def __init__(self, terms: CheckTerms, given: Chosen) -> None:
        self._terms, self._given = terms, given
        self._notes: list[str] = []

    def records(self) -> Generator[Record, None, None]:
        """Yield its records. Raises `EvidenceError`."""
        try:
            name, is_run = resolved(self._given, Directories(self._terms.settings.journal))
            # Standard input can be read only once, and a journal on it is judged.
            is_judged = name == "-"
            if not is_judged:
                with Pages(name, whole=is_run) as pages:
                    is_judged = not self._terms.is_journal(pages.peek())
                    yield from () if is_judged else self._written(pages)
            if is_judged:
                yield from self._judged(name, is_run=is_run)
        except OSError as error:
            raise EvidenceError(error.strerror or "cannot be read") from None
        except TranscriptError as error:
            raise EvidenceError(str(error.args[0])) from None

    def notes(self) -> list[str]:
        """Return remarks about it, after its last record."""
        return self._notes

    def _written(self, pages: Pages) -> Iterator[Record]:
        broken = 0
        for entry in entries(pages):
            if entry.record is None:
                broken += 1
            else:
                yield entry.record
        if broken:
            self._notes.append(f"{counted(broken, 'line')} of the journal: not a record")

    def _judged(self, name: str, *, is_run: bool) -> Iterator[Record]:
        made = JudgedRecords(name, self._terms.settings.journal.redact, whole=True)
        end = FileEnd()
        with opened(self._terms, name, is_run=is_run) as evidence:
            for each in evidence.follow(end):
                if isinstance(each, Judged):
                    yield made.make(each).record
        self._notes += map(made.redactor.text, end.remarks)


class NothingToShowError(Exception):
    """No file of the command line can be shown; the lines of the message have the reasons."""


def file_pump(
    args: argparse.Namespace, settings: Settings, state: ConsoleState, changed: Callable[[], None]
) -> FilePump:
    """
    Return what feeds *state* with the files of the command line; directories are searched.

    Raises `NothingToShowError`.
    """
    terms = CheckTerms(settings, source=args.source, fields=args.fields, party=args.party, with_messages=True)
    files: dict[str, ConsoleEvidence] = {}
    wrong: list[str] = []
    for name in args.files:
        found = FoundFiles()
        found.add(name, "no recordings in it")
        files |= {each.name: ConsoleEvidence(terms, each) for each in found.chosen}
        state.failed += [{"file": name, "why": why} for why in found.passed_over]
        wrong += [f"{name}: {why}" for why in found.passed_over]
    trouble = {name: _trouble(evidence) for name, evidence in files.items() if name != "-"}
    if all(trouble.values()) and "-" not in files:
        raise NothingToShowError("\n".join([*wrong, *(f"{name}: {why}" for name, why in trouble.items())]))
    return FilePump(state, changed, files)


def _trouble(evidence: ConsoleEvidence) -> str:
    """Return why a file cannot be shown; "" if its first record can be read."""
    records = evidence.records()
    try:
        next(records, None)
    except EvidenceError as error:
        return str(error)
    finally:
        records.close()
    return ""


# ── exports ──────────────────────────────────────────────────────────────────────────────────────────────────────────

_KINDS: Final = {
    "json": ("application/json", "report.json"),
    "ndjson": ("application/x-ndjson", "findings.ndjson"),
    "sarif": ("application/sarif+json", "findings.sarif"),
    "junit": ("application/xml", "junit.xml"),
    "gitlab": ("application/json", "gitlab.json"),
    "markdown": ("text/markdown; charset=utf-8", "findings.md"),
    "html": ("text/html; charset=utf-8", "report.html"),
}
"""The media type and the name of each format. Others are for terminals and logs."""

_FILE: Final = "assay-journal.jsonl"
"""The file that findings refer to: the export of the same rows as a journal."""

_LACKS: Final = "the verdict of the guard"


def report_exporters() -> Mapping[str, Exporter]:
    """Return the exports in the formats of `assay check` for programs and pages."""
    return {name: partial(_report, name) for name in FORMATS if name in _KINDS}


def _report(name: str, rows: Sequence[Numbered]) -> ExportFile:
    text, options, end = StringIO(), ReportOptions(), FileEnd(_FILE)
    result = RunResult(options, digests=[make() for make in digests_of(name)])
    stream = stream_of(name, options, text.write, Style(text, {}))
    left_out = 0
    for line, (_, record) in enumerate(rows, 1):
        metadata = record.metadata
        if not all(each.rule in RULES for each in record.findings):
            # A later version has written it.
            left_out += 1
            continue
        end.revision = metadata.revision or end.revision
        metadata.lacks = metadata.lacks or _LACKS
        time = seconds_of(record.ts, -1.0)
        latency = record.duration_ms if record.is_answer else None
        message = JudgedRecord(_FILE, line, record, time=time if time >= 0 else None, latency=latency)
        end.count(record)
        result.meet(metadata.server)
        for digest in result.digests:
            digest.add(message)
        if message.findings:
            result.add(message)
            if stream is not None:
                stream.add(message)
    end.is_partial = left_out > 0
    result.end(end)
    content = text.getvalue() if stream is not None else document_of(name)(result)
    kind, ending = _KINDS[name]
    return ExportFile(content.encode(errors="replace"), kind, ending, left_out)

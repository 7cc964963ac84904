"""``assay lock``: what a server offers, written down; and what has changed since."""

# ruff: noqa: PLC0415  each command imports only what it needs

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING, NamedTuple

from assay.cli.serve import add_settings

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from assay.edges.inquiry.inquiry import Line, Log
    from assay.limits import Limits
    from assay.lock.file import Lock
    from assay.lock.locked import Difference, Locked

_EPILOG = """\
The server is started, asked what it offers, and ended. What it answers is judged as the guard would.
Without a command, --check and --update take those that the lock remembers, and ask before they start them.
What looks like a secret in a command or a URL is not written into the lock.

Exit status: 0 written, or nothing differs; 1 something differs; 2 the server could not be asked or the lock not be
read or written; 130 interrupted.
"""

_MOST_LOGGED = 50
"""Lines about one server."""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register ``lock``."""
    parser = subparsers.add_parser(
        "lock",
        help="write down what a server offers, and see what has changed since",
        description="Writes the tools, resource templates and prompts of a server into a lock, or says what differs.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    doing = parser.add_mutually_exclusive_group()
    doing.add_argument("--check", action="store_true", help="only say what differs; nothing is written")
    doing.add_argument("--update", action="store_true", help="say what differs, and take it over")
    parser.add_argument("--lock", metavar="FILE", default="assay.lock", help="default: %(default)s")
    parser.add_argument("--name", metavar="NAME", help="what the server is called in the lock; by default what it says")
    parser.add_argument("--target", metavar="URL", help="a server over HTTP, in place of a command")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="of --check; default: %(default)s")
    parser.add_argument(
        "--timeout", metavar="SECONDS", type=seconds, default=60.0, help="for all questions; default: %(default)g"
    )
    parser.add_argument(
        "--as",
        dest="client",
        metavar="NAME/VERSION",
        type=_client,
        help="the client that the server is told it talks to; default: mcp-client/1.0.0",
    )
    parser.add_argument(
        "--yes", action="store_true", help="start the commands of the lock without asking; needed without a terminal"
    )
    add_settings(parser)
    parser.add_argument("command", nargs="*", metavar="COMMAND", help="the server's command, after --")
    parser.set_defaults(run=run)


def seconds(text: str) -> float:
    """Return a number of seconds that a whole conversation may take."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= 86_400:
        raise argparse.ArgumentTypeError(f"{text}: expected more than 0 seconds, and at most a day's")
    return seconds


def _client(text: str) -> dict[str, str]:
    name, _, version = text.rpartition("/")
    if not name or not version or not text.isascii() or not text.isprintable():
        raise argparse.ArgumentTypeError(f"{text}: expected NAME/VERSION in printable ASCII, such as claude-ai/0.1.0")
    return {"name": name, "version": version}


class _Wanted(NamedTuple):
    """A server that is to be asked."""

    name: str | None
    command: tuple[str, ...]
    url: str

    def __str__(self) -> str:
        from assay.masking import masked_url

        return self.name or masked_url(self.url) or self.command[0]


def run(args: argparse.Namespace) -> int:
    """Lock, check or update."""
    from assay.lock.file import LockError

    try:
        lock = _read(args.lock)
        wanted = _wanted(args, lock)
        if not (args.command or args.target):
            _confirm(args, wanted)
        return _all(args, lock, wanted)
    except LockError as error:
        _say(str(error))
        return 2


def _read(path: str) -> Lock:
    from assay.lock.file import read

    try:
        return read(path)
    except FileNotFoundError:
        return {}


def _wanted(args: argparse.Namespace, lock: Lock) -> list[_Wanted]:
    """The server of the command line, or those of the lock."""
    from assay.lock.file import LockError

    if args.command and args.target:
        raise LockError("a command or --target, not both")
    if args.command or args.target:
        return [_Wanted(args.name, tuple(args.command), args.target or "")]
    if not (args.check or args.update):
        raise LockError("what is to be locked? assay lock -- COMMAND")
    if not lock:
        raise LockError(f"{args.lock}: nothing is locked there; assay lock -- COMMAND")
    if args.name is not None and args.name not in lock:
        raise LockError(f"{args.lock}: no server is called {args.name}; there are {', '.join(lock)}")
    names = [args.name] if args.name is not None else sorted(lock)
    return [_Wanted(name, lock[name].command, lock[name].url) for name in names]


def _confirm(args: argparse.Namespace, wanted: list[_Wanted]) -> None:
    """Ask before anything is done that a file says, which may be a stranger's. Raises `LockError`."""
    from shlex import join

    from assay.cli.asking import agreed, has_terminal
    from assay.lock.file import LockError
    from assay.lock.words import visible
    from assay.masking import is_masked

    if args.yes:
        return
    _say(f"{args.lock} names these servers:")
    for each in wanted:
        if not is_masked((*each.command, each.url)):
            # Whole and unmasked: what looks like a secret could be a command as well.
            shown = each.url or join(each.command)
            _say_plainly(f"    {visible(str(each), 100)}: {visible(shown, len(shown))}")
    if not has_terminal():
        raise LockError("nothing was started: there is no terminal to ask on; use --yes if the commands are fine")
    if not agreed("Start these commands, or ask at these addresses?"):
        raise LockError("nothing was started")


def _all(args: argparse.Namespace, lock: Lock, wanted: list[_Wanted]) -> int:
    from assay.edges.inquiry.inquiry import InquiryError, InterruptedInquiryError, LineError
    from assay.settings import load_cautiously

    settings = load_cautiously(os.environ, os.curdir, file=args.config, flags=args.set, log=_say).settings
    limits = settings.guard_limits
    outcome = _Outcome(args, lock)
    for each in wanted:
        try:
            outcome.take(each, _asked(each, args, limits))
        except InterruptedInquiryError:
            return 130
        except InquiryError as error:
            _say(f"{each}: {error}")
            for line in error.last_words if isinstance(error, LineError) else ():
                _say(f"    {line}")
            outcome.fail(each, str(error))
    outcome.finish()
    return outcome.status


def _asked(wanted: _Wanted, args: argparse.Namespace, limits: Limits) -> Locked:
    """What a server offers. Raises `InquiryError`."""
    from functools import partial

    from assay.edges.inquiry.inquiry import CLIENT, InquiryError
    from assay.edges.inquiry.two_clients import inquire_as_both
    from assay.masking import is_masked

    client = args.client or CLIENT
    if not (args.command or args.target) and is_masked((*wanted.command, wanted.url)):
        how = "--target URL" if wanted.url else "-- COMMAND"
        raise InquiryError(f"the lock has no secrets, and this server needs one; name it, with {how}")
    opened: Callable[[], AbstractContextManager[Line]]
    if wanted.url:
        try:
            from assay.edges.inquiry.http_line import HttpLine
        except ImportError as error:
            from assay.extras import missing

            raise InquiryError(f"--target needs {missing(error, 'http')}") from None
        opened = partial(HttpLine, wanted.url, limits.frame_bytes, client)
        return inquire_as_both(opened, _log(wanted), limits, args.timeout, client=client, url=wanted.url)
    from assay.edges.inquiry.lines import ChildLine
    from assay.edges.pipes import Signals

    with Signals() as signals:
        opened = partial(ChildLine, wanted.command, signals, limits.frame_bytes)
        return inquire_as_both(opened, _log(wanted), limits, args.timeout, client=client, command=wanted.command)


def _log(wanted: _Wanted) -> Log:
    """Return a log for one server: bounded, and each line once, since the server is asked twice."""
    left = _MOST_LOGGED
    logged: set[str] = set()

    def log(line: str) -> None:
        nonlocal left
        if line in logged or left < 0:
            return
        logged.add(line)
        left -= 1
        if left >= 0:
            _say(f"{wanted}: {line}")
        elif left == -1:
            _say(f"{wanted}: more is not shown")

    return log


class _Outcome:
    """What comes of asking some servers."""

    def __init__(self, args: argparse.Namespace, lock: Lock) -> None:
        self.status = 0
        self._args = args
        self._lock = lock
        self._checked: list[tuple[str, list[Difference]]] = []
        self._failed: list[tuple[str, str]] = []

    def fail(self, wanted: _Wanted, reason: str) -> None:
        """A server could not be asked, or is not in the lock."""
        self._failed.append((str(wanted), reason))
        self.status = 2

    def take(self, wanted: _Wanted, found: Locked) -> None:
        """What a server offers now."""
        from assay.lock.locked import differences

        name = wanted.name or _name(self._lock, found)
        known = self._lock.get(name)
        if known is None:
            self._unknown(wanted, name, found)
            return
        differing = differences(known, found, named=self._args.name is not None)
        counts = any(each.counts for each in differing)
        if self._args.check:
            self._checked.append((name, differing))
            self.status = max(self.status, int(counts))
            if found.unasked is not None and found.unasked != known.unasked:
                self.fail(wanted, f"the server failed for a client {found.unasked}; only the other kind was checked")
            return
        self._show(name, differing, _say_plainly)
        if counts and not self._args.update:
            _say(f"{self._args.lock}: {name}: not written; review this, then use --update (or another --name)")
            self.status = max(self.status, 1)
        else:
            self._write(name, found)

    def _unknown(self, wanted: _Wanted, name: str, found: Locked) -> None:
        if not self._args.check:
            self._write(name, found)
            return
        there = f"; there are {', '.join(sorted(self._lock))}" if self._lock else ""
        reason = f"{self._args.lock}: {name} is not locked{there}"
        _say(reason)
        self.fail(wanted, reason)

    def _write(self, name: str, found: Locked) -> None:
        from assay.console.plain import plain
        from assay.lock.file import write

        self._lock[name] = found
        write(self._args.lock, self._lock)
        print(plain(f"{self._args.lock}: {name}: {found.counts()}, in MCP {found.revision}"))
        for line in found.notes():
            print(plain(f"    {line}"))

    def finish(self) -> None:
        """Tells what was checked."""
        if not self._args.check:
            return
        if self._args.format == "json":
            self._print_json()
            return
        every = [each for _, differing in self._checked for each in differing]
        for name, differing in self._checked:
            self._show(name, differing, print)
        if self._checked:
            from assay.console.lock import summary

            print(summary(every, self._args.lock))

    def _print_json(self) -> None:
        from json import dumps

        from assay.console.lock import record

        clean = self.status == 0
        servers = [record(name, differing) for name, differing in self._checked]
        failed = [{"name": name, "reason": reason} for name, reason in self._failed]
        told = {"lock": self._args.lock, "clean": clean, "servers": servers, "failed": failed}
        print(dumps(told, indent=2))

    def _show(self, name: str, differing: list[Difference], out: Callable[[str], None]) -> None:
        from assay.console.lock import lines
        from assay.console.style import Style

        for line in lines(name, differing, Style(sys.stdout if out is print else sys.stderr)):
            out(line)


def _name(lock: Lock, found: Locked) -> str:
    """Return the name of a server: that of its entry, if it has one, else the one it gives itself."""
    from assay.lock.matching import entry_for
    from assay.masking import masked_url

    itself = found.server.get("name")
    entry = entry_for(lock, command=found.command, url=found.url)
    # With other arguments the same program may be another server: it says so.
    if entry is not None and (entry.by == "command" or entry.locked.server.get("name") == itself):
        return entry.name
    return itself or masked_url(found.url) or os.path.basename(found.command[0])


def _say(line: str) -> None:
    from assay.console.plain import plain

    _say_plainly(plain(f"assay lock: {line}"))


def _say_plainly(line: str) -> None:
    print(line, file=sys.stderr)

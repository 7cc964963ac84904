"""``assay lock``: write what a server offers into a lock file, or report what has changed since."""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from json import dumps
from shlex import join
from typing import Any, Final

from assay.cli.call import late, remedy
from assay.cli.guard_plan import named_servers, settings_file
from assay.cli.lock_servers import WantedServer, check_names, confirm, offered_by, wanted_servers
from assay.cli.options import add_headers, add_settings, add_time_limit
from assay.cli.program import say, speaker
from assay.cli.terminal.style import Style
from assay.edges.probe.server_probe import InquiryError, InterruptedInquiryError, LineError, Log
from assay.judge.masking import masked_command, masked_url
from assay.lock.compare import ABSENT, WEIGHTS, Change, Difference, Weight, describe, differences, visible
from assay.lock.lock_file import Lock, LockError, read, write
from assay.lock.locked import Locked
from assay.lock.matching import alike, loose_entries, only_entry
from assay.model.errors import UsageError
from assay.model.printable import counted, plain
from assay.settings import load_cautiously

_say = speaker("lock")

_EPILOG = """\
Assay lists the server twice, as a client without capabilities and as a client with all of them, because some servers
offer tools only to clients with sampling or elicitation. It locks both lists.
Without a server, --check and --update use the servers in the lock; they show the commands and ask first.
Secrets in a command or a URL are not written into the lock.

  assay lock -- npx some-server
  assay lock --config .mcp.json
  assay lock --check --yes

Exit status: 0 written, or nothing differs; 1 something differs; 2 a server could not be reached, or the lock could
not be read or written; 130 interrupted.
"""

_MOST_LOGGED = 50
"""Log lines to show for one server."""

_MARKS: Final = {"added": ("+", "green"), "removed": ("-", "red"), "changed": ("~", "yellow")}
_COLOURS: Final[dict[Weight, str]] = {
    "breaking": "red",
    "undecided": "red",
    "hints": "yellow",
    "wording": "yellow",
    "compatible": "dim",
}
_NAMES: Final[dict[Weight, str]] = {"undecided": "undecided (counts as breaking)"}
"""Names of weights in the summary, if the plain name is not clear enough."""

_TEXT: Final = 2000
"""Maximal characters of a text to show: a reviewer has to see the whole description."""

_SHORT: Final = 100
_MOST: Final = 50
"""Maximal changes of one tool, template or prompt to show."""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register ``lock``."""
    parser = subparsers.add_parser(
        "lock",
        description="Lock the tools, resource templates and prompts of a server, or report what has changed.",
        epilog=_EPILOG,
    )
    doing = parser.add_mutually_exclusive_group()
    doing.add_argument("--check", action="store_true", help="report differences without writing")
    doing.add_argument("--update", action="store_true", help="report differences and write them into the lock")
    doing.add_argument(
        "--remove",
        metavar="NAME",
        action="append",
        default=[],
        help="remove the entry NAME from the lock; repeatable",
    )
    parser.add_argument("--lock", metavar="FILE", default="assay.lock", help="the lock file (default: %(default)s)")
    parser.add_argument("--name", metavar="NAME", help="name of the entry (default: the name that the server reports)")
    parser.add_argument("--target", metavar="URL", help="lock the server at URL")
    add_headers(parser)
    parser.add_argument(
        "--format", choices=("text", "json"), default="text", help="format of --check (default: %(default)s)"
    )
    add_time_limit(parser, "each of the two clients")
    parser.add_argument(
        "--as",
        dest="client",
        metavar="NAME/VERSION",
        type=_client,
        help="client name and version to send (default: mcp-client/1.0.0)",
    )
    parser.add_argument(
        "--yes", action="store_true", help="start the commands in the lock without asking; required without a terminal"
    )
    add_settings(parser, "; a .json or .jsonc file is a client's configuration, and all of its servers are locked")
    parser.add_argument("command", nargs="*", metavar="COMMAND", help="the server's command, after --")
    parser.set_defaults(run=run)


def _client(text: str) -> dict[str, str]:
    name, _, version = text.rpartition("/")
    if not name or not version or not text.isascii() or not text.isprintable():
        raise argparse.ArgumentTypeError(f"{text}: expected NAME/VERSION in printable ASCII, such as claude-ai/0.1.0")
    return {"name": name, "version": version}


def run(args: argparse.Namespace) -> int:
    """Lock, check, update or remove; return the exit status."""
    try:
        if args.remove and (named_servers(args) or args.name is not None or args.config):
            raise LockError("--remove NAME can be combined only with --lock FILE")
        lock = _read(args)
        if not args.remove:
            return _asked(args, lock)
        check_names(args.lock, lock, args.remove)
        write(args.lock, {name: locked for name, locked in lock.items() if name not in args.remove})
        for name in args.remove:
            print(plain(f"{args.lock}: removed {name}"))
        return 0
    except LockError as error:
        raise UsageError(str(error)) from None


def _read(args: argparse.Namespace) -> Lock:
    """Return the lock; an empty one if the file does not exist and may be created. Raises `LockError`."""
    try:
        return read(args.lock)
    except FileNotFoundError as error:
        if args.check or args.remove or (args.update and not named_servers(args)):
            raise LockError(f"{args.lock}: {error.strerror}; assay lock -- COMMAND writes a lock") from None
        return {}


def _asked(args: argparse.Namespace, lock: Lock) -> int:
    """List what the chosen servers offer; return the exit status. Raises `LockError`."""
    file = settings_file(args.config)
    settings = load_cautiously(os.environ, os.curdir, file=file, flags=args.set, log=_say).settings
    wanted = wanted_servers(args, lock, settings)
    if not named_servers(args):
        confirm(args, wanted, say)
    outcome = _Outcome(args, lock)
    for each in wanted:
        try:
            outcome.take(each, offered_by(each, args, settings, _log(each)))
        except InterruptedInquiryError:
            return 130
        except InquiryError as error:
            _say(f"{each}: {error}{late(error, args.timeout)}{remedy(str(error)) if args.target else ''}")
            for line in error.last_words if isinstance(error, LineError) else ():
                _say(f"    {line}")
            outcome.fail(each, str(error))
    outcome.finish()
    return outcome.status


def _log(wanted: WantedServer) -> Log:
    """Return a log for one server. It is bounded, and each line appears once, although the server runs twice."""
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
            _say(f"{wanted}: further lines are not shown")

    return log


class _Outcome:
    """Collects the results of all servers, and the exit status."""

    def __init__(self, args: argparse.Namespace, lock: Lock) -> None:
        self.status = 0
        self._args = args
        self._lock = lock
        self._checked: list[tuple[str, list[Difference]]] = []
        self._failed: list[tuple[str, str]] = []

    def fail(self, wanted: WantedServer, reason: str) -> None:
        """Report a server that could not be reached or is not in the lock."""
        self._failed.append((str(wanted), reason))
        self.status = 2

    def take(self, wanted: WantedServer, found: Locked) -> None:
        """Compare what a server offers now with the lock, or write it."""
        name = wanted.name or _name(self._lock, found)
        known = self._lock.get(name)
        if known is None and self._args.check:
            there = f"; it has {', '.join(sorted(self._lock))}" if self._lock else ""
            reason = f"{self._args.lock}: no entry is named {name}{there}"
            _say(reason)
            self.fail(wanted, reason)
            return
        if known is None:
            self._write(name, found)
            return
        differing = differences(known, found, named=wanted.named)
        counts = any(each.counts for each in differing)
        if self._args.check:
            self._checked.append((name, differing))
            self.status = max(self.status, int(counts))
            if found.unasked and found.unasked != known.unasked:
                self.fail(wanted, f"the server failed for a client {found.unasked}; only the other kind was checked")
            return
        _show(name, differing, say)
        if counts and not self._args.update:
            _say(
                f"{self._args.lock}: {name}: not written; review the differences, then use --update, or another --name"
            )
            self.status = max(self.status, 1)
        else:
            self._write(name, found)

    def _write(self, name: str, found: Locked) -> None:
        self._lock[name] = found
        write(self._args.lock, self._lock)
        print(plain(f"{self._args.lock}: {name}: {found.counts()}, in MCP {found.revision}"))
        for line in found.notes():
            print(plain(f"    {line}"))

    def finish(self) -> None:
        """Print the differences that --check found, and the command that accepts them."""
        path = self._args.lock
        if not self._args.check:
            return
        if self._args.format == "json":
            servers = [
                {"name": name, "differences": [_difference(each) for each in differing]}
                for name, differing in self._checked
            ]
            failed = [{"name": name, "reason": reason} for name, reason in self._failed]
            report = {"lock": path, "clean": self.status == 0, "servers": servers, "failed": failed}
            print(dumps(report, indent=2))
            return
        every = [each for _, differing in self._checked for each in differing]
        for name, differing in self._checked:
            _show(name, differing, print)
        if self._checked:
            print(plain(_summary(every, path)))
        if any(each.counts for each in every):
            other = "" if path == "assay.lock" else f" {join(['--lock', path])}"
            print(f"Review them; assay lock --update{other} accepts them.")


def _name(lock: Lock, found: Locked) -> str:
    """Return the name of a server's entry; if it has no entry, the name that the server gives itself."""
    itself = found.server.get("name")
    exact = [name for name, locked in lock.items() if locked.is_reached_by(found.command, found.url)]
    # With other arguments the same program may be a different server.
    loose = [each for each in loose_entries(lock, found.command, found.url) if lock[each].server.get("name") == itself]
    if exact:
        return only_entry(lock, exact)
    if loose and alike([lock[each] for each in loose]):
        return loose[0]
    return itself or masked_url(found.url) or os.path.basename(masked_command(found.command)[0])


# ── the report ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _show(name: str, found: Sequence[Difference], out: Callable[[str], None]) -> None:
    """Print the differences of one server."""
    style = Style(sys.stdout if out is print else sys.stderr)
    if found:
        out(style.paint(visible(name, _SHORT), "bold"))
    for each in found:
        for line in _lines(each, style):
            out(line)


def _lines(each: Difference, style: Style) -> Iterator[str]:
    what = f"{each.noun} {visible(each.name, _SHORT)}"
    if not each.counts:
        # Reported, but not a difference.
        for change in each.changes:
            note = f"  note: {what}: {visible(change.at, _SHORT)}: {describe(change, _SHORT)}"
            yield style.paint(note, "dim")
        return
    mark, colour = _MARKS[each.what]
    yield style.paint(f"  {mark} {what}: {each.what}{f' ({each.weight})' if each.weight else ''}", colour)
    for change in each.changes[:_MOST]:
        yield from _change(change, style)
    if len(each.changes) > _MOST:
        yield f"      and {len(each.changes) - _MOST:,} more changes"


def _change(change: Change, style: Style) -> Iterator[str]:
    head = style.paint(f"{change.weight:<10}", _COLOURS[change.weight])
    texts = [one for one in (change.old, change.new) if isinstance(one, str)]
    if change.weight == "wording" and texts:
        yield f"      {head}  {visible(change.at, _SHORT)}"
        for sign, colour, value in (("-", "red", change.old), ("+", "green", change.new)):
            if value is not ABSENT:
                first, *rest = style.wrapped(visible(value, _TEXT), 20)
                yield style.paint(f"                  {sign} {first.lstrip()}", colour)
                yield from (style.paint(line, colour) for line in rest)
    else:
        yield f"      {head}  {visible(change.at, _SHORT)}: {describe(change, _SHORT)}"


def _summary(found: Sequence[Difference], path: str) -> str:
    """Return the number of differences by weight, the worst first. Each counts once, by its worst change."""
    counts = Counter(each.weight for each in found if each.counts)
    if not counts:
        return f"nothing else differs from {path}" if found else f"{path} is up to date"
    parts = [f"{counts[weight]:,} {_NAMES.get(weight, weight)}" for weight in WEIGHTS if counts[weight]]
    parts += [f"{counts[None]:,} added"] if counts[None] else []
    return f"{counted(counts.total(), 'difference')} from {path}: {', '.join(parts)}"


def _difference(each: Difference) -> dict[str, Any]:
    changes = []
    for change in each.changes:
        values = {"old": change.old, "new": change.new}
        known = {key: value for key, value in values.items() if value is not ABSENT}
        changes.append({"weight": change.weight, "at": change.at, "words": change.words, **known})
    return {
        "kind": each.noun,
        "name": each.name,
        "change": each.what,
        "breaking": each.breaking,
        "counts": each.counts,
        "changes": changes,
    }

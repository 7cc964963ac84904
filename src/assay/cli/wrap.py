"""``assay wrap`` and ``assay unwrap``: put the servers of an MCP client behind the guard, and take them out again."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import islice
from shlex import quote
from shutil import which
from typing import Final

from assay.cli.clients.config_files import (
    CLIENTS,
    FoundConfig,
    backup_of,
    client_of,
    exchange,
    existing,
    find,
    forget_backup,
    meant_clients,
    overwriting_client,
    places,
    short,
)
from assay.cli.clients.dialect import NoServersError, dialect_of
from assay.cli.clients.masks import difference
from assay.cli.clients.parsing import ConfigError
from assay.cli.clients.plan import Plan, Wish, guard_names, likely, unwrap, wrap
from assay.cli.clients.wrapping import PAYLOADS, is_program
from assay.cli.program import agreed, has_terminal, refusal
from assay.cli.terminal.style import Style
from assay.model.printable import counted, escaped
from assay.settings.state_directory import servers_directory

_CLIENT_LIST: Final = f"{', '.join(CLIENTS[:-1])} or {CLIENTS[-1]}"

_KEEP: Final = "assay unwrap uses and removes it; keep it out of version control, because it may hold secrets"
"""Advice about a backup."""

_WRAP: Final = """\
FILE is the configuration of an MCP client: JSON with mcpServers (Claude Desktop, Claude Code, Cursor, Windsurf,
Gemini CLI), servers (VS Code) or context_servers (Zed), or the config.toml of Codex.
An entry with a command becomes `assay guard --name ENTRY -- COMMAND`, one with a url
`assay guard --name ENTRY --target URL`. Entries that are left alone are listed with the reason.
assay wrap shows the changes, without secrets, and asks before it writes them. It saves the original file as
FILE.assay-backup for assay unwrap. Restart the client to use the changes.

Exit status: 0 done or nothing to do, 1 something would change with --dry-run or the answer was no, 2 an error.
"""

_UNWRAP: Final = """\
assay unwrap restores the servers without asking. It removes FILE.assay-backup when no server is left behind the
guard.

Exit status: 0 done or nothing to do, 1 something would change with --dry-run, 2 an error.
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register ``wrap`` and ``unwrap``."""
    wrap = subparsers.add_parser(
        "wrap",
        description="Change the configuration of an MCP client so that its servers run behind the guard.",
        epilog=_WRAP,
    )
    _add_common(wrap)
    wrap.add_argument("--mode", choices=("audit", "enforce"), help="mode of the guard (default: unchanged)")
    wrap.add_argument("--journal", metavar="DIR", help="journal directory, or off (default: unchanged)")
    wrap.add_argument(
        "--payloads",
        action="store_true",
        help="record messages in the journal, for assay console",
    )
    wrap.add_argument("--lock", metavar="FILE", help="lock for the guard, or off (default: unchanged)")
    wrap.add_argument(
        "--program",
        metavar="PATH",
        type=_program,
        help="assay program for the client to start (default: full path of this one)",
    )
    wrap.add_argument("--yes", action="store_true", help="do not ask; needed where there is no terminal")
    wrap.set_defaults(run=run)
    unwrap = subparsers.add_parser(
        "unwrap",
        description="Undo assay wrap: restore the configuration of an MCP client, byte for byte.",
        epilog=_UNWRAP,
    )
    _add_common(unwrap)
    unwrap.add_argument("--yes", action="store_true", help="accepted for scripts; this command never asks")
    unwrap.set_defaults(run=run)


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", nargs="?", help="configuration of an MCP client")
    parser.add_argument(
        "--client",
        metavar="CLIENT",
        choices=CLIENTS,
        help=f"configuration of {_CLIENT_LIST}: the project's, or else the user's",
    )
    parser.add_argument("--all", action="store_true", help="configurations of all clients on this machine")
    parser.add_argument(
        "--server", metavar="NAME", action="append", default=[], help="only this server; repeatable (default: all)"
    )
    parser.add_argument("--dry-run", action="store_true", help="show the changes without making them")


def run(args: argparse.Namespace) -> int:
    """Put servers behind the guard, or take them out again; return the exit status."""
    reason = refusal("guard") if args.chosen == "wrap" else None
    if reason is not None and args.program is None:
        print(f"assay wrap: {reason}: servers behind it do not start on this machine", file=sys.stderr)
    return _Run(args).run()


# ── options ──────────────────────────────────────────────────────────────────────────────────────────────────────────

_CACHES: Final = (
    # uvx and `uv run --with` unpack here; `uv cache clean` and `uv cache prune` remove it.
    (re.compile(r"/(?:archive|environments|builds)-v\d+/"), "uv's cache", "uv tool install"),
    # `pipx run` removes what it has not used for 14 days. PIPX_HOME/.cache in older versions.
    (re.compile(r"/(?:pipx/\.cache|\.cache/pipx|Caches/pipx|pipx/Cache)/"), "the cache of pipx run", "pipx install"),
    (re.compile(r"/_npx/"), "the cache of npx", "npm install --global"),
)
"""Caches that another program may empty: their pattern, their name, and the command for a permanent installation."""


def _wish(args: argparse.Namespace) -> Wish:
    """Return how the guard is to be started. Raises `ConfigError`."""
    program = args.program or _own_program()
    _check_lasting(program)
    lock = _place(args.lock)
    if lock is not None and os.path.isabs(lock) and not os.path.isfile(lock):
        # No server would start.
        raise ConfigError(f"--lock {args.lock}: No such file or directory; assay lock writes one")
    if args.payloads and args.journal == "off":
        raise ConfigError("--payloads records messages in the journal, which --journal off turns off; give only one")
    given = {
        "--mode": args.mode,
        "--journal": _place(args.journal),
        PAYLOADS: "true" if args.payloads else None,
        "--lock": lock,
    }
    options = {name: value for name, value in given.items() if value is not None}
    return Wish(program, options, move=args.program is not None, is_ours=_is_ours)


def _place(path: str | None) -> str | None:
    """Return *path* as an absolute path, since a client starts the guard in any directory."""
    # The client replaces `${workspaceFolder}` and similar placeholders.
    return path if path is None or path == "off" or path.startswith("${") else os.path.abspath(path)


def _program(path: str) -> str:
    if not is_program(path):
        # unwrap recognizes the guard by this name.
        raise argparse.ArgumentTypeError(f"expected a path that ends in assay: {path}")
    return path


def _own_program() -> str:
    """Return the full path of the given command, or of the one that is installed with this module."""
    beside = os.path.join(os.path.dirname(sys.executable), "assay")
    for name in (sys.argv[0] if is_program(sys.argv[0]) else None, beside, "assay"):
        path = which(name) if name else None
        if path is not None:
            return os.path.abspath(path)
    raise ConfigError("cannot find the assay command; give its path with --program")


def _check_lasting(path: str) -> None:
    """Raise `ConfigError` for a *path* inside a cache: once it is emptied, none of the client's servers would start."""
    for each in (path, os.path.realpath(path)):
        for pattern, cache, install in _CACHES:
            if pattern.search(each.replace("\\", "/")):
                raise ConfigError(
                    f"nothing was written: {path} is in {cache}, which may be emptied at any time; install assay "
                    f"first ({install} …) and run assay wrap again, or give --program assay if assay is on the "
                    "client's PATH"
                )


def _is_ours(command: str, env: Mapping[str, object]) -> bool:
    """
    Whether *command*, started with the variables *env*, is this program.

    False for a relative path, whose directory only the client knows, and for an entry with its own PATH.
    """
    bare = os.path.basename(command) == command
    if not bare and not os.path.isabs(command):
        return False
    if bare and any(name.upper() == "PATH" for name in env):
        return False
    path = which(command)
    return path is not None and os.path.realpath(path) == os.path.realpath(_own_program())


# ── the files ────────────────────────────────────────────────────────────────────────────────────────────────────────


class _Run:
    """One call of either command: find the files, show the changes of each, and write them after a yes."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.is_wrap = args.chosen == "wrap"
        self.report = _Report(args.chosen, several=args.all)
        self.names: list[str] = []
        """Names of the servers in all files."""
        self.outcomes: list[tuple[str, Plan, bool]] = []
        """
        Each file, its plan, and whether nothing is left to write: False if the answer was no, or with ``--dry-run``.
        """
        self.failed = 0
        """Number of files that could not be read or written."""

    def run(self) -> int:
        """Process every file; return the worst exit status."""
        args = self.args
        try:
            if self.is_wrap:
                self.wish = _wish(args)
            files = self._files()
        except ConfigError as error:
            self.report.say(str(error))
            return 2
        try:
            status = max(map(self._checked, files))
            missing = [name for name in args.server if args.all and name not in self.names]
            for name in missing:
                self.report.say(f"no server is called {name}{likely(name, self.names)}")
            return 2 if missing else status
        finally:
            # Also after ^C: some files may already be written, with a backup beside them.
            self.report.end()
            if self.is_wrap:
                self._say_what_is_next()
            if args.all and self.outcomes:
                self.report.say(self._total())

    def _files(self) -> list[str]:
        given, client = self.args.file, self.args.client
        if [given is not None, client is not None, self.args.all].count(True) != 1:
            raise ConfigError("specify one of FILE, --client CLIENT and --all")
        if given is not None:
            return [str(given)]
        if self.args.all:
            found = existing(each for client in CLIENTS for each in places(client))
            if not found:
                raise ConfigError(f"no configuration of {_CLIENT_LIST} was found")
            return found
        there = existing(places(client))
        if not there:
            raise ConfigError(f"no configuration of {client} at {' or '.join(map(short, places(client)))}")
        for other in there[1:]:
            used = f"skipped, because {short(there[0])} is used; give it as FILE, or use --all"
            self.report.say(f"{short(other)}: {used}")
        return there[:1]

    def _checked(self, name: str) -> int:
        """Process one file; an error is reported in one line."""
        self.report.begin(name)
        try:
            return self._file(name)
        except NoServersError as error:
            self.report.file(str(error))
            # With --all, a file without servers is normal.
            return 0 if self.args.all else 2
        except ConfigError as error:
            self.failed += 1
            meant = meant_clients(name) if self.args.file is not None and not os.path.lexists(name) else []
            hint = f"; did you mean {' or '.join(f'--client {each}' for each in meant)}?" if meant else ""
            self.report.file(f"{error}{hint}")
            return 2

    def _file(self, name: str) -> int:
        found, dialect = find(name), dialect_of(name)
        backup, names = backup_of(found), list(self.args.server)
        if self.args.all and names:
            there = [server.name for server in dialect.servers(found.text)]
            self.names += there
            names = [name for name in names if name in there]
            if not names:
                return 0
        # Without the guard, as all servers were: those that were wrapped earlier as well.
        bare = unwrap(found.text, backup, () if self.is_wrap else names, dialect)
        plan = wrap(found.text, names, self.wish, dialect) if self.is_wrap else bare
        self._show(name, plan)
        status = 0
        if not plan.changes:
            self._report_unchanged(plan, found)
        elif self.args.dry_run:
            self.report.file(f"{counted(len(plan.changes), 'server')} would change")
            status = 1
        elif self._may_write(name):
            exchange(found, plan.after, backup=bare.after if self.is_wrap else None)
            self._report_written(name, plan, found, backup)
        else:
            self.report.file("nothing was written")
            status = 1
        self.outcomes.append((name, plan, status == 0))
        return status

    def _show(self, name: str, plan: Plan) -> None:
        """Print the changes, then the notes about the servers."""
        if plan.changes:
            self.report.difference(difference(plan.before, plan.after, escaped(short(name)), plan.dialect))
        # With --all, servers behind the guard are only counted: there may be dozens. Those that were never behind it
        # are of no interest to unwrap.
        hidden = {"already"} if self.args.all else set()
        if not self.args.server:
            hidden.add("not behind")
        for each in plan.left:
            if each.outcome not in hidden:
                self.report.note(f"{each.server.label}: left alone: {each.note}")
        advised: dict[str, list[str]] = {}
        for each in plan.changes:
            advised.setdefault(each.note, []).append(each.server.label)
        for advice, labels in advised.items():
            if advice:
                self.report.note(f"{', '.join(labels)}: {advice}")

    def _may_write(self, name: str) -> bool:
        """Whether the change may be written: `assay wrap` asks. Raises `ConfigError` where it cannot."""
        asks = self.is_wrap and not self.args.yes
        if asks and not has_terminal():
            raise ConfigError("nothing was written: there is no terminal to ask on; --yes writes without asking")
        client = overwriting_client(name)
        if client is not None:
            self.report.plain(f"Close {client} first: it may overwrite {short(name)} while it runs.")
        return not asks or agreed(f"Write this to {escaped(short(name))}?")

    def _report_written(self, name: str, plan: Plan, found: FoundConfig, backup: str | None) -> None:
        """Report what was written, and what becomes of the backup; remove one that is not needed any more."""
        rebuilt = [change.server.label for change in plan.changes if change.outcome == "rebuilt"]
        for label in rebuilt:
            self.report.note(f"{label}: rebuilt from its args, because the backup has no entry that matches; check it")
        changed, place = counted(len(plan.changes), "server"), short(found.backup)
        self.report.file(f"{changed} changed; restart {client_of(name) or 'the client'} to apply this")
        if self.is_wrap:
            if not self.args.all:
                self.report.file(f"the original servers are saved in {place}; {_KEEP}")
        elif backup is not None and rebuilt:
            self.report.file(
                f"{place} is kept: it has the originals of the servers that were edited since; "
                "delete it when you have checked them: it may hold secrets"
            )
        elif backup is not None and guard_names(plan.after, plan.dialect):
            self.report.file(f"{place} is kept for the servers that are still behind the guard")
        elif backup is not None:
            forget_backup(found)

    def _report_unchanged(self, plan: Plan, found: FoundConfig) -> None:
        """Report on a file in which nothing changes."""
        already, left = plan.count("already"), plan.count("unchecked", "refused")
        if self.is_wrap and left and not already:
            self.report.file("nothing was wrapped")
        elif self.args.all and already:
            self.report.file(f"nothing to do: {counted(already, 'server')} already behind the guard")
        else:
            self.report.file("nothing to do")
        if not self.is_wrap and found.backup.exists() and not self.args.server:
            backup = short(found.backup)
            self.report.file(f"{backup} is still there; delete it if you do not need it: it may hold secrets")

    # ── all files ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _say_what_is_next(self) -> None:
        """Print what to do after `assay wrap`: once, for all files."""
        changed = [is_written for _, plan, is_written in self.outcomes if plan.changes]
        written = any(changed)
        journal = self.wish.options.get("--journal", "")
        shared = self._shared_names()
        if shared and journal != "off" and (written or (changed and self.args.dry_run)):
            self.report.say(
                f"several servers have the same name: {', '.join(shared)}; their runs are mixed in the journal, unless "
                "you change --name in the args of one"
            )
        if written and self.args.all:
            self.report.say(f"beside each file, FILE.assay-backup has the original servers; {_KEEP}")
        if not written or journal == "off":
            return
        where = f" {quote(journal)}" if os.path.isabs(journal) else ""
        if self.args.payloads:
            # The console follows the usual journals only.
            console = "" if journal else "assay console, "
            shown = f"{console}assay journal show --payloads --server NAME{where}"
            self.report.say(f"messages are recorded, without the secrets that are recognized: {shown}")
        self.report.say(
            f"to see what the guard finds: assay journal list{where}, assay journal show --server NAME{where}"
        )
        other = {name: value for name, value in os.environ.items() if name != "XDG_STATE_HOME"}
        unseen = servers_directory(other)
        if not journal and unseen not in (None, servers_directory(os.environ)):
            self.report.say(
                "XDG_STATE_HOME is set in this shell, but a client may not pass it on to the guard; "
                f"if runs are missing: assay journal list {short(unseen) if quote(unseen) == unseen else quote(unseen)}"
            )

    def _shared_names(self) -> list[str]:
        """Return the names that several guards share, with their clients: the journal mixes their runs."""
        clients: dict[str, Counter[str]] = {}
        for name, plan, is_written in self.outcomes:
            text = plan.after if is_written or self.args.dry_run else plan.before
            for guard in filter(None, guard_names(text, plan.dialect)):
                clients.setdefault(guard, Counter())[client_of(name) or short(name)] += 1
        shared = []
        for guard, found in clients.items():
            where = (f"{number} in {client}" if number > 1 else client for client, number in found.items())
            shared += [f"{guard} ({', '.join(where)})"] if found.total() > 1 else []
        return shared

    def _total(self) -> str:
        """Return the last line of a command with ``--all``."""
        plans = [plan for _, plan, _ in self.outcomes]
        undone = [plan for _, plan, is_written in self.outcomes if not is_written]
        changes, unwritten = (sum(len(plan.changes) for plan in each) for each in (plans, undone))
        already, rebuilt = (sum(plan.count(outcome) for plan in plans) for outcome in ("already", "rebuilt"))
        left = _some(sum(plan.count("unchecked", "refused") for plan in plans), "left alone")
        last = ""
        if self.args.dry_run:
            fine = _some(already, "already behind the guard")
            parts, last = [f"{counted(unwritten, 'server')} would change", fine, left], ". Nothing was written."
        elif self.is_wrap:
            # A server that should only get another option stays behind the guard even if the answer was no.
            updated = sum(plan.count("updated") for plan in undone)
            behind = already + changes - unwritten + updated
            parts = [f"{counted(behind, 'server')} behind the guard", left, _some(unwritten, "not changed")]
            if behind:
                last = f". Undo: assay unwrap --all{''.join(f' --server {quote(each)}' for each in self.args.server)}"
        else:
            done = f"{counted(changes - rebuilt, 'server')} restored" if changes else "no server behind the guard"
            parts = [done, _some(rebuilt, "rebuilt"), left]
        failures = f"{counted(self.failed, 'file')} failed" if self.failed else ""
        return ", ".join(filter(None, [counted(len(plans), "file"), *parts, failures])) + last


def _some(number: int, what: str) -> str:
    return f"{number} {what}" if number else ""


# ── what is printed ──────────────────────────────────────────────────────────────────────────────────────────────────

_COLOURS: Final = {"-": "red", "+": "green", "@": "cyan"}
"""The colours of a diff, by the first character of the line."""


class _Report:
    """
    Prints changes to stdout, and lines about files and their servers to stderr.

    With one file each line names it. With several, each file has a heading, and its lines are indented below it.
    """

    def __init__(self, command: str, *, several: bool) -> None:
        self._command = command
        self._several = several
        self._style = Style(sys.stderr)
        self._name = ""
        self._has_head = False
        """Whether the heading of the current file is printed, or not needed."""
        self._begun = False

    def begin(self, name: str) -> None:
        """Start the block of the file called *name*. Its heading is printed only if a line follows."""
        self._name, self._has_head = name, not self._several

    def difference(self, lines: Iterable[str]) -> None:
        """Print the changes of the file."""
        self._head()
        # The changes and the notes are both below the heading, which has the name of the file.
        is_below = self._several and sys.stdout.isatty() and sys.stderr.isatty()
        style = Style(sys.stdout)
        for line in islice(lines, 2 if is_below else 0, None):
            colour = "bold" if line.startswith(("---", "+++")) else _COLOURS.get(line[:1])
            print(style.paint(line, colour) if colour else line)
        if is_below:
            self._print("")

    def file(self, line: str) -> None:
        """Print a line about the file."""
        self.note(line if self._several else f"{short(self._name)}: {line}")

    def note(self, line: str) -> None:
        """Print a line that names what it is about, below the heading of the file."""
        self._head()
        if self._several:
            self._wrapped(line, 2)
        else:
            self.say(line)

    def plain(self, line: str) -> None:
        """Print a line that goes with the question about a file."""
        self._head()
        self._wrapped(line, 2 if self._several else 0, 0)

    def say(self, line: str) -> None:
        """Print a line that concerns all files."""
        self._wrapped(f"assay {self._command}: {line}", 0)

    def end(self) -> None:
        """Print an empty line after the last file."""
        if self._begun:
            self._print("")

    def _head(self) -> None:
        """Print the heading of the file, unless it was printed already."""
        if not self._has_head:
            heading = "  ".join(filter(None, [client_of(self._name), short(self._name)]))
            self._print(("\n" if self._begun else "") + self._style.paint(escaped(heading), "bold"))
            self._has_head = self._begun = True

    def _wrapped(self, line: str, indent: int, hanging: int = 4) -> None:
        # In a file or a pipe, an unwrapped line is easier to search.
        whole = self._style.limit is None
        lines = [" " * indent + escaped(line)] if whole else self._style.wrapped(escaped(line), indent, hanging)
        self._print("\n".join(lines))

    def _print(self, text: str) -> None:
        """Print *text* after all buffered output."""
        sys.stdout.flush()
        print(text, file=sys.stderr)

"""``assay wrap`` and ``assay unwrap``: put the servers of an MCP client behind the guard, and take them out again."""

from __future__ import annotations

import argparse
import os
import sys
from itertools import islice
from shlex import quote

from assay.base.printable import escaped
from assay.cli.clients.config_files import FileError, FoundConfig, backup_of, exchange, find, forget_backup
from assay.cli.clients.config_places import (
    CLIENTS,
    NAMES,
    all_places,
    client_of,
    existing,
    meant_clients,
    overwriting_client,
    places,
    short,
)
from assay.cli.clients.dialect import Dialect, NoServersError, dialect_of
from assay.cli.clients.entries import check_lasting, is_ours, own_program
from assay.cli.clients.jsonc import ConfigError
from assay.cli.clients.masks import difference
from assay.cli.clients.plan import ALREADY, Plan, Wish, guard_names, suggestion, unwrap, wrap
from assay.cli.clients.wrapping import is_program
from assay.cli.program import refusal
from assay.cli.ready import agreed, has_terminal
from assay.cli.terminal.style import Style
from assay.cli.wrap_report import WrapOutcome, WrapReport, counted, shared_names, total
from assay.settings.state_directory import servers_directory

_CLIENT_LIST = f"{', '.join(CLIENTS[:-1])} or {CLIENTS[-1]}"

_WRAP = """\
FILE is the configuration of an MCP client: JSON with mcpServers (Claude Desktop, Claude Code, Cursor, Windsurf,
Gemini CLI), servers (VS Code) or context_servers (Zed), or the config.toml of Codex.
An entry with a command becomes `assay guard --name ENTRY -- COMMAND`, one with a url
`assay guard --name ENTRY --target URL`. Entries that are left alone are listed with the reason.
The changes are shown first, without secrets, and you are asked. The file as it was before the guard is kept as
FILE.assay-backup, which assay unwrap uses. Restart the client to use the changes.

Exit status: 0 done or nothing to do, 1 with --dry-run something would change, or the answer was no,
2 could not be done.
"""

_UNWRAP = """\
The servers are restored without a question; assay wrap can put them behind the guard again.
FILE.assay-backup is removed when no server is left behind the guard.

Exit status: 0 done or nothing to do, 1 with --dry-run something would change, 2 could not be done.
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register ``wrap`` and ``unwrap``."""
    wrap = subparsers.add_parser(
        "wrap",
        description="Rewrite the configuration of an MCP client, so that its servers run behind the guard.",
        epilog=_WRAP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_common(wrap)
    wrap.add_argument(
        "--mode", choices=("audit", "enforce"), help="start the guard in this mode (default: as it is configured)"
    )
    wrap.add_argument(
        "--journal", metavar="DIR", help="directory of the guard's journal, or off (default: as it is configured)"
    )
    wrap.add_argument(
        "--lock", metavar="FILE", help="the lock that the guard applies, or off (default: as it is configured)"
    )
    wrap.add_argument(
        "--program",
        metavar="PATH",
        type=_program,
        help="the assay that the client starts (default: the full path of this one)",
    )
    wrap.add_argument("--yes", action="store_true", help="do not ask; needed where there is no terminal")
    wrap.set_defaults(run=run_wrap)
    unwrap = subparsers.add_parser(
        "unwrap",
        description="Restore the configuration of an MCP client, byte for byte, as it was before assay wrap.",
        epilog=_UNWRAP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_common(unwrap)
    unwrap.add_argument("--yes", action="store_true", help="accepted for scripts; this command never asks")
    unwrap.set_defaults(run=run_unwrap)


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", nargs="?", help="the configuration of an MCP client")
    parser.add_argument(
        "--client",
        metavar="CLIENT",
        choices=CLIENTS,
        help=f"the configuration of {_CLIENT_LIST}: the project's, or else the user's",
    )
    parser.add_argument("--all", action="store_true", help="the configurations of all clients on this machine")
    parser.add_argument(
        "--server", metavar="NAME", action="append", default=[], help="only this one; can be repeated (default: all)"
    )
    parser.add_argument("--dry-run", action="store_true", help="show what would change, and change nothing")


def run_wrap(args: argparse.Namespace) -> int:
    """Put servers behind the guard; return the exit status."""
    reason = refusal("guard")
    if reason is not None and args.program is None:
        print(f"assay wrap: {reason}: servers behind it do not start on this machine", file=sys.stderr)
    return _Run(args, "wrap").run()


def run_unwrap(args: argparse.Namespace) -> int:
    """Take servers out again; return the exit status."""
    return _Run(args, "unwrap").run()


class _Run:
    """One call of either command: find the files, show the changes of each, and write them after a yes."""

    def __init__(self, args: argparse.Namespace, command: str) -> None:
        self.args = args
        self.is_wrap = command == "wrap"
        self.report = WrapReport(command, several=args.all)
        self.options: dict[str, str] = {}
        """The options of the guard that are given."""
        self.names: list[str] = []
        """Names of the servers in all files."""
        self.outcomes: list[WrapOutcome] = []
        self.failed = 0
        """Number of files that could not be read or written."""

    def run(self) -> int:
        """Process every file; return the worst exit status."""
        args = self.args
        try:
            if self.is_wrap:
                self.program = args.program or own_program()
                check_lasting(self.program)
                given = {"--mode": args.mode, "--journal": _place(args.journal), "--lock": _lock(args.lock)}
                self.options = {name: value for name, value in given.items() if value is not None}
            files = self._files()
        except FileError as error:
            self.report.say(str(error))
            return 2
        try:
            status = max(map(self._checked, files))
            missing = [name for name in args.server if args.all and name not in self.names]
            for name in missing:
                self.report.say(f"no server is called {name}{suggestion(name, self.names)}")
            return 2 if missing else status
        finally:
            # Also after ^C: some files may already be written, with a backup beside them.
            self.report.end()
            if self.is_wrap:
                self._say_what_is_next()
            if args.all and self.outcomes:
                self.report.say(total(self.outcomes, self.failed, args, is_wrap=self.is_wrap))

    def _files(self) -> list[str]:
        given, client = self.args.file, self.args.client
        if [given is not None, client is not None, self.args.all].count(True) != 1:
            raise FileError("specify FILE, --client CLIENT or --all")
        if given is not None:
            return [str(given)]
        if self.args.all:
            found = all_places()
            if not found:
                raise FileError(f"no configuration of {_CLIENT_LIST} was found")
            return found
        there = existing(places(client))
        if not there:
            raise FileError(f"no configuration of {client} at {' or '.join(map(short, places(client)))}")
        for other in there[1:]:
            self.report.file(other, f"skipped, because {short(there[0])} is used; give it as FILE, or use --all")
        return there[:1]

    def _checked(self, name: str) -> int:
        """Process one file; an error is reported in one line."""
        self.report.begin(name)
        try:
            return self._file(name)
        except NoServersError as error:
            self.report.file(name, str(error))
            # With --all, a file without servers is normal.
            return 0 if self.args.all else 2
        except (ConfigError, FileError) as error:
            self.failed += 1
            meant = meant_clients(name) if self.args.file is not None and not os.path.lexists(name) else []
            hint = f"; did you mean {' or '.join(f'--client {each}' for each in meant)}?" if meant else ""
            self.report.file(name, f"{error}{hint}")
            return 2

    def _file(self, name: str) -> int:
        found, dialect = find(name), dialect_of(name)
        text, backup = found.text, backup_of(found)
        names: list[str] = self.args.server
        if self.args.all and names:
            there = [server.name for server in dialect.servers(text)]
            self.names += there
            names = [name for name in names if name in there]
            if not names:
                return 0
        if self.is_wrap:
            wish = Wish(self.program, self.options, move=self.args.program is not None, is_ours=is_ours)
            plan = wrap(text, names, wish, dialect)
        else:
            plan = unwrap(text, backup, names, dialect)
        self._show(name, plan, dialect)
        status = 0
        if plan.changes and self.args.dry_run:
            self.report.file(name, f"{counted(len(plan.changes))} would change")
            status = 1
        elif plan.changes:
            status = (self._wrap if self.is_wrap else self._unwrap)(name, found, plan, backup, dialect)
        outcome = WrapOutcome(name, plan, dialect, written=status == 0)
        self.outcomes.append(outcome)
        if not plan.changes:
            self._report_unchanged(outcome, found)
        return status

    def _show(self, name: str, plan: Plan, dialect: Dialect) -> None:
        """Print the changes, then the notes about the servers."""
        if plan.changes:
            self.report.head()
            style = Style(sys.stdout)
            lines = difference(plan.before, plan.after, escaped(short(name)), dialect)
            for line in islice(lines, 2 if self.report.has_headings else 0, None):
                print(style.paint(line, *_colours(line)))
            if self.report.has_headings:
                # The changes and the notes are both indented.
                self.report.print("")
        for each in plan.left:
            # With --all, those behind the guard are only counted: there may be dozens. Those that were never behind it
            # are of no interest to unwrap.
            if not self.args.all or each.why != ALREADY if self.is_wrap else self.args.server or not each.fine:
                self.report.note(f"{each.server.label}: left alone: {each.why}")
        advised: dict[str, list[str]] = {}
        for change in plan.changes:
            if change.advice is not None:
                advised.setdefault(change.advice, []).append(change.server.label)
        for advice, labels in advised.items():
            self.report.note(f"{', '.join(labels)}: {advice}")

    def _wrap(self, name: str, found: FoundConfig, plan: Plan, backup: str | None, dialect: Dialect) -> int:
        if not self.args.yes and not has_terminal():
            raise FileError("nothing was written: there is no terminal to ask on; --yes writes without asking")
        self._warn_of_client(name)
        if not self.args.yes and not agreed(f"Write this to {escaped(short(name))}?"):
            self.report.file(name, "nothing was written")
            return 1
        # The backup has the originals of all servers, including those that were wrapped earlier.
        exchange(found, plan.after, backup=unwrap(plan.before, backup, dialect=dialect).after)
        self.report.file(name, f"{counted(len(plan.changes))} changed; restart {_client(name)} to use it")
        if not self.args.all:
            self.report.file(name, f"the original servers are saved in {short(str(found.backup))}; {_KEEP}")
        return 0

    def _unwrap(self, name: str, found: FoundConfig, plan: Plan, backup: str | None, dialect: Dialect) -> int:
        self._warn_of_client(name)
        exchange(found, plan.after)
        rebuilt = [change.server.label for change in plan.changes if change.outcome == "rebuilt"]
        for label in rebuilt:
            self.report.note(f"{label}: rebuilt from its args, because the backup has no entry that matches; check it")
        self.report.file(name, f"{counted(len(plan.changes))} changed; restart {_client(name)} to use it")
        kept = f"{short(str(found.backup))} is kept"
        if backup is not None and rebuilt:
            self.report.file(
                name,
                f"{kept}: it has the originals of the servers that were edited since; "
                "delete it when you have checked them: it may hold secrets",
            )
        elif backup is not None and guard_names(plan.after, dialect):
            self.report.file(name, f"{kept} for the servers that are still behind the guard")
        elif backup is not None:
            forget_backup(found)
        return 0

    def _warn_of_client(self, name: str) -> None:
        """Report that the client may undo the change while it runs."""
        client = overwriting_client(name)
        if client is not None:
            self.report.plain(f"Close {client} first: it may overwrite {short(name)} while it runs.")

    def _report_unchanged(self, outcome: WrapOutcome, found: FoundConfig) -> None:
        """Report on a file in which nothing changes."""
        if self.is_wrap and outcome.left and not outcome.already:
            self.report.file(outcome.name, "nothing was wrapped")
        elif self.is_wrap and self.args.all and outcome.already:
            self.report.file(outcome.name, f"nothing to do: {counted(outcome.already)} already behind the guard")
        else:
            self.report.file(outcome.name, "nothing to do")
        if not self.is_wrap and found.backup.exists() and not self.args.server:
            backup = short(str(found.backup))
            note = f"{backup} is still there; delete it if you do not need it: it may hold secrets"
            self.report.file(outcome.name, note)

    def _say_what_is_next(self) -> None:
        """Print what to do after `assay wrap`: once, for all files."""
        changed = [each for each in self.outcomes if each.plan.changes]
        written = any(each.written for each in changed)
        journal = self.options.get("--journal", "")
        shared = shared_names(self.outcomes, dry_run=self.args.dry_run)
        if shared is not None and journal != "off" and (written or (changed and self.args.dry_run)):
            self.report.say(shared)
        if written and self.args.all:
            self.report.say(f"beside each file, FILE.assay-backup has the original servers; {_KEEP}")
        if not written or journal == "off":
            return
        where = f" {quote(journal)}" if os.path.isabs(journal) else ""
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


_KEEP = "assay unwrap uses and removes it; keep it out of version control, it may hold secrets"
"""Advice about a backup."""


def _client(name: str) -> str:
    """Return the display name of the client whose file is called *name*."""
    client = client_of(name)
    return "the client" if client is None else NAMES[client]


def _place(path: str | None) -> str | None:
    """Return *path* as an absolute path, since a client starts the guard in any directory."""
    # The client replaces `${workspaceFolder}` and similar placeholders.
    return path if path is None or path == "off" or path.startswith("${") else os.path.abspath(path)


def _lock(path: str | None) -> str | None:
    """Return *path* as an absolute path. Raises `FileError` if it does not exist: no server would start."""
    place = _place(path)
    if place is not None and os.path.isabs(place) and not os.path.isfile(place):
        raise FileError(f"--lock {path}: No such file or directory; assay lock writes one")
    return place


def _program(path: str) -> str:
    if not is_program(path):
        # unwrap recognizes the guard by this name.
        raise argparse.ArgumentTypeError(f"expected a path that ends in assay: {path}")
    return path


def _colours(line: str) -> tuple[str, ...]:
    """Return the colour of a diff line."""
    if line.startswith(("---", "+++")):
        return ("bold",)
    return {"-": ("red",), "+": ("green",), "@": ("cyan",)}.get(line[:1], ())

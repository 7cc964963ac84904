"""``assay wrap`` and ``assay unwrap``: put the servers of an MCP client behind the guard, and take them out again."""

# ruff: noqa: PLC0415  each command imports only what it needs: `assay --help` needs none of it

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

from assay.cli.platforms import refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assay.clients.files import Found
    from assay.clients.plan import Plan

_CLIENTS = ("claude-desktop", "cursor", "vscode")

_WRAP = """\
FILE is a configuration with mcpServers (Claude Desktop, Cursor) or servers (VS Code), comments and all.
An entry with a command becomes `assay guard -- COMMAND`, one with a url `assay guard --target URL`; what is left
alone is told with the reason. What changes is shown first, without secrets, and asked for; the file with all
servers as they were before the guard is kept beside it as FILE.assay-backup. The client has to be restarted to
notice.

Exit status: 0 done or nothing to do, 1 with --dry-run something would change, or the answer was no,
2 could not be done.
"""

_UNWRAP = """\
Nobody is asked: what comes back is what was there before the servers were put behind the guard, and assay wrap
puts them back. FILE.assay-backup goes when no server is left behind the guard.

Exit status: 0 done or nothing to do, 1 with --dry-run something would change, 2 could not be done.
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register ``wrap`` and ``unwrap``."""
    wrap = subparsers.add_parser(
        "wrap",
        help="put the servers of an MCP client behind the guard",
        description="Rewrite the configuration of an MCP client, so that its servers run behind the guard.",
        epilog=_WRAP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_common(wrap)
    wrap.add_argument(
        "--mode", choices=("audit", "enforce"), help="how the guard is started (default: as it is configured)"
    )
    wrap.add_argument(
        "--program",
        metavar="PATH",
        type=_program,
        help="the assay that the client starts, as it finds it (default: the whole path of this one)",
    )
    wrap.add_argument("--yes", action="store_true", help="do not ask; needed where there is no terminal")
    wrap.set_defaults(run=run_wrap)
    unwrap = subparsers.add_parser(
        "unwrap",
        help="take the servers of an MCP client out from behind the guard",
        description="Undo what assay wrap has done to the configuration of an MCP client, to the byte.",
        epilog=_UNWRAP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_common(unwrap)
    unwrap.set_defaults(run=run_unwrap)


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", nargs="?", help="the configuration of an MCP client")
    parser.add_argument("--client", choices=_CLIENTS, help="the configuration of this client, where it usually is")
    parser.add_argument(
        "--server", metavar="NAME", action="append", default=[], help="only this one; can be repeated (default: all)"
    )
    parser.add_argument("--dry-run", action="store_true", help="show what would change, and change nothing")


def run_wrap(args: argparse.Namespace) -> int:
    """Put servers behind the guard; the exit status."""
    reason = refusal("guard")
    if reason is not None and args.program is None:
        print(f"assay wrap: {reason}: servers behind it do not start on this machine", file=sys.stderr)
    return _told(_Wrapping(args, "wrap"))


def run_unwrap(args: argparse.Namespace) -> int:
    """Take servers out again; the exit status."""
    return _told(_Unwrapping(args, "unwrap"))


def _told(task: _Task) -> int:
    """Does *task*; what stands in its way is one line."""
    from assay.clients.entries import ConfigError
    from assay.clients.files import FileError

    try:
        return task.run()
    except (ConfigError, FileError) as error:
        task.say(f"{task.name}: {error}" if task.name else str(error))
        return 2


class _Task:
    """What both commands do: find the file, show what changes, do it or not."""

    def __init__(self, args: argparse.Namespace, command: str) -> None:
        self.args = args
        self.command = command
        self.name = ""

    def run(self) -> int:
        """The exit status."""
        from assay.clients.files import backup_of, find

        self.name = self._file()
        found = find(self.name)
        backup = backup_of(found)
        plan = self.plan(found.text, backup)
        self._tell_left(plan)
        if not plan.changes:
            self.say(f"{self.name}: nothing to do")
            return 0
        self._show(plan)
        count = f"{len(plan.changes)} server{'' if len(plan.changes) == 1 else 's'}"
        if self.args.dry_run:
            self.say(f"{self.name}: {count} would change")
            return 1
        return self.carry_out(found, plan, backup, count)

    def plan(self, text: str, backup: str | None) -> Plan:
        """What becomes of the configuration."""
        raise NotImplementedError

    def carry_out(self, found: Found, plan: Plan, backup: str | None, count: str) -> int:
        """Write it down; the exit status."""
        raise NotImplementedError

    def say(self, line: str) -> None:
        """One line to people, after all that was printed for them before."""
        sys.stdout.flush()
        print(f"assay {self.command}: {_shown(line)}", file=sys.stderr)

    def _file(self) -> str:
        from assay.clients.files import FileError
        from assay.clients.places import place, places

        given, client = self.args.file, self.args.client
        if (given is None) == (client is None):
            raise FileError(f"name the FILE, or the client with --client {{{','.join(_CLIENTS)}}}")
        if given is not None:
            return str(given)
        name = place(client)
        if name is None:
            raise FileError(f"no configuration of {client} at {' or '.join(places(client))}")
        return name

    def _tell_left(self, plan: Plan) -> None:
        """Which servers stay as they are. Whoever takes all out does not ask about those that are not in."""
        for each in plan.left:
            if not each.fine or self.args.server or self.command == "wrap":
                self.say(f"{each.server.name}: left alone: {each.why}")

    def _show(self, plan: Plan) -> None:
        from assay.clients.masks import difference
        from assay.console.style import Style

        style = Style(sys.stdout)
        for line in difference(plan.before, plan.after, _shown(self.name)):
            print(style.paint(line, *_colours(line)))
        sys.stdout.flush()
        for change in plan.changes:
            if change.advice is not None:
                self.say(f"{change.server.name}: {change.advice}")


class _Wrapping(_Task):
    """Behind the guard."""

    def plan(self, text: str, backup: str | None) -> Plan:
        from assay.clients.guarding import written
        from assay.clients.plan import wrap

        args = self.args
        program = args.program or _own_program()
        move = args.program is not None
        return wrap(text, backup, args.server, written(program), args.mode, move=move, is_ours=_is_ours)

    def carry_out(self, found: Found, plan: Plan, backup: str | None, count: str) -> int:
        from assay.cli.asking import agreed, has_terminal
        from assay.clients.files import FileError, exchange
        from assay.clients.plan import unwrap

        if not self.args.yes:
            if not has_terminal():
                raise FileError("nothing was written: there is no terminal to ask on; --yes does it unasked")
            if not agreed(f"Write this to {_shown(self.name)}?"):
                self.say(f"{self.name}: nothing was written")
                return 1
        # What all servers were before the guard, so that it holds for those that were put behind it earlier, too.
        exchange(found, plan.after, backup=unwrap(plan.before, backup).after)
        self.say(f"{self.name}: {count} changed; restart the client to use it")
        self.say(f"{self.name}: with all servers as they were before the guard, it is in {found.backup}")
        return 0


class _Unwrapping(_Task):
    """Out again."""

    def plan(self, text: str, backup: str | None) -> Plan:
        from assay.clients.plan import unwrap

        return unwrap(text, backup, self.args.server)

    def carry_out(self, found: Found, plan: Plan, backup: str | None, count: str) -> int:
        from assay.clients.files import exchange, forget_backup
        from assay.clients.plan import are_guarded

        exchange(found, plan.after)
        rebuilt = [change.server.name for change in plan.changes if change.outcome == "rebuilt"]
        for name in rebuilt:
            self.say(f"{name}: taken from its args, since the backup has not what was wrapped; look at it once more")
        self.say(f"{self.name}: {count} changed; restart the client to use it")
        if not are_guarded(plan.after) and not rebuilt:
            forget_backup(found)
        elif rebuilt and backup is not None:
            self.say(f"{self.name}: {found.backup} is kept")
        return 0


def _program(path: str) -> str:
    from assay.clients.guarding import is_program

    if not is_program(path):
        # By its name it is known again.
        raise argparse.ArgumentTypeError(f"expected a path that ends in assay: {path}")
    return path


def _own_program() -> str:
    """The whole path of the command that was given, or of the one that is installed with this module."""
    from shutil import which

    from assay.clients.files import FileError
    from assay.clients.guarding import is_program

    beside = os.path.join(os.path.dirname(sys.executable), "assay")
    for name in (sys.argv[0] if is_program(sys.argv[0]) else None, beside, "assay"):
        path = which(name) if name else None
        if path is not None:
            return os.path.abspath(path)
    raise FileError("the command assay is not installed where it can be found; name it with --program")


def _is_ours(command: str, env: Mapping[str, object]) -> bool:
    """
    Whether a client that starts *command* with the variables *env* starts this very program.

    A relative path is looked for in a directory that only the client knows, and a PATH of its own leads anywhere.
    """
    from shutil import which

    bare = os.path.basename(command) == command
    if not bare and not os.path.isabs(command):
        return False
    if bare and any(name.upper() == "PATH" for name in env):
        return False
    path = which(command)
    return path is not None and os.path.realpath(path) == os.path.realpath(_own_program())


def _colours(line: str) -> tuple[str, ...]:
    """How a line of a diff is shown."""
    if line.startswith(("---", "+++")):
        return ("bold",)
    return {"-": ("red",), "+": ("green",), "@": ("cyan",)}.get(line[:1], ())


def _shown(text: str) -> str:
    """*text* with nothing in it that a terminal would act upon."""
    return text if text.isprintable() else ascii(text)[1:-1]

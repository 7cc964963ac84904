"""The output of ``assay wrap`` and ``assay unwrap``: one block for each file, and a total for ``--all``."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from shlex import quote

from assay.base.printable import escaped
from assay.cli.clients.config_places import NAMES, client_of, short
from assay.cli.clients.dialect import Dialect
from assay.cli.clients.plan import ALREADY, NOT_BEHIND, Plan, guard_names
from assay.cli.terminal.style import Style


@dataclass(frozen=True, slots=True)
class WrapOutcome:
    """The result for one file."""

    name: str
    plan: Plan
    dialect: Dialect
    written: bool
    """Whether the changes were written; False if the answer was no, or with ``--dry-run``."""

    @property
    def already(self) -> int:
        """Number of servers that were already behind the guard."""
        return sum(each.why == ALREADY for each in self.plan.left)

    @property
    def left(self) -> int:
        """Number of servers that are left alone for a reason worth reporting."""
        return sum(each.why not in (ALREADY, NOT_BEHIND) for each in self.plan.left)


class WrapReport:
    """
    Prints lines about files and their servers to stderr.

    With one file each line names it. With several, each file has a heading, and its lines are indented below it.
    """

    def __init__(self, command: str, *, several: bool) -> None:
        self._command = command
        self._several = several
        self._style = Style(sys.stderr)
        self._pending: str | None = None
        self._begun = False

    @property
    def has_headings(self) -> bool:
        """Whether each file has a heading, so that its diff needs none."""
        return self._several and sys.stdout.isatty() and sys.stderr.isatty()

    def begin(self, name: str) -> None:
        """Start the block of the file called *name*. Its heading is printed only if a line follows."""
        self._pending = name

    def head(self) -> None:
        """Print the heading of the file, unless it was printed already."""
        name, self._pending = self._pending, None
        if name is not None and self._several:
            client = client_of(name)
            heading = short(name) if client is None else f"{NAMES[client]}  {short(name)}"
            self.print(("\n" if self._begun else "") + self._style.paint(escaped(heading), "bold"))
            self._begun = True

    def file(self, name: str, line: str) -> None:
        """Print a line about the file called *name*."""
        self.note(line if self._several else f"{short(name)}: {line}")

    def note(self, line: str) -> None:
        """Print a line that names what it is about, below the heading of the file."""
        self.head()
        if self._several:
            self._wrapped(line, 2)
        else:
            self.say(line)

    def plain(self, line: str) -> None:
        """Print a line that goes with the question about a file."""
        self.head()
        self._wrapped(line, 2 if self._several else 0, 0)

    def say(self, line: str) -> None:
        """Print a line that concerns all files."""
        self._wrapped(f"assay {self._command}: {line}", 0)

    def end(self) -> None:
        """Print an empty line after the last file."""
        if self._begun:
            self.print("")

    def _wrapped(self, line: str, indent: int, hanging: int = 4) -> None:
        # In a file or a pipe, an unwrapped line is easier to search.
        whole = self._style.limit is None
        lines = [" " * indent + escaped(line)] if whole else self._style.wrapped(escaped(line), indent, hanging)
        self.print("\n".join(lines))

    def print(self, text: str) -> None:
        """Print *text* after all buffered output."""
        sys.stdout.flush()
        print(text, file=sys.stderr)


def counted(number: int, noun: str = "server") -> str:
    """Return *number* with *noun* in the singular or the plural."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def total(outcomes: list[WrapOutcome], failed: int, args: argparse.Namespace, *, is_wrap: bool) -> str:
    """Return the last line of a command with ``--all``."""
    changes = [(change.outcome, each.written) for each in outcomes for change in each.plan.changes]
    already, left = sum(each.already for each in outcomes), sum(each.left for each in outcomes)
    unchanged = sum(not written for _, written in changes)
    rebuilt = sum(outcome == "rebuilt" for outcome, _ in changes)
    # A server that should only get another option stays behind the guard even if the answer was no.
    behind = already + sum(written or outcome == "updated" for outcome, written in changes)
    last = ""
    if args.dry_run:
        parts = [f"{counted(unchanged)} would change", _some(already if is_wrap else 0, "already behind the guard")]
        parts, last = [*parts, _some(left, "left alone")], "Nothing was written."
    elif is_wrap:
        parts = [f"{counted(behind)} behind the guard", _some(left, "left alone"), _some(unchanged, "not changed")]
        if behind:
            last = f"Undo: assay unwrap --all{''.join(f' --server {quote(each)}' for each in args.server)}"
    else:
        done = f"{counted(len(changes) - rebuilt)} restored" if changes else "no server behind the guard"
        parts = [done, _some(rebuilt, "rebuilt"), _some(left, "left alone")]
    failures = f"{counted(failed, 'file')} failed" if failed else ""
    line = ", ".join(filter(None, [counted(len(outcomes), "file"), *parts, failures]))
    return f"{line}. {last}" if last else line


def _some(number: int, what: str) -> str:
    return f"{number} {what}" if number else ""


def shared_names(outcomes: Iterable[WrapOutcome], *, dry_run: bool) -> str | None:
    """Return a warning about names that several guards share: the journal mixes their runs."""
    clients: dict[str, Counter[str]] = {}
    for each in outcomes:
        client = client_of(each.name)
        text = each.plan.after if each.written or dry_run else each.plan.before
        for name in filter(None, guard_names(text, each.dialect)):
            clients.setdefault(name, Counter())[NAMES[client] if client else short(each.name)] += 1
    shared = []
    for name, found in clients.items():
        where = (f"{number} in {client}" if number > 1 else client for client, number in found.items())
        shared += [f"{name} ({', '.join(where)})"] if found.total() > 1 else []
    if not shared:
        return None
    return (
        f"several servers have the same name: {', '.join(shared)}; their runs are mixed in the journal, unless you "
        "change --name in the args of one"
    )

"""``assay schemas``: the protocol's own schema of each revision, to list, read, export and compare."""

from __future__ import annotations

import argparse
import sys
from json import dumps
from pathlib import Path
from textwrap import wrap
from typing import Any

from assay.cli.program import say
from assay.cli.revision_changes import RevisionChange, revision_changes, section
from assay.cli.terminal.style import Style
from assay.cli.terminal.table import Column, Table
from assay.edges.standard_streams import write_utf8
from assay.model.atomic_file import replace_file
from assay.model.errors import UsageError
from assay.spec.extensions import BY_IDENTIFIER, EXTENSIONS
from assay.spec.methods import methods
from assay.spec.revisions import LATEST, REVISIONS, named
from assay.spec.schema import ProtocolSchema, extension_schema, protocol_schema, suggestion

_LITERAL = "the official schema.json to the letter, without corrections of its known errors"

_REVISION = "a revision such as 2025-11-25, latest, or an extension such as tasks"


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register ``schemas`` and its sub-commands; each sets ``run``."""
    parser = subparsers.add_parser(
        "schemas",
        description="The schema of every released revision of the Model Context Protocol, and of its official "
        "extensions, as Assay judges by it.",
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    lists = commands.add_parser(
        "list",
        help="list the revisions and extensions, or the definitions of one",
        description="List the revisions and extensions that Assay knows; with one, its definitions, one a line.",
    )
    lists.add_argument("revision", metavar="REVISION", nargs="?", type=named, help=_REVISION)
    lists.set_defaults(run=run_list)
    show = commands.add_parser(
        "show",
        help="print one definition",
        description="Print one definition as JSON Schema 2020-12.",
    )
    show.add_argument("revision", metavar="REVISION", type=named, help=_REVISION)
    show.add_argument("definition", metavar="DEFINITION", help="a definition such as CallToolResult")
    show.add_argument("--closure", action="store_true", help="with every definition it refers to, as one document")
    show.add_argument("--literal", action="store_true", help=_LITERAL)
    show.set_defaults(run=run_show)
    export = commands.add_parser(
        "export",
        help="write the schemas of all revisions and extensions to files",
        description="Write DIR/<revision>.json for every released revision, and DIR/<extension>.json for every "
        "official extension. The same bytes on every run.",
    )
    export.add_argument("directory", metavar="DIR", help="the directory to write to; created if it does not exist")
    export.add_argument("--literal", action="store_true", help=_LITERAL)
    export.set_defaults(run=run_export)
    diff = commands.add_parser(
        "diff",
        help="show what changed between two revisions",
        description="Show what changed from one revision to another, definition by definition and field by field.",
        epilog="A change is breaking if a receiver that judges by OLD refuses something that NEW allows there.",
    )
    diff.add_argument("old", metavar="OLD", type=named, help="the revision to start from")
    diff.add_argument("new", metavar="NEW", type=named, help="the revision to compare with, or latest")
    diff.add_argument("--format", choices=("text", "json", "markdown"), default="text", help="default: %(default)s")
    diff.add_argument("--definition", metavar="NAME", help="only the changes of this definition")
    diff.set_defaults(run=run_diff)


def run_list(args: argparse.Namespace) -> int:
    """Print the revisions with their number of definitions, or the definitions of one revision."""
    print("\n".join(_schema(args.revision).own if args.revision else _revisions()))
    return 0


def run_show(args: argparse.Namespace) -> int:
    """Print one definition, alone or with the definitions it refers to."""
    protocol = _schema(args.revision, errata=not args.literal)
    try:
        shown = protocol.closure(args.definition) if args.closure else protocol.definition(args.definition)
    except KeyError as error:
        raise UsageError(str(error.args[0])) from None
    write_utf8(_json(shown))
    return 0


def run_export(args: argparse.Namespace) -> int:
    """Write the schema of every revision and of every extension to a file."""
    directory = Path(args.directory)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name in (*REVISIONS, *EXTENSIONS):
            path = directory / f"{name}.json"
            document = _schema(name, errata=not args.literal).document()
            replace_file(path, _json(document).encode())
            say(f"wrote {path}: {len(document['$defs'])} definitions")
    except OSError as error:
        raise UsageError(f"cannot write {error.filename or directory}: {error.strerror}") from None
    return 0


def run_diff(args: argparse.Namespace) -> int:
    """Print what changed between two revisions. The status is 0 even if something changed: that is not an error."""
    old, new = args.old, args.new
    found = _changes(old, new, args.definition)
    if args.format == "json":
        changes = [
            {
                "definition": change.definition,
                "field": change.field,
                "change": change.kind,
                "words": change.words,
                "breaking": change.breaking,
            }
            for change in found
        ]
        write_utf8(_json({"old": old, "new": new, "changes": changes}))
    elif args.format == "markdown":
        sys.stdout.write(f"## {old} → {new}\n\n{section(found)}")
    else:
        print("\n".join(_lines(old, new, found)))
    return 0


_COLUMNS = (Column("definitions", 11, is_number=True), Column("methods", 7, is_number=True))


def _revisions() -> list[str]:
    """Return the lines of two tables, whose columns are below each other."""
    style = Style(sys.stdout)
    table = Table(style, [Column("revision", 11), *_COLUMNS], wide=True)
    lines = [table.head()]
    for each in REVISIONS:
        counts = {"definitions": f"{len(protocol_schema(each).definitions)}", "methods": f"{len(methods(each))}"}
        lines += table.lines({"revision": each, **counts})
    table = Table(style, [Column("extension", 11), *_COLUMNS, Column("standing")], wide=True)
    lines += ["", table.head()]
    for name, extension in EXTENSIONS.items():
        counts = {"definitions": f"{len(_schema(name).own)}", "methods": f"{len(extension.methods)}"}
        lines += table.lines({"extension": name, **counts, "standing": extension.standing})
    return lines


def _schema(name: str, *, errata: bool = True) -> ProtocolSchema:
    """Return the schema of a revision, or of an extension on top of the latest one. Raises `UsageError`."""
    extension = EXTENSIONS.get(name) or BY_IDENTIFIER.get(name)
    if extension is not None:
        return extension_schema(extension, LATEST, errata=errata)
    if name not in REVISIONS:
        raise UsageError(f"there is no revision {name!r}; there are {', '.join((*REVISIONS, *EXTENSIONS))}")
    return protocol_schema(name, errata=errata)


def _changes(old: str, new: str, definition: str | None) -> list[RevisionChange]:
    before, after = _schema(old), _schema(new)
    found = revision_changes(before, after)
    if definition is None:
        return found
    known = sorted({*before.own, *after.own})
    if definition not in known:
        raise UsageError(f"neither revision has a definition {definition!r}{suggestion(definition, known)}")
    return [change for change in found if change.definition == definition]


def _lines(old: str, new: str, found: list[RevisionChange]) -> list[str]:
    lines, style = [], Style(sys.stdout)
    width = min(max((len(change.field) for change in found), default=0), 40)
    shown = ""
    for change in found:
        if change.definition != shown:
            shown = change.definition
            lines.append(shown)
        mark = {"added": "+", "removed": "-", "changed": "~"}[change.kind]
        breaking = "  (breaking)" if change.breaking else ""
        place = f"{change.field:<{width}}  " if change.field else ""
        line = f"  {mark} {place}{change.words}{breaking}"
        if style.limit is None or len(line) <= style.limit:
            lines.append(line)
        else:
            # Wrapped so that the columns stay readable.
            indent = " " * min(4 + len(place), style.limit // 2)
            lines += wrap(line, style.limit, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    breaking_ones = sum(change.breaking is True for change in found)
    lines.append(f"{len(found)} changes from {old} to {new}, {breaking_ones} of them breaking")
    return lines


def _json(value: Any) -> str:
    return dumps(value, indent=2, ensure_ascii=False) + "\n"

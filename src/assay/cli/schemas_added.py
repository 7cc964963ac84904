"""``assay schemas add`` and ``remove``: draft revisions and extensions, read from files at run time."""

# ruff: noqa: PLC0415  each command imports only what it needs: `assay --help` needs none of it

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from assay.settings.added_schemas import AddedSchema
    from assay.spec.schema import ProtocolSchema

Subparsers = argparse._SubParsersAction  # argparse has no public name for it


def add_added(commands: Subparsers[argparse.ArgumentParser]) -> None:
    """Register ``add`` and ``remove``; each sets ``run``."""
    _add_add(commands)
    _add_remove(commands)


def answered(answer: Callable[[], str], *, json: bool = False) -> int:
    """Print the result of *answer*; an unknown name is reported in one line."""
    try:
        text = answer()
    except (KeyError, ValueError) as error:
        print(_plain(f"assay schemas: {error.args[0]}"), file=sys.stderr)
        return 2
    if json:
        from assay.edges.standard_streams import write_utf8

        write_utf8(text)
    else:
        sys.stdout.write(text)
    return 0


def _add_add(commands: Subparsers[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "add",
        help="read a draft revision or an extension from a JSON Schema file",
        description="Read a draft revision, or an extension, from a JSON Schema file, check it, and keep it in the "
        "state directory. It is used only where an option or a setting names it.",
    )
    parser.add_argument("name", metavar="NAME", help="its name: 1 to 64 letters, digits, dots, - and _")
    parser.add_argument("file", metavar="FILE", help="a file such as the official schema.json of a revision")
    parser.set_defaults(run=run_add)


def _add_remove(commands: Subparsers[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "remove", help="remove an added schema", description="Remove a schema that assay schemas add has read."
    )
    parser.add_argument("name", metavar="NAME", help="its name")
    parser.set_defaults(run=run_remove)


def run_add(args: argparse.Namespace) -> int:
    """Read, check and keep a schema; print what it has."""
    return answered(lambda: _add(args.name, args.file))


def run_remove(args: argparse.Namespace) -> int:
    """Remove an added schema."""
    return answered(lambda: _remove(args.name))


def _add(name: str, file: str) -> str:
    from assay.settings.added_schemas import check_name, keep, understood
    from assay.settings.schema_files import SchemaFileError, read_file

    place = name
    try:
        check_name(name)
        place = file
        content = read_file(file)
        schema = understood(name, content)
        place = name
        replaced = keep(os.environ, name, content)
    except SchemaFileError as error:
        raise ValueError(f"{_plain(place)}: {error}") from None
    return f"{'replaced' if replaced else 'added'} {name}: {_counts(schema)}\n{_use_of(schema)}"


def _counts(schema: AddedSchema) -> str:
    kind = "an extension" if schema.draft is None else "a draft revision"
    definitions, methods = len(schema.facts.definitions(0)), len(_methods(schema))
    return f"{kind}, {_several(definitions, 'definition')}, {_several(methods, 'method')}"


def _several(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _methods(schema: AddedSchema) -> list[str]:
    """Return the methods of a revision; those of an extension are the messages that it defines."""
    from assay.spec.document_facts import method_of

    if schema.draft is not None:
        return list(schema.draft.methods)
    facts = schema.facts
    return sorted({name for each in facts.definitions(0) if (name := method_of(facts.read(each, 0))) is not None})


def _use_of(schema: AddedSchema) -> str:
    """Return how the schema differs from the latest revision, and how to use it."""
    if schema.draft is None:
        return f'use it in assay.toml: [extensions."com.example/name"] with schema = "{schema.name}"\n'
    from assay.spec.revision_diff import changes_between
    from assay.spec.revisions import LATEST
    from assay.spec.schema import protocol_schema

    found = changes_between(protocol_schema(LATEST), schema.draft.schema())
    breaking = sum(change.breaking is True for change in found)
    return (
        f"{_several(len(found), 'change')} from {LATEST}, {breaking} of them breaking; "
        f"assay schemas diff {LATEST} {schema.name} lists them\n"
        f"use it with --draft {schema.name}\n"
    )


def _remove(name: str) -> str:
    from assay.settings.added_schemas import remove
    from assay.settings.schema_files import SchemaFileError

    try:
        remove(os.environ, name)
    except SchemaFileError as error:
        raise ValueError(f"{_plain(name)}: {error}") from None
    return f"removed {name}\n"


def _plain(text: str) -> str:
    from assay.base.printable import plain

    return plain(text)


def added_table() -> str:
    """Return the table of the added schemas; "" without any."""
    from assay.settings.added_schemas import names

    found = names(os.environ)
    width = max(map(len, ("draft      ", *found)))
    rows = [f"{name:<{width}}  {_added_row(name)}\n" for name in found]
    return "".join((f"\n{'draft':<{width}}  definitions  methods  standing\n", *rows)) if rows else ""


def _added_row(name: str) -> str:
    from assay.settings.added_schemas import read
    from assay.settings.schema_files import SchemaFileError

    try:
        schema = read(os.environ, name)
    except SchemaFileError as error:
        return f"{'-':>11}  {'-':>7}  cannot be used: {error}"
    kind = "an extension" if schema.draft is None else "a revision"
    definitions, methods = len(schema.facts.definitions(0)), len(_methods(schema))
    return f"{definitions:>11}  {methods:>7}  added; a draft of {kind}"


def added_schema(name: str, *, errata: bool) -> ProtocolSchema:
    from assay.settings.added_schemas import names, read
    from assay.settings.schema_files import SchemaFileError
    from assay.spec.extensions.official import EXTENSIONS
    from assay.spec.revisions import LATEST, REVISIONS
    from assay.spec.schema import extension_schema

    added = names(os.environ)
    if name not in added:
        raise ValueError(f"there is no revision {name!r}; there are {', '.join((*REVISIONS, *EXTENSIONS, *added))}")
    try:
        schema = read(os.environ, name)
    except SchemaFileError as error:
        raise ValueError(f"{name}: {error}") from None
    if schema.draft is not None:
        return schema.draft.schema(errata=errata)
    return extension_schema(schema.extension, LATEST, errata=errata)

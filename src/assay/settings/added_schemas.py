"""The schemas that `assay schemas add` has read: one file each, in the state directory of this user."""

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Final, NamedTuple

from assay.base.atomic_file import replace_file
from assay.settings.schema_files import SchemaFileError, parsed, read_file
from assay.settings.state_directory import UNKNOWN, make_folder, state_directory
from assay.spec.document_facts import DocumentError, DocumentFacts
from assay.spec.draft_revisions import DraftRevision, is_revision
from assay.spec.extensions.configured import check_compiles, check_references
from assay.spec.extensions.official import EXTENSIONS, OFFICIAL, Extension
from assay.spec.revisions import REVISIONS
from assay.spec.schema import suggestion

FOLDER: Final = "schemas"
"""The directory of the files, below the state directory."""

_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
_SUFFIX: Final = ".json"

MOST: Final = 200
"""Schemas that are listed; an operator has a few."""


class AddedSchema(NamedTuple):
    """A draft revision, or an extension."""

    name: str
    facts: DocumentFacts
    draft: DraftRevision | None
    """The revision; None for an extension."""

    @property
    def extension(self) -> Extension:
        """Return the extension without an identifier and without methods: its definitions."""
        return Extension(self.name, "", "added", self.name, 1, document=self.facts)


def check_name(name: str) -> None:
    """Raise `SchemaFileError` unless *name* can be the name of an added schema."""
    if not _NAME.fullmatch(name) or not name.strip(".") or name.endswith(_SUFFIX):
        raise SchemaFileError("expected a name of 1 to 64 letters, digits, dots, - and _, which does not end in .json")
    if name in REVISIONS or name == "latest":
        raise SchemaFileError("the name of a released revision; choose another one")
    if name in EXTENSIONS or name in OFFICIAL.identifiers:
        raise SchemaFileError("the name of an official extension; choose another one")


def understood(name: str, content: bytes) -> AddedSchema:
    """Return the schema in *content*, checked and compiled. Raises `SchemaFileError`."""
    facts = parsed(content)
    try:
        if is_revision(facts):
            return AddedSchema(name, facts, DraftRevision(name, facts))
        check_references(facts)
        made = AddedSchema(name, facts, None)
        check_compiles(made.extension)
    except DocumentError as error:
        raise SchemaFileError(str(error)) from None
    return made


def names(environ: Mapping[str, str]) -> list[str]:
    """Return the names of the added schemas, sorted."""
    folder = _folder(environ)
    found: list[str] = []
    if folder is not None:
        with suppress(OSError):
            found = [each.removesuffix(_SUFFIX) for each in os.listdir(folder) if each.endswith(_SUFFIX)]
    return sorted(each for each in found if _NAME.fullmatch(each))[:MOST]


def read(environ: Mapping[str, str], name: str) -> AddedSchema:
    """Return the added schema *name*. Raises `SchemaFileError`."""
    path = _path(environ, name)
    if not os.path.lexists(path):
        near = suggestion(name, names(environ)) or f"; assay schemas add {name} FILE adds it"
        raise SchemaFileError(f"no such schema{near}")
    return understood(name, read_file(path))


def keep(environ: Mapping[str, str], name: str, content: bytes) -> bool:
    """Keep *content* as the schema *name*; return whether it replaces another. Raises `SchemaFileError`."""
    path = _path(environ, name)
    try:
        make_folder(os.path.dirname(path))
        before = os.path.lexists(path)
        replace_file(path, content, rights=0o600)
    except OSError as error:
        raise SchemaFileError(f"cannot write {path}: {error.strerror}") from None
    return before


def remove(environ: Mapping[str, str], name: str) -> None:
    """Remove the added schema *name*. Raises `SchemaFileError`."""
    try:
        os.unlink(_path(environ, name))
    except FileNotFoundError:
        raise SchemaFileError(f"no such schema{suggestion(name, names(environ))}") from None
    except OSError as error:
        raise SchemaFileError(f"cannot remove it: {error.strerror}") from None


def _folder(environ: Mapping[str, str]) -> str | None:
    state = state_directory(environ)
    return None if state is None else str(state / FOLDER)


def _path(environ: Mapping[str, str], name: str) -> str:
    check_name(name)
    folder = _folder(environ)
    if folder is None:
        raise SchemaFileError(UNKNOWN)
    return os.path.join(folder, name + _SUFFIX)

"""
The catalogue of the asset server: schemas, examples and the backend. Read once, from the variables of specs/001 and
their files; later requests are answered from memory.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from assay.assets.json_files import File, Log, name_of, read_directory
from assay.assets.library import Library, SchemaFile
from assay.assets.store_backend import StoreBackend
from assay.schema.admission import SchemaRefusal
from assay.schema.compiled import Compiled

SUBMODULE = "libs/synesthetic-schemas"
"""The default parent of both directories, below the working directory (specs/001 §2)."""

CANONICAL = "synesthetic-asset"
"""The schema of a whole asset, and the default for an asset without a schema reference (specs/001 §9)."""

ALIASES = {"nested-synesthetic-asset": CANONICAL}
"""Aliases of schemas (specs/001 §9)."""

REFERENCE = "$schemaRef"
"""The member of an asset with its schema: ``jsonschema/tone.schema.json``."""


@dataclass(frozen=True, slots=True)
class Example:
    """An example from a file."""

    component: str
    """Its file name up to the first full stop."""
    schema: str
    """The name of its schema."""
    file: File


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Schemas and examples by name and path, and the backend if there is one. Immutable."""

    library: Library = field(default_factory=Library)
    examples: tuple[Example, ...] = ()
    """By component and path."""
    backend: StoreBackend | None = None
    _by_path: Mapping[str, Example] = field(default_factory=dict)

    @classmethod
    def read(cls, environ: Mapping[str, str], cwd: str | os.PathLike[str], log: Log = lambda _: None) -> "Catalogue":
        """
        Read the catalogue from the directories in *environ* and *cwd*. An unusable file is skipped, and logged.

        A variable decides alone: if its directory does not exist, the listing is empty, and no other directory is used.
        """
        schemas = _read(environ, "SYN_SCHEMAS_DIR", "jsonschema", cwd, log)
        catalogue = cls(Library(schemas), backend=StoreBackend.read(environ))
        seen: dict[str, str] = {}
        for schema in catalogue.schemas:
            for name in (schema.name, schema.file.value.get("$id")):
                if isinstance(name, str) and seen.setdefault(name, schema.file.path) != schema.file.path:
                    log(f"{schema.file.path}: shares the name {name[:80]} with {seen[name]}")
        files = _read(environ, "SYN_EXAMPLES_DIR", "examples", cwd, log)
        found = [Example(one.base.partition(".")[0], catalogue.schema_of(one.value, one.base), one) for one in files]
        examples = sorted(found, key=lambda one: (one.component, one.file.path))
        # Listed paths come last, so that they win over relative ones.
        by_path = {one.file.inside: one for one in examples} | {one.file.path: one for one in examples}
        return replace(catalogue, examples=tuple(examples), _by_path=by_path)

    @property
    def schemas(self) -> tuple[SchemaFile, ...]:
        """By name, version and path."""
        return self.library.files

    def schema(self, name: str) -> SchemaFile | None:
        """Return the schema called *name*, which may be an alias."""
        return self.library.find(ALIASES.get(name, name))

    def judge(self, name: str) -> Compiled | SchemaRefusal | None:
        """Return the compiled schema, or why it is unusable; None for an unknown name."""
        return self.library.judge(ALIASES.get(name, name))

    def example(self, path: str) -> Example | None:
        """Return the example at *path*, as listed or relative to the examples directory; never another file."""
        return self._by_path.get(path)

    def schema_of(self, asset: Any, base: str = "") -> str:
        """
        Return the name of the schema for *asset*; *base* is its file name, if it has one.

        It is the one in `$schemaRef`, known or not; else the one in the file name; else the canonical one.
        ``Control-Bundle_Example.json`` and ``control-bundle.small.json`` are both named after ``control-bundle``.
        """
        named = asset.get(REFERENCE) if isinstance(asset, dict) else None
        if isinstance(named, str) and named:
            return name_of(named.partition("#")[0].replace("\\", "/").rstrip("/").rpartition("/")[2])
        component = base.partition(".")[0]
        if self.library.find(component) is not None:
            return component
        plain = _plain(component.partition("_")[0])
        return next((one.name for one in self.schemas if plain and _plain(one.name) == plain), CANONICAL)


def _plain(name: str) -> str:
    return "".join(char for char in name.casefold() if char.isalnum())


def _read(environ: Mapping[str, str], variable: str, folder: str, cwd: str | os.PathLike[str], log: Log) -> list[File]:
    given, usual = environ.get(variable), f"{SUBMODULE}/{folder}"
    if given or os.path.isdir(os.path.join(cwd, usual)):
        return read_directory(given or usual, cwd, log)
    log(f"{variable} is not set and there is no {usual}: nothing to list")
    return []

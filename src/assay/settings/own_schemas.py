"""The extensions and draft revisions that the settings name, read from their files."""

import os
from collections.abc import Mapping, Sequence

from assay.settings.added_schemas import read
from assay.settings.extensions_section import SUFFIX, ExtensionSettings
from assay.settings.schema_files import SchemaFileError, parsed, read_file
from assay.settings.sections import Settings
from assay.settings.setting_errors import SettingsError
from assay.spec.document_facts import DocumentError, DocumentFacts
from assay.spec.draft_revisions import use
from assay.spec.extensions.configured import ConfiguredMethod, configured
from assay.spec.extensions.official import OFFICIAL, Extension, ExtensionSet
from assay.spec.methods import PartyName


def extension_set(settings: Settings, environ: Mapping[str, str]) -> ExtensionSet:
    """Return the official extensions and those of the settings. Raises `SettingsError`."""
    if not settings.extensions:
        return OFFICIAL
    own = [_extension(identifier, each, environ) for identifier, each in settings.extensions.items()]
    return ExtensionSet((*OFFICIAL.all, *own))


def _extension(identifier: str, given: ExtensionSettings, environ: Mapping[str, str]) -> Extension:
    place = f"extensions.{identifier}"
    rows = [
        ConfiguredMethod(name, _sender(each.sender), each.params, each.result) for name, each in given.methods.items()
    ]
    try:
        facts = _facts(given.schema, environ)
    except SchemaFileError as error:
        raise SettingsError(f"{place}.schema: {os.path.basename(given.schema)}: {error}") from None
    try:
        return configured(identifier, os.path.basename(given.schema), facts, rows)
    except DocumentError as error:
        raise SettingsError(f"{place}: {error}") from None


def _sender(name: str) -> PartyName:
    return "client" if name == "client" else "server"


def _facts(schema: str, environ: Mapping[str, str]) -> DocumentFacts:
    return parsed(read_file(schema)) if schema.endswith(SUFFIX) else read(environ, schema).facts


def use_drafts(names: Sequence[str], environ: Mapping[str, str]) -> None:
    """Judge by the added draft revisions *names* from now on, in this process. Raises `SettingsError`."""
    for name in dict.fromkeys(names):
        try:
            draft = read(environ, name).draft
        except SchemaFileError as error:
            raise SettingsError(f"draft {name}: {error}") from None
        if draft is None:
            raise SettingsError(f"draft {name}: it is an extension, not a revision; use it in [extensions]")
        use(draft)

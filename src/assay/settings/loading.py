"""Load the settings for a command. Without any settings, no further module is imported."""

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from assay.base.limits import DEFAULT, Limits
from assay.settings.locations import FoundSettings, Log, found_file, own_variables
from assay.settings.merging import merged
from assay.settings.sections import Settings

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Section = TypeVar("Section", bound=DataclassInstance)
else:
    Section = TypeVar("Section")


def load(
    environ: Mapping[str, str],
    cwd: str | os.PathLike[str],
    *,
    file: str | None = None,
    flags: Sequence[str] = (),
    log: Log = lambda _: None,
    limits: Limits = DEFAULT,
) -> Settings:
    """
    Return the settings of *file*, *environ* and *flags* (``limits.depth=64``); the later source wins. Raises
    `SettingsError` for an error in any of them.

    Without *file* the source is the file in `ASSAY_CONFIG`, else `assay.toml` in *cwd*, else `[tool.assay]` in
    `pyproject.toml` there, else nothing. *log* gets a line with the path of that file, and one for each ignored
    source. *limits* are the default limits.
    """
    found = found_file(environ, cwd, file, log)
    return settings_of(Settings, found, environ, flags, log, {"limits": limits})


def load_as(
    kind: type[Section],
    environ: Mapping[str, str],
    cwd: str | os.PathLike[str],
    *,
    file: str | None = None,
    flags: Sequence[str] = (),
    log: Log = lambda _: None,
) -> Section:
    """Load other sections in the same way: *kind* is a dataclass of them."""
    return settings_of(kind, found_file(environ, cwd, file, log), environ, flags, log)


def settings_of(
    kind: type[Section],
    found: FoundSettings | None,
    environ: Mapping[str, str],
    flags: Sequence[str],
    log: Log,
    defaults: "Mapping[str, DataclassInstance] | None" = None,
) -> Section:
    """Return the settings with the *found* file, or without a file; *defaults* are the default sections."""
    variables = own_variables(environ)
    if found is None and not variables and not flags:
        return kind(**(defaults or {}))

    settings = merged(kind, found, variables, flags, log, defaults)
    if found is not None and found.table:
        log(f"settings from {found.path}")
    return settings

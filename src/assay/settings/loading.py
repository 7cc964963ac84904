"""Settings as a command asks for them. Where nothing is set, nothing is loaded for it."""

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from assay.base.limits import DEFAULT, Limits
from assay.settings.locations import FoundSettings, Log, found_file, own_variables
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
    What *file*, *environ* and *flags* (``limits.depth=64``) say, each winning over those before it; raises
    `SettingsError` for a slip in any of them.

    Without *file* it is the one that `ASSAY_CONFIG` names, else `assay.toml` in *cwd*, else `[tool.assay]` in
    `pyproject.toml` there, else none. *log* gets a line with the path of that file, and one for what is ignored on
    purpose. *limits* are those where nothing sets others.
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
    """The same for sections of one's own: *kind* is a dataclass of them."""
    return settings_of(kind, found_file(environ, cwd, file, log), environ, flags, log)


def settings_of(
    kind: type[Section],
    found: FoundSettings | None,
    environ: Mapping[str, str],
    flags: Sequence[str],
    log: Log,
    defaults: "Mapping[str, DataclassInstance] | None" = None,
) -> Section:
    """The same for a file that was *found*, or for none; *defaults* are sections as they are where nothing is set."""
    variables = own_variables(environ)
    if found is None and not variables and not flags:
        return kind(**(defaults or {}))
    from assay.settings.merging import merged  # noqa: PLC0415 - not needed where nothing is set

    settings = merged(kind, found, variables, flags, log, defaults)
    if found is not None and found.table:
        log(f"settings from {found.path}")
    return settings

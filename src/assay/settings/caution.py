"""
Settings for commands that clients start in any directory, a stranger's included.

A file that was found in the working directory may make the guard stricter. What would make it weaker counts only if
the operator has named the file or has accepted its content (`assay.settings.trusted_files`).
"""

import os
from collections.abc import Mapping, Sequence
from time import gmtime, strftime
from typing import TYPE_CHECKING, Final, NamedTuple

from assay.settings.locations import FoundSettings, Log, found_file, own_variables
from assay.settings.sections import Settings

if TYPE_CHECKING:
    from assay.settings.schema_paths import Path
    from assay.settings.setting_sources import Given
    from assay.settings.weakening import Weakening

_NAMED: Final = 8
"""Ignored settings that the line about them names; a stranger's file may have thousands."""


class Cautious(NamedTuple):
    """Settings, and what of a file that was found does not count."""

    settings: Settings
    ignored: "tuple[Weakening, ...]" = ()
    given: "frozenset[Path]" = frozenset()
    """What the operator has set: by a variable, an option, or a file that was named or is trusted."""


def load_cautiously(
    environ: Mapping[str, str],
    cwd: str | os.PathLike[str],
    *,
    file: str | None = None,
    flags: Sequence[str] = (),
    log: Log = lambda _: None,
) -> Cautious:
    """
    As `load`, without `pyproject.toml`, and without what a file that was found would weaken.

    *log* gets a line with the path of the file, and one that names what was ignored. Raises `SettingsError`.
    """
    found = found_file(environ, cwd, file, log, shared=False)
    if found is None and not flags and not own_variables(environ):
        return Cautious(Settings())
    return _weighed(environ, found, flags, log)


def _weighed(environ: Mapping[str, str], found: FoundSettings | None, flags: Sequence[str], log: Log) -> Cautious:
    from assay.settings.merging import made  # noqa: PLC0415
    from assay.settings.schema_paths import known  # noqa: PLC0415 - only a file costs it
    from assay.settings.setting_sources import in_flags, in_table, in_variables  # noqa: PLC0415

    rows = known(Settings)
    file = list(in_table(rows, found.table, found.place)) if found is not None else []
    rest = [*in_variables(rows, own_variables(environ), log), *in_flags(rows, flags)]
    # A mistake in a line is told, whether or not the line would count.
    settings = made(Settings, [*file, *rest])
    own = frozenset(each.path for each in rest)
    if found is None or not file:
        return Cautious(settings, (), own)
    log(f"settings from {found.path}")
    ignored = None if found.named else _ignored(environ, found, file, rest, log)
    if ignored is None:
        return Cautious(settings, (), own.union(each.path for each in file))
    from assay.settings.weakening import row_of  # noqa: PLC0415

    dropped = {each.path for each in ignored}
    kept = [each for each in file if row_of(each.path) not in dropped]
    return Cautious(made(Settings, [*kept, *rest]) if ignored else settings, ignored, own)


def _ignored(
    environ: Mapping[str, str], found: FoundSettings, file: "list[Given]", rest: "list[Given]", log: Log
) -> "tuple[Weakening, ...] | None":
    """What does not count of a file that was found, which *log* gets a line about; None if the file is trusted."""
    from shlex import quote  # noqa: PLC0415 - only a file that weakens something costs it

    from assay.settings.setting_errors import SettingsError  # noqa: PLC0415
    from assay.settings.trusted_files import standing  # noqa: PLC0415
    from assay.settings.weakening import weakenings  # noqa: PLC0415

    try:
        weak = tuple(weakenings(file, rest, strftime("%Y-%m-%d", gmtime())))
    except SettingsError:
        # Variables and options that are complete with the file only: it must be one that counts as a whole.
        if standing(environ, found.path, found.content) == "trusted":
            return None
        raise
    if not weak:
        return ()
    state = standing(environ, found.path, found.content)
    if state == "trusted":
        return None
    named = ", ".join(map(str, weak[:_NAMED])) + (f" and {len(weak) - _NAMED} more" if len(weak) > _NAMED else "")
    since = "which has changed since it was trusted; " if state == "changed" else ""
    log(f"ignored, as it weakens the guard: {named} ({since}assay trust {quote(found.path)} accepts it)")
    return weak

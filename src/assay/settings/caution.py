"""
Load settings for commands that clients start in any directory, including untrusted ones.

A file in the working directory may make the guard stricter. Any other setting counts only if the operator named the
file or accepted its content (`assay.settings.trusted_files`).
"""

import os
from collections.abc import Mapping, Sequence
from shlex import quote
from time import gmtime, strftime
from typing import TYPE_CHECKING, Final, NamedTuple

from assay.base.errors import SettingsError
from assay.settings.locations import FoundSettings, Log, found_file, own_variables
from assay.settings.merging import made
from assay.settings.schema import Rows, known
from assay.settings.sections import Settings
from assay.settings.setting_sources import Given, in_flags, in_table, in_variables
from assay.settings.trusted_files import standing

if TYPE_CHECKING:
    from assay.settings.schema import Path, Rows
    from assay.settings.setting_sources import Given
    from assay.settings.weakening import Weakening

_NAMED: Final = 8
"""Maximal ignored settings to list in a message; an untrusted file can have thousands."""


class Cautious(NamedTuple):
    """Settings, and the ignored settings of a found file."""

    settings: Settings
    ignored: "tuple[Weakening, ...]" = ()
    given: "frozenset[Path]" = frozenset()
    """Settings of the operator: from a variable, an option, or a file that is named or trusted."""


def load_cautiously(
    environ: Mapping[str, str],
    cwd: str | os.PathLike[str],
    *,
    file: str | None = None,
    flags: Sequence[str] = (),
    log: Log = lambda _: None,
) -> Cautious:
    """
    Load as `load` does, without `pyproject.toml`, and without settings of a found file that weaken the guard.

    *log* gets a line with the path of the file, and one with the ignored settings. Raises `SettingsError`.
    """
    found = found_file(environ, cwd, file, log, shared=False)
    if found is None and not flags and not own_variables(environ):
        return Cautious(Settings())
    return _weighed(environ, found, flags, log)


def _weighed(environ: Mapping[str, str], found: FoundSettings | None, flags: Sequence[str], log: Log) -> Cautious:

    rows = known(Settings)
    file = list(in_table(rows, found.table, found.place)) if found is not None else []
    rest = [*in_variables(rows, own_variables(environ), log), *in_flags(rows, flags)]
    # Errors are reported in ignored settings, too.
    settings = made(Settings, [*file, *rest])
    own = frozenset(each.path for each in rest)
    if found is None or not file:
        return Cautious(settings, (), own)
    log(f"settings from {found.path}")
    ignored = None if found.named else _ignored(environ, found, rows, file, rest, log)
    if ignored is None:
        return Cautious(settings, (), own.union(each.path for each in file))

    from assay.settings.weakening import part_of  # noqa: PLC0415 - it needs the rules, and only a found file it

    dropped = {each.path for each in ignored}
    kept = [each for each in file if part_of(rows, each.path) not in dropped]
    return Cautious(made(Settings, [*kept, *rest]) if ignored else settings, ignored, own)


def _ignored(
    environ: Mapping[str, str],
    found: FoundSettings,
    rows: "Rows",
    file: "list[Given]",
    rest: "list[Given]",
    log: Log,
) -> "tuple[Weakening, ...] | None":
    """Return the ignored settings of a found file, and log them; None if the file is trusted."""
    from assay.settings.weakening import weakenings  # noqa: PLC0415 - as above

    try:
        weak = tuple(weakenings(rows, file, rest, strftime("%Y-%m-%d", gmtime())))
    except SettingsError:
        # The variables and options are valid only together with the file, so the whole file must count.
        if standing(environ, found.path, found.content) == "trusted":
            return None
        raise
    if not weak:
        return ()
    state = standing(environ, found.path, found.content)
    if state == "trusted":
        return None
    log(_line(weak, found.path, changed=state == "changed"))
    return weak


def _line(weak: "Sequence[Weakening]", path: str, *, changed: bool) -> str:
    named = ", ".join(map(str, weak[:_NAMED])) + (f" and {len(weak) - _NAMED} more" if len(weak) > _NAMED else "")
    why = "this assay.toml has changed since it was trusted" if changed else "this assay.toml is not trusted yet"
    return f"{named} ignored: {why}; run assay trust {quote(path)}"

"""Find the sources of settings: files in the working directory, and our environment variables."""

import os
import re
import stat
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from assay.base.errors import SettingsError

FILE: Final = "assay.toml"
SHARED_FILE: Final = "pyproject.toml"
"""The file with `[tool.assay]`, read if there is no assay.toml."""

PREFIX: Final = "ASSAY_"
"""The prefix of the variables of all settings."""

CONFIG: Final = "ASSAY_CONFIG"
"""The variable with the path of the settings file."""

RESERVED: Final = frozenset({CONFIG, "ASSAY_DETERMINISTIC", "ASSAY_JOURNAL", "ASSAY_SHARED"})
"""Other variables with our prefix: neither settings nor mistyped names. The last one is the data of our tests."""

Log = Callable[[str], None]
"""Function that gets a line about the file in use, and about ignored sources."""

LONGEST: Final = 1 << 18
"""Maximal bytes of a file found in the working directory. A thousand API keys fit in half of it."""

_PARTS: Final = 32
"""Maximal parts of a dotted key; a setting has five. tomllib's memory grows with their square: 40 GB for 100,000."""

_LONG_KEY: Final = rb"""(?<![\w"'-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){%d}""" % _PARTS


class FoundSettings(NamedTuple):
    """A file with settings."""

    table: Any
    """The settings, not yet checked."""
    place: str
    """The prefix of a key in a message."""
    path: str
    """The absolute path of the file."""
    content: bytes
    named: bool
    """Whether an option or a variable named the file; otherwise it was found in the working directory."""


def found_file(
    environ: Mapping[str, str], cwd: str | os.PathLike[str], file: str | None, log: Log, *, shared: bool = True
) -> FoundSettings | None:
    """
    Return the settings file: the named one, else assay.toml, else our table in pyproject.toml, else None.

    Without *shared*, `[tool.assay]` of a shared file that was found is not used, and *log* gets a line about it.
    """
    named = file or environ.get(CONFIG)
    if named:
        content = _content(cwd, named, asked_by="--config" if file else CONFIG) or b""
        return _parsed(cwd, named, content, named=True)
    own, project = _content(cwd, FILE), _content(cwd, SHARED_FILE)
    is_told = project is not None and b"tool.assay" in project
    if own is not None:
        if is_told:
            log(f"{SHARED_FILE}: [tool.assay] is ignored, because {FILE} exists")
        return _parsed(cwd, FILE, own)
    if not shared:
        if is_told:
            log(f"{SHARED_FILE}: [tool.assay] is ignored by this command; use {FILE} or --config")
        return None
    # Usually the file of another tool: without our table there is nothing to read and no error to report.
    return _parsed(cwd, SHARED_FILE, project) if project is not None and b"assay" in project else None


def _content(cwd: str | os.PathLike[str], name: str, *, asked_by: str = "") -> bytes | None:
    """Return the content of the file; None if a file that was not named is missing."""
    try:
        # Checked before opening: a link in a checkout may lead to a device or a pipe. Opening one can block, or
        # consume the client's messages. A file that the operator names is not checked.
        if not asked_by and not stat.S_ISREG(os.stat(os.path.join(cwd, name)).st_mode):
            raise SettingsError(f"{name}: not a regular file")
        with open(os.path.join(cwd, name), "rb") as file:
            content = file.read() if asked_by else file.read(LONGEST + 1)
    except OSError as error:
        if isinstance(error, FileNotFoundError) and not asked_by:
            return None
        raise SettingsError(f"{asked_by} {name}: {error.strerror}".lstrip()) from None
    return content


def _parsed(cwd: str | os.PathLike[str], name: str, content: bytes, *, named: bool = False) -> FoundSettings | None:
    """Parse the settings in *content*; None for a shared file without our table."""
    if not named:
        _check_size(name, content)
    table, place = _toml(name, content), f"{name}: "
    if os.path.basename(name) == SHARED_FILE:
        tools = table.get("tool")
        if not isinstance(tools, dict) or "assay" not in tools:
            return None
        table, place = tools["assay"], f"{name}: tool.assay."
    return FoundSettings(table, place, os.path.abspath(os.path.join(cwd, name)), content, named)


def _check_size(name: str, content: bytes) -> None:
    """Raise `SettingsError` for an untrusted file that is too expensive to parse."""
    if len(content) > LONGEST:
        raise SettingsError(f"{name}: longer than {LONGEST:,} bytes; --config reads a file of any length")
    if re.search(_LONG_KEY, content):
        raise SettingsError(f"{name}: a key has more than {_PARTS} parts")


def _toml(name: str, content: bytes) -> dict[str, Any]:
    try:
        import tomllib  # noqa: PLC0415 - 2 ms, which only a file costs

        return tomllib.loads(content.decode())
    except UnicodeDecodeError:
        raise SettingsError(f"{name}: expected UTF-8") from None
    except ValueError as error:
        # Usually a TOMLDecodeError; a number with thousands of digits raises a plain ValueError.
        raise SettingsError(f"{name}: not valid TOML: {error}") from None
    except RecursionError:
        raise SettingsError(f"{name}: not valid TOML: nested too deeply") from None


def own_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that are settings, or mistyped names of settings."""
    # An empty variable counts as not set, as in specs/001.
    return {name: text for name, text in environ.items() if text and name.startswith(PREFIX) and name not in RESERVED}

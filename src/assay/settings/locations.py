"""Where settings are looked for: files in the working directory, and variables of the environment that are ours."""

import os
import re
import stat
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from assay.settings.setting_errors import SettingsError

FILE: Final = "assay.toml"
SHARED_FILE: Final = "pyproject.toml"
"""Where `[tool.assay]` is read if there is no file of our own."""

PREFIX: Final = "ASSAY_"
"""What the variables of all settings begin with."""

CONFIG: Final = "ASSAY_CONFIG"
"""The variable that names another file."""

RESERVED: Final = frozenset({CONFIG, "ASSAY_DETERMINISTIC", "ASSAY_JOURNAL", "ASSAY_SHARED"})
"""Variables with a meaning of their own: no settings, and no slips either. The last is where our tests have data."""

Log = Callable[[str], None]
"""Takes a line about the file that is used, and about what is ignored on purpose."""

LONGEST: Final = 1 << 18
"""Bytes of a file that was found in the working directory. A thousand API keys fit in half of it."""

_PARTS: Final = 32
"""Parts of a dotted key; a setting has five. tomllib takes memory by their square: 40 GB for 100,000 of them."""

_LONG_KEY: Final = rb"""(?<![\w"'-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){%d}""" % _PARTS


class FoundSettings(NamedTuple):
    """A file with settings."""

    table: Any
    """Its settings, not yet checked."""
    place: str
    """The text before a key in a message about it."""
    path: str
    """The absolute path of the file."""
    content: bytes
    named: bool
    """Whether an option or a variable named it; otherwise it was found in the working directory."""


def found_file(
    environ: Mapping[str, str], cwd: str | os.PathLike[str], file: str | None, log: Log, *, shared: bool = True
) -> FoundSettings | None:
    """
    The file that counts: the one that is named, else ours, else our part of a shared one, else none.

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
    # Somebody else's file, most of the time: without our name in it there is nothing to read and nothing to object to.
    return _parsed(cwd, SHARED_FILE, project) if project is not None and b"assay" in project else None


def _content(cwd: str | os.PathLike[str], name: str, *, asked_by: str = "") -> bytes | None:
    """What the file holds; None if it is not there, unless somebody asked for it."""
    try:
        # Checked before opening: a link of a checkout may lead to a device or a pipe, and to open one can wait for
        # ever, or take what the client says to us. An operator who names one means it.
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
    """The settings in *content*; None for a shared file without our table."""
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
    """Raises `SettingsError` for a file of a stranger that would take too much to read."""
    if len(content) > LONGEST:
        raise SettingsError(f"{name}: longer than {LONGEST:,} bytes; --config reads a file of any length")
    if re.search(_LONG_KEY, content):
        raise SettingsError(f"{name}: a key has more than {_PARTS} parts")


def _toml(name: str, content: bytes) -> dict[str, Any]:
    import tomllib  # noqa: PLC0415 - some ten milliseconds that only a file costs

    try:
        return tomllib.loads(content.decode())
    except UnicodeDecodeError:
        raise SettingsError(f"{name}: expected UTF-8") from None
    except ValueError as error:
        # Mostly a TOMLDecodeError; a number of thousands of digits is the plain one.
        raise SettingsError(f"{name}: not valid TOML: {error}") from None
    except RecursionError:
        raise SettingsError(f"{name}: not valid TOML: nested too deeply") from None


def own_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that are settings, or slips in the name of one."""
    # A variable that is set to nothing is not set, as with those of specs/001.
    return {name: text for name, text in environ.items() if text and name.startswith(PREFIX) and name not in RESERVED}

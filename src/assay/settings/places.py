"""Where settings are looked for: files in the working directory, and variables of the environment that are ours."""

import os
from collections.abc import Callable, Mapping
from typing import Any, Final

from assay.settings.slips import SettingsError

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
"""Where a line goes about what is ignored on purpose."""

Found = tuple[Any, str]
"""A file's table of settings, and what goes before a key where a message names its place."""


def found_file(environ: Mapping[str, str], cwd: str | os.PathLike[str], file: str | None, log: Log) -> Found | None:
    """What the file that counts says: the one that is named, else ours, else our part of a shared one, else none."""
    named = file or environ.get(CONFIG)
    if named:
        return _parsed(named, _content(cwd, named, asked_by="--config" if file else CONFIG) or b"")
    own, shared = _content(cwd, FILE), _content(cwd, SHARED_FILE)
    if own is not None:
        if shared is not None and b"tool.assay" in shared:
            log(f"{SHARED_FILE}: [tool.assay] is not used, since there is {FILE}")
        return _parsed(FILE, own)
    # Somebody else's file, most of the time: without our name in it there is nothing to read and nothing to object to.
    return _parsed(SHARED_FILE, shared) if shared is not None and b"assay" in shared else None


def _content(cwd: str | os.PathLike[str], name: str, *, asked_by: str = "") -> bytes | None:
    """What the file holds; None if it is not there, unless somebody asked for it."""
    try:
        with open(os.path.join(cwd, name), "rb") as file:
            return file.read()
    except OSError as error:
        if isinstance(error, FileNotFoundError) and not asked_by:
            return None
        raise SettingsError(f"{asked_by} {name}: {error.strerror}".lstrip()) from None


def _parsed(name: str, content: bytes) -> Found:
    import tomllib  # noqa: PLC0415 - some ten milliseconds that only a file costs

    try:
        document = tomllib.loads(content.decode())
    except UnicodeDecodeError:
        raise SettingsError(f"{name}: expected UTF-8") from None
    except ValueError as error:
        # Mostly a TOMLDecodeError; a number of thousands of digits is the plain one.
        raise SettingsError(f"{name}: no TOML: {error}") from None
    if os.path.basename(name) != SHARED_FILE:
        return document, f"{name}: "
    tools = document.get("tool")
    return tools.get("assay", {}) if isinstance(tools, dict) else {}, f"{name}: tool.assay."


def own_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that are settings, or slips in the name of one."""
    # A variable that is set to nothing is not set, as with those of specs/001.
    return {name: text for name, text in environ.items() if text and name.startswith(PREFIX) and name not in RESERVED}

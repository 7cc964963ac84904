"""
A server that a guard starts from a client's configuration, and its environment: a short list and the entry's own.

The guard has the tokens of all servers and its own secrets; a server must get only its own. No I/O.
"""

import os
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Final, NamedTuple

POSIX: Final = (
    # The variables that the official SDKs pass to a server.
    *("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"),
    # Without these a server uses another language or other directories. They hold no secrets.
    *("LANG", "LANGUAGE", "LC_*", "TZ", "TMPDIR", "XDG_*"),
    # Paths of certificates: without them a server behind a company's proxy cannot connect.
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"),
)
WINDOWS: Final = (
    *("APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATH", "PATHEXT", "PROCESSOR_ARCHITECTURE"),
    *("PROGRAMDATA", "PROGRAMFILES", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TMP", "USERNAME", "USERPROFILE", "WINDIR"),
    *("LANG", "LC_*", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"),
)
"""Variables that every server gets if they are set; a star matches anything."""

_OURS: Final = "ASSAY_*"
"""Prefix of our own settings, including keys. A server gets one only if its entry names it."""


class HostedEntry(NamedTuple):
    """One server to start, or the reason why it cannot be started."""

    name: str
    command: tuple[str, ...] = ()
    """The program and its arguments; empty for a server at a URL."""
    url: str = ""
    env: Mapping[str, str] = {}
    """Variables in the entry, in addition to those that every server gets."""
    cwd: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    trouble: str = ""
    """Why the server cannot be started; empty if it can."""


def environment(
    environ: Mapping[str, str], more: Sequence[str], named: Mapping[str, str], *, windows: bool = os.name == "nt"
) -> dict[str, str]:
    """
    Return the environment of a server: the common variables and *more* from *environ*, and all of *named*.

    Names in *more* may have a star in them, as in `MY_*`.
    """
    wanted = (*(WINDOWS if windows else POSIX), *more)
    names = {name for name in environ if any(fnmatchcase(name, each) for each in wanted)}
    names -= {name for name in names if fnmatchcase(name, _OURS)}
    # Such a value is a function that a shell exports and would run. The SDKs leave these out, too.
    found = {name: environ[name] for name in names if not environ[name].startswith("()")}
    return {**found, **named}

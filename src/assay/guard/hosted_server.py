"""
The environment of the servers that a host starts: little of the host's own, and what each one's entry names.

The host has the tokens of all its servers, and its own secrets; a server needs none but its own. Values in, values out,
no I/O.
"""

import os
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Final

POSIX: Final = (
    # What the clients of the official SDKs hand to a server.
    *("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"),
    # Without these a server speaks another language, or writes where it should not. None of them is a secret.
    *("LANG", "LANGUAGE", "LC_*", "TZ", "TMPDIR", "XDG_*"),
    # Where the certificates of this machine are: without them a server behind a company's proxy reaches nothing.
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"),
)
WINDOWS: Final = (
    *("APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATH", "PATHEXT", "PROCESSOR_ARCHITECTURE"),
    *("PROGRAMDATA", "PROGRAMFILES", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TMP", "USERNAME", "USERPROFILE", "WINDIR"),
    *("LANG", "LC_*", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"),
)
"""Variables that every server gets, if the host has them; a star stands for anything."""

_OURS: Final = "ASSAY_*"
"""The host's own settings, keys among them. A server gets one only if its entry names it."""


def environment(
    environ: Mapping[str, str], more: Sequence[str], named: Mapping[str, str], *, windows: bool = os.name == "nt"
) -> dict[str, str]:
    """
    Return the environment of a server: of *environ* what every server gets and what *more* names, and all of *named*.

    Names in *more* may have a star in them, as in `MY_*`.
    """
    wanted = (*(WINDOWS if windows else POSIX), *more)
    names = {name for name in environ if any(fnmatchcase(name, each) for each in wanted)}
    names -= {name for name in names if fnmatchcase(name, _OURS)}
    # A value that begins so is a function that a shell exports, and runs: the SDKs leave these out, too.
    found = {name: environ[name] for name in names if not environ[name].startswith("()")}
    return {**found, **named}

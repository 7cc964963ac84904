"""
Names of servers, which are on stderr, in the journal, in locks and on the disk. No I/O.

`core.server_commands` has the name of a server that a command starts.
"""

import re
from hashlib import sha256
from typing import Final
from urllib.parse import urlsplit

UNNAMED: Final = "server"

_LONGEST: Final = 64
"""Maximal characters of a name: it becomes the name of a folder, and is in every record."""

_DIGEST: Final = 8
"""Hexadecimal digits after the name of a folder that differs from the name of its server."""

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]+")


def name_of_url(url: str) -> str:
    """Return the name of the server at *url*: its host and port. A path may hold a secret, so it is left out."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or UNNAMED, parts.port
    except ValueError:
        return UNNAMED
    return cut_name(host if port is None else f"{host}:{port}")


def folder_of(name: str) -> str:
    """
    Return *name* as the name of a folder: letters, digits, dots, dashes and underscores, never hidden.

    A changed name gets a digest, so that no two names share a folder. So does a name with a capital: many file
    systems ignore case.
    """
    plain = _UNSAFE.sub("-", name).strip("-.")[:_LONGEST].rstrip(".") or UNNAMED
    if plain == name == name.lower():
        return plain
    digest = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST]
    return f"{plain[: _LONGEST - _DIGEST - 1].rstrip('.')}-{digest}"


def cut_name(name: str) -> str:
    """Return *name* printable and at most 64 characters long."""
    shown = name if name.isprintable() else "".join(each for each in name if each.isprintable())
    return shown.strip()[:_LONGEST] or UNNAMED

"""
Options that several commands have: settings, headers for a server at a URL, the time limit for a server.

No I/O; the environment is a parameter. The values of headers may be secrets, so they are never shown.
"""

import argparse
import os
import re
from collections.abc import Mapping, Sequence
from typing import Final

_TOKEN: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
"""The name of a header (RFC 9110, 5.6.2)."""

FROM_ENVIRONMENT: Final = re.compile(r"(?:(.*) )?env:([A-Za-z_][A-Za-z0-9_]*)")
"""A value that refers to a variable, alone or as its last word."""

_OURS: Final = frozenset(
    (
        *("accept", "accept-encoding", "connection", "content-length", "content-type", "last-event-id"),
        *("mcp-method", "mcp-name", "mcp-protocol-version", "mcp-session-id", "transfer-encoding"),
    )
)
"""Headers that the guard writes itself."""


class HeaderError(ValueError):
    """An invalid header. The message does not contain the value, which may be a secret."""


def add_headers(parser: argparse.ArgumentParser) -> None:
    """Add `--header`, which can be repeated."""
    parser.add_argument(
        "--header",
        metavar="'NAME: VALUE'",
        action="append",
        default=[],
        help="header for requests to URL; the value env:NAME reads the variable NAME; repeatable",
    )


def given_headers(options: Sequence[str], environ: Mapping[str, str]) -> list[tuple[str, str]]:
    """
    Return the headers in *options*, each `Name: value`, where `env:NAME` is a variable. Raises `HeaderError`.

    Headers that the guard writes itself are ignored: clients have `Accept` in their configurations, which is fine.
    """
    given = [_given(each, environ) for each in options]
    return [(name, value) for name, value in given if name.lower() not in _OURS]


def _given(option: str, environ: Mapping[str, str]) -> tuple[str, str]:
    name, colon, value = (part.strip() for part in option.partition(":"))
    if not colon or not _TOKEN.fullmatch(name):
        raise HeaderError("--header: expected 'Name: value', with a name of letters, digits and hyphens")
    variable = FROM_ENVIRONMENT.fullmatch(value)
    if variable is not None:
        if not environ.get(variable[2]):
            raise HeaderError(f"--header {name}: the variable {variable[2]} is not set")
        value = " ".join(part for part in (variable[1], environ[variable[2]].strip()) if part)
    if any((each < " " and each != "\t") or each == "\x7f" for each in value):
        raise HeaderError(f"--header {name}: its value has characters that are invalid in a header")
    return name, value


LEVELS: Final = ("report", "refuse", "never")
"""What --fail-on counts."""


def add_fail_on(parser: argparse.ArgumentParser, default: str, fails: str) -> None:
    """Add `--fail-on`; *fails* says in its help what each level does."""
    parser.add_argument("--fail-on", choices=LEVELS, default=default, help=f"exit with {fails} (default: %(default)s)")


def add_record(parser: argparse.ArgumentParser) -> None:
    """Add `--record`."""
    parser.add_argument(
        "--record",
        metavar="FILE",
        help="record every message for assay check; a directory gets a new file for each run",
    )


def add_time_limit(parser: argparse.ArgumentParser, limited: str) -> None:
    """Add `--timeout`; *limited* says in its help what the time is for."""
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=_seconds,
        default=60.0,
        help=f"time limit for {limited} (default: %(default)g)",
    )


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= 86_400:
        raise argparse.ArgumentTypeError(f"{text}: expected more than 0 and at most 86400 seconds")
    return seconds


def add_settings(parser: argparse.ArgumentParser, others: str = "", *, shared: bool = True) -> None:
    """
    Add --config and --set to *parser*; *others* is the help about other kinds of files that --config accepts.

    Without *shared* the command does not read pyproject.toml.
    """
    if others:
        about = "settings file to read in place of assay.toml"
        parser.add_argument("--config", metavar="FILE", action="append", default=[], help=about + others)
    else:
        about = f"settings file to read in place of assay.toml{' or pyproject.toml' if shared else ''}"
        parser.add_argument("--config", metavar="FILE", help=about)
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="override one setting, such as limits.depth=64; repeatable",
    )


def directory(name: str) -> str:
    """Return *name* if it is a directory; the type of an option."""
    if not os.path.isdir(name):
        raise argparse.ArgumentTypeError(f"{name}: no such directory")
    return name

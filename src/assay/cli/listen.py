"""``assay guard`` in front of a server at a URL, or for clients over HTTP, or both."""

# ruff: noqa: PLC0415  each way imports only what it needs

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from assay.cli.guard import is_client_file, records_of, settings_file
from assay.settings import Settings, SettingsError, load

if TYPE_CHECKING:
    import argparse

    from assay.edges.http.guarding import Servers


def run(args: argparse.Namespace) -> int:
    """Guard until a signal comes, or the client leaves."""
    from assay.cli.serve import _log, _open_standard_streams

    _open_standard_streams()
    clients = [name for name in args.config if is_client_file(name)]
    _check(args, clients)
    settings = load(os.environ, os.curdir, file=settings_file(args.config), flags=args.set, log=_log)
    try:
        if args.listen is None:
            return _remote(args, settings)
        return _listen(args, settings, clients)
    except ImportError as error:
        _log(f"assay: guarding over HTTP needs {error.name}: pip install 'mcp-assay[http,backend]'")
        return 2


def _check(args: argparse.Namespace, clients: list[str]) -> None:
    """Raises `SettingsError` unless it is said once what is guarded."""
    given = [*(["a COMMAND"] if args.command else []), *(["--target"] if args.target is not None else []), *clients]
    if len(given) != 1:
        found = " and ".join(given) or "none of them"
        raise SettingsError(f"guard one of COMMAND, --target URL or --config FILE.json; there is {found}")
    if clients and args.listen is None:
        raise SettingsError(f"--config {clients[0]}: the servers of a client's file are served with --listen ADDRESS")
    if args.header and args.target is None:
        raise SettingsError("--header is for a server at a URL: give --target")


def _remote(args: argparse.Namespace, settings: Settings) -> int:
    """A server at a URL, for a client on our standard streams."""
    from importlib import import_module

    try:
        remote = import_module("assay.edges.remote")
    except ImportError:
        raise SettingsError("--target without --listen: not yet; give --listen ADDRESS") from None
    status: int = remote.run(args, settings, headers_of(args.header))
    return status


def _listen(args: argparse.Namespace, settings: Settings, clients: list[str]) -> int:
    from dataclasses import replace

    from assay.cli.serve import _leave_what_lasts, _log
    from assay.edges.http import guarding

    terms = guarding.Terms(
        mode="enforce" if (args.mode or settings.guard.mode) == "enforce" else "audit",
        limits=replace(settings.limits, frame_bytes=settings.guard.frame_bytes),
        timeout=settings.guard.timeout if args.timeout is None else args.timeout,
    )
    with records_of(args, settings, _log) as records:
        return guarding.run(
            args.listen,
            settings,
            terms,
            records,
            _servers(args, clients),
            settle=_leave_what_lasts,
            say=_log,
            log=(lambda _: None) if args.quiet else _log,
        )


def _servers(args: argparse.Namespace, clients: list[str]) -> Servers:
    """What is guarded."""
    from assay.edges.http import guarding

    if args.target is not None:
        return guarding.AtUrl(args.target, headers_of(args.header))
    if args.command:
        return guarding.Started(args.command)
    return _host(clients[0])


def _host(name: str) -> Servers:
    from assay.clients.entries import ConfigError
    from assay.clients.files import FileError, find
    from assay.clients.hosting import entries
    from assay.edges.http.host import Host

    try:
        found = entries(find(name).text, os.environ, os.getcwd())
    except (ConfigError, FileError) as error:
        raise SettingsError(f"--config {name}: {error}") from None
    if not found:
        raise SettingsError(f"--config {name}: no servers in it")
    return Host(os.path.basename(name), found)


def headers_of(options: list[str]) -> list[tuple[bytes, bytes]]:
    """The headers that *options* give, as ``Name: value``. Raises `SettingsError`, which shows no value."""
    return [_header(option) for option in options]


def _header(option: str) -> tuple[bytes, bytes]:
    import re

    name, colon, value = option.partition(":")
    name, value = name.strip(), value.strip()
    if not colon or not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", name):
        raise SettingsError("--header: expected 'Name: value'")
    variable = re.fullmatch(r"(?:(.*) )?env:([A-Za-z_][A-Za-z0-9_]*)", value)
    if variable is not None:
        found = os.environ.get(variable[2], "").strip()
        if not found:
            raise SettingsError(f"--header {name}: the variable {variable[2]} is not set")
        value = " ".join(filter(None, (variable[1], found)))
    if not value.isascii() or not value.isprintable():
        raise SettingsError(f"--header {name}: the value has characters that no header has")
    return name.lower().encode(), value.encode()

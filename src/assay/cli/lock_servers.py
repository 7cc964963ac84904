"""Choose the servers for ``assay lock``: from the command line, a client's configuration, or the lock itself."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from shlex import join
from typing import NamedTuple

from assay.cli.call import opening_of
from assay.cli.clients.config_files import find
from assay.cli.clients.dialect import dialect_of
from assay.cli.clients.hosting import DISABLED, entries
from assay.cli.clients.parsing import ConfigError
from assay.cli.guard_plan import client_files, named_servers
from assay.cli.options import HeaderError, given_headers
from assay.cli.program import agreed, has_terminal
from assay.edges.pipes import Signals
from assay.edges.probe.server_probe import CLIENT, InquiryError, Log
from assay.edges.probe.two_clients import inquire_as_both
from assay.guard.hosted_server import environment
from assay.judge.masking import is_masked, masked_url
from assay.judge.server_commands import name_of_command
from assay.lock.compare import visible
from assay.lock.lock_file import Lock, LockError
from assay.lock.locked import Locked
from assay.model.printable import MASK
from assay.settings import Settings

_PLAIN_VARIABLES = frozenset({"HOME", "USER", "LOGNAME", "PWD", "TMPDIR", "SHELL", "LANG"})
"""Variables whose values may be written into a lock: they are paths. Any other variable may hold a secret."""


class WantedServer(NamedTuple):
    """A server to lock or check."""

    name: str | None = None
    """The name of its entry; None for the name that the server gives itself."""
    command: tuple[str, ...] = ()
    url: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    env: Mapping[str, str] | None = None
    """Its environment; None for our own."""
    cwd: str | None = None
    kept: Locked | None = None
    """The command or URL to write into the lock, if it differs from the one in use."""
    trouble: str = ""
    """Why the server cannot be used; empty if it can."""
    named: bool = False
    """Whether the name comes from the operator or a client's configuration."""

    def __str__(self) -> str:
        return self.name or masked_url(self.url) or name_of_command(self.command)


def wanted_servers(args: argparse.Namespace, lock: Lock, settings: Settings) -> list[WantedServer]:
    """Return the servers that the command line selects. Raises `LockError`."""
    files = client_files(args)
    given = named_servers(args)
    if len(given) > 1:
        raise LockError(f"give only one of {' and '.join(given)}")
    if args.header and args.target is None:
        raise LockError("--header needs --target URL")
    if files:
        return _of_client(files[0], args, settings)
    if given:
        try:
            headers = tuple(given_headers(args.header, os.environ))
        except HeaderError as error:
            raise LockError(str(error)) from None
        return [WantedServer(args.name, tuple(args.command), args.target or "", headers, named=args.name is not None)]
    if not (args.check or args.update):
        raise LockError("give a COMMAND, --target URL or --config FILE.json")
    if not lock:
        raise LockError(f"{args.lock}: it has no entries; assay lock -- COMMAND adds one")
    names = [args.name] if args.name is not None else sorted(lock)
    check_names(args.lock, lock, names)
    return [_of_entry(name, lock[name]) for name in names]


def _of_entry(name: str, locked: Locked) -> WantedServer:
    trouble = ""
    if is_masked((*locked.command, locked.url)):
        how = "--target URL" if locked.url else "-- COMMAND, or --config FILE.json"
        trouble = f"this server needs a secret, and the lock has none: give --name {name} {how}"
    return WantedServer(name, locked.command, locked.url, trouble=trouble)


def check_names(path: str, lock: Lock, names: list[str]) -> None:
    """Raise `LockError` unless *lock*, the file at *path*, has an entry for each name."""
    for name in names:
        if name not in lock:
            there = f"it has {', '.join(sorted(lock))}" if lock else "it has none"
            raise LockError(f"{path}: no entry is named {name}; {there}")


# ── a client's file ──────────────────────────────────────────────────────────────────────────────────────────────────


def _of_client(file: str, args: argparse.Namespace, settings: Settings) -> list[WantedServer]:
    """Return the servers of a client's configuration, or only the one in --name."""
    hidden = {name: value if name in _PLAIN_VARIABLES else MASK for name, value in os.environ.items()}
    try:
        filled = partial(entries, find(file).text, folder=os.getcwd(), dialect=dialect_of(file))
        pairs = list(zip(filled(environ=os.environ), filled(environ=hidden), strict=True))
    except ConfigError as error:
        raise LockError(f"--config {file}: {error}") from None
    # A server that the client does not start needs no review.
    pairs = [each for each in pairs if each[0].trouble != DISABLED or each[0].name == args.name]
    names = [entry.name for entry, _ in pairs]
    if args.name is not None and args.name not in names:
        raise LockError(f"--config {file}: no server is named {args.name}; it has {', '.join(names) or 'none'}")
    if not pairs:
        raise LockError(f"--config {file}: no servers in it")

    wanted = []
    for entry, shown in pairs:
        if args.name in {None, entry.name}:
            env = environment(os.environ, settings.guard.environment, entry.env)
            # A variable may hold a secret that does not look like one, so its value is not written into the lock.
            kept = Locked(command=shown.command, url=shown.url)
            place = (entry.command, entry.url, entry.headers, env, entry.cwd)
            wanted.append(WantedServer(entry.name, *place, kept, entry.trouble, named=True))
    return wanted


# ── asking ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def confirm(args: argparse.Namespace, wanted: list[WantedServer], say: Callable[[str], None]) -> None:
    """Ask before commands and addresses from a lock are used: the lock may come from a stranger. Raises `LockError`."""
    asked = [each for each in wanted if not each.trouble]
    if args.yes or not asked:
        return
    say(f"assay lock: {args.lock} names {'this server' if len(asked) == 1 else 'these servers'}:")
    for each in asked:
        # In full and unmasked: text that looks like a secret could be a command, too.
        shown = each.url or join(each.command)
        say(f"    {visible(str(each), 100)}: {visible(shown, len(shown))}")
    if not has_terminal():
        raise LockError("nothing was started: there is no terminal to ask on; use --yes if the commands are fine")
    commands = sum(bool(each.command) for each in asked)
    addresses = len(asked) - commands
    parts = [f"start {'this command' if commands == 1 else 'these commands'}"] if commands else []
    parts += [f"connect to {'this address' if addresses == 1 else 'these addresses'}"] if addresses else []
    if not agreed(" and ".join(parts).capitalize() + "?"):
        raise LockError("nothing was started")


def offered_by(wanted: WantedServer, args: argparse.Namespace, settings: Settings, log: Log) -> Locked:
    """Return what a server offers, with the command or URL to write into the lock. Raises `InquiryError`."""
    if wanted.trouble:
        raise InquiryError(wanted.trouble)
    limits, client = settings.guard_limits, args.client or CLIENT
    command, url = wanted.command, "" if wanted.command else wanted.url
    with Signals() if command else nullcontext() as signals:
        opened = opening_of(
            command,
            url,
            settings,
            client,
            signals=signals,
            headers=wanted.headers,
            env=wanted.env,
            cwd=wanted.cwd,
        )
        found = inquire_as_both(opened, log, limits, args.timeout, client=client, command=command, url=url)
    return found if wanted.kept is None else replace(found, command=wanted.kept.command, url=wanted.kept.url)

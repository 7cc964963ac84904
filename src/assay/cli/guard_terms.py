"""What every way to run the guard takes from options and settings: how strict it is, by which lock, on which record."""

# ruff: noqa: PLC0415  each command imports only what it needs

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from assay.core.policy import Policy
    from assay.edges.recorder import Records
    from assay.guard.terms import Terms
    from assay.lock.locked import Locked
    from assay.settings import Settings


def signed(say: Callable[[str], None]) -> Callable[[str], None]:
    """*say* for lines that do not name us: on the same stderr there is what the server says."""
    return lambda line: say(f"assay: {line}")


def settings_file(configs: Sequence[str]) -> str | None:
    """The one among the files given as --config that is about settings; None if none is. Raises `SettingsError`."""
    found = [name for name in configs if not is_client_file(name)]
    if len(found) > 1:
        from assay.settings import SettingsError

        raise SettingsError(f"--config {found[1]}: give only one file of settings; {found[0]} is given already")
    return found[0] if found else None


def is_client_file(name: str) -> bool:
    """Whether a file is a client's configuration, by its name."""
    # Settings are TOML as well, so that of Codex is known by the folder that it is always in.
    return name.replace("\\", "/").lower().endswith((".json", ".jsonc", ".codex/config.toml"))


def named_servers(args: argparse.Namespace) -> list[str]:
    """Return each argument that names a server, for an error: a guard or a lock takes one of them."""
    command = ["a COMMAND"] if args.command else []
    target = ["--target URL"] if args.target is not None else []
    return [*command, *target, *(f"--config {name}" for name in args.config if is_client_file(name))]


def guard_settings(args: argparse.Namespace, log: Callable[[str], None]) -> Settings:
    """The settings of a guard, with the directories that it writes to. Raises `SettingsError`."""
    return in_place(args, loaded_settings(args, log), log)


def loaded_settings(args: argparse.Namespace, log: Callable[[str], None]) -> Settings:
    """
    The settings of a guard, which clients start in any directory. Raises `SettingsError`.

    Also with --quiet *log* gets a line with the file that is used, and one for what of it is ignored.
    """
    from assay.base.printable import plain
    from assay.settings import SettingsError, load_cautiously

    say = signed(lambda line: log(plain(line)))
    cautious = load_cautiously(os.environ, os.curdir, file=settings_file(args.config), flags=args.set, log=say)
    # To leave it out would open the door that it is meant to close.
    if args.listen is not None and any(each.path == ("auth",) for each in cautious.ignored):
        raise SettingsError("assay.toml: [auth] counts only with --config assay.toml, or after assay trust assay.toml")
    return cautious.settings


def in_place(args: argparse.Namespace, settings: Settings, log: Callable[[str], None]) -> Settings:
    """Return *settings* with the directories of the one server that is guarded."""
    if any(is_client_file(name) for name in args.config):
        # Each server of a host has places of its own.
        return settings
    from assay.base.printable import plain
    from assay.cli.record_places import with_places

    return with_places(args, settings, server_name(args), signed(lambda line: log(plain(line))))


def server_name(args: argparse.Namespace) -> str:
    """Return the name of the guarded server: that of --name, else one from its command or URL."""
    from assay.base.server_names import name_of_command, name_of_url

    if args.name is not None:
        return str(args.name)
    return name_of_command(args.command) if args.command else name_of_url(args.target or "")


def introduce(args: argparse.Namespace, mode: str, records: Records, log: Callable[[str], None]) -> None:
    """Log which server is guarded for a client on standard streams, in which mode, and where the journal is."""
    from assay.guard.greeting import WAITING, hello

    log(hello(server_name(args), mode, records.journal.path if records.journal is not None else None))
    if os.isatty(0):
        log(WAITING)


def terms_of(args: argparse.Namespace, settings: Settings, say: Callable[[str], None]) -> Terms:
    """How strictly the guard judges. What is to be said of exceptions goes to *say*."""
    from assay.guard.terms import Terms

    return Terms(
        mode="enforce" if (args.mode or settings.guard.mode) == "enforce" else "audit",
        limits=settings.guard_limits,
        timeout=settings.guard.timeout if args.timeout is None else args.timeout,
        policy=policy_of(settings, say),
    )


def policy_of(settings: Settings, say: Callable[[str], None]) -> Policy | None:
    """What is done about which rule today; exceptions that have ended, or soon will, are told."""
    guard = settings.guard
    if not (guard.policy or guard.exceptions or guard.fail_open or guard.strict):
        from assay.core.policy import REPAIRED, Policy

        return Policy(repairs=REPAIRED) if guard.repairs else None
    from time import gmtime, strftime

    from assay.base.printable import plain
    from assay.settings.policy_settings import policy, warnings

    today = strftime("%Y-%m-%d", gmtime())
    for line in warnings(guard, today):
        say(plain(f"assay: {line}"))
    return policy(guard, today)


def locked_of(
    args: argparse.Namespace,
    settings: Settings,
    say: Callable[[str], None],
    *,
    command: Sequence[str] = (),
    url: str = "",
    name: str | None = None,
) -> Locked | None:
    """
    Return what the server of that command, or at that address, is held to.

    *name* is the one that a client's file gives it; that of --name wins. A lock that is asked for and cannot be used
    is a mistake of the operator, for which nothing is started: raises `SettingsError`.
    """
    wish = args.lock or settings.guard.lock
    if wish == "off" or (wish == "auto" and not os.path.lexists("assay.lock")):
        return None
    from assay.base.printable import plain
    from assay.lock.lock_file import LockError
    from assay.lock.matching import chosen, told
    from assay.settings import SettingsError

    name = args.name if args.name is not None else name
    enforcing = (args.mode or settings.guard.mode) == "enforce"
    try:
        found = chosen(wish, name=name, command=tuple(command), url=url, enforcing=enforcing)
    except LockError as error:
        raise SettingsError(plain(f"{error}; use --lock off to run without a lock")) from None
    # Under enforce an operator relies on the lock, so that it is not applied is said in any case.
    quiet = args.quiet and (found is not None or not enforcing)
    for line in () if quiet else told(found, name=name, command=command, url=url):
        say(plain(f"assay: {line}"))
    return None if found is None else found.locked


def records_of(
    args: argparse.Namespace, settings: Settings, log: Callable[[str], None]
) -> AbstractContextManager[Records]:
    """The journal and the telemetry of the guard of one server."""
    from assay.cli.records import opened

    return opened(args.journal, settings, signed(log), server=server_name(args), **how_judged(args, settings))


class HowJudged(TypedDict):
    """What a replay has to know of a guard."""

    mode: str
    frame_bytes: int


def how_judged(args: argparse.Namespace, settings: Settings) -> HowJudged:
    """What the journal of a guard has for a replay."""
    return {"mode": args.mode or settings.guard.mode, "frame_bytes": settings.guard_limits.frame_bytes}

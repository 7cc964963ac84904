"""What every way to run the guard takes from options and settings: how strict it is, by which lock, on which record."""

# ruff: noqa: PLC0415  each command imports only what it needs

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from assay.edges.recorder import Records
    from assay.guard.terms import Terms
    from assay.lock.locked import Locked
    from assay.policy import Policy
    from assay.settings import Settings
    from assay.settings.caution import Cautious


def signed(say: Callable[[str], None]) -> Callable[[str], None]:
    """*say* for lines that do not name us: on the same stderr there is what the server says."""
    return lambda line: say(f"assay: {line}")


def settings_file(configs: Sequence[str]) -> str | None:
    """The one among the files given as --config that is about settings; None if none is. Raises `SettingsError`."""
    found = [name for name in configs if not is_client_file(name)]
    if len(found) > 1:
        from assay.settings import SettingsError

        raise SettingsError(f"--config {found[1]}: settings come from one file, and {found[0]} is given already")
    return found[0] if found else None


def is_client_file(name: str) -> bool:
    """Whether a file is a client's configuration, by its name."""
    # Settings are TOML as well, so that of Codex is known by the folder that it is always in.
    return name.lower().endswith((".json", ".jsonc", ".codex/config.toml"))


def guard_settings(args: argparse.Namespace, log: Callable[[str], None]) -> Settings:
    """
    The settings of a guard, which clients start in any directory. Raises `SettingsError`.

    Also with --quiet *log* gets a line with the file that is used, and one for what of it is ignored.
    """
    from assay.console.plain import plain
    from assay.settings import SettingsError, load_cautiously

    say = signed(lambda line: log(plain(line)))
    cautious = load_cautiously(os.environ, os.curdir, file=settings_file(args.config), flags=args.set, log=say)
    # To leave it out would open the door that it is meant to close.
    if args.listen is not None and any(each.path == ("auth",) for each in cautious.ignored):
        raise SettingsError("assay.toml: [auth] counts only with --config assay.toml, or after assay trust assay.toml")
    return _without_links(args, cautious, say)


def _without_links(args: argparse.Namespace, cautious: Cautious, say: Callable[[str], None]) -> Settings:
    """
    The settings, without a place for files that nobody has asked for and that leads out of the working directory.

    Whoever made the directory could have us write and remove files anywhere else.
    """
    from dataclasses import replace

    settings = cautious.settings
    chosen = args.journal or os.environ.get("ASSAY_JOURNAL") or ("journal", "directory") in cautious.given
    link = None if chosen else first_link(settings.journal.directory)
    if link is not None:
        say(f"no journal: {link} is a link to elsewhere; give --journal DIR")
        settings = replace(settings, journal=replace(settings.journal, directory="off"))
    link = None if ("guard", "flights") in cautious.given else first_link(settings.guard.flights)
    if link is not None:
        say(f"no flight recorder: {link} is a link to elsewhere; give --set guard.flights=DIR")
        settings = replace(settings, guard=replace(settings.guard, flights="off"))
    return settings


def first_link(path: str) -> str | None:
    """The first part of *path*, which is relative, that is a symbolic link; None if there is none."""
    parts = path.split("/")
    starts = ("/".join(parts[:number]) for number in range(1, len(parts) + 1))
    return next((start for start in starts if os.path.islink(start)), None)


def server_name(args: argparse.Namespace) -> str:
    """Return the name of the guarded server: that of --name, else one from its command or URL."""
    from assay.guard.server_names import name_of_command, name_of_url

    if args.name is not None:
        return str(args.name)
    return name_of_command(args.command) if args.command else name_of_url(args.target or "")


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
        from assay.policy import REPAIRED, Policy

        return Policy(repairs=REPAIRED) if guard.repairs else None
    from time import gmtime, strftime

    from assay.console.plain import plain
    from assay.guard.ruling import policy, warnings

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
) -> Locked | None:
    """
    What the server of that command, or at that address, is held to.

    A lock that is asked for and cannot be used is a slip, for which nothing is started: raises `SettingsError`.
    """
    wish = args.lock or settings.guard.lock
    if wish == "off" or (wish == "auto" and not os.path.exists("assay.lock")):
        return None
    from assay.console.plain import plain
    from assay.lock.file import LockError, chosen
    from assay.settings import SettingsError

    try:
        locked = chosen(wish, command=tuple(command), url=url)
    except LockError as error:
        raise SettingsError(plain(f"{error}; without a lock: --lock off")) from None
    if locked is None and not args.quiet:
        what = "this URL" if url else "this command"
        say(f"assay: assay.lock does not have {what}, so nothing is held to it")
    return locked


def records_of(
    args: argparse.Namespace, settings: Settings, log: Callable[[str], None]
) -> AbstractContextManager[Records]:
    """Where verdicts of the guard go."""
    from assay.cli.records import opened

    return opened(
        args.journal,
        settings,
        signed(log),
        mode=args.mode or settings.guard.mode,
        frame_bytes=settings.guard_limits.frame_bytes,
    )

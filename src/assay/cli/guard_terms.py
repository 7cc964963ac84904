"""Options and settings that every kind of guard uses: policy, lock, journal and telemetry."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from time import gmtime, strftime
from typing import TYPE_CHECKING

from assay.base.printable import plain
from assay.base.server_names import name_of_command, name_of_url
from assay.core.policy import REPAIRED, Policy
from assay.guard.terms import Terms
from assay.settings import Settings, SettingsError, load_cautiously
from assay.settings.policy_settings import policy, warnings

if TYPE_CHECKING:
    from assay.lock.locked import Locked


def signed(say: Callable[[str], None]) -> Callable[[str], None]:
    """Return *say* with the prefix "assay: ": the server writes to the same stderr."""
    return lambda line: say(f"assay: {line}")


def settings_file(configs: Sequence[str]) -> str | None:
    """Return the file with settings among the --config options; None without one. Raises `SettingsError`."""
    found = [name for name in configs if not is_client_file(name)]
    if len(found) > 1:
        raise SettingsError(f"--config {found[1]}: give only one file of settings; {found[0]} is given already")
    return found[0] if found else None


def is_client_file(name: str) -> bool:
    """Whether a file is a client's configuration, by its name."""
    # Settings are TOML, too, so the configuration of Codex is recognized by its folder.
    return name.replace("\\", "/").lower().endswith((".json", ".jsonc", ".codex/config.toml"))


def named_servers(args: argparse.Namespace) -> list[str]:
    """Return each argument that names a server, for the error about more than one."""
    command = ["a COMMAND"] if args.command else []
    target = ["--target URL"] if args.target is not None else []
    return [*command, *target, *(f"--config {name}" for name in args.config if is_client_file(name))]


def loaded_settings(args: argparse.Namespace, log: Callable[[str], None]) -> Settings:
    """
    Return the settings of a guard. Clients start it in any directory, so a local assay.toml is not trusted.

    Raises `SettingsError`.

    *log* gets a line with the file in use and one with its ignored settings, even with --quiet.
    """
    say = signed(lambda line: log(plain(line)))
    cautious = load_cautiously(os.environ, os.curdir, file=settings_file(args.config), flags=args.set, log=say)
    # Ignoring [auth] would leave the endpoint open.
    if args.listen is not None and any(each.path == ("auth",) for each in cautious.ignored):
        raise SettingsError(
            "assay.toml: [auth] is not trusted yet, and without it every client could connect; "
            "run assay trust assay.toml, or use --config assay.toml"
        )
    return cautious.settings


def server_name(args: argparse.Namespace) -> str:
    """Return the name of the guarded server: --name, else a name derived from its command or URL."""
    if args.name is not None:
        return str(args.name)
    return name_of_command(args.command) if args.command else name_of_url(args.target or "")


def terms_of(args: argparse.Namespace, settings: Settings, say: Callable[[str], None]) -> Terms:
    """Return the policy of the guard and its mode. Warnings about exceptions go to *say*."""
    return Terms(
        mode="enforce" if (args.mode or settings.guard.mode) == "enforce" else "audit",
        limits=settings.guard_limits,
        timeout=settings.guard.timeout if args.timeout is None else args.timeout,
        policy=policy_of(settings, say),
    )


def policy_of(settings: Settings, say: Callable[[str], None]) -> Policy | None:
    """Return the action for each rule today. Exceptions that have ended or end soon are reported to *say*."""
    guard = settings.guard
    if not (guard.policy or guard.exceptions or guard.fail_open or guard.strict):
        return Policy(repairs=REPAIRED) if guard.repairs else None

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
    Return the lock entry that applies to the server of this command or URL.

    *name* is the name in a client's configuration; --name wins over it. Raises `SettingsError` if a requested lock
    cannot be used: the guard then starts nothing.
    """
    wish = args.lock or settings.guard.lock
    if wish == "off" or (wish == "auto" and not os.path.lexists("assay.lock")):
        return None
    # Most servers have no lock, and start 5 ms earlier without these modules.
    from assay.lock.lock_file import LockError  # noqa: PLC0415
    from assay.lock.matching import chosen, notices  # noqa: PLC0415

    name = args.name if args.name is not None else name
    enforcing = (args.mode or settings.guard.mode) == "enforce"
    try:
        found = chosen(wish, name=name, command=tuple(command), url=url, enforcing=enforcing)
    except LockError as error:
        raise SettingsError(plain(f"{error}; use --lock off to run without a lock")) from None
    # Under enforce the operator relies on the lock, so a lock that is not applied is reported even with --quiet.
    quiet = args.quiet and (found is not None or not enforcing)
    for line in () if quiet else notices(found, name=name, command=command, url=url):
        say(plain(f"assay: {line}"))
    return None if found is None else found.locked

"""What an operator has decided for a guard: options, settings, policy and lock, as one value for every transport."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from time import gmtime, strftime
from typing import TYPE_CHECKING, Final, NamedTuple

from assay.guard.terms import Terms
from assay.model.names import name_of_url
from assay.model.printable import plain
from assay.rules.policy import REPAIRED, Policy
from assay.settings import Settings, SettingsError, load_cautiously
from assay.settings.policy_settings import policy, warnings
from assay.settings.sections import AUTO

if TYPE_CHECKING:
    from assay.guard.summary import GuardSummary
    from assay.lock.locked import Locked
    from assay.records.recording import Recording

Say = Callable[[str], None]
"""Gets a line."""

NOTHING_JUDGED: Final = 2
FOUND: Final = 4
"""Exit statuses of a guard with --fail-on."""


class GuardPlan(NamedTuple):
    """One guard."""

    args: argparse.Namespace
    """The options of the command line."""
    settings: Settings
    """The settings; options have replaced those that they are about."""
    terms: Terms
    say: Say
    """Gets lines for people."""

    @property
    def clients(self) -> list[str]:
        """The configurations of clients, whose servers are all guarded; at most one."""
        return client_files(self.args)

    @property
    def name(self) -> str:
        """The name of the guarded server: --name, else a name derived from its command or URL."""
        if self.args.name is not None:
            return str(self.args.name)
        if not self.args.command:
            return name_of_url(self.args.target or "")
        # 20 ms, which `assay guard --help` would take longer; a guard with a journal needs it in any case.
        from assay.judge.server_commands import name_of_command  # noqa: PLC0415

        return name_of_command(self.args.command)

    def log(self, line: str) -> None:
        """Print *line*, unless --quiet leaves it out."""
        if not self.args.quiet:
            self.say(line)

    def locked(self, command: Sequence[str] = (), url: str = "", name: str | None = None) -> Locked | None:
        """
        Return the lock entry that applies to the server of this command or URL.

        *name* is the name in a client's configuration; --name wins over it. Raises `SettingsError` if a requested lock
        cannot be used: the guard then starts nothing.
        """
        wish = self.settings.guard.lock
        if wish == "off" or (wish == "auto" and not os.path.lexists("assay.lock")):
            return None
        # Most servers have no lock, and start 5 ms earlier without these modules.
        from assay.lock.lock_file import LockError  # noqa: PLC0415
        from assay.lock.matching import chosen, notices  # noqa: PLC0415

        name = self.args.name if self.args.name is not None else name
        enforcing = self.terms.enforcing
        try:
            found = chosen(wish, name=name, command=tuple(command), url=url, enforcing=enforcing)
        except LockError as error:
            raise SettingsError(plain(f"{error}; use --lock off to run without a lock")) from None
        # Under enforce the operator relies on the lock, so a lock that is not applied is reported even with --quiet.
        say = self.log if found is not None or not enforcing else self.say
        for line in notices(found, name=name, command=command, url=url):
            say(plain(f"assay: {line}"))
        return None if found is None else found.locked


def plan_of(args: argparse.Namespace, settings: Settings, say: Say) -> GuardPlan:
    """Return the plan of a command line whose options replace *settings*. Lines for people go to *say*."""
    guard, directory = settings.guard, args.journal or os.environ.get("ASSAY_JOURNAL")
    settings = replace(
        settings,
        guard=replace(
            guard,
            mode=args.mode or guard.mode,
            timeout=guard.timeout if args.timeout is None else args.timeout,
            restart=args.restart or guard.restart,
            lock=args.lock or guard.lock,
        ),
        journal=replace(settings.journal, directory=directory or settings.journal.directory or AUTO),
    )
    terms = Terms(
        mode="enforce" if settings.guard.mode == "enforce" else "audit",
        limits=settings.guard_limits,
        timeout=settings.guard.timeout,
        policy=policy_of(settings, say),
    )
    return GuardPlan(args, settings, terms, say)


# ── options ──────────────────────────────────────────────────────────────────────────────────────────────────────────


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


def client_files(args: argparse.Namespace) -> list[str]:
    """Return the configurations of clients among the --config options."""
    return [name for name in args.config if is_client_file(name)]


def named_servers(args: argparse.Namespace) -> list[str]:
    """Return each argument that names a server, for the error about more than one."""
    command = ["a COMMAND"] if args.command else []
    target = ["--target URL"] if args.target is not None else []
    return [*command, *target, *(f"--config {name}" for name in client_files(args))]


def loaded_settings(args: argparse.Namespace, log: Say) -> Settings:
    """
    Return the settings of a guard. Clients start it in any directory, so a local assay.toml is not trusted.

    Raises `SettingsError`. *log* gets a line with the file in use and one with its ignored settings, even with --quiet.
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


def policy_of(settings: Settings, say: Say) -> Policy | None:
    """Return the action for each rule today. Exceptions that have ended or end soon are reported to *say*."""
    guard = settings.guard
    if not (guard.policy or guard.exceptions or guard.fail_open or guard.strict):
        return Policy(repairs=REPAIRED) if guard.repairs else None

    today = strftime("%Y-%m-%d", gmtime())
    for line in warnings(guard, today):
        say(plain(f"assay: {line}"))
    return policy(guard, today)


def signed(say: Say) -> Say:
    """Return *say* with the prefix "assay: ": the server writes to the same stderr."""
    return lambda line: say(f"assay: {line}")


# ── recordings, and what they are for ────────────────────────────────────────────────────────────────────────────────


@contextmanager
def recording_of(
    path: str | None, settings: Settings, say: Say, *, alone: bool, is_quiet: bool
) -> Iterator[Recording | None]:
    """
    Open a recording at *path*; None without a path. *alone* is as for `Recording`.

    Raises `SettingsError` if the file cannot be opened.
    """
    if path is None:
        yield None
        return

    # 50 ms of modules, which are imported while the server starts if nothing is recorded.
    from assay.judge.redaction import Redactor  # noqa: PLC0415
    from assay.records.recording import Recording, RecordingError  # noqa: PLC0415

    if path == "-":
        raise SettingsError("--record -: standard output belongs to the protocol; give a file")
    guard = settings.guard
    redactor = None if guard.record_secrets else Redactor(settings.journal.redact)
    try:
        recording = Recording(path, most=guard.record_bytes, redactor=redactor, log=say, alone=alone)
    except RecordingError as error:
        raise SettingsError(plain(f"--record {error}")) from None
    try:
        yield recording
    finally:
        recording.close()
        if not is_quiet:
            count = recording.messages
            say(f"assay: {count:,} message{'' if count == 1 else 's'} recorded in {recording.path}")


def exit_status(fail_on: str, watch: GuardSummary, status: int, say: Say) -> int:
    """Return *status*, or the exit status of --fail-on; the reason for a different status goes to *say*."""
    if status or fail_on == "never":
        # A crash of the server has precedence: the findings up to it are incomplete.
        return status
    if not watch.messages:
        say("assay: nothing was judged: no message came through the guard")
        return NOTHING_JUDGED
    found = watch.count(fail_on)
    if not found:
        return status
    what = "finding" if fail_on == "report" else "message refused or quarantined"
    many = what if found == 1 else what.replace("finding", "findings").replace("message", "messages")
    say(f"assay: --fail-on {fail_on}: {found:,} {many}")
    return FOUND

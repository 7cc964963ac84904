"""Guards with a client on standard streams: what they share, and the one in front of a child process."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from assay.base.printable import plain
from assay.cli.ci import exit_status
from assay.cli.guard_terms import server_name, terms_of
from assay.cli.program import leave_what_lasts
from assay.cli.records import in_place, introduce, records_of
from assay.edges.child import Child
from assay.edges.child_supervisor import RestartPolicy
from assay.edges.pipes import Outlet, Signals
from assay.edges.recorder import Recorder
from assay.edges.standard_streams import for_stderr
from assay.edges.stdio_child import SERVER_ENDED, StdioChild
from assay.guard.backoff import Backoff, times
from assay.guard.deliveries import ClientTraits, End, ServerTraits
from assay.guard.factory import SessionFactory
from assay.guard.sinks import Sinks
from assay.guard.summary import GuardSummary
from assay.guard.terms import Terms
from assay.lock.locked import Locked
from assay.records.record import ServerPlace
from assay.settings import Settings

if TYPE_CHECKING:
    from assay.records.recording import Recording


class StdioGuard(NamedTuple):
    """A guard whose records are open."""

    watch: GuardSummary
    factory: SessionFactory


@contextmanager
def stdio_guard(
    args: argparse.Namespace,
    settings: Settings,
    terms: Terms,
    locked: Locked | None,
    recording: Recording | None,
    say: Callable[[str], None],
    log: Callable[[str], None],
    *,
    command: Sequence[str] = (),
    url: str = "",
) -> Iterator[StdioGuard]:
    """Open the records of a guard. *say* gets lines for people; *log* gets those that ``--quiet`` leaves out."""
    name = server_name(args)
    watch = GuardSummary(
        log,
        say,
        enforcing=terms.enforcing,
        keeping=settings.guard.flights != "off",
        redact=settings.journal.redact,
        name=name,
        introducing=True,
    )
    with records_of(args, settings, say) as records:
        introduce(args, terms.mode, records, log)
        sinks = Sinks(Recorder("stdio", "stdio", records, holding=True).sinks)
        if records.journal is not None:
            records.journal.introduce("stdio", "stdio", ServerPlace(command, url, locked=locked is not None))
        yield StdioGuard(watch, SessionFactory(terms, sinks, watch, locked, recording=recording, server=name))


def guard_child(
    args: argparse.Namespace,
    settings: Settings,
    child: Child,
    signals: Signals,
    errors: Outlet,
    locked: Locked | None,
    recording: Recording | None,
) -> int:
    """Guard *child*, which has just been started, until it ends or the client disconnects; return the exit status."""

    def say(line: str) -> None:
        errors.say(for_stderr(plain(line)))

    log: Callable[[str], None] = (lambda _: None) if args.quiet else say
    settings = in_place(args, settings, say)
    terms = terms_of(args, settings, say)
    with stdio_guard(args, settings, terms, locked, recording, say, log, command=args.command) as (watch, factory):
        backoff = _backoff(args, settings, say, enforcing=terms.enforcing)
        session = factory.open(
            ClientTraits("stdio", sees_loss=True, carries_raw=True),
            ServerTraits("child", restorable=backoff is not None),
            watch=watch,
            backoff=backoff,
        )
        relay = StdioChild(
            session,
            child,
            signals,
            errors,
            patience=terms.timeout,
            policy=_restart_policy(args, settings, watch, say) if backoff is not None else None,
            redact=settings.journal.redact,
        )
        leave_what_lasts()
        status = relay.run()
    for line in watch.summary():
        log(line)
    if errors.lost:
        log(f"assay: {errors.lost:,} bytes for stderr were dropped, because it was not read in time")
    if session.lost:
        what = "subscription or log level was" if session.lost == 1 else "subscriptions or log levels were"
        log(f"assay: {session.lost:,} {what} lost when the server was restarted")
    again = f"was restarted {times(session.restarts)}" if session.restarts else ""
    if status == SERVER_ENDED:
        if settings.guard.flights != "off":
            watch.flight(settings.guard.flights, settings.journal.redact, relay.end)
        say(f"assay: the server ended first: {relay.reason}{again and f'; it {again}'}")
    elif again:
        who = "the guard was stopped; the server" if signals.stopping else "the client left; the server"
        say(f"assay: {who} {again}")
    return exit_status(args, watch, status, say)


def _backoff(
    args: argparse.Namespace, settings: Settings, say: Callable[[str], None], *, enforcing: bool
) -> Backoff | None:
    """Return when the server is started again; None if it never is."""
    policy = args.restart or settings.guard.restart
    if policy == "never":
        return None
    if not enforcing:
        say("assay: --restart needs --mode enforce; under audit a server that ends is not restarted")
        return None
    return Backoff(policy, settings.guard.restarts)


def _restart_policy(
    args: argparse.Namespace, settings: Settings, watch: GuardSummary, say: Callable[[str], None]
) -> RestartPolicy:
    """Return how the server is started again."""

    def report(end: End, wait: float) -> None:
        say(f"assay: the server ended: {end.why}; restarting in {wait:g} s")
        if settings.guard.flights != "off":
            watch.flight(settings.guard.flights, settings.journal.redact, end)

    return RestartPolicy(lambda: Child(args.command), report)

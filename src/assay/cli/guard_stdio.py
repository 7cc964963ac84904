"""Guards with a client on standard streams: in front of a child process, and in front of a server at a URL."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from assay.cli.guard_plan import GuardPlan, exit_status, signed
from assay.cli.options import HeaderError, given_headers
from assay.cli.program import leave_what_lasts
from assay.cli.records import judged_by, opened, placed
from assay.edges.child import Child
from assay.edges.child_supervisor import RestartPolicy
from assay.edges.pipes import Outlet, Signals
from assay.edges.recorder import Recorder
from assay.edges.stderr_writer import WAITING, hello
from assay.edges.stdio_child import SERVER_ENDED, StdioChild
from assay.guard.backoff import Backoff, times
from assay.guard.deliveries import ClientTraits, End, ServerTraits
from assay.guard.factory import SessionFactory
from assay.guard.sinks import Sinks
from assay.guard.summary import GuardSummary
from assay.lock.locked import Locked
from assay.records.record import ServerPlace
from assay.settings.extras import missing

if TYPE_CHECKING:
    from assay.records.recording import Recording


@contextmanager
def _opened(
    plan: GuardPlan, locked: Locked | None, recording: Recording | None
) -> Iterator[tuple[GuardSummary, SessionFactory]]:
    """Open the records of a guard, and introduce it. There is one client, and one conversation."""
    settings = plan.settings
    watch = GuardSummary(
        plan.log,
        plan.say,
        enforcing=plan.terms.enforcing,
        keeping=settings.guard.flights != "off",
        redact=settings.journal.redact,
        name=plan.name,
        introducing=True,
    )
    with opened(settings, signed(plan.say), **judged_by(plan, plan.name)) as records:
        plan.log(hello(plan.name, plan.terms.mode, records.journal.path if records.journal is not None else None))
        if os.isatty(0):
            plan.log(WAITING)
        sinks = Sinks(Recorder("stdio", "stdio", records, holding=True).sinks)
        if records.journal is not None:
            place = ServerPlace(plan.args.command, plan.args.target or "", locked=locked is not None)
            records.journal.introduce("stdio", "stdio", place)
        factory = SessionFactory(plan.terms, sinks, watch, locked, recording=recording, server=plan.name)
        yield watch, factory


def _keep_flight(plan: GuardPlan, watch: GuardSummary, end: End | None = None) -> None:
    """Write the last messages of a session that broke, unless that is switched off."""
    guard, redact = plan.settings.guard, plan.settings.journal.redact
    if guard.flights != "off":
        watch.flight(guard.flights, redact, *(() if end is None else (end,)))


# ── a server at a URL ────────────────────────────────────────────────────────────────────────────────────────────────


def guard_url(plan: GuardPlan, errors: Outlet, recording: Recording | None) -> int:
    """Guard until the client disconnects, a signal comes or the server is lost; return the exit status."""
    try:
        # A server at a URL needs an extra, and an event loop.
        from assay.edges import stdio_url  # noqa: PLC0415
    except ImportError as error:
        plan.say(f"assay: --target needs {missing(error, 'http')}")
        return 2
    try:
        headers = given_headers(plan.args.header, os.environ)
        stdio_url.check_target(plan.args.target, headers)
    except (HeaderError, stdio_url.TargetError) as error:
        plan.say(f"assay: {error}")
        return 2
    plan = placed(plan)
    timeout = plan.terms.timeout
    with _opened(plan, plan.locked(url=plan.args.target), recording) as (watch, factory):
        traits = ClientTraits("stdio"), ServerTraits("url", restorable=True)
        session = factory.open(*traits, watch=watch, drain=timeout)
        leave_what_lasts()
        status = stdio_url.run(
            plan.args.target,
            headers,
            session,
            patience=timeout,
            log=plan.say,
            errors=errors,
            upstream=plan.settings.upstream,
        )
    for line in watch.summary():
        plan.log(line)
    if status == stdio_url.SERVER_LOST:
        _keep_flight(plan, watch)
    return exit_status(plan.args.fail_on, watch, status, plan.say)


# ── a child process ──────────────────────────────────────────────────────────────────────────────────────────────────


def guard_child(
    plan: GuardPlan, child: Child, signals: Signals, errors: Outlet, locked: Locked | None, recording: Recording | None
) -> int:
    """Guard *child*, which has just been started, until it ends or the client disconnects; return the exit status."""
    plan = placed(plan)
    with _opened(plan, locked, recording) as (watch, factory):
        backoff = _backoff(plan)
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
            patience=plan.terms.timeout,
            policy=_restart_policy(plan, watch) if backoff is not None else None,
            redact=plan.settings.journal.redact,
        )
        leave_what_lasts()
        status = relay.run()
    for line in watch.summary():
        plan.log(line)
    if errors.lost:
        plan.log(f"assay: {errors.lost:,} bytes for stderr were dropped, because it was not read in time")
    if session.lost:
        what = "subscription or log level was" if session.lost == 1 else "subscriptions or log levels were"
        plan.log(f"assay: {session.lost:,} {what} lost when the server was restarted")
    again = f"was restarted {times(session.restarts)}" if session.restarts else ""
    if status == SERVER_ENDED:
        _keep_flight(plan, watch, relay.end)
        plan.say(f"assay: the server ended first: {relay.reason}{again and f'; it {again}'}")
    elif again:
        who = "the guard was stopped; the server" if signals.stopping else "the client left; the server"
        plan.say(f"assay: {who} {again}")
    return exit_status(plan.args.fail_on, watch, status, plan.say)


def _backoff(plan: GuardPlan) -> Backoff | None:
    """Return when the server is started again; None if it never is."""
    guard = plan.settings.guard
    if guard.restart == "never":
        return None
    if not plan.terms.enforcing:
        plan.say("assay: --restart needs --mode enforce; under audit a server that ends is not restarted")
        return None
    return Backoff(guard.restart, guard.restarts)


def _restart_policy(plan: GuardPlan, watch: GuardSummary) -> RestartPolicy:
    """Return how the server is started again."""

    def report(end: End, wait: float) -> None:
        plan.say(f"assay: the server ended: {end.why}; restarting in {wait:g} s")
        _keep_flight(plan, watch, end)

    return RestartPolicy(lambda: Child(plan.args.command), report)

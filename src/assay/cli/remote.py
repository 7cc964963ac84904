"""``assay guard --target``: guard a server at a URL, for a client on standard streams."""

# ruff: noqa: PLC0415  each way imports only what it needs

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from assay.cli.ci import exit_status
from assay.cli.guard_terms import introduce, locked_of, records_of, server_name, terms_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from assay.edges.pipes import Outlet
    from assay.records.recording.recording_file import Recording
    from assay.settings import Settings


def run(args: argparse.Namespace, settings: Settings, errors: Outlet, recording: Recording | None) -> int:
    """Guard until the client disconnects, a signal comes or the server is lost."""
    from assay.base.printable import plain
    from assay.cli.header_options import HeaderError, given_headers
    from assay.cli.live_offer import offered, stdio_live
    from assay.cli.serve import _leave_what_lasts
    from assay.edges.recorder import Recorder
    from assay.edges.standard_streams import for_stderr
    from assay.guard.deliveries import ClientTraits, ServerTraits, State
    from assay.guard.factory import SessionFactory
    from assay.guard.sinks import Sinks
    from assay.guard.summary import GuardSummary
    from assay.records.live.live_state import RUNNING, LiveState

    def say(line: str) -> None:
        errors.say(for_stderr(plain(line)))

    try:
        from assay.edges import stdio_url

        headers = given_headers(args.header, os.environ)
        stdio_url.check_target(args.target)
    except ImportError as error:
        from assay.base.extras import missing

        say(f"assay: --target needs {missing(error, 'http')}")
        return 2
    except (HeaderError, stdio_url.TargetError) as error:
        say(f"assay: {error}")
        return 2
    terms = terms_of(args, settings, say)
    locked = locked_of(args, settings, say, url=args.target)
    log: Callable[[str], None] = (lambda _: None) if args.quiet else say
    watch = GuardSummary(
        log,
        say,
        enforcing=terms.enforcing,
        keeping=settings.guard.flights != "off",
        redact=settings.journal.redact,
        name=server_name(args),
        introducing=True,
    )
    with (
        # Around the journal, whose last lines are written when it is closed.
        offered(settings, log, transport="stdio", mode=terms.mode) as door,
        records_of(args, settings, say) as records,
    ):
        introduce(args, terms.mode, records, log)
        sinks = Sinks(Recorder("stdio", "stdio", records, holding=True).sinks)
        live = stdio_live(
            door,
            settings,
            terms,
            sinks,
            records.journal,
            server_name(args),
            url=args.target,
            is_locked=locked is not None,
        )
        factory = SessionFactory(
            terms,
            sinks,
            watch,
            locked,
            recording=recording,
            server=server_name(args),
            opened=live.opened if live is not None else None,
        )
        session = factory.open(
            ClientTraits("stdio"), ServerTraits("url", restorable=True), watch=watch, drain=terms.timeout
        )
        if live is not None:
            live.standing = lambda: LiveState("ended") if session.state is State.CLOSED else RUNNING
        _leave_what_lasts()
        status = stdio_url.run(
            args.target,
            headers,
            session,
            patience=terms.timeout,
            log=say,
            errors=errors,
            upstream=settings.upstream,
            door=door,
        )
    for line in watch.summary():
        log(line)
    if status == stdio_url.SERVER_LOST and settings.guard.flights != "off":
        watch.flight(settings.guard.flights, settings.journal.redact)
    return exit_status(args, watch, status, say)

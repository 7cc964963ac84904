"""``assay guard --target``: guard a server at a URL, for a client on standard streams."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from assay.base.printable import plain
from assay.cli.ci import exit_status
from assay.cli.guard_terms import locked_of, terms_of
from assay.cli.options import HeaderError, given_headers
from assay.cli.program import leave_what_lasts
from assay.cli.records import in_place
from assay.cli.stdio_guard import stdio_guard
from assay.edges import stdio_url
from assay.edges.pipes import Outlet
from assay.edges.standard_streams import for_stderr
from assay.guard.deliveries import ClientTraits, ServerTraits
from assay.settings import Settings

if TYPE_CHECKING:
    from assay.records.recording import Recording


def run(args: argparse.Namespace, settings: Settings, errors: Outlet, recording: Recording | None) -> int:
    """Guard until the client disconnects, a signal comes or the server is lost."""

    def say(line: str) -> None:
        errors.say(for_stderr(plain(line)))

    try:
        headers = given_headers(args.header, os.environ)
        stdio_url.check_target(args.target, headers)
    except (HeaderError, stdio_url.TargetError) as error:
        say(f"assay: {error}")
        return 2
    settings = in_place(args, settings, say)
    terms = terms_of(args, settings, say)
    locked = locked_of(args, settings, say, url=args.target)
    log: Callable[[str], None] = (lambda _: None) if args.quiet else say
    with stdio_guard(args, settings, terms, locked, recording, say, log, url=args.target) as (watch, factory):
        session = factory.open(
            ClientTraits("stdio"), ServerTraits("url", restorable=True), watch=watch, drain=terms.timeout
        )
        leave_what_lasts()
        status = stdio_url.run(
            args.target,
            headers,
            session,
            patience=terms.timeout,
            log=say,
            errors=errors,
            upstream=settings.upstream,
        )
    for line in watch.summary():
        log(line)
    if status == stdio_url.SERVER_LOST and settings.guard.flights != "off":
        watch.flight(settings.guard.flights, settings.journal.redact)
    return exit_status(args, watch, status, say)

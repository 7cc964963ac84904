"""What guards with a client on standard streams share: summary, records, and how sessions are made."""

# ruff: noqa: PLC0415  each command imports only what it needs

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from assay.cli.guard_terms import introduce, records_of, server_name

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator, Sequence

    from assay.guard.factory import SessionFactory
    from assay.guard.summary import GuardSummary
    from assay.guard.terms import Terms
    from assay.lock.locked import Locked
    from assay.records.recording.recording_file import Recording
    from assay.settings import Settings


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
    from assay.edges.recorder import Recorder
    from assay.guard.factory import SessionFactory
    from assay.guard.sinks import Sinks
    from assay.guard.summary import GuardSummary
    from assay.records.journal.events import ServerPlace

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

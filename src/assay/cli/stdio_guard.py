"""What guards with a client on standard streams share: summary, records, live feed, and how sessions are made."""

# ruff: noqa: PLC0415  each command imports only what it needs

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from assay.cli.guard_terms import introduce, records_of, server_name

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator, Sequence

    from assay.edges.feed_door import FeedDoor
    from assay.guard.factory import SessionFactory
    from assay.guard.summary import GuardSummary
    from assay.guard.terms import Terms
    from assay.lock.locked import Locked
    from assay.records.live.live_server import LiveServer
    from assay.records.recording.recording_file import Recording
    from assay.settings import Settings


class StdioGuard(NamedTuple):
    """A guard whose records are open."""

    watch: GuardSummary
    factory: SessionFactory
    door: FeedDoor | None
    """The door of its live feed, if it has one."""
    live: LiveServer | None
    """Its server in the live feed."""


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
    from assay.cli.live_offer import offered
    from assay.edges.recorder import Recorder
    from assay.guard.factory import SessionFactory
    from assay.guard.sinks import Sinks
    from assay.guard.summary import GuardSummary

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
    with (
        # Around the journal, whose last lines are written when it is closed.
        offered(settings, log, transport="stdio", mode=terms.mode) as door,
        records_of(args, settings, say) as records,
    ):
        introduce(args, terms.mode, records, log)
        sinks = Sinks(Recorder("stdio", "stdio", records, holding=True).sinks)
        live = None if door is None else door.feed.add(name, "stdio", command=command, url=url)
        if live is not None:
            from assay.records.live.unwritten import unwritten_journal

            unwritten = partial(unwritten_journal, settings, terms, name)
            live.begin(sinks, records.journal, unwritten, transport="stdio", locked=locked is not None)
        opened = None if live is None else live.opened
        factory = SessionFactory(terms, sinks, watch, locked, recording=recording, server=name, opened=opened)
        yield StdioGuard(watch, factory, door, live)

"""Open and close the journal and the telemetry that settings and variables ask for."""

# ruff: noqa: PLC0415  each command imports only what it needs

from __future__ import annotations

import os
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from assay.edges.recorder import Records
    from assay.records.journal.writer import Journal
    from assay.settings import JournalSettings, Settings

OFF = "off"
"""The value in place of a directory that switches the journal off."""

TOLD_WITHIN = 3.0
"""Seconds at exit to send the remaining telemetry to the collector."""


@contextmanager
def opened(
    option: str | None,
    settings: Settings,
    log: Callable[[str], None],
    *,
    deterministic: bool = False,
    server: str = "",
    mode: str = "",
    frame_bytes: int = 0,
) -> Iterator[Records]:
    """
    Open the journal and telemetry that are configured. Whatever cannot be opened is logged and left out.

    *option* is the journal directory from the command line; the other arguments are for `Journal.open`.
    """
    from assay.edges.recorder import Records

    telemetry = None
    with opened_journal(
        option,
        settings,
        log,
        deterministic=deterministic,
        server=server,
        mode=mode,
        frame_bytes=frame_bytes,
    ) as journal:
        if _wants_telemetry(settings):
            from assay.records.telemetry import Telemetry

            telemetry = Telemetry.open(settings.telemetry, log=log, redact=settings.journal.redact)
        try:
            yield Records(journal, None, telemetry)
        finally:
            if telemetry is not None:
                telemetry.close(TOLD_WITHIN)


@contextmanager
def opened_journal(
    option: str | None,
    settings: Settings,
    log: Callable[[str], None],
    *,
    deterministic: bool = False,
    server: str = "",
    mode: str = "",
    frame_bytes: int = 0,
) -> Iterator[Journal | None]:
    """Open only the journal, as `opened` does; None if it is off or cannot be opened."""
    directory = place(option, settings.journal)
    if directory is None:
        yield None
        return
    from assay.edges.hangup import telling
    from assay.records.journal.writer import Journal

    journal = Journal.open(
        directory,
        deterministic=deterministic or os.environ.get("ASSAY_DETERMINISTIC", "") not in ("", "0", "false"),
        payloads=settings.journal.payloads,
        keep=settings.journal.keep,
        file_bytes=settings.journal.bytes,
        total_bytes=settings.journal.total_bytes,
        redact=settings.journal.redact,
        log=log,
        server=server,
        mode=mode,
        frame_bytes=frame_bytes,
    )
    try:
        with telling(journal.reopen) if journal is not None else nullcontext():
            yield journal
    finally:
        if journal is not None:
            journal.close()


def _wants_telemetry(settings: Settings) -> bool:
    """Whether telemetry is configured at all. This check needs no import."""
    return bool(settings.telemetry.endpoint) or any(name.startswith("OTEL_") for name in os.environ)


def place(option: str | None, settings: JournalSettings) -> str | None:
    """Return the journal directory: from the option, else ASSAY_JOURNAL, else the settings; None if it is off."""
    from assay.settings.sections import ASSETS_JOURNAL, AUTO

    usual = ASSETS_JOURNAL if settings.directory == AUTO else settings.directory
    named = option or os.environ.get("ASSAY_JOURNAL") or usual
    return None if named.lower() == OFF else named

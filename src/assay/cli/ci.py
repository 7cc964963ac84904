"""The CI options of `assay guard`: --record writes the messages to a file, --fail-on sets the exit status."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from assay.base.printable import plain
from assay.settings import Settings, SettingsError

if TYPE_CHECKING:
    from assay.guard.summary import GuardSummary
    from assay.records.recording import Recording

NOTHING_JUDGED = 2
FOUND = 4
"""Exit statuses of a guard with --fail-on."""

LEVELS = ("report", "refuse", "never")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Give *parser* --record and --fail-on."""
    parser.add_argument(
        "--record",
        metavar="FILE",
        help="write every message to FILE, which assay check reads; in a directory, to a new file each time",
    )
    parser.add_argument(
        "--fail-on",
        choices=LEVELS,
        default="never",
        help="exit with 4 after any finding, or only if a message was or would be refused (default: %(default)s)",
    )


@contextmanager
def recording_of(
    args: argparse.Namespace, settings: Settings, say: Callable[[str], None], *, alone: bool
) -> Iterator[Recording | None]:
    """
    Open the recording of --record; None without the option. *alone* is as for `Recording`.

    Raises `SettingsError` if the file cannot be opened.
    """
    if args.record is None:
        yield None
        return

    # 50 ms of modules, which are imported while the server starts if nothing is recorded.
    from assay.core.redaction import Redactor  # noqa: PLC0415
    from assay.records.recording import Recording, RecordingError  # noqa: PLC0415

    if args.record == "-":
        raise SettingsError("--record -: standard output belongs to the protocol; give a file")

    guard = settings.guard
    redactor = None if guard.record_secrets else Redactor(settings.journal.redact)
    try:
        recording = Recording(args.record, most=guard.record_bytes, redactor=redactor, log=say, alone=alone)
    except RecordingError as error:
        raise SettingsError(plain(f"--record {error}")) from None
    try:
        yield recording
    finally:
        recording.close()
        if not args.quiet:
            count = recording.messages
            say(f"assay: {count:,} message{'' if count == 1 else 's'} recorded in {recording.path}")


def exit_status(args: argparse.Namespace, watch: GuardSummary, status: int, say: Callable[[str], None]) -> int:
    """Return *status*, or the exit status of --fail-on; the reason for a different status goes to *say*."""
    if status or args.fail_on == "never":
        # A crash of the server has precedence: the findings up to it are incomplete.
        return status
    if not watch.messages:
        say("assay: nothing was judged: no message came through the guard")
        return NOTHING_JUDGED
    found = watch.count(args.fail_on)
    if not found:
        return status
    what = "finding" if args.fail_on == "report" else "message refused or quarantined"
    many = what if found == 1 else what.replace("finding", "findings").replace("message", "messages")
    say(f"assay: --fail-on {args.fail_on}: {found:,} {many}")
    return FOUND

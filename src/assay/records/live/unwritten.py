"""The journal without a file of a guard whose journal is off: it makes the lines of its live feed. No I/O."""

from typing import TYPE_CHECKING

from assay.records.journal import Journal
from assay.records.journal.record import NAME_LENGTH, RunIdentity, cut

if TYPE_CHECKING:
    from assay.guard.terms import Terms
    from assay.settings import Settings


def unwritten_journal(settings: "Settings", terms: "Terms | None", server: str) -> Journal:
    """Return the journal of *server*; *terms* are those of a guard."""
    run = RunIdentity(
        deterministic=False,
        payloads=settings.journal.payloads,
        server=cut(server, NAME_LENGTH),
        patterns=tuple(settings.journal.redact),
        mode="" if terms is None else terms.mode,
        frame_bytes=0 if terms is None else terms.limits.frame_bytes,
    )
    return Journal.unwritten(run)

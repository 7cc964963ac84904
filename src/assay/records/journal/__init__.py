"""The journal of verdicts: one JSON line each, one file a run. Writes, reads, compares and replays it."""

from assay.records.journal.record_ids import Moment
from assay.records.journal.writer import Journal

__all__ = ["Journal", "Moment"]

"""The journal of verdicts: one JSON line each, one file a run. Writes, reads, compares and replays it."""

from assay.journal.moment import Moment
from assay.journal.writer import Journal

__all__ = ["Journal", "Moment"]

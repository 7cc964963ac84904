"""Verdicts on record: one JSON line each, one file a run. Writing, reading, comparing and replaying them."""

from assay.records.journal.record_ids import Moment
from assay.records.journal.writer import Journal

__all__ = ["Journal", "Moment"]

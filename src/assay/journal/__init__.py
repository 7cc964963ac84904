"""Verdicts on record: one JSON line each, one file a run. Writing, reading, comparing and replaying them."""

from assay.journal.moment import Moment
from assay.journal.writer import Journal

__all__ = ["Journal", "Moment"]

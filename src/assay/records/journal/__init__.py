"""The journal of verdicts: one JSON line each, one file a run. Writes, reads, compares and replays it."""

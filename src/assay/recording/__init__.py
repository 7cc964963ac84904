"""Recordings: files with every message of guarded conversations, written by a guard and judged again by `assay check`."""

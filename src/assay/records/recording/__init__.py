"""Recordings: files with every message of guarded conversations, which a guard writes and `assay check` judges."""

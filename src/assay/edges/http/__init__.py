"""Streamable HTTP: the same server, the same verdicts, over POST, GET and DELETE."""

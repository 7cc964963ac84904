"""The option for the time that a command waits for a server."""

import argparse

from assay.edges.probe.server_probe import LateError


def add_time_limit(parser: argparse.ArgumentParser, limited: str) -> None:
    """Add `--timeout`; *limited* says in its help what the time is for."""
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=_seconds,
        default=60.0,
        help=f"time limit for {limited}; default: %(default)g",
    )


def late(error: Exception, seconds: float) -> str:
    """Return the end of the message about a server that did not respond within *seconds*; empty for other errors."""
    return f" within {seconds:g} s; --timeout SECONDS sets the limit" if isinstance(error, LateError) else ""


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= 86_400:
        raise argparse.ArgumentTypeError(f"{text}: expected more than 0 and at most 86400 seconds")
    return seconds

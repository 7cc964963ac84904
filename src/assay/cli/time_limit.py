"""The option for the time that a command waits for a server."""

import argparse


def add_time_limit(parser: argparse.ArgumentParser, limited: str) -> None:
    """Add `--timeout`; *limited* says in its help what the time is for."""
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=_seconds,
        default=60.0,
        help=f"time limit for {limited}; default: %(default)g",
    )


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= 86_400:
        raise argparse.ArgumentTypeError(f"{text}: expected more than 0 and at most 86400 seconds")
    return seconds

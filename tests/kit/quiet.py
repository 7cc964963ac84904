"""Addresses of this machine at which nothing else listens: tests elsewhere, and clients, have ports of 127.0.0.1."""

import sys


def quiet_host(number: int) -> str:
    """
    Return a loopback address for the tests that have this *number*, which is at least 2.

    A port that one of their servers gives up is not taken by another process before they look. Only Linux has more
    than one such address without being told to.
    """
    return f"127.0.0.{number}" if sys.platform == "linux" else "127.0.0.1"

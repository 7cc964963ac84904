"""Where a server listens: read, opened, and only as open to others as an operator has said."""

import errno
import socket
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from assay.edges.http.http_server import listening
from assay.edges.http.origin_check import Safety, in_url, is_loopback
from assay.settings import SettingsError
from assay.settings.http_section import Http

_EVERY: Final = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}  # noqa: S104 - to be told from others, not to listen at
"""Addresses that stand for all of this machine, which no client can connect to, and one that a client can."""


class ListenAddress(NamedTuple):
    """A socket that listens, and what it is called."""

    sock: socket.socket
    safety: Safety
    url: str
    """Scheme, host and port that a client on this machine can use."""
    others: tuple[str, ...] = ()
    """The same for clients elsewhere, as far as an operator has named them."""
    unnamed: bool = False
    """Whether it listens for clients elsewhere, and no name is allowed that they could use."""

    def notes(self, endpoint: str) -> Iterator[str]:
        """Lines for an operator about clients elsewhere."""
        for each in self.others:
            yield f"also at {each}{endpoint}"
        if self.unnamed:
            yield (
                "clients on other machines get 403 until the name or address that they use is allowed: "
                "--set http.hosts=NAME"
            )

    @classmethod
    def open(cls, option: str, address: str, http: Http, *, gated: bool) -> "ListenAddress":
        """Listen at *address*, the value of *option*; *gated* if clients must sign in. Raises `SettingsError`."""
        host, port = parsed(option, address)
        if not gated and not http.open and not is_loopback(host):
            raise SettingsError(
                f"{option} {address}: {host} is reachable from other machines and [auth] is not configured; "
                "configure it, or set http.open = true"
            )
        _allow_many_connections()
        try:
            sock = listening(host, port)
        except OSError as error:
            raise SettingsError(f"{option} {address}: {error.strerror}{_advice(option, host, error)}") from None
        name, number = sock.getsockname()[:2]
        return cls(sock, Safety([*http.hosts, name, host], http.origins), *called(name, number, http.hosts))


def called(name: str, port: int, hosts: Sequence[str]) -> tuple[str, tuple[str, ...], bool]:
    """Return `Place.url`, `Place.others` and `Place.unnamed` of a socket at *name* and *port*."""
    everywhere = name in _EVERY
    others = tuple(f"http://{in_url(each)}:{port}" for each in hosts if everywhere)
    return f"http://{_EVERY.get(name) or in_url(name)}:{port}", others, everywhere and not others


def _advice(option: str, host: str, error: OSError) -> str:
    """Return what to do about an address that cannot be listened at."""
    in_use = error.errno == errno.EADDRINUSE
    return f"; use another port, or {option} {in_url(host)}:0 for any free one" if in_use else ""


def parsed(option: str, address: str) -> tuple[str, int]:
    """Host and port; without a host it is loopback. Raises `SettingsError`."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal():
        raise SettingsError(f"{option} {address}: an address is HOST:PORT, such as 127.0.0.1:8765")
    # Not by its value alone: of thousands of digits Python makes no number.
    if len(port) > 5 or int(port) > 65535:
        raise SettingsError(f"{option} {address}: the PORT of HOST:PORT is at most 65535")
    return host.strip("[]") or "127.0.0.1", int(port)


def _allow_many_connections() -> None:
    """As many open files as we may have: every connection is one, and the usual soft limit is 1,024."""
    try:
        import resource  # noqa: PLC0415 - there is none on Windows
    except ImportError:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = 65_536 if hard == resource.RLIM_INFINITY else min(hard, 65_536)
    if soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))

"""Parse and open the address of an endpoint; refuse an unprotected one that others can reach."""

import errno
import socket
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from assay.edges.http.http_server import listening
from assay.edges.http.origin_check import Safety, in_url, is_loopback
from assay.settings import SettingsError
from assay.settings.http_section import Http

_EVERY: Final = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}  # noqa: S104 - recognized, not listened at
"""Wildcard addresses, each with an address that a client can use."""


class ListenAddress(NamedTuple):
    """A listening socket and its URLs."""

    sock: socket.socket
    safety: Safety
    url: str
    """Scheme, host and port for clients on this machine."""
    others: tuple[str, ...] = ()
    """The same for clients on other machines, by the allowed host names."""
    unnamed: bool = False
    """Whether other machines can connect, but no host name for them is allowed."""

    def notes(self, endpoint: str) -> Iterator[str]:
        """Notes for the operator about clients on other machines."""
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
        safety = Safety([*http.hosts, name, host], http.origins, http.public_url)
        return cls(sock, safety, *called(name, number, http.hosts))


def called(name: str, port: int, hosts: Sequence[str]) -> tuple[str, tuple[str, ...], bool]:
    """Return `Place.url`, `Place.others` and `Place.unnamed` of a socket at *name* and *port*."""
    everywhere = name in _EVERY
    others = tuple(f"http://{in_url(each)}:{port}" for each in hosts if everywhere)
    return f"http://{_EVERY.get(name) or in_url(name)}:{port}", others, everywhere and not others


def _advice(option: str, host: str, error: OSError) -> str:
    """Return the hint for an address that cannot be used."""
    in_use = error.errno == errno.EADDRINUSE
    return f"; use another port, or {option} {in_url(host)}:0 for any free one" if in_use else ""


def parsed(option: str, address: str) -> tuple[str, int]:
    """Parse host and port; the default host is loopback. Raises `SettingsError`."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal():
        raise SettingsError(f"{option} {address}: expected HOST:PORT, such as 127.0.0.1:8765")
    # Its length is checked first: Python refuses to convert thousands of digits.
    if len(port) > 5 or int(port) > 65535:
        raise SettingsError(f"{option} {address}: PORT must be at most 65535")
    return host.strip("[]") or "127.0.0.1", int(port)


def _allow_many_connections() -> None:
    """Raise the limit of open files: every connection is one, and the usual soft limit is 1,024."""
    try:
        import resource  # noqa: PLC0415 - not available on Windows
    except ImportError:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = 65_536 if hard == resource.RLIM_INFINITY else min(hard, 65_536)
    if soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))

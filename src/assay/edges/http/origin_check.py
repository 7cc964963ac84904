"""
Check the `Host` and `Origin` of a request, and whether a host is this machine. No I/O: nothing is resolved.

A web page can make a browser send requests to this machine, and with DNS rebinding even read the responses. It cannot
choose the `Host` and `Origin` that the browser sends.
"""

import re
from collections.abc import Iterable
from ipaddress import ip_address
from typing import Final, NamedTuple

LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})

_AUTHORITY: Final = re.compile(rb"([a-z0-9._-]+|\[[0-9a-f:.]+\])(?::([0-9]{0,5}))?")
"""
A host and optionally a port, and nothing else (RFC 9110, 7.2). URL parsers are too lenient for this: they drop tabs and
line breaks, so that a split header would be joined.
"""

_SHOWN: Final = 100
"""Maximal characters of a name to show."""

_KEPT: Final = 256
"""Maximal cached values. Real clients send one or two."""


class Barred(NamedTuple):
    """A request with a refused `Host` or `Origin`."""

    what: str
    setting: str
    """The setting that could allow it."""
    name: str
    """The value for that setting; empty if none would allow it."""

    @property
    def advice(self) -> str:
        """The advice for the operator. The name may be that of an attacking page."""
        friend = "clients use this name for this machine" if self.setting == "http.hosts" else "this is a page of yours"
        return f"if {friend}: --set {self.setting}={self.name}" if self.name else ""


class Safety:
    """The allowed names and origins."""

    __slots__ = ("_good", "_hosts", "_origins", "public_url")

    def __init__(self, hosts: Iterable[str] = (), origins: Iterable[str] = (), public_url: str = "") -> None:
        """*public_url* is the address that clients use, if it is another one than that in their `Host`."""
        self.public_url = public_url
        names = [*hosts, *([public_url.partition("://")[2]] if public_url else [])]
        self._hosts = LOOPBACK | {_name(host.encode()) or host.casefold().strip("[]") for host in names}
        self._origins = frozenset(origin.casefold().rstrip("/") for origin in origins)
        self._good: set[tuple[bytes | None, bytes | None]] = set()

    def allows(self, host: bytes | None, origin: bytes | None) -> bool:
        """Whether a request with these two headers is allowed; without an origin it does not come from a page."""
        if (host, origin) in self._good:
            return True
        if host is None or not self._is_ours(host) or (origin is not None and not self._is_friend(origin)):
            return False
        if len(self._good) < _KEPT:
            self._good.add((host, origin))
        return True

    def objection(self, host: bytes | None, origin: bytes | None) -> Barred:
        """Return why a request with these two headers is refused, with printable text only."""
        if host is None or not self._is_ours(host):
            name = _name((host or b"").rstrip(b" \t")) or ""
            return Barred(f"the Host {name[:_SHOWN]!r} is not served here", "http.hosts", name[:_SHOWN])
        page = ascii((origin or b"").decode("latin-1"))[1:-1][:_SHOWN]
        return Barred(f"the Origin {page!r} is not served here", "http.origins", page)

    def _is_ours(self, host: bytes) -> bool:
        # The parser leaves white space after a value, which is not part of it (RFC 9110, 5.5).
        return _name(host.rstrip(b" \t")) in self._hosts

    def _is_friend(self, origin: bytes) -> bool:
        scheme, mark, authority = origin.lower().partition(b"://")
        on_loopback = scheme in {b"http", b"https"} and mark != b"" and _name(authority) in LOOPBACK
        return on_loopback or origin.decode("latin-1").casefold() in self._origins


def _name(authority: bytes) -> str | None:
    """Return the host in *authority*, in lower case, without port; None if it is invalid."""
    found = _AUTHORITY.fullmatch(authority.lower())
    if found is None or int(found[2] or 0) > 65535:
        return None
    return found[1].decode().strip("[]")


def in_url(host: str) -> str:
    """Return *host*, which may have a port, for use in a URL before another port."""
    name = _name(host.encode()) or host.strip("[]")
    return f"[{name}]" if ":" in name else name


def is_loopback(host: str) -> bool:
    """Whether *host* can be reached only from this machine."""
    name = host.casefold().strip("[]")
    try:
        return ip_address(name).is_loopback
    except ValueError:
        # Of all names, only this one always resolves to this machine.
        return name == "localhost"


def leads_here(host: str) -> bool:
    """Whether a URL with *host* leads to this machine, as every name under localhost should (RFC 6761, 6.3)."""
    return is_loopback(host) or host.casefold().endswith(".localhost")

"""Where a server listens: read, opened, and only as open to others as an operator has said."""

import socket
from typing import NamedTuple

from assay.edges.http.safety import Safety, is_loopback
from assay.edges.http.section import Http
from assay.edges.http.server import listening
from assay.settings import SettingsError


class Place(NamedTuple):
    """A socket that listens, and what it is called."""

    sock: socket.socket
    url: str
    """Scheme, host and port."""
    safety: Safety

    @classmethod
    def open(cls, option: str, address: str, http: Http, *, gated: bool) -> "Place":
        """Listens at *address*, as *option* says; *gated* if somebody sees who comes in. Raises `SettingsError`."""
        host, port = parsed(option, address)
        if not gated and not http.open and not is_loopback(host):
            raise SettingsError(
                f"{option} {address}: others can reach this address, and [auth] says nothing of who may come in; "
                "configure it, or set http.open = true"
            )
        _allow_many_connections()
        try:
            sock = listening(host, port)
        except OSError as error:
            raise SettingsError(f"{option} {address}: {error.strerror}") from None
        name, number = sock.getsockname()[:2]
        shown = f"[{name}]" if ":" in name else name
        return cls(sock, f"http://{shown}:{number}", Safety([*http.hosts, name, host], http.origins))


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

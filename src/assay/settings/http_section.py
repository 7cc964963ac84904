"""The settings of HTTP: endpoints for clients, and how servers at a URL are reached."""

import re
from dataclasses import dataclass

_PUBLIC_URL = re.compile(r"https?://([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?")

_NEVER_FORWARDED = frozenset(
    {
        *("connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "http2-settings", "host"),
        *("proxy-authenticate", "proxy-authorization", "proxy-connection", "expect", "accept-encoding", "date"),
        *("location", "refresh", "alt-svc", "www-authenticate", "last-event-id", "origin"),
    }
)
"""Headers that bypass the guard, are hop-by-hop, or are written by the guard itself."""


@dataclass(frozen=True, slots=True)
class Http:
    """Limits of an HTTP endpoint, and the clients that may use it."""

    hosts: tuple[str, ...] = ()
    """Accepted ``Host`` names, in addition to loopback and the listening address."""

    origins: tuple[str, ...] = ()
    """Accepted origins of web pages, such as ``https://app.example.com``, in addition to loopback."""

    public_url: str = ""
    """The address that clients use, such as ``https://mcp.example.com``, behind a proxy that ends TLS."""

    open: bool = False
    """
    Accept clients without ``[auth]`` on an address that other machines can reach. By default the guard does not start
    there.
    """

    forward_headers: tuple[str, ...] = ()
    """Additional request headers to forward to a server at a URL, under ``enforce``."""

    forward_response_headers: tuple[str, ...] = ()
    """Additional response headers to forward to clients, under ``enforce``."""

    requests: int = 1000
    """Maximum concurrent requests; the next one gets 503."""

    requests_each: int = 250
    """Maximum concurrent requests of one principal, with ``[auth]``; the next one gets 429."""

    requests_per_server: int = 500
    """Maximum concurrent requests to one server of a host."""

    sessions: int = 10_000
    """Maximum sessions, about 8 kB each. One more ends the least recently used idle session."""

    sessions_each: int = 1000
    """Maximum sessions of one principal. One more ends its least recently used idle session."""

    streams: int = 1000
    """Maximum open streams."""

    streams_each: int = 250
    """Maximum open streams of one principal, with ``[auth]``; the next one gets 429."""

    streams_per_server: int = 500
    """Maximum open streams of one server of a host."""

    session_seconds: float = 1800.0
    """Seconds until an unused session ends."""

    header_seconds: float = 10.0
    """Seconds for the headers of a request to arrive."""

    body_seconds: float = 30.0
    """Seconds for a body to arrive."""

    send_seconds: float = 30.0
    """Seconds until a client that does not read its response is disconnected."""

    idle_seconds: float = 60.0
    """Seconds to keep a connection open between requests."""

    ping_seconds: float = 15.0
    """Seconds between keep-alive comments on a quiet stream."""

    grace_seconds: float = 20.0
    """Seconds for running requests to finish after SIGTERM."""

    def __post_init__(self) -> None:
        if self.public_url and not _PUBLIC_URL.fullmatch(self.public_url):
            raise ValueError("public_url must be a scheme and a host, such as https://mcp.example.com, without a path")
        for name in (*self.forward_headers, *self.forward_response_headers):
            if not name.replace("-", "").isascii() or not name.replace("-", "").isalnum():
                raise ValueError(f"{name} is not the name of a header")
            if name.lower() in _NEVER_FORWARDED or name.lower().startswith(("mcp-", "access-control-", "content-")):
                raise ValueError(f"the header {name} is never forwarded")
        for name in self.__slots__:
            value = getattr(self, name)
            if type(value) is int and value < 1:
                raise ValueError(f"{name} must be at least 1")
            if name.endswith("_seconds") and value <= 0:
                raise ValueError(f"{name} must be more than 0")


@dataclass(frozen=True, slots=True)
class UpstreamSettings:
    """Certificates and proxies for connections to servers at a URL. Certificates are always verified."""

    ca: str = ""
    """
    PEM file with the certificate authorities to trust in place of the public ones. By default ``SSL_CERT_FILE`` and
    ``SSL_CERT_DIR`` apply, except for this machine.
    """

    certificate: str = ""
    """PEM file with the client certificate and its chain."""

    key: str = ""
    """PEM file with its private key, without a passphrase; by default in the same file."""

    proxies: bool = False
    """Use the proxies of the environment (``HTTPS_PROXY`` and the like); never for this machine."""

    def __post_init__(self) -> None:
        if self.key and not self.certificate:
            raise ValueError("key needs certificate")

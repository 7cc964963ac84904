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
    """Accepted ``Host`` names, in addition to loopback and the address of the endpoint."""

    origins: tuple[str, ...] = ()
    """Accepted origins of web pages, such as ``https://app.example.com``, in addition to loopback."""

    public_url: str = ""
    """
    The address that clients use, such as ``https://mcp.example.com``, behind a proxy that ends TLS. Sign-in documents
    and challenges name it, by default ``http://`` and the ``Host``; its host is accepted in ``Host``.
    """

    open: bool = False
    """Whether clients need no ``[auth]`` on an address that others can reach; by default it is required there."""

    forward_headers: tuple[str, ...] = ()
    """Additional request headers that a guard under ``enforce`` forwards to a server at a URL."""

    forward_response_headers: tuple[str, ...] = ()
    """Additional response headers that a guard under ``enforce`` forwards to clients."""

    requests: int = 1000
    """Maximal concurrent requests. One that waits for a backend takes about 20 kB; the next one gets 503."""

    requests_each: int = 250
    """Maximal concurrent requests of one principal, with ``[auth]``; the next one gets 429."""

    requests_per_server: int = 500
    """Maximal concurrent requests to one server of a host, so that a hanging one does not block the others."""

    sessions: int = 10_000
    """Maximal sessions, about 8 kB each. One more ends the least recently used idle one."""

    sessions_each: int = 1000
    """Maximal sessions of one principal. One more ends the principal's least recently used idle session."""

    streams: int = 1000
    """Maximal open streams, each of them a connection and a task."""

    streams_each: int = 250
    """Maximal open streams of one principal, with ``[auth]``; the next one gets 429."""

    streams_per_server: int = 500
    """Maximal open streams of one server of a host."""

    session_seconds: float = 1800.0
    """Seconds until an unused session ends: half an hour covers a person's break."""

    header_seconds: float = 10.0
    """Seconds for the head of a request to arrive. Real clients send it in one packet."""

    body_seconds: float = 30.0
    """Seconds for a body to arrive: a megabyte over a line of 300 kbit/s."""

    send_seconds: float = 30.0
    """Seconds until a client that reads nothing of its response is disconnected."""

    idle_seconds: float = 60.0
    """Seconds that a connection is kept between two requests."""

    ping_seconds: float = 15.0
    """Seconds between keep-alive comments on a quiet stream; proxies close idle ones after 30 to 60 seconds."""

    grace_seconds: float = 20.0
    """Seconds for running requests once the server is asked to stop: a backend has 15."""

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
    A file in PEM with the certificates to trust in place of the public ones. Without it ``SSL_CERT_FILE`` and
    ``SSL_CERT_DIR`` count, except for this machine.
    """

    certificate: str = ""
    """A file in PEM with the certificate to show to servers, and those of its issuers behind it."""

    key: str = ""
    """A file in PEM with its private key, without a passphrase; by default it is in the file of the certificate."""

    proxies: bool = False
    """Whether the proxies of the environment (``HTTPS_PROXY`` and the like) are used; never for this machine."""

    def __post_init__(self) -> None:
        if self.key and not self.certificate:
            raise ValueError("key needs certificate")

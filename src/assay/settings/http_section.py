"""The numbers and names of the HTTP edge that an operator can set. No code."""

from dataclasses import dataclass

_NEVER_FORWARDED = frozenset(
    {
        *("connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "http2-settings", "host"),
        *("proxy-authenticate", "proxy-authorization", "proxy-connection", "expect", "accept-encoding", "date"),
        *("location", "refresh", "alt-svc", "www-authenticate", "last-event-id", "origin"),
    }
)
"""Headers that lead past the guard, are for one hop only, or are written by the guard itself."""


@dataclass(frozen=True, slots=True)
class Http:
    """What one server takes on, and from whom."""

    hosts: tuple[str, ...] = ()
    """Names under which clients may reach it, beside those of this machine's loopback and the address it listens on."""

    origins: tuple[str, ...] = ()
    """Origins of web pages that may speak to it, such as ``https://app.example.com``, beside those of loopback."""

    open: bool = False
    """Whether anybody may come in where it listens on more than loopback. Without it, ``[auth]`` has to say who may."""

    requests: int = 1000
    """Requests in hand at once. One that waits for a backend takes about 20 kB; the next one gets 503."""

    requests_each: int = 250
    """Of these, how many one principal may have, where ``[auth]`` tells principals apart; the next one gets 429."""

    requests_per_server: int = 500
    """Of these, how many one server of a host may have, so that one that hangs leaves places for the others."""

    sessions: int = 10_000
    """Sessions of the handshake revisions at once, about 8 kB each. One more pushes out the one idle longest."""

    sessions_each: int = 1000
    """Of these, how many one principal may have. One more pushes out its own that was idle longest."""

    streams: int = 1000
    """Streams open at once, each of them a connection and a task."""

    forward_headers: tuple[str, ...] = ()
    """Names of further request headers that a guard under enforce forwards to a server at a URL."""

    forward_response_headers: tuple[str, ...] = ()
    """Names of further headers of its answers that a guard under enforce forwards to clients."""
    streams_each: int = 250
    """Of these, how many one principal may have, where ``[auth]`` tells principals apart; the next one gets 429."""

    streams_per_server: int = 500
    """Of these, how many one server of a host may have."""

    session_seconds: float = 1800.0
    """How long a session is kept that nobody uses: half an hour of a person's pause."""

    header_seconds: float = 10.0
    """How long the head of a request may take to arrive. Real clients send it in one packet."""

    body_seconds: float = 30.0
    """How long a body may take: a megabyte over a line of 300 kbit/s."""

    send_seconds: float = 30.0
    """How long a client may take no bytes of an answer that waits for it, until it is cut off."""

    idle_seconds: float = 60.0
    """How long a connection is kept between two requests."""

    ping_seconds: float = 15.0
    """How often a quiet stream says that it is still there; proxies cut them off after 30 to 60 seconds."""

    grace_seconds: float = 20.0
    """How long what is in hand may take once the server is told to end: a backend has 15."""

    def __post_init__(self) -> None:
        for name in (*self.forward_headers, *self.forward_response_headers):
            if not name.replace("-", "").isascii() or not name.replace("-", "").isalnum():
                raise ValueError(f"{name} is not the name of a header")
            if name.lower() in _NEVER_FORWARDED or name.lower().startswith(("mcp-", "access-control-", "content-")):
                raise ValueError(f"the header {name} is never forwarded")
        for name in self.__slots__:
            if type(getattr(self, name)) is int and getattr(self, name) < 1:
                raise ValueError(f"{name} is at least 1")
        for name in self.__slots__:
            if name.endswith("_seconds") and not getattr(self, name) > 0:
                raise ValueError(f"{name} is more than 0")

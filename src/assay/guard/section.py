"""What an operator can set about the guard. No code."""

from dataclasses import dataclass
from typing import Final

MODES: Final = ("audit", "enforce")


@dataclass(frozen=True, slots=True)
class GuardSettings:
    """How one guard behaves."""

    mode: str = "audit"
    """``audit`` lets everything pass and reports; ``enforce`` stops what breaks the contract."""

    timeout: float = 600.0
    """
    Seconds that a server has for an answer, under ``enforce``, counted anew with each progress; 0 for ever. Tools that
    take longer without a sign of life are rare, and a client that waits for ever is worse.
    """

    frame_bytes: int = 16 << 20
    """Bytes of one message, either way: pictures and files in Base64 are often longer than a request may be."""

    flights: str = "runs/mcp_server/flights"
    """Where the last messages of a broken session are written; ``off`` for nowhere."""

    shared: bool = False
    """
    Whether sessions over HTTP that are opened in the same way share one child process. Without it each has its own, as
    a server that speaks to one client over its standard streams may expect.
    """

    children: int = 64
    """Child processes at once, where clients come over HTTP. A server takes some 50 MB; one more session gets 503."""

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise ValueError(f"mode is one of {', '.join(MODES)}")
        if self.timeout < 0 or self.frame_bytes < 1 or self.children < 1:
            raise ValueError("timeout is 0 or more, frame_bytes 1 or more, children 1 or more")

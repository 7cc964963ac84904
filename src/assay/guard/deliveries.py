"""What a guarded session returns to its ports: frames to send, requests that failed, the loss of a server. No I/O."""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, Final, Literal, NamedTuple

from assay.model.verdict import Exchange, Verdict

LossReason = Literal[
    "unstartable", "exited", "closed", "broken", "session_gone", "timeout",
    "slow_client", "internal", "stopped", "crowded",
]  # fmt: skip
_NOT_THE_SERVER: Final = frozenset({"closed", "slow_client", "internal", "stopped", "crowded"})
Author = Literal["peer", "guard"]


class State(Enum):
    """Where a guarded session stands."""

    NEW = "new"
    """No handshake yet. A client of a revision without handshake stays here."""
    OPENING = "opening"
    """The client's `initialize` is on its way."""
    OPEN = "open"
    AWAY = "away"
    """The server is lost and another one will be started; messages for it are kept."""
    RESTORING = "restoring"
    """The next server runs and answers the handshake that the guard repeats; messages for it are kept."""
    DRAINING = "draining"
    """The client sends nothing more, and reads the answers that are still due."""
    CLOSED = "closed"


class ClientTraits(NamedTuple):
    """What a session has to know about the transport of its client."""

    transport: Literal["stdio", "http"]
    sees_loss: bool = False
    """The client notices a lost server by itself (EOF, a cut body): under audit it gets no answer from the guard."""
    carries_raw: bool = False
    """The transport can carry bytes that are not a message: under audit the client gets them as they came."""
    owner: str = ""
    """The principal that the session belongs to."""


class ServerTraits(NamedTuple):
    """What a session has to know about the transport of its server."""

    transport: Literal["child", "url"]
    restorable: bool = False
    """A lost server is followed by another one, which gets the client's handshake again."""
    cancels_by: Literal["notification", "closing"] = "notification"
    """How a request is cancelled at the server: by a message, or by closing the HTTP response."""


class Loss(NamedTuple):
    """Why a server, an exchange or a session ended. An error as data, not an exception."""

    reason: LossReason
    detail: str = ""
    """One clause for people, safe for any client: "it ended with status 1"."""
    stderr: tuple[str, ...] = ()
    """The last lines of the server's stderr, without secrets. They are sent to a stdio client only."""
    failed: bool = True
    """False if the server ended with exit status 0."""
    code: str = "UPSTREAM_FAILURE"
    """The canonical error of the requests that fail for this."""
    data: Mapping[str, Any] | None = None
    """Further members of the error's `data`, such as the HTTP status."""

    @property
    def excuses(self) -> bool:
        """Whether the server is not to blame for missing answers: the client or the guard ended first, or failed."""
        return self.reason in _NOT_THE_SERVER


class End(NamedTuple):
    """How a server ended."""

    why: str = ""
    last_words: Sequence[str] = ()
    """The last lines that it wrote to stderr."""


UNKNOWN: Final = End()


class Failed(NamedTuple):
    """A request of the client that the guard has answered in place of the server."""

    verdict: Verdict
    """The verdict on the missing answer; its exchange is the request."""
    answer: bytes
    """The error for the client; empty if the client is not to get one."""
    code: str = "UPSTREAM_FAILURE"

    @property
    def exchange(self) -> Exchange | None:
        """The request."""
        return self.verdict.exchange


class Delivery(NamedTuple):
    """One frame to send."""

    frame: bytes
    """The peer's own bytes object where the judge accepted the message unchanged."""
    author: Author = "peer"
    answers: tuple[Exchange, ...] = ()
    """The requests that this frame ends; several for a batch."""
    about: Exchange | None = None
    """The request it belongs to, if that is known: progress, a cancellation, a request of the server."""
    verdict: Verdict | None = None
    """The verdict on the message that led to it."""
    replies: bool = False
    """Whether it answers its receiver: a receiver that does not read its answers is not read from either."""


class Outcome(NamedTuple):
    """What comes of one event. Everything in it is in the records already; it may be sent after `records.commit`."""

    to_client: tuple[Delivery, ...] = ()
    to_server: tuple[Delivery, ...] = ()
    stray: tuple[bytes, ...] = ()
    """Server output that is not a message. The summary has printed it; a port may count it."""
    opened: tuple[Exchange, ...] = ()
    """Requests of the client that were forwarded and now wait for an answer."""
    failed: tuple[Failed, ...] = ()
    """Requests that the guard answered itself; the frames are in `to_client` too."""
    refusal: str | None = None
    """The canonical error code of a refused client message."""
    restart_in: float | None = None
    """Start the next server after so many seconds."""
    closed: Loss | None = None
    """Nothing more is to be expected: close the ports."""
    verdict: Verdict | None = None
    """The verdict on the frame, if the event was a frame."""
    held: Any = None
    """The message of the client, or the batch, that waits, not judged yet, until the guard has the list of tools."""


EMPTY: Final = Outcome()


def joined(first: Outcome, second: Outcome) -> Outcome:
    """Return both outcomes as one, *first* before *second*."""
    if second is EMPTY:
        return first
    if first is EMPTY:
        return second
    return Outcome(
        first.to_client + second.to_client,
        first.to_server + second.to_server,
        first.stray + second.stray,
        first.opened + second.opened,
        first.failed + second.failed,
        first.refusal or second.refusal,
        second.restart_in if first.restart_in is None else first.restart_in,
        first.closed or second.closed,
        first.verdict or second.verdict,
        first.held or second.held,
    )

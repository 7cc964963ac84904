"""
How conversations end, and what the guard makes of it: a request that times out, a server that dies, a client that goes.

One request is open, which the server never answers.
"""

from typing import Literal, NamedTuple


class Ends(NamedTuple):
    """What comes of an ending."""

    client: tuple[int | str, ...]
    """The error code of the open request, then what comes of a `ping` after it."""
    server: tuple[str, ...] | None
    """What the guard itself sends to the server; None where that depends on which of two things is faster."""
    journal: tuple[str, ...]
    """The findings in the journal."""
    status: int
    """The exit status of the guard."""


class Ending(NamedTuple):
    """One way to end a conversation."""

    name: str
    mode: str
    how: Literal["wait", "kill", "leave"]
    ends: Ends
    unlike: tuple[tuple[str, Ends, str], ...] = ()
    """The pairings that differ, each with the reason."""
    timeout: float = 60.0

    def expected(self, pairing: str) -> Ends:
        """What comes of it through *pairing*."""
        return next((each for name, each, _ in self.unlike if name == pairing), self.ends)


UNANSWERED = ("server protocol/unanswered",)
TIMED_OUT = Ends((-31012, 0), ("notifications/cancelled",), UNANSWERED, 0)
LOST = Ends((-31011,), (), UNANSWERED, 0)
GUARD_ENDS = "The guard of a stdio client ends with its child."

ENDINGS = [
    Ending("request-times-out", "enforce", "wait", TIMED_OUT, timeout=6.0),
    Ending(
        "server-dies",
        "enforce",
        "kill",
        LOST,
        unlike=(("stdio-child", LOST._replace(status=3), GUARD_ENDS),),
    ),
    Ending(
        "server-dies-under-audit",
        "audit",
        "kill",
        LOST,
        unlike=(("stdio-child", Ends((), (), UNANSWERED, 3), "The client sees the end of the output."),),
    ),
    Ending(
        "client-leaves",
        "enforce",
        "leave",
        LOST,
        timeout=6.0,
        unlike=(
            ("stdio-child", LOST._replace(status=3), GUARD_ENDS),
            ("http-child", LOST._replace(journal=()), "The client ended the session: the server is not to blame."),
            (
                "stdio-http",
                Ends((-31012,), None, UNANSWERED, 0),
                "The client still reads answers, and this server does not learn that the input ended.",
            ),
            (
                "http-http",
                Ends((-31012,), (), UNANSWERED, 0),
                "The server ends the session; its open responses go on until they time out.",
            ),
        ),
    ),
]

"""
The name that sinks know a connection by: its session, and the principal that uses it. No I/O.

A sink gets one text for each message, and looks up what it has made of it before. So a principal costs nothing for a
message, and a connection without one has the plain session as its name.
"""

from typing import Final

ANONYMOUS: Final = "anonymous"
"""The principal of every client of a guard without authentication. Records do not name it."""


class ConnectionName(str):
    """The name of a connection with a principal. Two connections have the same text only if both parts are equal."""

    __slots__ = ("principal", "session")

    session: str
    """The id of the session; empty for requests without one."""
    principal: str

    def __new__(cls, session: str, principal: str) -> "ConnectionName":
        """Return the name; the id of a session has no line break, so the text is unambiguous."""
        made = super().__new__(cls, f"{session}\n{principal}")
        made.session, made.principal = session, principal
        return made


def connection_name(session: str, principal: str) -> str:
    """Return the name of a connection; a plain text if no principal is known."""
    return ConnectionName(session, principal) if principal and principal != ANONYMOUS else session


def session_in(name: str) -> str:
    """Return the session of the connection *name*; empty without one."""
    return name.session if isinstance(name, ConnectionName) else name


def principal_in(name: str) -> str:
    """Return the principal of the connection *name*; empty without one."""
    return name.principal if isinstance(name, ConnectionName) else ""

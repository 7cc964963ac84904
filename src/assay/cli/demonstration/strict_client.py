"""
A client that follows the protocol strictly, as clients on the official SDKs do.

One tool with an invalid schema costs the whole list. A line that is not a message, or a server that ends, costs the
connection.
"""

import time
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, Self

from assay.base.limits import DEFAULT
from assay.base.verdict import Party, Verdict
from assay.edges.pipes import Signals
from assay.edges.probe.child_line import ChildLine
from assay.edges.probe.server_probe import Inquiry, InquiryError, LineError

_SECONDS: Final = 60.0
"""Time limit for a whole conversation, which takes a fraction of a second."""


class DemoOutcome(NamedTuple):
    """The outcome of one request for a client."""

    good: bool
    text: str
    details: tuple[str, ...] = ()
    """The last lines of the server's stderr, if the response has them."""


class _HangUpError(Exception):
    """The server sent something that this client cannot read."""


class StrictClient:
    """A connection to the server that *command* starts. `with` ends it."""

    def __init__(self, command: Sequence[str], signals: Signals) -> None:
        """Raises `InquiryError` if the server cannot be started."""
        self._line = ChildLine(command, signals, DEFAULT.frame_bytes)
        deadline = time.monotonic() + _SECONDS
        self._inquiry = Inquiry(self._line, _ignore, DEFAULT, deadline, heard=self._judge)
        self._open = False

    def __enter__(self) -> Self:
        self._line.__enter__()
        self._inquiry.initialize()
        self._open = True
        return self

    def __exit__(self, *_: object) -> None:
        self._line.__exit__(None, None, None)

    def list_tools(self) -> DemoOutcome:
        """Return the names of the tools, or an error."""

        def read(verdict: Verdict) -> DemoOutcome:
            if not verdict.accepted or verdict.quarantined:
                return DemoOutcome(False, "no tools: the client rejects the whole list")
            return DemoOutcome(True, ", ".join(tool["name"] for tool in verdict.value["result"]["tools"]))

        return self._asked("tools/list", {}, read)

    def call(self, tool: str, arguments: dict[str, Any]) -> DemoOutcome:
        """Return the text of a result, or the error that the client gets."""
        return self._asked("tools/call", {"name": tool, "arguments": arguments}, _read_result)

    def _asked(self, method: str, params: dict[str, Any], read: Any) -> DemoOutcome:
        if not self._open:
            return DemoOutcome(False, "connection closed")
        try:
            found: DemoOutcome = read(self._inquiry.ask(method, params))
        except _HangUpError as error:
            self._open = False
            return DemoOutcome(False, f"connection closed: {error}")
        except LineError:
            self._open = False
            return DemoOutcome(False, "connection closed")
        return found

    def _judge(self, verdict: Verdict) -> None:
        if verdict.party is Party.SERVER and verdict.kind == "unreadable":
            raise _HangUpError("a line is not JSON")


def _read_result(verdict: Verdict) -> DemoOutcome:
    error = verdict.value.get("error")
    if error is not None:
        data = error.get("data")
        details = data.get("stderr", ()) if isinstance(data, dict) else ()
        return DemoOutcome(False, str(error["message"]), tuple(details))
    texts = [block["text"] for block in verdict.value["result"]["content"]]
    return DemoOutcome(verdict.value["result"].get("isError") is not True, " ".join(texts))


def _ignore(_: str) -> None:
    """Ignore log lines: every finding arrives as a verdict."""


__all__ = ("DemoOutcome", "InquiryError", "StrictClient")

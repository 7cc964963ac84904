"""
The guard's own request for the tools of a server, before it forwards the call of a tool that it does not know. No I/O.

Clients call tools that they have listed in another session, at another replica, before a restart, or never. Under
enforce no such call is forwarded unjudged if the server answers this request.
"""

from itertools import count
from secrets import token_hex
from typing import Any, Final

from assay.judge import syntax
from assay.judge.conversation import Conversation, Facts
from assay.model.json_values import CAPABILITIES_KEY, CLIENT_KEY, REVISION_KEY
from assay.model.verdict import Exchange, Party, Verdict

LISTING_SECONDS: Final = 5.0
"""Seconds that a call waits for the list. A server that takes longer gets the call, which is reported as not judged."""

LISTED_AGAIN: Final = 60.0
"""Seconds until the list is requested again for a tool that it did not have, or after it did not come."""

_MOST_PAGES: Final = 100
"""Pages of a list: the largest server we know has one of 300 tools."""

MARK: Final = b'"assay-list-%b-' % token_hex(8).encode()
"""How the ids of these requests begin. A client that used such an id would get the answer."""

_KEPT_META: Final = (REVISION_KEY, CAPABILITIES_KEY, CLIENT_KEY)
"""The members of the `_meta` of a call that every other request of the client has, too."""

_NUMBERS: Final = count(1)


class ToolListing:
    """One list, page after page, in a judged conversation of its own."""

    __slots__ = ("_conversation", "_exchange", "_facts", "_generation", "_meta", "_pages", "_tools", "request")

    def __init__(self, conversation: Conversation, call: dict[str, Any], revision: str, facts: Facts) -> None:
        """*conversation* is that of the client, and *call* the message that waits. *facts* has the transport."""
        name = call["params"]["name"]
        self._tools = conversation.tools
        self._tools.want(name)
        self._generation = self._tools.generation
        self._conversation = conversation.beside(revision)
        self._facts = Facts(facts.transport)
        meta = call["params"].get("_meta")
        given = meta if isinstance(meta, dict) else {}
        self._meta = {key: given[key] for key in _KEPT_META if key in given}
        self._pages = 0
        self._exchange: Exchange | None = None
        self.request: Verdict | None = None
        """What the server gets next; None once the list is complete, or does not come."""
        self._ask()

    def hear(self, frame: bytes) -> Verdict | None:
        """Return the verdict on a page that the server sends; None if *frame* is something else."""
        if MARK not in frame:
            return None
        value = syntax.read(frame)
        if not isinstance(value, dict) or self._exchange is None or value.get("id") != self._exchange.id:
            return None
        verdict = self._conversation.hear(Party.SERVER, frame, self._facts)
        self.request = self._exchange = None
        if verdict.kind == "result" and verdict.accepted and self._pages < _MOST_PAGES:
            result = verdict.value["result"]
            cursor = result.get("nextCursor") if isinstance(result, dict) else None
            if self._generation != self._tools.generation:
                # The list has changed: its first pages are out of date.
                self._generation = self._tools.generation
                self._ask()
            elif isinstance(cursor, str):
                self._ask(cursor)
        return verdict

    def _ask(self, cursor: str | None = None) -> None:
        self._pages += 1
        params = {**({} if cursor is None else {"cursor": cursor}), **({"_meta": self._meta} if self._meta else {})}
        rest = b',"params":' + syntax.write(params) if params else b""
        frame = b'{"jsonrpc":"2.0","id":%b%d","method":"tools/list"%b}' % (MARK, next(_NUMBERS), rest)
        verdict = self._conversation.hear(Party.CLIENT, frame, self._facts)
        if verdict.accepted and verdict.exchange is not None:
            self.request, self._exchange = verdict, verdict.exchange

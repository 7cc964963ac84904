"""
Map the request ids of many clients to unique ids for one server, and back. No I/O, no judging.

Every client numbers its own requests, so ids and progress tokens of two clients coincide. The server sees unique
numbers, and each client its own ids, as it wrote them; no other byte of a message changes.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Generic, NamedTuple, TypeVar

import orjson

from assay.judge.partial_frame import outline
from assay.judge.text_edit import Edit, Spot, Tree, edited, spots
from assay.model.bounded import Bounded
from assay.model.json_values import SUBSCRIPTION_KEY

_ID_FIRST: Final = re.compile(rb'(\{"jsonrpc":"2\.0","id":)("[^"\\]*+"|[0-9]{1,15}+)(?=[,}])')
"""The start of a message as most peers write it. The judge refuses a message with a second id."""

_MOST_LATE: Final = 1000
"""Maximal closed requests to remember, so that a late response is recognized."""

Owner = TypeVar("Owner")

_ASKED: Final[Tree] = {"id": "id", "params": {"_meta": {"progressToken": "token"}}}
_CANCELLED: Final[Tree] = {"params": {"requestId": "id"}}
_ANSWERED: Final[Tree] = {"id": "id", "result": {"_meta": {SUBSCRIPTION_KEY: "subscription"}}}
_TOLD: Final[Tree] = {
    "params": {"progressToken": "token", "requestId": "id", "_meta": {SUBSCRIPTION_KEY: "subscription"}}
}
"""The places of request ids and tokens in a message, by its kind."""


class Ticket(NamedTuple, Generic[Owner]):
    """One request with our number."""

    owner: Owner
    number: int
    key: tuple[bool, Any]
    """The key of its id: 1 and 1.0 are one id, "1" is another."""
    ident: str
    """The id as written."""
    token: str | None
    """The progress token as written."""


class Routed(NamedTuple, Generic[Owner]):
    """A message of the server, with the ids of its receiver."""

    owner: Owner | None
    """The receiver; None if it is unknown."""
    frame: bytes
    number: int | None = None
    """The number of the request that it answers."""


class IdMap(Generic[Owner]):
    """The open requests of all clients of one server."""

    def __init__(self) -> None:
        self._count = 0
        self._open: dict[int, Ticket[Owner]] = {}
        self._late: Bounded[int, Ticket[Owner]] = Bounded(_MOST_LATE)
        self._by_key: dict[tuple[Owner, tuple[bool, Any]], int] = {}

    def everybody(self) -> list[Owner]:
        """Return the clients with an open request, each once."""
        return list(dict.fromkeys(each.owner for each in self._open.values()))

    def known(self) -> Iterator[Owner]:
        """Return the clients with an open or recently closed request."""
        return (each.owner for table in (self._open, self._late) for each in table.values())

    # ── from a client ────────────────────────────────────────────────────────────────────────────────────────────────

    def ask(self, owner: Owner, frame: bytes, value: Mapping[str, Any] | None = None) -> tuple[int, bytes]:
        """
        Return a request for the server, and its number.

        *value* is the request, if it is already parsed.
        """
        self._count = number = self._count + 1
        head = _ID_FIRST.match(frame) if value is not None and not _has_token(value) else None
        if head is not None and value is not None:
            # The usual form: one place to change, which needs no walk through the message.
            ticket = Ticket(owner, number, key_of(value["id"]), head[2].decode(), None)
            self._open[number] = ticket
            self._by_key[owner, ticket.key] = number
            return number, b"%b%d%b" % (head[1], number, frame[head.end() :])
        text = frame.decode()
        found = spots(text, _ASKED)
        spelt = _spelt(text, found)
        ident = spelt.get("id", "null")
        ticket = Ticket(owner, number, _key(ident), ident, spelt.get("token"))
        self._open[number] = ticket
        self._by_key[owner, ticket.key] = number
        return number, _numbered(text, found, number)

    def cancel(self, owner: Owner, frame: bytes) -> bytes | None:
        """Return `notifications/cancelled` for the server; None if *owner* has no such open request."""
        text = frame.decode()
        found = spots(text, _CANCELLED)
        ident = _spelt(text, found).get("id")
        number = None if ident is None else self._by_key.get((owner, _key(ident)))
        if number is None:
            return None
        self.close(number)
        return _numbered(text, found, number)

    def close(self, number: int) -> None:
        """Close a request that no client waits for."""
        ticket = self._open.pop(number, None)
        if ticket is None:
            return
        if self._by_key.get((ticket.owner, ticket.key)) == number:
            del self._by_key[ticket.owner, ticket.key]
        self._late[number] = ticket

    def leave(self, owner: Owner) -> list[int]:
        """Forget *owner*; return the numbers of its open requests."""
        left = [number for number, each in self._open.items() if each.owner is owner]
        for number in left:
            self.close(number)
        for number in [number for number, each in self._late.items() if each.owner is owner]:
            del self._late[number]
        return left

    # ── from the server ──────────────────────────────────────────────────────────────────────────────────────────────

    def answer(self, frame: bytes, value: Mapping[str, Any] | None = None) -> Routed[Owner]:
        """Return a response of the server for the requesting session; *value* is the parsed response, if known."""
        head = _ID_FIRST.match(frame) if value is not None and not _has_meta(value) else None
        if head is not None and value is not None and type(value["id"]) is int:
            ticket = self.taken(value["id"])
            if ticket is None:
                return Routed(None, frame)
            return Routed(ticket.owner, b"%b%b%b" % (head[1], ticket.ident.encode(), frame[head.end() :]), value["id"])
        text = frame.decode()
        found = spots(text, _ANSWERED)
        number = _number(_spelt(text, found).get("id"))
        ticket = self.taken(number)
        return Routed(None, frame) if ticket is None else Routed(ticket.owner, _as(ticket, text, found), number)

    def notified(self, frame: bytes) -> Routed[Owner]:
        """Return a notification of the server with its receiver, if it names one."""
        text = frame.decode()
        found = spots(text, _TOLD)
        for name, start, end in found:
            number = _number(text[start:end])
            ticket = self._open.get(number) if number is not None else None
            if ticket is not None and (name != "token" or ticket.token is not None):
                return Routed(ticket.owner, _as(ticket, text, found))
        return Routed(None, frame)

    def unreadable(self, frame: bytes, rest: bytes) -> tuple[Routed[Owner], bytes]:
        """Return an unreadable message with its receiver, if its start or end has the id of an open request."""
        found = outline(frame, rest or frame)
        number = found.id if found.answers and type(found.id) is int else None
        ticket = self.taken(number)
        if ticket is None:
            return Routed(None, frame), rest
        mark = re.compile(rb'("id"[ \t\r\n]*+:[ \t\r\n]*+)%d(?![0-9])' % ticket.number)
        spelt = ticket.ident.encode()
        mine = mark.sub(lambda each: each[1] + spelt, frame, count=1)
        theirs = mark.sub(lambda each: each[1] + spelt, rest, count=1)
        return Routed(ticket.owner, mine, number), theirs

    def taken(self, number: int | None) -> Ticket[Owner] | None:
        """Return and close the request with this number."""
        if number is None:
            return None
        if number in self._open:
            ticket = self._open[number]
            self.close(number)
            return ticket
        return self._late.get(number)


def _spelt(text: str, found: Sequence[Spot]) -> dict[str, str]:
    """Return the texts of the values that were *found*, by name."""
    return {name: text[start:end] for name, start, end in found}


def _numbered(text: str, found: Sequence[Spot], number: int) -> bytes:
    """Return a message with our *number* in the places that were *found*."""
    return edited(text, (Edit(start, end, str(number)) for _, start, end in found)).encode()


def _as(ticket: Ticket[Any], text: str, found: Sequence[Spot]) -> bytes:
    """Return a message with the ids and tokens that were *found* as the client wrote them."""
    edits: list[Edit] = []
    for name, start, end in found:
        spelt = text[start:end]
        own = ticket.token if name == "token" else ticket.ident
        if own is not None and _number(spelt) == ticket.number:
            # A server may write the id of a subscription as text.
            as_text = spelt.startswith('"') and not own.startswith('"')
            edits.append(Edit(start, end, orjson.dumps(own).decode() if as_text else own))
    return edited(text, edits).encode()


def _has_token(request: Mapping[str, Any]) -> bool:
    params = request.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    return meta is not None and (not isinstance(meta, dict) or "progressToken" in meta)


def _has_meta(answer: Mapping[str, Any]) -> bool:
    result = answer.get("result")
    return isinstance(result, dict) and "_meta" in result


def _number(spelt: str | None) -> int | None:
    """Return our number, which may have become text."""
    plain = (spelt or "").strip('"')
    return int(plain) if plain.isascii() and plain.isdigit() and len(plain) < 16 else None


def key_of(value: Any) -> tuple[bool, Any]:
    """Return the key of an id."""
    return isinstance(value, str), value if isinstance(value, str | int | float) else None


def _key(spelt: str) -> tuple[bool, Any]:
    return key_of(json.loads(spelt, parse_int=_exact, parse_float=_exact))


def _exact(spelt: str) -> Any:
    return int(spelt) if len(spelt) < 100 and spelt.lstrip("-").isdigit() else float(spelt)

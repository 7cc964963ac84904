"""
Verdicts on messages that could not be judged because of an internal error: a waiting request gets an answer. No I/O.

The state may have only half of such a message: its request may be open, closed or unknown.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from assay.base.json_values import Id
from assay.base.verdict import Exchange, Findings, Kind, Party, Verdict, Violation, verdict
from assay.core import render
from assay.core.party_state import Side
from assay.core.topics.logs import ANY_LEVEL


class Unjudged:
    """Decides about one frame for which there is only the violation *wrong*."""

    def __init__(
        self,
        sides: Mapping[Party, Side],
        most_open: int,
        wrong: Violation,
        closing: Sequence[Exchange],
        *,
        passes: bool,
    ) -> None:
        """*closing* are requests whose answer was lost on the way; with *passes* the frame is forwarded."""
        self._sides = sides
        self._most_open = most_open
        self._wrong = wrong
        self._closing = closing
        self._passes = passes

    def hear(self, party: Party, frame: bytes, value: Any) -> Verdict:
        """Return the verdict on a message, which seems to be *value*."""
        kind = _kind(value)
        ident = render.usable_id(frame, value) if kind in {"request", "result", "error"} else None
        onward, back, exchange = frame if self._passes else None, None, None
        if kind == "request" and ident is not None:
            token = render.id_token(frame, value["id"])
            exchange = self._asked(self._sides[party], ident, token, value["method"])
            back = None if self._passes else render.refusal(token, (self._wrong,), 0, self._revision(party))
        elif ident is not None:
            exchange = self._answered(self._sides[party.other], ident)
            if exchange is not None and onward is None:
                token = render.id_token(frame, value["id"])
                onward = render.failure(token, "INTERNAL_ERROR", (self._wrong,), 0, exchange.revision)
        findings = Findings((self._wrong,), 0, onward, back)
        return verdict(party, frame, kind, value, exchange, self._revision(party), findings)

    def _asked(self, side: Side, ident: Id, token: bytes, method: str) -> Exchange | None:
        """Return the request, which is open if it is forwarded: then its answer is forwarded too."""
        exchange = side.open.get(ident)
        if not self._passes:
            if exchange is not None:
                side.close(exchange, "answered")
        elif exchange is None and len(side.open) < self._most_open:
            exchange = side.open[ident] = Exchange.of(side.judge.stranger(side.party, method), ident)
            exchange.spelling, exchange.level = token, ANY_LEVEL
        elif exchange is None:
            side.irregular.unknown += 1
        return exchange

    def _answered(self, asker: Side, ident: Id) -> Exchange | None:
        """Close and return the request that the message answers."""
        exchange = asker.open.get(ident)
        if exchange is not None:
            asker.close(exchange, "answered")
            return exchange
        return next((each for each in self._closing if each.id == ident), None)

    def _revision(self, party: Party) -> str:
        return self._sides[party].judge.revision


def loosely_read(frame: bytes) -> Any:
    """Return the value in *frame* if any parser can read it, otherwise None."""
    try:
        return orjson.loads(frame)
    except orjson.JSONDecodeError:
        return None


def _kind(value: Any) -> Kind:
    """Return the likely kind of a message, valid or not."""
    if not isinstance(value, dict):
        return "unreadable"
    if isinstance(value.get("method"), str):
        return "request" if "id" in value else "notification"
    return "result" if "result" in value else "error" if "error" in value else "unreadable"

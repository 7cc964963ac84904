"""
Verdicts on messages that could not be judged because of an internal error: a waiting request gets an answer. No I/O.

The state may have only half of such a message: its request may be open, closed or unknown.
"""

from collections.abc import Sequence
from typing import Any

import orjson

from assay.judge import render
from assay.judge.state import State
from assay.judge.topics.logs import ANY_LEVEL
from assay.model.verdict import Exchange, Findings, Kind, Party, Verdict, Violation, verdict


def unjudged(
    state: State,
    party: Party,
    frame: bytes,
    value: Any,
    wrong: Violation,
    closing: Sequence[Exchange],
    *,
    passes: bool,
) -> Verdict:
    """
    Return the verdict on a message, which seems to be *value*, with the violation *wrong*.

    *closing* are requests whose answer was lost on the way; with *passes* the frame is forwarded.
    """
    sender, asker = state.parties[party], state.parties[party.other]
    kind, revision = _kind(value), sender.rules.revision
    ident = render.usable_id(frame, value) if kind in {"request", "result", "error"} else None
    token = render.id_token(frame, value["id"]) if ident is not None else b""
    onward, back, exchange = frame if passes else None, None, None
    if ident is not None and kind == "request":
        exchange = sender.open.get(ident)
        if not passes:
            back = render.refusal(token, (wrong,), 0, revision)
            if exchange is not None:
                sender.close(exchange, "answered")
        elif exchange is None and len(sender.open) < state.limits.open_requests:
            exchange = sender.open[ident] = Exchange.of(sender.rules.stranger(party, value["method"]), ident)
            exchange.spelling, exchange.level = token, ANY_LEVEL
        elif exchange is None:
            sender.unknown += 1
    elif ident is not None:
        exchange = asker.open.get(ident)
        if exchange is not None:
            asker.close(exchange, "answered")
        else:
            exchange = next((each for each in closing if each.id == ident), None)
        if exchange is not None and not passes:
            onward = render.failure(token, "INTERNAL_ERROR", (wrong,), 0, exchange.revision)
    return verdict(party, frame, kind, value, exchange, revision, Findings((wrong,), 0, onward, back))


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

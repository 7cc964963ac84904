"""
Refused requests that were forwarded all the same (audit mode), and how their answers are judged. No I/O, no clock.

A refused request still reaches the other party, which may answer it correctly: a fault of the request is not a fault of
the answer.
"""

from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Any, Final, cast

from assay.base.json_values import Id, obj
from assay.base.verdict import UNNAMED, Exchange, Party, Verdict, Violation
from assay.core.judge_failure import loosely_read
from assay.core.party_state import Side
from assay.core.render import shown_id, usable_id
from assay.core.state import State
from assay.core.topics.table import Note
from assay.engine.budget import Budget
from assay.ladder.partial_frame import outline
from assay.rules.report import Report

_OPENING_BYTES: Final = 64 << 10
"""The most bytes of a malformed `initialize` that is kept until its answer. The largest one recorded has 1 KB."""

_AMBIGUOUS: Final = frozenset({"envelope/look-alike-key", "syntax/duplicate-key"})
"""Rules that leave it open which method the other party reads."""

_CANDIDATES: Final = 4
"""The most requests of one id that an answer is compared with."""

Fits = Callable[[Exchange], bool]
"""Returns whether an answer is valid for a request."""


class IrregularOpening:
    """A malformed `initialize`: it takes effect only when the server has answered it with a result."""

    __slots__ = ("exchange", "message")

    def __init__(self, exchange: Exchange, message: dict[str, Any]) -> None:
        self.exchange = exchange
        self.message = message


# ── what is forwarded ────────────────────────────────────────────────────────────────────────────────────────────────


def take_request(state: State, side: Side, exchange: Exchange, message: dict[str, Any], found: list[Violation]) -> None:
    """Keep what the answer to a refused request will need of it; the envelope of *message* is valid."""
    rules = {each.rule for each in found}
    entry = exchange.entry
    if "params" in message:
        state.check("request", exchange, message["params"], _unread(exchange))
    if "protocol/look-alike-key" in rules:
        # The other party may have read another name.
        exchange.contract = None
    if "protocol/unsupported-revision" in rules:
        # The revision of the answer, if one comes, is unknown.
        exchange.entry = entry.judge.stranger(side.party, entry.name)
    if entry.params is None:
        _note(state, side, message)


def take_malformed(state: State, party: Party, frame: bytes, value: Any, faults: Sequence[Violation] = ()) -> None:
    """Keep what the answer to a malformed message, or to one of a refused batch, will need of it."""
    side = state.sides[party]
    side.irregular.unreadable += 1
    if not isinstance(value, dict) or ("method" not in value and ("result" in value or "error" in value)):
        return
    if "id" in value:
        ambiguous = any(each.rule in _AMBIGUOUS for each in faults)
        _ask(state, side, frame, value, ambiguous=ambiguous)
    _note(state, side, value)


def take_unreadable(state: State, party: Party, frame: bytes, rule: str) -> None:
    """Keep what the ends of an unreadable frame show: if it is a request, it may be answered."""
    side = state.sides[party]
    side.irregular.unreadable += 1
    shown = outline(frame, frame)
    # The other party may read either of two ids.
    sure = rule not in _AMBIGUOUS or frame.count(b'"id"') == 1
    message: Any = {"method": shown.method, "id": shown.id} if shown.asks and shown.id is not None else None
    if message is None and len(frame) <= state.limits.frame_bytes:
        value = loosely_read(frame)
        message = value if isinstance(value, dict) and "method" in value and "id" in value else None
    if message is not None and sure:
        asked = {name: message[name] for name in ("method", "id")}
        _ask(state, side, frame, asked, ambiguous=rule in _AMBIGUOUS and frame.count(b'"method"') != 1)
    elif not shown.answers and frame.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"["):
        side.irregular.unknown += 1


def take_batch(state: State, party: Party, frames: Sequence[bytes], values: Sequence[Any], most: int) -> None:
    """Keep what the answers to a refused batch will need: its entries may be answered alone or together."""
    side = state.sides[party]
    side.irregular.batches += 1
    side.irregular.unreadable += 1
    for frame, value in zip(frames[:most], values[:most], strict=True):
        take_malformed(state, party, frame, value)
    side.irregular.unknown += max(0, len(values) - most)


def _unread(exchange: Exchange) -> Report:
    """Return a report that no one reads: what is wrong with the message was found before."""
    return Report(exchange.revision, Budget(b"", 1))


def _ask(state: State, side: Side, frame: bytes, value: dict[str, Any], *, ambiguous: bool) -> None:
    method = value.get("method")
    name = method if isinstance(method, str) else UNNAMED
    params = value.get("params")
    message: dict[str, Any] = {"method": name, **({"params": params} if isinstance(params, dict) else {})}
    judge, early = state.lifecycle.place_request(side.party, message, None)
    unknown = ambiguous or any(each.rule == "protocol/unsupported-revision" for each in early)
    entry = None if unknown else judge.calls[side.party, "request"].get(name)
    ident = key(frame, value, state.limits.id_bytes)
    exchange = Exchange.of(entry or judge.stranger(side.party, name), ident)
    if "params" in message and not ambiguous:
        state.check("request", exchange, message["params"], _unread(exchange))
    if not side.irregular.add(exchange):
        # It is only counted, and its token would never be forgotten.
        side.forget_token(exchange)
    elif entry is not None and name == "initialize" and len(frame) <= _OPENING_BYTES:
        side.irregular.opening = IrregularOpening(exchange, message)


def _note(state: State, side: Side, value: dict[str, Any]) -> None:
    """Apply a notification that is malformed, or has an id: under audit it was forwarded."""
    method, params = value.get("method"), value.get("params")
    if isinstance(method, str) and method.startswith("notifications/"):
        state.noted(Note(side, method, obj(params), side.judge))


# ── what answers it ──────────────────────────────────────────────────────────────────────────────────────────────────


def key(frame: bytes, value: dict[str, Any], most: int) -> Id:
    """Return the key for the id of a message: the id itself, or a digest of an invalid or over-long one."""
    ident = usable_id(frame, value)
    if isinstance(ident, int) or (isinstance(ident, str) and len(ident) <= most):
        return ident

    # Bytes, so that the key never equals an id that a peer sent.
    return cast("Id", blake2b(repr(value.get("id")).encode(errors="replace"), digest_size=16).digest())


def promote(state: State, asker: Side, ident: Id, fits: Fits) -> None:
    """
    Make the irregular request that an answer with *ident* belongs to the open one of that id.

    Several may have one id: then it is the oldest for which the answer is valid, so that a mistake of the requester is
    not blamed on the answer.
    """
    waiting = asker.irregular.requests.get(ident)
    if waiting is None:
        return
    first = asker.open.get(ident)
    among = [*([] if first is None else [first]), *waiting[:_CANDIDATES]]
    chosen = next((each for each in among if fits(each)), among[0]) if len(among) > 1 else among[0]
    if chosen is first:
        return
    earlier = asker.settled.get(ident)
    if first is None and earlier is not None and not fits(chosen) and fits(earlier):
        # The answer may be that of the earlier request, which got the answer of this one.
        chosen.entry = chosen.entry.judge.stranger(asker.party, chosen.method)
        chosen.contract = None
    asker.irregular.remove(chosen)
    if first is not None:
        asker.irregular.add(first)
    asker.open[ident] = chosen
    opening = asker.irregular.opening
    if opening is not None and opening.exchange is chosen:
        asker.irregular.opening = None
        state.forwarded(chosen, opening.message)


def spell(answer: Verdict) -> None:
    """Give the request of *answer* its own id back, if it was known by a digest."""
    exchange = answer.exchange
    known: object = exchange.id if exchange is not None else None
    if exchange is not None and isinstance(known, bytes):
        ident = answer.value["id"]
        exchange.id = cast("Id", ident) if isinstance(ident, str | int | float | None) else shown_id(ident)


def take_answer(state: State, exchange: Exchange, value: dict[str, Any]) -> None:
    """Apply a malformed answer as far as the requester can read it: under audit it was forwarded."""
    result = value.get("result")
    if isinstance(result, dict) and "error" not in value:
        state.answered(exchange, {"result": result}, _unread(exchange))
    elif exchange.method == "initialize":
        state.refuse_handshake()

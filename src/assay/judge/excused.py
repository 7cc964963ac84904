"""
Invalid messages that are forwarded all the same, under audit, and what their answers will need. No I/O, no clock.

The other party may answer such a message correctly: a fault of the request is not a fault of the answer. A request
whose id is clear is kept beside the open ones: its answer is judged by what is clear of the request, and a missing one
is no violation. Any other message that may be answered is only counted, as `unknown` or `unreadable` of its sender.
"""

from collections.abc import Sequence
from typing import Any, Final

from assay.judge.judge_failure import loosely_read
from assay.judge.partial_frame import outline
from assay.judge.party_state import PartyState
from assay.judge.render import usable_id
from assay.judge.state import State
from assay.judge.topics.table import Note
from assay.model.json_values import Id, obj
from assay.model.verdict import UNNAMED, Exchange, Party, Violation
from assay.rules.report import Report
from assay.schema.budget import Budget

_BEFORE: Final = b"\xef\xbb\xbf \t\r\n"
"""What may stand before a message: a byte order mark, which does not belong there, and white space."""

_OPENING_BYTES: Final = 64 << 10
"""The most bytes of an `initialize` whose params are kept until its answer. The largest one recorded has 1 KB."""


def take_unreadable(state: State, party: Party, frame: bytes, why: Violation) -> None:
    """Keep what the answer to a frame that cannot be read will need, if its id and method can be found."""
    shown = outline(frame, frame)
    value: Any = {"id": shown.id, "method": shown.method} if shown.asks and shown.id is not None else None
    if value is None and len(frame) <= state.limits.frame_bytes:
        value = loosely_read(frame)
    if isinstance(value, dict) and "id" in value and "method" in value:
        take_malformed(state, party, frame, {name: value[name] for name in ("id", "method")}, (why,))
    elif not shown.answers and frame.lstrip(_BEFORE)[:1] in (b"{", b"["):
        state.parties[party].unknown += 1
    else:
        state.parties[party].unreadable += 1


def take_batch(state: State, party: Party, frames: Sequence[bytes], values: Sequence[Any]) -> None:
    """Keep what the answers to a refused batch will need: its entries may be answered alone or together."""
    most = state.limits.batch_entries
    state.parties[party].unreadable += 1
    state.parties[party].unknown += max(0, len(values) - most)
    for frame, value in zip(frames[:most], values[:most], strict=True):
        if isinstance(value, dict) and "id" in value:
            _take(state, state.parties[party], frame, value, ())


def take_malformed(state: State, party: Party, frame: bytes, value: Any, faults: Sequence[Violation] = ()) -> None:
    """Keep what the answer to a malformed message will need of it."""
    sender = state.parties[party]
    unknown = sender.unknown
    _take(state, sender, frame, value, faults)
    if sender.unknown == unknown:
        # JSON-RPC 2.0, 5: an error about an invalid message may have the id null.
        sender.unreadable += 1


def _take(state: State, sender: PartyState, frame: bytes, value: Any, faults: Sequence[Violation]) -> None:
    method, ident = obj(value).get("method"), usable_id(frame, value)
    if method is None and ("result" in obj(value) or "error" in obj(value)):
        return
    rules = {each.rule for each in faults}
    has_room = len(sender.excused) < state.limits.open_requests and len(str(ident)) <= state.limits.id_bytes
    is_one = "syntax/duplicate-key" not in rules or frame.count(b'"id"') == 1
    if ident is not None and ident not in sender.excused and has_room and is_one:
        is_ambiguous = "envelope/look-alike-key" in rules or (
            "syntax/duplicate-key" in rules and frame.count(b'"method"') != 1
        )
        _excuse(state, sender, frame, {"id": ident} if is_ambiguous else value, ident)
    elif "id" in obj(value):
        sender.unknown += 1
    if isinstance(method, str) and method.startswith("notifications/"):
        # Although it is malformed, or has an id.
        state.noted(Note(sender, method, obj(value.get("params")), sender.rules))


def take_refused(state: State, sender: PartyState, exchange: Exchange, message: dict[str, Any], report: Report) -> None:
    """Keep what the answer to a refused request will need of it; the envelope of *message* is valid."""
    rules = {each.rule for each in report.found}
    entry = exchange.entry
    if "params" in message:
        state.check("request", exchange, message["params"], _unread(exchange))
    if "protocol/look-alike-key" in rules:
        # The other party may have read another name.
        exchange.contract = None
    if "protocol/unsupported-revision" in rules:
        # The revision of the answer, if one comes, is unknown.
        exchange.entry = entry.rules.stranger(sender.party, entry.name)
    if entry.params is None and entry.name.startswith("notifications/"):
        state.noted(Note(sender, entry.name, obj(message.get("params")), sender.rules))


def take_answer(state: State, exchange: Exchange, message: dict[str, Any], report: Report) -> None:
    """Apply an answer. An error about an excused request changes nothing: the other party refused it."""
    if exchange.excused and "result" not in message:
        return
    if exchange.excused and exchange.method == "initialize":
        # It takes effect only now, because a server may ignore it.
        state.forwarded(exchange, {"params": exchange.detail})
    state.answered(exchange, message, report)


def take_malformed_answer(state: State, exchange: Exchange, value: dict[str, Any]) -> None:
    """Apply a malformed answer as far as the requester can read it."""
    result = value.get("result")
    if isinstance(result, dict) and "error" not in value:
        take_answer(state, exchange, {"result": result}, _unread(exchange))
    elif exchange.method == "initialize" and not exchange.excused:
        state.refuse_handshake()


def _unread(exchange: Exchange) -> Report:
    """Return a report that no one reads, and that nothing is spent on: what is wrong was found before."""
    report = Report(exchange.revision, Budget(b"", 1))
    report.is_full, report.budget.steps = True, 0
    return report


def _excuse(state: State, sender: PartyState, frame: bytes, value: dict[str, Any], ident: Id) -> None:
    method = value.get("method")
    name = method if isinstance(method, str) else UNNAMED
    message: dict[str, Any] = {"method": name, "params": obj(value.get("params"))}
    rules, early = state.lifecycle.place_request(sender.party, message, None)
    is_known = all(each.rule != "protocol/unsupported-revision" for each in early)
    entry = rules.calls[sender.party, "request"].get(name) if is_known else None
    exchange = Exchange.of(entry or rules.stranger(sender.party, name), ident)
    exchange.excused = True
    state.check("request", exchange, message["params"], _unread(exchange))
    if name == "initialize":
        # It takes effect when it is answered, because a server may ignore it.
        exchange.detail = message["params"] if len(frame) <= _OPENING_BYTES else {}
    sender.excused[ident] = exchange
    if ident in sender.open and sender.open[ident].method != name:
        sender.close_excused(exchange)
        sender.make_unclear(ident)

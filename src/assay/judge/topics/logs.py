"""
Log messages are sent for a request that asked for them, at its level or above (2026-07-28).

A log message does not name its request. It is a violation only if no request that it can be about asked for it: the
open ones, and those that were cancelled or given up and may still be running. After the answer nothing more may be
logged for a request.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from assay.judge.party_state import PartyState
from assay.judge.topics.subscriptions import is_on_subscription
from assay.judge.topics.table import Note, on
from assay.model.json_values import LEVEL_KEY, SUBSCRIPTION_KEY, obj, text
from assay.model.verdict import Exchange, Party
from assay.rules.report import Report
from assay.schema.pointers import escaped

if TYPE_CHECKING:
    from assay.judge.state import State

LEVELS: Final = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
RANKS: Final[Mapping[Any, int]] = {level: rank for rank, level in enumerate(LEVELS)}

ANY_LEVEL: Final = 0
"""The rank of a request whose level is unknown."""

_MOST: Final = 256
"""The most requests that are compared with a log message. With more of them open, log messages are not judged."""


@on("forwarded")
def take_level(_: "State", exchange: Exchange, params: dict[str, Any]) -> None:
    """Keep the log level that a request asks for. An invalid level may be read as any."""
    meta = obj(params.get("_meta"))
    if LEVEL_KEY in meta and not exchange.features.handshake and exchange.asker is Party.CLIENT:
        exchange.level = RANKS.get(text(meta[LEVEL_KEY]), ANY_LEVEL)


@on("note", "notifications/message")
def check_message(state: "State", note: Note, report: Report) -> None:
    """Report a log message that no request of the client asked for."""
    if note.sender.party is Party.CLIENT or note.rules.features.handshake:
        return
    if is_on_subscription(note.params):
        at = f"/params/_meta/{escaped(SUBSCRIPTION_KEY)}"
        expected, found = "a log message without a subscription", "one on a subscription"
        report.add("protocol/log", at, expected=expected, found=found)
        return
    client = state.parties[Party.CLIENT]
    rank = RANKS.get(text(note.params.get("level")))
    # If the conversation is not known from its beginning, the message may belong to a request elsewhere.
    if rank is None or len(client.open) > _MOST or not (state.whole or client.open):
        return
    if client.unknown or client.excused:
        # A refused request that was forwarded all the same may have asked for it.
        return
    levels = [each.level for each in _at_work(client) if each.level is not None]
    if any(level <= rank for level in levels):
        return
    at, expected = "/method", "no log messages, because no open request asked for any"
    if levels:
        at, expected = "/params/level", f"{LEVELS[min(levels)]} or above, as a request asked for"
    report.add("protocol/log", at, expected=expected, found=f"one of the level {LEVELS[rank]}")


def _at_work(client: PartyState) -> Iterator[Exchange]:
    """Return the requests that a log message can be about; never a subscription."""
    yield from (each for each in client.open.values() if each.method != "subscriptions/listen")
    yield from (each for each in client.settled.values() if each.state in {"cancelled", "timed-out"})

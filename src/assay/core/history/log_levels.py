"""
Log messages are sent for a request that asked for them, at its level or above (2026-07-28). No I/O.

A log message does not name its request. It is a violation only if no request that it can be about asked for it: the
open ones, and those that were cancelled or given up and may still be running. After the answer nothing more may be
logged for a request.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from assay.base.meta import LEVEL_KEY, SUBSCRIPTION_KEY
from assay.base.verdict import Exchange, Violation
from assay.core.history.subscriptions import is_on_subscription
from assay.core.party_state import Side
from assay.rules import violation

LEVELS: Final = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
RANKS: Final[Mapping[Any, int]] = {level: rank for rank, level in enumerate(LEVELS)}

ANY_LEVEL: Final = 0
"""The rank of a request whose level is unknown."""

# The most requests that are compared with a log message. With more of them open, log messages are not judged.
_MOST: Final = 256


def asked(exchange: Exchange, meta: Mapping[str, Any]) -> None:
    """Remember the log level that a request asks for. An invalid level may be read as any."""
    if LEVEL_KEY in meta:
        level = meta[LEVEL_KEY]
        exchange.level = RANKS.get(level, ANY_LEVEL) if isinstance(level, str) else ANY_LEVEL


def check(client: Side, params: Mapping[str, Any], revision: str, *, whole: bool) -> Iterator[Violation]:
    """
    Yield the violation of a log message that no request of *client* asked for.

    *whole* means that the conversation is known from its beginning; otherwise the message may belong to a request
    elsewhere.
    """
    if is_on_subscription(params):
        yield _on_a_subscription(revision)
        return
    rank = RANKS.get(params.get("level")) if isinstance(params.get("level"), str) else None
    if rank is None or len(client.open) > _MOST or not (whole or client.open):
        return
    if client.irregular.count or client.irregular.unknown:
        # A refused request that was forwarded all the same may have asked for it.
        return
    levels = [each.level for each in _at_work(client) if each.level is not None]
    if not any(level <= rank for level in levels):
        yield _unwanted(LEVELS[rank], min(levels, default=None), revision)


def _at_work(client: Side) -> Iterator[Exchange]:
    """Return the requests that a log message can be about; never a subscription."""
    yield from (each for each in client.open.values() if each.method != "subscriptions/listen")
    yield from (each for each in client.settled.values() if each.state in {"cancelled", "timed-out"})


def _on_a_subscription(revision: str) -> Violation:
    return violation(
        "protocol/log",
        f"/params/_meta/{SUBSCRIPTION_KEY.replace('/', '~1')}",
        expected="a log message without a subscription",
        found="one on a subscription",
        revision=revision,
    )


def _unwanted(level: str, lowest: int | None, revision: str) -> Violation:
    if lowest is None:
        at, expected = "/method", "no log messages, because no open request asked for any"
    else:
        at, expected = "/params/level", f"{LEVELS[lowest]} or above, as a request asked for"
    return violation("protocol/log", at, expected=expected, found=f"one of the level {level}", revision=revision)

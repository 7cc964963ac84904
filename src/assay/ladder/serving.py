"""
Messages that a server over Streamable HTTP must refuse in a revision without a handshake. No state.

If the guard itself is that server, they are stopped in both modes. The process behind it never sees a header, so it
cannot judge one. All clients share that process, and servers choose their era by the first message: one message without
a revision would lock out every other client.
"""

from collections.abc import Collection, Sequence
from typing import Any, Final

from assay.base.json_values import named_revision
from assay.base.verdict import Violation
from assay.rules import violation

HEADER_RULES: Final = frozenset({"protocol/header-missing", "protocol/header-mismatch", "protocol/header-encoding"})

_CANCELS: Final = "notifications/cancelled"
_OPENS: Final = "initialize"


def stands_alone(message: Any) -> bool:
    """
    Return whether a message names its revision and opens no handshake, so that it does not affect other messages.

    A cancellation need not name one: it only reaches the server that runs the request.
    """
    if not isinstance(message, dict) or message.get("method") == _OPENS:
        return False
    named = isinstance(message.get("params"), dict) and named_revision(message) is not None
    return named or message.get("method") == _CANCELS


def check_alone(message: dict[str, Any], found: Sequence[Violation], revision: str) -> list[Violation]:
    """Return the violation of a message that does not stand alone, unless *found* has one already."""
    if stands_alone(message) or any(each.stops for each in found):
        return []
    if message["method"] == _OPENS:
        return [violation("protocol/method", "/method", expected="no handshake", found=_OPENS, revision=revision)]
    # The cancellation above is the only notification that this revision has.
    rule = "protocol/params" if "id" in message else "protocol/method"
    expected = "revision: each message must name it, because all clients share this server"
    return [violation(rule, "/params/_meta", expected=expected, found="nothing", revision=revision)]


def must_stop(message: Any, found: Sequence[Violation], spoken: Collection[str] | None) -> bool:
    """
    Return whether a message with these violations is stopped in both modes.

    *spoken* are the revisions that the server behind the guard declared; None if they are unknown. A server that has
    chosen its era may not check the revision of each message, so an unsupported one is stopped here.
    """
    if not stands_alone(message) or any(each.stops and each.rule in HEADER_RULES for each in found):
        return True
    unsupported = any(each.stops and each.rule == "protocol/unsupported-revision" for each in found)
    return unsupported and spoken is not None and named_revision(message) not in spoken

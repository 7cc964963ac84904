"""
What a server over Streamable HTTP must refuse in a revision without handshake, whatever serves behind it. No state.

Where the guard itself is that server, these messages stop in both modes. The process behind it never sees a header, so
nobody else could judge one. And all clients share that process: servers settle their era by the first message, so one
message without a revision would lock every other client out.
"""

from collections.abc import Collection, Sequence
from typing import Any, Final

from assay.base.meta import named_revision
from assay.base.verdict import Violation
from assay.rules import violation

HEADER_RULES: Final = frozenset({"protocol/header-missing", "protocol/header-mismatch", "protocol/header-encoding"})

_CANCELS: Final = "notifications/cancelled"
_OPENS: Final = "initialize"


def stands_alone(message: Any) -> bool:
    """
    Whether a message names its revision itself, and opens no handshake, so that it says nothing of any other message.

    A cancellation need not name one: it only ever reaches the server that works on the request which it cancels.
    """
    if not isinstance(message, dict) or message.get("method") == _OPENS:
        return False
    named = isinstance(message.get("params"), dict) and named_revision(message) is not None
    return named or message.get("method") == _CANCELS


def check_alone(message: dict[str, Any], found: Sequence[Violation], revision: str) -> list[Violation]:
    """Return why a message that does not stand alone stops, unless one of *found* says that already."""
    if stands_alone(message) or any(each.stops for each in found):
        return []
    if message["method"] == _OPENS:
        return [violation("protocol/method", "/method", expected="no handshake", found=_OPENS, revision=revision)]
    # Of the notifications, this revision has none but the one above.
    rule = "protocol/params" if "id" in message else "protocol/method"
    expected = "the revision, since all clients share the server"
    return [violation(rule, "/params/_meta", expected=expected, found="none", revision=revision)]


def must_stop(message: Any, found: Sequence[Violation], spoken: Collection[str] | None) -> bool:
    """
    Return whether a message with these violations stops in both modes.

    *spoken* are the revisions that the server behind the guard declared; None if that was not heard. A server that has
    settled its era need not look at the revision of each message again, so one that it does not speak stops here.
    """
    if not stands_alone(message) or any(each.stops and each.rule in HEADER_RULES for each in found):
        return True
    unsupported = any(each.stops and each.rule == "protocol/unsupported-revision" for each in found)
    return unsupported and spoken is not None and named_revision(message) not in spoken

"""
Answers to `server/discover` of servers that do not know the method. No I/O, no state.

Clients of 2026-07-28 send `server/discover` first to find out which era a server speaks. Some older servers answer
every request with a result, in place of the error -32601. Such a result is one mistake: findings about each member
that it lacks would ask an older server for members that its revision does not have.
"""

from typing import Any, Final

from assay.base.verdict import Exchange, Violation
from assay.engine.wording import found as found_words
from assay.rules import violation

METHOD: Final = "server/discover"

UNSUPPORTED: Final = -32022
"""The error of a server that does not support the revision of a request; its data list those that it supports."""

_TELLING: Final = ("supportedVersions", "resultType")
"""Members that only a server of 2026-07-28 sends: a result with one of them answers the method that was asked."""

_HINT: Final = "Answer an unknown method with error -32601; server/discover exists from 2026-07-28 on."


def is_answer(result: dict[str, Any]) -> bool:
    """Return whether *result* comes from a server that knows `server/discover`, however malformed it is."""
    return any(name in result for name in _TELLING)


def unknown(exchange: Exchange, result: dict[str, Any]) -> Violation:
    """Return the finding about a *result* of a server that does not know `server/discover`."""
    return violation(
        "protocol/result",
        "/result",
        expected="the property `supportedVersions`, or error -32601",
        found=found_words(result),
        revision=exchange.revision,
        detail="DiscoverResult",
        hint=_HINT,
    )

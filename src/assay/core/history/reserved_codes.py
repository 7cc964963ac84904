"""
Error codes that a server of 2026-07-28 must not use. No I/O, no state.

-32020 to -32099 belong to the specification, which has defined three of them; two codes of older revisions were
withdrawn. -32000 to -32019 are legacy: any server may use them, with any meaning.
"""

from collections.abc import Mapping
from typing import Any, Final

from assay.base.verdict import Exchange, Violation
from assay.rules import violation
from assay.spec.revisions import handshake

_DEFINED: Final = frozenset({-32020, -32021, -32022})

NOT_FOUND: Final = -32002
"""The code of older revisions for a resource that is not there; from 2026-07-28 on that is -32602."""

_WITHDRAWN: Final[Mapping[int, str]] = {
    NOT_FOUND: "Answer with -32602 (invalid params): a resource that is not there has no code of its own any more.",
    -32042: 'Ask for the URL in a result with the resultType "input_required".',
}
"""Codes of older revisions, and their replacements."""

_OTHER: Final = "Use a code outside -32768 to -32000 for an error of your own."


def check(exchange: Exchange, error: dict[str, Any]) -> list[Violation]:
    """
    Return the violation of the code of *error*, the answer to *exchange*.

    A client sends `server/discover` to find out whether a server is of an older revision: such a server answers with a
    code of its own revision.
    """
    code = error["code"]
    if handshake(exchange.revision) or exchange.method == "server/discover":
        return []
    if code not in _WITHDRAWN and (code in _DEFINED or not -32099 <= code <= -32020):
        return []
    wrong = violation(
        "protocol/error-code",
        "/error/code",
        expected=f"a code that servers may use in {exchange.revision}",
        found=f"{code:.0f}, {'which is withdrawn' if code in _WITHDRAWN else 'which is reserved'}",
        revision=exchange.revision,
        hint=_WITHDRAWN.get(code, _OTHER),
    )
    return [wrong]

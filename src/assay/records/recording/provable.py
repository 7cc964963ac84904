"""What a recording that lacks messages, or parts of them, can still prove. No I/O."""

import re
from typing import Any, Final

from assay.base.verdict import Findings, Verdict, Violation, verdict

AFTER_CUT: Final = frozenset(
    {
        # The list of tools, or what was declared in the handshake, may be in the message that is missing.
        "contract/set-aside",
        "contract/unknown-tool",
        "protocol/before-initialize",
        "protocol/before-initialized",
        "protocol/capability",
        "protocol/extension",
        "protocol/log",
        "protocol/progress",
        "protocol/subscription",
        "protocol/unheard-extension",
        "tasks/undeclared",
    }
)
"""Rules that cannot be judged after a message whose content is missing, although its id is known."""

AFTER_GAP: Final = AFTER_CUT | {
    "protocol/cache-scope",
    "protocol/cancel",
    "protocol/cancel-other",
    "protocol/input-kind",
    "protocol/input-responses",
    "protocol/related-task",
    "protocol/request-state",
    "protocol/retry-id",
    "protocol/retry-target",
    "protocol/unanswered",
    "protocol/unsolicited",
    "tasks/input-responses",
    "tasks/not-found",
}
"""Rules that cannot be judged after messages that are missing altogether."""

_MOST: Final = 10_000
"""Values of a message to search for a mask. A larger part of a message counts as masked: nothing is certain there."""


def is_masked(message: Any, at: str, mask: re.Pattern[str]) -> bool:
    """Return whether the value at the JSON Pointer *at*, or a part of it, was replaced by a *mask*."""
    value = message
    for token in at.split("/")[1:]:
        name = token.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and name.isdecimal() and int(name) < len(value):
            value = value[int(name)]
        else:
            # The place is a member that is missing: it is about the value that should have it.
            break
    return _has_mask(value, mask)


def _has_mask(value: Any, mask: re.Pattern[str]) -> bool:
    waiting = [value]
    for _ in range(_MOST):
        if not waiting:
            return False
        each = waiting.pop()
        if isinstance(each, str) and mask.search(each):
            return True
        if isinstance(each, dict):
            waiting.extend(each.values())
        elif isinstance(each, list):
            waiting.extend(each)
    return True


def without_findings(judged: Verdict, shown: list[Violation]) -> Verdict:
    """Return *judged* with the violations *shown* in place of its own."""
    found = judged.findings or Findings((), onward=judged.frame)
    kept = found._replace(violations=tuple(shown)) if shown or judged.quarantined else None
    return verdict(judged.party, judged.frame, judged.kind, judged.value, judged.exchange, judged.revision, kept)

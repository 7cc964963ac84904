"""How a tool should be named, so that clients and models can use it. No I/O, no state."""

import re
from collections.abc import Iterator
from typing import Final

import orjson

from assay.base.verdict import Violation
from assay.contracts.tool_lists import ToolPage
from assay.rules import violation
from assay.spec.revisions import features_of

_USUAL: Final = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_SHOWN: Final = 3
"""Names of one page that are shown; the others are counted."""


def check_names(page: ToolPage, revision: str) -> Iterator[tuple[int, Violation]]:
    """Yield one violation for all unusual names of *page*, with the number of the first."""
    if not features_of(revision).tool_names:
        return
    odd = [(number, each.name) for number, each in page.entries if not _USUAL.fullmatch(each.name)]
    if not odd:
        return
    shown = ", ".join(orjson.dumps(name[:60]).decode() for _, name in odd[:_SHOWN])
    rest = f" and {len(odd) - _SHOWN} more" if len(odd) > _SHOWN else ""
    number = odd[0][0]
    yield (
        number,
        violation(
            "protocol/tool-name",
            f"/result/tools/{number}/name",
            expected="1 to 128 letters, digits, underscores, hyphens and dots (ASCII)",
            found=shown + rest,
            revision=revision,
        ),
    )

"""What peers have said, for a terminal. No I/O."""

import re
from typing import Final

_ACTED_UPON: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Control characters but for tabs and line ends, and marks that turn the direction of writing around."""


def plain(text: str) -> str:
    """*text* on one line, without anything that a terminal would act upon."""
    return text if text.isprintable() else "".join(each if each.isprintable() else "·" for each in text)


def harmless(text: str) -> str:
    """*text* of several lines, without anything that a terminal would act upon; all else, such as emoji, stays."""
    return _ACTED_UPON.sub("·", text)

"""Make the text of peers safe for a terminal. No I/O."""

import re
from typing import Final

_ACTED_UPON: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Control characters except tabs and line breaks, and marks that change the direction of writing."""


def plain(text: str) -> str:
    """Return *text* on one line, without control characters."""
    return text if text.isprintable() else "".join(each if each.isprintable() else "·" for each in text)


def harmless(text: str) -> str:
    """Return *text* with its lines, without control characters. Everything else, such as emoji, stays."""
    return _ACTED_UPON.sub("·", text)

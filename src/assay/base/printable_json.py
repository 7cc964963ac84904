"""JSON that is safe to show on a terminal."""

import re
from typing import Any, Final

import orjson

_INVISIBLE: Final = re.compile("[\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]")
"""Characters that JSON allows in strings and that hide or reorder text on a terminal."""


def dumped(value: Any, *, indent: bool = False) -> str:
    """Return *value* as JSON that is safe to show: control characters and marks for the direction are escaped."""
    text = orjson.dumps(value, option=orjson.OPT_INDENT_2 if indent else None).decode()
    # All of them occur in strings only, where an escape means the same.
    return _INVISIBLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)

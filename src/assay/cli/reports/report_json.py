"""JSON for reports, and the parts that several formats share."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import orjson

if TYPE_CHECKING:
    from assay.cli.reports.check_findings import CheckFinding

_INVISIBLE: Final = re.compile("[\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]")
"""Characters that JSON allows in strings and that hide or reorder text on a terminal."""


def dumped(value: Any, *, indent: bool = False) -> str:
    """Return *value* as JSON that is safe to show: control characters and marks for the direction are escaped."""
    text = orjson.dumps(value, option=orjson.OPT_INDENT_2 if indent else None).decode()
    # All of them occur in strings only, where an escape means the same.
    return _INVISIBLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def uri_of(path: str) -> str:
    """Return the path of a file below the working directory as a relative URI reference."""
    # A colon in the first segment would be read as the end of a scheme.
    return quote(path.replace("\\", "/")).replace(":", "%3A")


def described(finding: CheckFinding) -> str:
    """Return one finding as a sentence with its message, for a list of findings."""
    return f"{finding.title}: {finding.sentence}"

"""
ASCII replacements for characters that the encoding of a terminal or a pipe lacks. No I/O.

With cp1252, latin-1 or ASCII, `print` raises `UnicodeEncodeError` for an arrow or a foreign name. The error handler
`ERRORS` writes marks of our own in ASCII and everything else as an escape, so that no output ends in a traceback.
"""

import codecs
from typing import Final

MARKS: Final = {
    "✓": "+",
    "✗": "x",
    "×": "x",
    "→": "->",
    "…": "...",
    "·": ".",
    "“": '"',
    "”": '"',
    "§": "section ",
}
"""Every non-ASCII character in our own text, with its replacement. A test compares it with the sources."""

ERRORS: Final = "assay.base.value_count"
"""The name of the error handler, for `errors=`."""


def _replaced(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    missing = error.object[error.start : error.end]
    return "".join(MARKS.get(each) or _escape(each) for each in missing), error.end


def _escape(character: str) -> str:
    """Return the ASCII escape of a character, as in Python and JSON: unlike a question mark it can be looked up."""
    number = ord(character)
    return f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"


codecs.register_error(ERRORS, _replaced)

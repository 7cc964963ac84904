"""Text that a terminal or a pipe can show: control characters removed, ASCII where the encoding needs it. No I/O."""

import codecs
import re
from collections.abc import Callable, Sequence
from typing import Final

_ACTED_UPON: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Control characters except tabs and line breaks, and marks that change the direction of writing."""


def plain(text: str) -> str:
    """Return *text* on one line, without control characters."""
    return text if text.isprintable() else "".join(each if each.isprintable() else "·" for each in text)


def plain_lines(text: str) -> str:
    """Return *text* with its lines, each as `plain` returns it."""
    return "\n".join(map(plain, text.split("\n")))


def escaped(text: str) -> str:
    """Return *text* on one line with its control characters as escapes, where the exact spelling matters."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each == "\t" else ascii(each)[1:-1] for each in text)


def harmless(text: str) -> str:
    """Return *text* with its lines, without control characters. Everything else, such as emoji, stays."""
    return _ACTED_UPON.sub("·", text)


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
    **dict(zip("▁▂▃▄▅▆▇█", "_.:-=+*#", strict=True)),
}
"""Every non-ASCII character in our own text, with its replacement. A test compares it with the sources."""

ERRORS: Final = "assay.printable"
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


def counted(number: int, noun: str) -> str:
    """Return a count with its noun: ``1 tool``, ``2,000 resource templates``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


_MOST_NAMES: Final = 20
"""Names that are listed on one line; the rest are counted."""


def listed(names: Sequence[str]) -> str:
    """Return *names* as a list, shortened."""
    rest = f" and {len(names) - _MOST_NAMES:,} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + rest


OURS: Final = "assay: "
"""The prefix of every line of the guard: servers write to the same stderr."""


def label(name: str) -> str:
    """Return the label of a server, which is also put before each line of its stderr."""
    return f"[{plain(name)}] "


def labelled(say: Callable[[str], None], name: str) -> Callable[[str], None]:
    """Return *say* for lines of the guard about the server *name*; without a name, *say* itself."""
    head = f"{OURS}{label(name)}"
    return (lambda line: say(head + line.removeprefix(OURS))) if name else say


MASK: Final = "[redacted]"

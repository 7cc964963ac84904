"""
JSON for programs that tests start a thousand times: `json` without what it imports.

`import json` takes as long as all else that such a program does, most of it for regular expressions. The C functions
that `json` itself calls are built into the interpreter. Text that they do not accept goes to `json`, which says what is
wrong with it.
"""

from __future__ import annotations

import _json

# mypy knows the name; `typing` is not imported for a constant.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class _Options:
    """What `json.loads` has by default."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float
    memo: dict[str, str] = {}  # noqa: RUF012 - the interface of the C function


_scan = _json.make_scanner(_Options)  # type: ignore[arg-type]  # typeshed has its own class there


def loads(text: str | bytes) -> Any:
    """Return the value in *text*, as `json.loads` does."""
    try:
        whole = (text if isinstance(text, str) else text.decode()).strip(" \t\n\r")
        value, end = _scan(whole, 0)
    except (ValueError, StopIteration, SystemError):
        # The last one is that of Python 3.11, which does not find the exception that `json` would have imported.
        end, whole = -1, ""
    if end == len(whole):
        return value
    import json

    return json.loads(text)


def dumps(value: Any, *, compact: bool = False) -> str:
    """Return *value* as text, as `json.dumps` does; a compact one has no blanks, and characters that are not ASCII."""
    written = _json.encode_basestring if compact else _json.encode_basestring_ascii
    colon, comma = (":", ",") if compact else (": ", ", ")
    return "".join(_json.make_encoder({}, _refuse, written, None, colon, comma, False, False, True)(value, 0))


def _refuse(value: Any) -> Any:
    raise TypeError(f"{value!r} is no JSON")

"""
Convert text and Python values for the rungs, and back. No JSON-RPC, no I/O.

The framing and syntax rungs decide what is valid. Two things are added for callers: numbers stay exact, and a value
that is not JSON (a cycle, NaN, a thousand levels) is rejected before it reaches an engine that would crash.
"""

import json
from typing import Any

from assay.base.limits import DEFAULT
from assay.base.verdict import Violation
from assay.ladder import framing, syntax
from assay.rules import violation


def frame_of(text: Any) -> bytes:
    """Return *text* as a frame; an empty one, which is not a message, if it is not text."""
    if isinstance(text, str):
        # One character past the limit is enough to refuse it, so a long text is not copied. Half a surrogate becomes
        # bytes that are not UTF-8, and is refused.
        return text[: DEFAULT.frame_bytes + 1].encode("utf-8", "surrogatepass")
    return bytes(text) if isinstance(text, bytes | bytearray | memoryview) else b""


def read(frame: bytes) -> Any | Violation:
    """Return the JSON value in *frame*, or the violation; integers are exact, however long."""
    value = framing.check(frame, DEFAULT.frame_bytes) or syntax.read(frame, DEFAULT.depth)
    if isinstance(value, Violation):
        return value

    # Parsed again: the rung reads integers beyond 64 bits as floats, which is enough to judge, but not to use them.
    return json.loads(frame)


def written(value: Any) -> bytes | Violation:
    """Return the frame for *value*, which `read` accepts; or the violation."""
    try:
        frame = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError) as error:
        # The message of the exception may contain the value, so only its type is used.
        return violation("syntax/json", expected="a value that JSON can write", found=f"a {type(error).__name__}")
    wrong = read(frame)
    return wrong if isinstance(wrong, Violation) else frame


def plain(value: Any) -> Any | Violation:
    """Return *value* as JSON, safe to judge; or the violation."""
    frame = written(value)
    return frame if isinstance(frame, Violation) else read(frame)

"""
What Python code has in hand, text or values, on its way to the rungs and back. No JSON-RPC, no I/O.

The framing and syntax rungs decide what may be read. Two things are added for callers: numbers stay exact, and a value
that is no JSON (a cycle, NaN, a thousand levels) is found out before it reaches an engine that would crash on it.
"""

from typing import Any

from assay.base.limits import DEFAULT
from assay.base.verdict import Violation
from assay.ladder import framing, syntax
from assay.rules import violation


def frame_of(text: Any) -> bytes:
    """*text* as a frame; an empty one, which no rung takes for a message, if it is no text at all."""
    if isinstance(text, str):
        # A character past the limit is enough to refuse it: what is too long is not copied first. Half a surrogate
        # pair becomes bytes that are no UTF-8, and is refused for that.
        return text[: DEFAULT.frame_bytes + 1].encode("utf-8", "surrogatepass")
    return bytes(text) if isinstance(text, bytes | bytearray | memoryview) else b""


def read(frame: bytes) -> Any | Violation:
    """The JSON value in *frame*, or why there is none; integers are exact, however long."""
    value = framing.check(frame, DEFAULT.frame_bytes) or syntax.read(frame, DEFAULT.depth)
    if isinstance(value, Violation):
        return value
    import json  # noqa: PLC0415 - not needed to import a face

    # Read again: the rung takes integers beyond 64 bits for floats, which is enough to judge them, not to use them.
    return json.loads(frame)


def written(value: Any) -> bytes | Violation:
    """The frame for *value*, which `read` takes back; or why there is none."""
    import json  # noqa: PLC0415 - as above

    try:
        frame = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError) as error:
        # The text of the exception may quote the value; its kind is enough to go by.
        return violation("syntax/json", expected="a value that JSON can write", found=f"a {type(error).__name__}")
    wrong = read(frame)
    return wrong if isinstance(wrong, Violation) else frame


def why_not_json(value: Any) -> str | None:
    """Return what JSON cannot write in *value*: a type, NaN, a cycle; None if it is a JSON value."""
    import json  # noqa: PLC0415 - as above

    strange: list[str] = []

    def default(inside: Any) -> Any:
        strange.append(f"a Python {type(inside).__name__}")
        raise TypeError

    try:
        json.dumps(value, allow_nan=False, ensure_ascii=False, default=default).encode()
    except TypeError:
        return strange[0] if strange else "a key that is not a string"
    except UnicodeEncodeError:
        return "half of a surrogate pair"
    except ValueError:
        return "NaN, an infinity or a cycle"
    except RecursionError:
        return "too many levels"
    return None


def plain(value: Any) -> Any | Violation:
    """*value* as JSON has it, safe to judge; or why it has no such form."""
    frame = written(value)
    return frame if isinstance(frame, Violation) else read(frame)

"""
The schemas of the whole process: their texts and their compiled forms, each within one bound of memory. No I/O.

A server lists the same tools to every client, and again after every change, so schemas with the same text are shared.
The least recently used compiled forms are dropped first, and compiled again when they are needed.
"""

import re
from typing import Any, Final, NamedTuple, Protocol
from weakref import WeakSet, WeakValueDictionary

import orjson

from assay.model.bounded import Shares
from assay.schema.admission import SchemaLimits, SchemaRefusal, compile_untrusted
from assay.schema.compiled import PATTERN_SIZE, Compiled

# ── texts ────────────────────────────────────────────────────────────────────────────────────────────────────────────

TEXTS: Final = Shares(256 << 20)
"""The bytes of the texts of all schemas, of all servers and sessions. A text counts for the first owner that has it."""


class SchemaText:
    """The text of a schema; one object for equal texts. A parsed schema takes 25 times as much."""

    __slots__ = ("__weakref__", "_owner", "text")

    _counted = TEXTS
    # An attribute, because the interpreter empties modules before it exits.

    def __init__(self, text: bytes, owner: str) -> None:
        self.text = text
        self._owner = owner

    def __del__(self) -> None:
        self._counted.give_back(self._owner, len(self.text))


_TEXTS: Final[WeakValueDictionary[bytes, SchemaText]] = WeakValueDictionary()


def kept(text: bytes, owner: str = "") -> SchemaText | None:
    """Return *text* as it is kept, as long as there is a reference to it; None if *owner* has no room for it."""
    known = _TEXTS.get(text)
    if known is None and TEXTS.take(owner, len(text)):
        known = _TEXTS[text] = SchemaText(text, owner)
    return known


# ── compiled forms ───────────────────────────────────────────────────────────────────────────────────────────────────

HELD: Final = 128 << 20
"""Bytes that all compiled schemas together may take, estimated from their text."""

LARGEST: Final = HELD // 2
"""Bytes that one compiled schema may take by that estimate: the two of a tool must not push out each other."""

_REFUSED: Final = 1 << 10
"""Bytes of a schema that is not compiled."""


class SchemaUser(Protocol):
    """Something that keeps a compiled schema."""

    def release(self) -> None:
        """Forget the compiled schema: it was dropped."""


class _Held(NamedTuple):
    usable: Compiled | SchemaRefusal
    weight: int
    users: "WeakSet[SchemaUser]"


_HELD: Final[dict[bytes, _Held]] = {}
"""Schemas by their text, the least recently used first."""

_weight = 0
"""The weight of all of them."""


def compiled(text: bytes, user: SchemaUser | None = None) -> Compiled | SchemaRefusal:
    """Return the schema in *text* without its unusable parts, or a refusal; when it is dropped, *user* releases it."""
    global _weight  # noqa: PLW0603 - one store, one count of its bytes
    held = _HELD.pop(text, None)
    if held is None:
        taken = weight(text)
        if taken <= LARGEST:
            held = _Held(compile_untrusted(orjson.loads(text), partly=True), taken, WeakSet())
        else:
            expected, found = f"at most {LARGEST >> 20} MiB when compiled", f"about {taken >> 20} MiB"
            held = _Held(SchemaRefusal("contract/schema-size", "", expected, found), _REFUSED, WeakSet())
        _weight += held.weight
    _HELD[text] = held
    if user is not None:
        held.users.add(user)
    while _weight > HELD and len(_HELD) > 1:
        dropped = _HELD.pop(next(iter(_HELD)))
        _weight -= dropped.weight
        for each in list(dropped.users):
            each.release()
    return held.usable


def is_compiled(text: bytes) -> bool:
    """Return whether the schema in *text* is compiled, or was refused."""
    return text in _HELD


def wholly_compiled(schema: Any) -> Compiled | SchemaRefusal:
    """Return *schema* compiled, or a refusal if any part of it is unusable. The same object for the same text."""
    try:
        usable = compiled(orjson.dumps(schema))
    except orjson.JSONEncodeError:
        # Only values from Python, such as an integer beyond 64 bits: a value from a frame can be serialized.
        usable = compile_untrusted(schema, partly=True)
    return usable.left_out[0] if isinstance(usable, Compiled) and usable.left_out else usable


# ── estimates from the text ──────────────────────────────────────────────────────────────────────────────────────────

_PER_BYTE: Final = 25
"""Bytes of memory for each byte of text of a parsed and compiled schema: 6 MB for 240 kB."""

_SMALL_PATTERN: Final = 64 << 10
"""Bytes of an ordinary compiled pattern."""

_COPIES: Final = 4
"""How often a schema with backtracking patterns counts: it may also be compiled without them."""

_LARGE: Final = re.compile(rb"\\\\[pP]|\{\d*,?\d{3}")
"""What makes a compiled pattern large: classes of Unicode, and long repetitions."""

_SLOW: Final = re.compile(rb"\\\\[pPwWsSdD]|\{\d")
_SLOW_COUNT: Final = 15
"""What may make a pattern take long to compile, and how much it counts beyond one: repetitions can be nested."""

_STEPPING_BACK: Final = (b"(?=", b"(?!", b"(?<", *(b"\\\\%d" % number for number in range(1, 10)))
"""How such a pattern appears in the text of a schema."""


def weight(text: bytes) -> int:
    """Return the bytes that the compiled schema may take."""
    count = patterns(text)
    large = len(_LARGE.findall(text)) * PATTERN_SIZE if count else 0
    once = len(text) * _PER_BYTE + min(count * _SMALL_PATTERN + large, SchemaLimits().patterns)
    return once * _COPIES if any(spelt in text for spelt in _STEPPING_BACK) else once


def effort(text: bytes) -> int:
    """Return how long the patterns of the schema in *text* may take to compile, in patterns without a repetition."""
    count = patterns(text)
    return count + _SLOW_COUNT * len(_SLOW.findall(text)) if count else 0


def patterns(text: bytes) -> int:
    """Return a bound on the regular expressions of the schema in *text*, those of `patternProperties` included."""
    # The keywords are never written with escapes: `orjson` has written the text.
    count = text.count(b'"pattern"')
    if b'"patternProperties"' not in text:
        return count
    # Every value, not only what a draft calls a subschema: a reference can lead anywhere.
    waiting = [orjson.loads(text)]
    for one in waiting:  # grows during the loop
        if isinstance(one, dict):
            named = one.get("patternProperties")
            count += len(named) if isinstance(named, dict) else 0
            waiting.extend(one.values())
        elif isinstance(one, list):
            waiting.extend(one)
    return count

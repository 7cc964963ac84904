"""
The compiled schemas of the whole process, within one limit of memory. No I/O, no clock.

A server lists the same tools to every client, and again after every change, so schemas with the same text are shared.
The least recently used ones are dropped first, and compiled again when they are needed.
"""

import re
from collections.abc import Callable
from typing import Any, Final
from weakref import WeakSet

import orjson

from assay.base.bounded import Shares
from assay.engine.admission import SchemaLimits, SchemaRefusal, compile_untrusted
from assay.engine.compiled import PATTERN_SIZE, Compiled

HELD: Final = 128 << 20
"""Bytes that all compiled schemas together may take, estimated from their text."""

_PER_BYTE: Final = 25
"""Bytes of memory for each byte of text of a parsed and compiled schema: 6 MB for 240 kB."""

LARGEST: Final = HELD // 2
"""Bytes that one compiled schema may take by that estimate: the two of a tool must not push out each other."""

_REFUSED: Final = 1 << 10
"""Bytes of a schema that is not compiled."""

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

_SCHEMAS: dict[bytes, tuple[Compiled | SchemaRefusal, int]] = {}
"""Schemas by their text, each with its weight, the least recently used first."""

_USERS: dict[bytes, "WeakSet[Any]"] = {}
"""The users of a compiled schema, by its text, which must release it when it is dropped."""

_held = 0

WAITING: Final = 256 << 20
"""Bytes of the texts of all schemas, of all servers and sessions. Equal texts are kept once."""

_TEXTS: dict[bytes, list[Any]] = {}
"""Each kept text, with the number of its users, and its owner."""

_SHARES: Final = Shares(WAITING)


def hold(text: bytes, owner: str = "") -> bytes | None:
    """Return *text*, or an equal one that is kept; None if *owner* has no room for it. `let_go` releases it."""
    known = _TEXTS.get(text)
    if known is None:
        if not _SHARES.take(owner, len(text)):
            return None
        known = _TEXTS[text] = [text, 0, owner]
    known[1] += 1
    kept: bytes = known[0]
    return kept


def let_go(text: bytes) -> None:
    """Release one use of *text*."""
    known = _TEXTS.get(text)
    if known is not None:
        known[1] -= 1
        if known[1] == 0:
            del _TEXTS[text]
            _SHARES.give_back(known[2], len(text))


def compiled(schema: Any) -> Compiled | SchemaRefusal:
    """Return *schema* compiled, without its unusable parts, or a refusal. The same object for the same text."""
    try:
        text = orjson.dumps(schema)
    except orjson.JSONEncodeError:
        # Only values from Python, such as an integer beyond 64 bits: a value from a frame can be serialized.
        return compile_untrusted(schema, partly=True)
    return of_text(text, schema)


def wholly_compiled(schema: Any) -> Compiled | SchemaRefusal:
    """Return *schema* compiled, or a refusal if any part of it is unusable."""
    usable = compiled(schema)
    return usable.left_out[0] if isinstance(usable, Compiled) and usable.left_out else usable


def of_text(text: bytes, schema: Any = None, user: Any = None) -> Compiled | SchemaRefusal:
    """
    Return the schema in *text* compiled, or a refusal; *schema* is the parsed text, if it is available.

    *user* has a method `release`, which is called when the schema is dropped.
    """
    global _held  # noqa: PLW0603 - one store, one count of its bytes
    known = _SCHEMAS.pop(text, None)
    if known is None:
        refusal = _too_heavy(text)
        if refusal is None:
            known = compile_untrusted(orjson.loads(text) if schema is None else schema, partly=True), weight(text)
        else:
            known = refusal, _REFUSED
        _held += known[1]
    _SCHEMAS[text] = known
    if user is not None:
        users = _USERS.get(text)
        if users is None:
            users = _USERS[text] = WeakSet()
        users.add(user)
    while _held > HELD and len(_SCHEMAS) > 1:
        _drop(next(iter(_SCHEMAS)))
    return known[0]


def is_compiled(text: bytes) -> bool:
    """Return whether the schema in *text* is compiled, or was refused."""
    return text in _SCHEMAS


def weight(text: bytes) -> int:
    """Return the bytes that the compiled schema may take."""
    count = patterns(text)
    large = len(_LARGE.findall(text)) * PATTERN_SIZE if count else 0
    once = len(text) * _PER_BYTE + min(count * _SMALL_PATTERN + large, SchemaLimits().patterns)
    return once * _COPIES if any(spelt in text for spelt in _STEPPING_BACK) else once


def _too_heavy(text: bytes) -> SchemaRefusal | None:
    taken = weight(text)
    if taken <= LARGEST:
        return None
    expected = f"at most {LARGEST >> 20} MiB when compiled"
    return SchemaRefusal("contract/schema-size", "", expected, f"about {taken >> 20} MiB")


def patterns(text: bytes) -> int:
    """Return a bound on the regular expressions of the schema in *text*, those of `patternProperties` included."""
    count = text.count(b'"pattern"')
    # Few schemas have any. The keyword is never written with escapes: `orjson` has written the text.
    return count + _named(orjson.loads(text)) if b'"patternProperties"' in text else count


def effort(text: bytes) -> int:
    """Return how long the patterns of the schema in *text* may take to compile, in patterns without a repetition."""
    count = patterns(text)
    return count + _SLOW_COUNT * len(_SLOW.findall(text)) if count else 0


def _named(schema: Any) -> int:
    count = 0
    waiting = [schema]
    for one in waiting:  # grows during the loop
        if isinstance(one, dict):
            named = one.get("patternProperties")
            count += len(named) if isinstance(named, dict) else 0
            waiting.extend(one.values())
        elif isinstance(one, list):
            waiting.extend(one)
    return count


def _drop(text: bytes) -> None:
    global _held  # noqa: PLW0603 - as above
    _held -= _SCHEMAS.pop(text)[1]
    release: Callable[[], None]
    for release in [user.release for user in _USERS.pop(text, ())]:
        release()

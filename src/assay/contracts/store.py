"""
The compiled schemas of the whole process, within one limit of memory. No I/O, no clock.

A server lists the same tools to every client, and again after every change, so schemas with the same text are shared.
The least recently used ones are dropped first, and compiled again when they are needed.
"""

from collections.abc import Callable
from typing import Any, Final
from weakref import WeakSet

import orjson

from assay.engine.admission import SchemaRefusal, compile_untrusted
from assay.engine.compiled import PATTERN_SIZE, Compiled

HELD: Final = 128 << 20
"""Bytes that all compiled schemas together may take, estimated from their text."""

_PER_BYTE: Final = 25
"""Bytes of memory for each byte of text of a parsed and compiled schema: 6 MB for 240 kB."""

_MOST_PATTERNS: Final = 32
"""Patterns that count: those of one schema together take no more memory (`SchemaLimits.patterns`)."""

_COPIES: Final = 4
"""How often a schema with backtracking patterns counts: it may also be compiled without them."""

_STEPPING_BACK: Final = (b"(?=", b"(?!", b"(?<", *(b"\\\\%d" % number for number in range(1, 10)))
"""How such a pattern appears in the text of a schema."""

_SCHEMAS: dict[bytes, Compiled | SchemaRefusal] = {}
"""Schemas by their text, the least recently used first."""

_USERS: dict[bytes, "WeakSet[Any]"] = {}
"""The users of a compiled schema, by its text, which must release it when it is dropped."""

_held = 0

WAITING: Final = 256 << 20
"""Bytes of the texts of all schemas, of all servers and sessions. Equal texts are kept once."""

_TEXTS: dict[bytes, list[Any]] = {}
"""Each kept text, with the number of its users."""

_waiting = 0


def hold(text: bytes) -> bytes | None:
    """Return *text*, or an equal text that is kept already; None if there is no room. `let_go` releases it."""
    global _waiting  # noqa: PLW0603 - one store, one count of its bytes
    known = _TEXTS.get(text)
    if known is None:
        if _waiting + len(text) > WAITING:
            return None
        _waiting += len(text)
        known = _TEXTS[text] = [text, 0]
    known[1] += 1
    kept: bytes = known[0]
    return kept


def let_go(text: bytes) -> None:
    """Release one use of *text*."""
    global _waiting  # noqa: PLW0603 - as above
    known = _TEXTS.get(text)
    if known is not None:
        known[1] -= 1
        if known[1] == 0:
            del _TEXTS[text]
            _waiting -= len(text)


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
        known = compile_untrusted(orjson.loads(text) if schema is None else schema, partly=True)
        _held += weight(text)
    _SCHEMAS[text] = known
    if user is not None:
        users = _USERS.get(text)
        if users is None:
            users = _USERS[text] = WeakSet()
        users.add(user)
    while _held > HELD and len(_SCHEMAS) > 1:
        _drop(next(iter(_SCHEMAS)))
    return known


def weight(text: bytes) -> int:
    """Return the bytes that the compiled schema may take."""
    once = len(text) * _PER_BYTE + min(patterns(text), _MOST_PATTERNS) * PATTERN_SIZE
    return once * _COPIES if any(spelt in text for spelt in _STEPPING_BACK) else once


def patterns(text: bytes) -> int:
    """Return a bound on the regular expressions of the schema in *text*, those of `patternProperties` included."""
    count = text.count(b'"pattern"')
    # Few schemas have any. The keyword is never written with escapes: `orjson` has written the text.
    return count + _named(orjson.loads(text)) if b'"patternProperties"' in text else count


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
    del _SCHEMAS[text]
    _held -= weight(text)
    release: Callable[[], None]
    for release in [user.release for user in _USERS.pop(text, ())]:
        release()

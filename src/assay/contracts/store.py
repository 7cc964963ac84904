"""
Compiled schemas of the whole process, within one bound. No I/O, no clock.

A server lists the same tools to every client, and again after every change: schemas of the same text are one. Those
that were not asked for longest are dropped first, and compiled again when they are needed.
"""

from collections.abc import Callable
from typing import Any, Final
from weakref import WeakSet

import orjson

from assay.engine.admission import SchemaRefusal, compile_untrusted
from assay.engine.compiled import PATTERN_SIZE, Compiled

HELD: Final = 128 << 20
"""Bytes that all compiled schemas together may take, as far as their text tells."""

_PER_BYTE: Final = 25
"""Bytes that a schema takes for each byte of its text, once it is read and compiled: 6 MB for 240 kB."""

_MOST_PATTERNS: Final = 32
"""Patterns that count: together those of one schema take no more (`SchemaLimits.patterns`)."""

_COPIES: Final = 4
"""Times that a schema counts whose patterns may step back: it may be compiled without them, too, and they by steps."""

_STEPPING_BACK: Final = (b"(?=", b"(?!", b"(?<", *(b"\\\\%d" % number for number in range(1, 10)))
"""How such a pattern is spelt in the text of a schema."""

_SCHEMAS: dict[bytes, Compiled | SchemaRefusal] = {}
"""By their text, the one that was asked for longest ago first."""

_USERS: dict[bytes, "WeakSet[Any]"] = {}
"""Who holds a compiled schema, by its text, and has to let go of it."""

_held = 0

WAITING: Final = 256 << 20
"""Bytes that the texts of all schemas together may take, of all servers and sessions. Equal ones are kept once."""

_TEXTS: dict[bytes, list[Any]] = {}
"""Each text that somebody keeps, with the number of those who do."""

_waiting = 0


def hold(text: bytes) -> bytes | None:
    """Return *text*, or an equal one that is kept already; None if there is no room for it. `let_go` ends that."""
    global _waiting  # noqa: PLW0603 - one store, one account of what it holds
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
    """One of those who keep *text* does no more."""
    global _waiting  # noqa: PLW0603 - as above
    known = _TEXTS.get(text)
    if known is not None:
        known[1] -= 1
        if known[1] == 0:
            del _TEXTS[text]
            _waiting -= len(text)


def compiled(schema: Any) -> Compiled | SchemaRefusal:
    """*schema*, admitted and compiled as far as it can be judged by, or why not. The same object for the same text."""
    try:
        text = orjson.dumps(schema)
    except orjson.JSONEncodeError:
        # From Python only, an integer beyond 64 bits for one: what was read from a frame can be written again.
        return compile_untrusted(schema, partly=True)
    return of_text(text, schema)


def wholly_compiled(schema: Any) -> Compiled | SchemaRefusal:
    """The same for those who judge by all of a schema or not at all."""
    usable = compiled(schema)
    return usable.left_out[0] if isinstance(usable, Compiled) and usable.left_out else usable


def of_text(text: bytes, schema: Any = None, user: Any = None) -> Compiled | SchemaRefusal:
    """
    The schema that *text* spells, admitted and compiled; *schema* is the same, if it has been read already.

    *user* has a method `release`, which is called when the schema is dropped.
    """
    global _held  # noqa: PLW0603 - one store, one account of what it holds
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
    """The bytes that a schema may take once it is compiled."""
    once = len(text) * _PER_BYTE + min(patterns(text), _MOST_PATTERNS) * PATTERN_SIZE
    return once * _COPIES if any(spelt in text for spelt in _STEPPING_BACK) else once


def patterns(text: bytes) -> int:
    """How many regular expressions the schema that *text* spells may have, names of `patternProperties` included."""
    count = text.count(b'"pattern"')
    # Few schemas have any. The word may be spelt with escapes nowhere: `orjson` has written the text.
    return count + _named(orjson.loads(text)) if b'"patternProperties"' in text else count


def _named(schema: Any) -> int:
    count = 0
    waiting = [schema]
    for one in waiting:  # which grows meanwhile
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

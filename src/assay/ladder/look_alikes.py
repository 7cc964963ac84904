"""
Keys that other parsers take for a defined key: `Method` for `method`, `paramſ` for `params`. No I/O, no state.

A parser that ignores case, as Go's encoding/json does, reads such a key as the defined one, and the last of the two
wins. So one message would mean one thing to the judge and another to its reader, as with a repeated key.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final
from unicodedata import normalize

import orjson

from assay.engine.pointers import escaped
from assay.rules import violation
from assay.verdict import Violation

_SHOWN: Final = 60
"""Characters of a key that a finding shows."""


class Keys:
    """The keys that one object is defined to have, and how to recognise another spelling of them."""

    __slots__ = ("_by_folded", "_longest", "defined")

    def __init__(self, defined: Iterable[str]) -> None:
        self.defined = frozenset(defined)
        self._by_folded = {folded(name): name for name in sorted(self.defined)}
        self._longest = max(map(len, self._by_folded), default=0)

    def is_plain(self, value: Mapping[str, Any]) -> bool:
        """Whether no key of *value* is another spelling of a defined key."""
        # Nearly every object has defined keys only, and costs this one step.
        return self.defined.issuperset(value) or next(self.look_alikes(value), None) is None

    def look_alikes(self, value: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """Yield each key of *value* that is another spelling of a defined key, with the defined key."""
        if self._longest == 0:
            return
        for key in value:
            if key not in self.defined:
                meant = self._meant(key)
                if meant is not None:
                    yield key, meant

    def _meant(self, key: str) -> str | None:
        if "\0" in key:
            key = key.replace("\0", "")
        # Folding makes at most four characters one, so that a long key needs no second look.
        return self._by_folded.get(folded(key)) if len(key) <= 4 * self._longest else None

    def check(self, rule: str, value: Mapping[str, Any], at: str, most: int, revision: str | None) -> list[Violation]:
        """Return a violation of *rule* for each look-alike in *value*, at most *most*; *at* is the pointer to it."""
        return [
            violation(
                rule,
                f"{at}/{escaped(key[:_SHOWN])}",
                expected=f"{meant} in no other spelling",
                found=f"the key {orjson.dumps(key[:_SHOWN]).decode()}",
                revision=revision,
            )
            for key, meant in islice(self.look_alikes(value), most)
        ]


def folded(key: str) -> str:
    """Return *key* without NUL, in the form that its spellings share: compatibility characters and case are folded."""
    key = key.replace("\0", "")
    # Twice: folding the case of a compatible form can give a character that has one of its own.
    return key.lower() if key.isascii() else normalize("NFKC", normalize("NFKC", key).casefold())

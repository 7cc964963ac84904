"""
Finds keys that other parsers read as a defined key: `Method` as `method`, `paramſ` as `params`. No I/O, no state.

A parser that ignores case, such as Go's encoding/json, reads such a key as the defined one, and the last of the two
wins. The message would mean one thing to the guard and another to its receiver, as with a repeated key.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final
from unicodedata import normalize

import orjson

from assay.base.verdict import Violation
from assay.engine.pointers import escaped
from assay.rules import violation

_SHOWN: Final = 60
"""Characters of a key that are shown in a finding."""

_LONGEST: Final = 256
"""Characters of a key that is checked: defined keys have fewer, and folding a long one takes time."""

_MOST: Final = 20_000
"""Keys of one object that are folded. An object with more of these characters in its keys is refused for them."""

_FOREIGN: Final = re.compile(
    "[^\x00-\x7f\xa0-\u02ff\u037e\u1d2c-\u1dbb\u1e9e\u1fef-\u217f\u2460-\u24ea\u2a74-\u2a76\u2c7c\u2c7d"
    "\u3000\u3250-\u33ff\ua7f2-\ua7f4\ufb00-\ufb29\ufe10-\uff5e\U000107a5\U0001d400-\U0001d6a3"
    "\U0001d7ce-\U0001d7ff\U0001f100-\U0001f190\U0001fbf0-\U0001fbf9]"
)
"""Characters that no folding turns into ASCII. The list is not complete, but it has no wrong character."""

_DOTS: Final = {0x130: "I", 0x131: "i"}
"""The Turkish letters: parsers that compare letter by letter read each as an i."""


class Keys:
    """The keys that one object is defined to have, and how to recognise another spelling of them."""

    __slots__ = ("_by_folded", "_is_ascii", "_longest", "defined")

    def __init__(self, defined: Iterable[str]) -> None:
        self.defined = frozenset(defined)
        self._by_folded = {folded(name): name for name in sorted(self.defined) if len(name) <= _LONGEST}
        self._is_ascii = all(map(str.isascii, self.defined))
        # Folding turns at most four characters into one, so a longer key cannot match.
        self._longest = min(max(map(len, self._by_folded), default=0) * 4, _LONGEST)

    def is_plain(self, value: Mapping[str, Any]) -> bool:
        """Whether no key of *value* is another spelling of a defined key."""
        # Nearly every object has only defined keys, and costs this one step.
        return self.defined.issuperset(value) or next(self.look_alikes(value), None) is None

    def look_alikes(self, value: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """Yield each key of *value* that is another spelling of a defined key, with the defined key."""
        if self._longest == 0:
            return
        folds = 0
        for key in value:
            if key in self.defined:
                continue
            if not key.isascii():
                if self._is_ascii and _FOREIGN.search(key) is not None:
                    continue
                folds += 1
                if folds > _MOST:
                    yield key, next(iter(self._by_folded.values()))
                    return
            meant = self._meant(key)
            if meant is not None:
                yield key, meant

    def _meant(self, key: str) -> str | None:
        if "\0" in key:
            # Some parsers ignore a NUL, for others it ends the key.
            before = key.partition("\0")[0]
            return self._known(key.replace("\0", "")) or self._known(before)
        return self._known(key)

    def _known(self, key: str) -> str | None:
        if key in self.defined:
            return key
        return self._by_folded.get(folded(key)) if len(key) <= self._longest else None

    def check(self, rule: str, value: Mapping[str, Any], at: str, most: int, revision: str | None) -> list[Violation]:
        """Return a violation of *rule* for each look-alike in *value*, at most *most*; *at* is the pointer to it."""
        return [
            violation(
                rule,
                f"{at}/{escaped(key[:_SHOWN])}",
                expected=f"no other spelling of {meant}",
                found=f"the key {orjson.dumps(key[:_SHOWN]).decode()}",
                revision=revision,
            )
            for key, meant in islice(self.look_alikes(value), most)
        ]


def folded(key: str) -> str:
    """Return *key* without NUL, in the form that its spellings share: compatibility characters and case are folded."""
    key = key.replace("\0", "")
    # Twice: folding the case of a compatible form can give a character with a compatible form of its own.
    return key.lower() if key.isascii() else normalize("NFKC", normalize("NFKC", key.translate(_DOTS)).casefold())

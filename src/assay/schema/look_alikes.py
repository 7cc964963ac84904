"""
Finds keys that other parsers read as a defined key, and arguments that a tool does not know. No I/O, no state.

A parser that ignores case, such as Go's encoding/json, reads `Method` as `method` and `paramſ` as `params`, and the
last of the two wins. The message would mean one thing to the guard and another to its receiver, as with a repeated key.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from functools import cached_property
from itertools import islice
from typing import Any, Final
from unicodedata import normalize

import orjson

from assay.model.verdict import Violation
from assay.rules import violation
from assay.rules.report import Report
from assay.schema.pointers import escaped

_SHOWN: Final = 60
"""Characters of a key or a name that are shown in a finding."""

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


# ── arguments ───────────────────────────────────────────────────────────────────────────────────────────────────────

_OPEN: Final = frozenset(
    {
        "additionalProperties", "patternProperties", "unevaluatedProperties", "propertyNames", "$ref", "$dynamicRef",
        "$recursiveRef", "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies",
    }
)  # fmt: skip
"""Keywords by which a schema says itself what other properties an object has, or leaves that to another schema."""

_MOST_NAMED: Final = 10
"""Names of arguments that are listed in a finding."""

_MOST_COMPARED: Final = 100
"""Names that are searched for the one that was meant, for each of the first `_MOST_MEANT`: some 10 µs each."""

_MOST_MEANT: Final = 3
"""Unknown arguments whose meaning is searched for."""


class ArgumentNames:
    """The names of the arguments of one tool."""

    def __init__(self, names: frozenset[str], *, is_closed: bool) -> None:
        """*is_closed* means that the schema does not say whether there are other arguments."""
        self.names = names
        self._is_closed = is_closed

    @classmethod
    def of(cls, schema: Any) -> "ArgumentNames | None":
        """Return those of an input schema; None if it names none, or forbids all others."""
        if not isinstance(schema, dict):
            return None
        named = schema.get("properties")
        if not isinstance(named, dict):
            return None
        if schema.get("additionalProperties") is False and "patternProperties" not in schema:
            return None
        is_closed = _OPEN.isdisjoint(schema)
        return cls(frozenset(named), is_closed=is_closed) if named or is_closed else None

    def is_odd(self, arguments: dict[str, Any]) -> bool:
        """Whether *arguments* have something to report."""
        return not self.names.issuperset(arguments) and (self._is_closed or not self._keys.is_plain(arguments))

    def check(self, arguments: dict[str, Any], at: str, report: Report) -> None:
        """Report each look-alike and each unknown argument."""
        if self.names.issuperset(arguments):
            return
        alike = self._keys.check("contract/look-alike-key", arguments, at, report.most, report.revision)
        report.take(alike)
        if not self._is_closed:
            return
        unknown = [name for name in arguments if name not in self.names]
        spelt_alike = {each for each, _ in self._keys.look_alikes(dict.fromkeys(unknown))} if alike else set()
        some = [each[:_SHOWN] for each in islice(sorted(self.names), _MOST_COMPARED)]
        for number, name in enumerate(islice((each for each in unknown if each not in spelt_alike), report.most)):
            near = get_close_matches(name[:_SHOWN], some, n=1) if number < _MOST_MEANT else []
            report.add(
                "contract/unknown-argument",
                f"{at}/{escaped(name[:_SHOWN])}",
                expected=self._listed(),
                found=f"the argument {orjson.dumps(name[:_SHOWN]).decode()}",
                hint=f"Did you mean {near[0]}?" if near else None,
            )

    def _listed(self) -> str:
        if not self.names:
            return "no arguments"
        some = [each[:_SHOWN] for each in islice(sorted(self.names), _MOST_NAMED)]
        rest = len(self.names) - len(some)
        *before, last = [*some, f"{rest} more"] if rest else some
        return f"an argument of the inputSchema: {', '.join(before)} or {last}" if before else f"only {last}"

    @cached_property
    def _keys(self) -> Keys:
        # Most tools never need it.
        return Keys(self.names)

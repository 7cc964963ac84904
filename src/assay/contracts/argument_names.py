"""
The arguments that a tool's input schema names, and the names in a call that it does not. No I/O, no state.

JSON Schema allows properties that a schema does not name. Most schemas of tools mean no other ones, and the tool
ignores what it does not know: a misspelt optional argument is lost without an error.
"""

from difflib import get_close_matches
from itertools import islice
from typing import Any, Final

import orjson

from assay.contracts.look_alikes import Keys
from assay.engine.pointers import escaped
from assay.rules.report import Report

_OPEN: Final = frozenset(
    {
        "additionalProperties", "patternProperties", "unevaluatedProperties", "propertyNames", "$ref", "$dynamicRef",
        "$recursiveRef", "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies",
    }
)  # fmt: skip
"""Keywords by which a schema says itself what other properties an object has, or leaves that to another schema."""

_SHOWN: Final = 60
"""Characters of a name that are shown in a finding."""

_MOST_NAMED: Final = 10
"""Names of arguments that are listed in a finding."""

_MOST_COMPARED: Final = 100
"""Names that are searched for the one that was meant, for each of the first `_MOST_MEANT`: some 10 µs each."""

_MOST_MEANT: Final = 3
"""Unknown arguments whose meaning is searched for."""


class ArgumentNames:
    """The names of the arguments of one tool."""

    __slots__ = ("_is_closed", "_keys", "names")

    def __init__(self, names: frozenset[str], *, is_closed: bool) -> None:
        """*is_closed* means that the schema does not say whether there are other arguments."""
        self.names = names
        self._is_closed = is_closed
        self._keys: Keys | None = None

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
        return not self.names.issuperset(arguments) and (self._is_closed or not self._known().is_plain(arguments))

    def check(self, arguments: dict[str, Any], at: str, report: Report) -> None:
        """Report each look-alike and each unknown argument."""
        if self.names.issuperset(arguments):
            return
        alike = self._known().check("contract/look-alike-key", arguments, at, report.most, report.revision)
        report.take(alike)
        if not self._is_closed:
            return
        unknown = [name for name in arguments if name not in self.names]
        spelt_alike = {each for each, _ in self._known().look_alikes(dict.fromkeys(unknown))} if alike else set()
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

    def _known(self) -> Keys:
        # Most tools never need it.
        if self._keys is None:
            self._keys = Keys(self.names)
        return self._keys

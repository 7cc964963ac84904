"""
The actions that an operator chose for broken rules, in place of those in the table of rules. No I/O, no clock.

Not every action fits every rule: an unreadable message cannot be forwarded by its meaning, and a second answer to one
request has no receiver. `fitting` returns the actions that do.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from assay.model.verdict import Action, Violation
from assay.rules import RULES

ACTIONS: Final[Mapping[str, Action]] = {
    "pass": "report",
    "refuse": "refuse",
    "quarantine": "quarantine",
    "drop": "drop",
}
"""The actions, by the operator's word, as a verdict names them."""

UNJUDGED: Final = (
    "contract/unjudged", "contract/not-judged", "contract/unknown-dialect", "contract/pattern", "contract/remote-ref",
    "contract/schema-size", "contract/schema-cost", "guard/failure",
)  # fmt: skip
"""Rules about what cannot be judged, although nothing is known to be wrong."""

REPAIRED: Final = ("contract/input", "protocol/params")
"""Rules of arguments whose violations can be repaired; `guard.repair` turns all of them on or off."""

REPAIRED_RESULTS: Final = (
    "protocol/result-type-missing", "protocol/cache-hints", "protocol/result", "protocol/error-code",
    "contract/unknown-dialect", "contract/error-structured",
)  # fmt: skip
"""Rules of results and errors whose violations can be repaired; each only if the operator wants it for that rule."""

REPAIRABLE: Final = (*REPAIRED, *REPAIRED_RESULTS)


def fitting(rule: str) -> tuple[str, ...]:
    """Return the actions that fit *rule*, in the operator's words."""
    row = RULES[rule]
    if row.allowed:
        return row.allowed
    if row.rung in {"framing", "syntax", "envelope"}:
        # The meaning of the message is unknown: it cannot be matched with an answer, or judged.
        return ("refuse", "drop")
    return ("pass", "refuse", "quarantine") if row.severest == "quarantine" else ("pass", "refuse")


def meant(pattern: str) -> list[str]:
    """Return the rules that *pattern* names: one, all of a rung (``contract/*``), or all; [] for an unknown rule."""
    if pattern == "*":
        return list(RULES)
    rung, _, name = pattern.partition("/")
    if name == "*":
        return [rule for rule in RULES if RULES[rule].rung == rung]
    return [pattern] if pattern in RULES else []


class Excepted(NamedTuple):
    """An exception: another action for a rule, for a limited time."""

    rule: str
    """A rule, or a pattern of several."""
    tool: str | None
    """The tool that it is limited to; None for every message."""
    action: str
    reason: str


class Policy:
    """
    The action for each rule.

    The most specific one wins: an exception for the tool, an exception, the rule itself, its rung, all rules; then
    `fail_open` for what cannot be judged; then the strict column of the table. A pattern names those of its rules that
    the action fits.
    """

    __slots__ = ("_actions", "_exceptions", "repairs")

    def __init__(
        self,
        actions: Mapping[str, str] | None = None,
        *,
        exceptions: Sequence[Excepted] = (),
        repairs: Iterable[str] = (),
        fail_open: bool = False,
        strict: bool = False,
    ) -> None:
        given = dict(actions or {})
        self._actions: dict[str, Action] = {rule: row.severest for rule, row in RULES.items()} if strict else {}
        if fail_open:
            self._actions |= dict.fromkeys(UNJUDGED, "report")
        for pattern in sorted(given, key=precision):
            self._actions |= dict.fromkeys(_fitted(pattern, given[pattern]), ACTIONS[given[pattern]])
        self._exceptions: dict[tuple[str, str | None], Excepted] = {}
        for each in sorted(exceptions, key=lambda one: precision(one.rule)):
            self._exceptions |= {(rule, each.tool): each for rule in _fitted(each.rule, each.action)}
        self.repairs = frozenset(rule for pattern in repairs for rule in meant(pattern) if rule in REPAIRABLE)
        """The rules whose violations are repaired where that is safe."""

    @property
    def decides(self) -> bool:
        """Whether an action differs from the table of rules; repairs are not counted."""
        return bool(self._actions or self._exceptions)

    def decide(self, violation: Violation, tool: str | None) -> Violation:
        """Return *violation* with its action; *tool* is the tool that it is about."""
        rule = violation.rule
        if self._exceptions:
            made = self._exceptions.get((rule, tool)) or self._exceptions.get((rule, None))
            if made is not None:
                return replace(violation, action=ACTIONS[made.action], reason=made.reason)
        action = self._actions.get(rule)
        return violation if action is None or action == violation.action else replace(violation, action=action)


def precision(pattern: str) -> int:
    """Return how specific *pattern* is: all rules, a rung, one rule."""
    return 0 if pattern == "*" else 1 if pattern.endswith("/*") else 2


def _fitted(pattern: str, word: str) -> Iterator[str]:
    return (rule for rule in meant(pattern) if word in fitting(rule))

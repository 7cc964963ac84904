"""A policy known only by the actions it took. No I/O."""

from dataclasses import replace
from typing import Any, cast

from assay.base.verdict import Action, Violation
from assay.core.policy import ACTIONS, Policy, fitting


class Effect(Policy):
    """Applies to each violation the action that was recorded with the message."""

    __slots__ = ("_done", "_whole")

    def __init__(self) -> None:
        super().__init__()
        self._done: dict[tuple[str, str], str] = {}
        self._whole = False

    def recall(self, listed: Any, *, whole: bool = False) -> None:
        """
        Use the recorded actions for the next message: a list of objects with rule, at and action.

        A *whole* list has every violation: another one, such as a mask in place of a number, then stops nothing.
        """
        self._whole = whole
        recorded = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
        self._done = {(str(each.get("rule")), str(each.get("at"))): str(each.get("action")) for each in recorded}
        self.repairs = frozenset(rule for (rule, _), action in self._done.items() if action == "repair")

    def decide(self, violation: Violation, _: str | None) -> Violation:
        """Return *violation* with the recorded action, if that fits the rule."""
        # Consequences of other findings, such as a quarantined entry, are computed again.
        done = self._done.get((violation.rule, violation.at), "report" if self._whole else None)
        fits = any(ACTIONS[word] == done for word in fitting(violation.rule))
        return replace(violation, action=cast("Action", done)) if fits and done != violation.action else violation

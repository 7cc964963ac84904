"""The findings about one message, as they are collected. No I/O."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from assay.model.verdict import Violation
from assay.rules.policy import Policy
from assay.rules.table import violation

if TYPE_CHECKING:
    from assay.schema.budget import Budget


class Report:
    """
    What is wrong with one message, in the order in which it was found.

    It knows what every finding about the message needs: the revision, the actions of the operator's policy, the tool
    that the message is about, and what judging may still cost.
    """

    # Attributes that most reports never change are defaults of the class: several reports are made for each message.
    tool_at: Callable[[Violation], str | None] | None = None
    """Returns the tool of a finding in a list of tools; None for any other message."""
    more = 0
    """At least how many violations there are beyond those in `found`."""
    room: int | None = None
    """How many violations are kept; None for all."""
    is_full = False
    """Whether there are more: then there is no use in looking for further ones."""

    def __init__(
        self, revision: str | None, budget: "Budget", policy: Policy | None = None, tool: str | None = None
    ) -> None:
        self.revision = revision
        self.budget = budget
        self.policy = policy
        self.tool = tool
        """The tool that is called; exceptions of the policy may be about it."""
        self.found: list[Violation] = []

    @property
    def most(self) -> int:
        """How many violations of one kind are worth finding: the verdict lists no more."""
        return self.budget.violations

    @property
    def stops(self) -> bool:
        """Whether a violation stops the message."""
        # Most messages have no violation, and a generator takes 0.3 µs.
        return bool(self.found) and any(each.stops for each in self.found)

    @property
    def listed(self) -> tuple[tuple[Violation, ...], int]:
        """
        The violations to list, and at least how many others there are.

        The one that stops the message is first, because it is shown as the reason, and the others keep their order: if
        all that stop came first, they could push out every report.
        """
        found = self.found
        if not found:
            return (), self.more
        reason = next((number for number, each in enumerate(found) if each.stops), 0)
        ordered = [found[reason], *found[:reason], *found[reason + 1 :]] if reason else found
        return tuple(ordered[: self.most]), self.more + max(0, len(found) - self.most)

    def add(
        self, rule: str, at: str = "", *, expected: str, found: str, hint: str | None = None, detail: str = ""
    ) -> None:
        """Add a violation of *rule* at the place *at*; *hint* replaces the rule's, *detail* is added to its source."""
        if not self.is_full:
            wrong = violation(
                rule, at, expected=expected, found=found, revision=self.revision, hint=hint, detail=detail
            )
            self.take((wrong,))

    def add_forgotten(self, what: str, at: str) -> None:
        """Add that the message cannot be judged, because *what* it depends on is not remembered."""
        self.add(
            "contract/unjudged",
            at,
            expected=f"{what} that is remembered",
            found="one that is unknown or forgotten",
            hint="It was forwarded without a check. The guard remembers the most recent ones only.",
        )

    def take(self, faults: Iterable[Violation], more: int = 0) -> None:
        """Add *faults*, each with the action that the policy has for it, and count *more*."""
        policy, tool_at = self.policy, self.tool_at
        if policy is None:
            self.found += faults
        else:
            self.found += [policy.decide(each, self.tool if tool_at is None else tool_at(each)) for each in faults]
        self.more += more
        if self.room is not None and len(self.found) > self.room:
            del self.found[self.room :]
            self.is_full, self.more = True, 1

    def apart(self, room: int | None = None) -> "Report":
        """Return a report about the same message without findings, which keeps at most *room*."""
        made = Report(self.revision, self.budget, self.policy, self.tool)
        made.tool_at, made.room = self.tool_at, room
        return made

    def join(self, other: "Report") -> None:
        """Add all of *other*, whose actions are decided."""
        self.found += other.found
        self.more += other.more

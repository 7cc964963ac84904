"""
Why an instance does not fit its schema, found within a budget.

The engine's own explanations (`validate`, `iter_errors`, `evaluate`) build every branch's errors: a wrong leaf 8 levels
down a recursive filter took 4.2 s and 649 MB. Here the engine is only ever asked "does this value fit that subschema",
and only what does not fit is walked into.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

from assay.engine.branches import Branches
from assay.engine.budget import weights
from assay.engine.fault import Fault, Faults
from assay.engine.judges import Judges
from assay.engine.keywords import APPLYING, DECISIVE, REFERRING, SAID, SIMPLE, check_unevaluated
from assay.engine.pointers import as_fragment, escaped
from assay.engine.schema_index import SchemaPlace
from assay.engine.wording import expected, found, found_for

STEPS = 4_000
"""Questions asked of the engine for one explanation. The dearest we measured took 0.3 s for 10,000, so this
is about 0.1 s if it grows with their number."""

NODES_PER_STEP = 2_048
"""Values inside a value that one question may visit before it counts as another: the engine visited about
80 in a µs, under a small schema."""

WIDE = 8
"""Steps of the engine on one value from which on the values inside a value count more than once: then an explanation
took some 2 s at the very most with 10,000 questions. Ordinary schemas have a width of 2 to 60."""

COMPILED_PER_STEP = 8
"""Subschemas compiled in the time of a step (4 µs each)."""

DEEPEST = 150
"""Places walked into one inside the other: three Python frames each, where the interpreter allows a thousand."""

TRIAL_STEPS = 300
"""What trying out a branch may cost. Trials try out no branches themselves, so they do not multiply with depth."""


@dataclass(frozen=True, slots=True)
class Spot:
    """A value that does not fit the schema it is held against."""

    place: SchemaPlace
    schema: dict[str, Any]
    """What stands at `place`."""
    value: Any
    at: str
    """JSON Pointer of the value."""


class Explained(NamedTuple):
    """What is wrong with an instance, and what is left of the questions that could be asked."""

    faults: Faults
    left: int


def explained(
    judges: Judges, instance: Any, *, at: str = "", most: int = 20, steps: int = STEPS, width: int = 1
) -> Explained:
    """The faults of *instance*, which is known not to fit: at least one, however small the budget."""
    if judges.root is None:
        return Explained(Faults((Fault(at, "$schema", "a value that fits the schema", found(instance), "#"),)), steps)
    inside = weights(instance, 1 + width // WIDE) if steps else None
    # Of an instance that is too large to be weighed only the whole can be told.
    walk = Walk(judges, most, steps if inside is not None else 0, inside or {})
    walk.into(judges.root, instance, at)
    return Explained(Faults(tuple(walk.listed), walk.more), max(walk.steps, 0))


class Walk:
    """One explanation under way: what was found so far, and what is left of the budget."""

    __slots__ = ("branches", "depth", "judges", "listed", "more", "most", "outline", "steps", "trial", "weights")

    def __init__(
        self, judges: Judges, most: int, steps: int, weights: dict[int, int], *, trial: bool = False, depth: int = 0
    ) -> None:
        assert judges.outline is not None  # noqa: S101 - the caller looked
        self.judges = judges
        self.outline = judges.outline
        self.branches = Branches(judges)
        self.most = max(most, 1)
        self.steps = steps
        self.weights = weights
        self.trial = trial
        self.depth = depth
        self.listed: list[Fault] = []
        self.more = 0

    @property
    def count(self) -> int:
        """How many faults were found so far."""
        return len(self.listed) + self.more

    def fits(self, place: SchemaPlace, value: Any) -> bool:
        """Whether *value* fits *place*; costs a step, and more if a validator has to be made for it."""
        judge, compiled = self.judges.of(place)
        self.steps -= 1 + compiled // COMPILED_PER_STEP
        return judge(value)

    def check(self, place: SchemaPlace | None, value: Any, at: str) -> None:
        """Walks into *place* if *value* does not fit it."""
        if place is not None and self.steps > 0 and not self.fits(place, value):
            self.into(place, value, at)

    def into(self, place: SchemaPlace, value: Any, at: str) -> None:
        """Takes down the faults of *value*, which does not fit *place*: at least one."""
        if len(self.listed) >= self.most:
            self.more += 1
            self.steps -= 1
            return
        place = self.judges.settled(place)
        before = self.count
        self.steps -= 1 + self.weights.get(id(value), 0) // NODES_PER_STEP
        if isinstance(place.schema, bool):
            fault = Fault(at, "false", "nothing here", found(value), as_fragment(place.at))
            self.listed.append(fault)
            return
        spot = Spot(place, place.schema, value, at)
        if self.steps > 0 and self.depth < DEEPEST:
            self.depth += 1
            self._judged(spot, before)
            self.depth -= 1
        if self.count == before:
            self._unexplained(spot)

    def add(self, spot: Spot, keyword: str, wants: str, has: str, *, at: str = "", key: str = "") -> None:
        """
        Takes down that *keyword* refuses *spot*, or counts it if enough are listed.

        *at* says where, if not at the spot itself; *key* is the entry of the keyword that spoke.
        """
        self.steps -= 1
        if len(self.listed) >= self.most:
            self.more += 1
            return
        below = f"{spot.place.at}/{escaped(keyword)}" + (f"/{escaped(key)}" if key else "")
        wrong_type = not at and not self.branches.takes_type(spot.place, keyword, spot.value)
        self.listed.append(Fault(at or spot.at, keyword, wants, has, as_fragment(below), wrong_type))

    def tried(self, branch: SchemaPlace, value: Any) -> int:
        """How many faults *value* has by *branch*, as far as a small part of the budget can tell."""
        budget = max(min(TRIAL_STEPS, self.steps), 0)
        trial = Walk(self.judges, 8, budget, self.weights, trial=True, depth=self.depth)
        trial.into(branch, value, "")
        self.steps -= budget - trial.steps
        return trial.count

    def _judged(self, spot: Spot, before: int) -> None:
        if self.outline.draft.lone_reference and "$ref" in spot.schema:
            REFERRING(self, spot)
            return
        if any(self._refused(spot, keyword) for keyword in DECISIVE):
            return
        for keyword in SIMPLE:
            self._refused(spot, keyword)
        for keywords, check in APPLYING:
            if self.steps > 0 and any(keyword in spot.schema for keyword in keywords):
                check(self, spot)
        # Asked only when nothing else is wrong here: then it is this that refused.
        if self.count == before:
            check_unevaluated(self, spot)

    def _refused(self, spot: Spot, keyword: str) -> bool:
        """Whether *keyword*, which holds no subschema, refuses *spot*; if so, takes it down."""
        asked = spot.schema.get(keyword)
        if keyword not in spot.schema or (isinstance(asked, bool) and keyword.startswith("exclusive")):
            return False
        self.steps -= 1
        if self.judges.keyword(spot.place, keyword)(spot.value):
            return False
        self.add(spot, keyword, expected(keyword, spot.schema), found_for(keyword, spot.value))
        return True

    def _unexplained(self, spot: Spot) -> None:
        """The honest word where we cannot, or may not any more, say which part of a schema refused."""
        keyword = next((one for one in SAID if one in spot.schema), "$schema")
        self.add(spot, keyword, self.branches.described(spot.place), found(spot.value))

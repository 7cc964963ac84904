"""
Explains why an instance is invalid, within a budget.

The engine's own explanations (`validate`, `iter_errors`, `evaluate`) build the errors of every branch: a wrong leaf 8
levels down a recursive filter took 4.2 s and 649 MB. Here the engine is only asked whether a value is valid by a
subschema, and the walk goes only into values that are not.
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
"""Questions to the engine for one explanation. The most expensive one measured took 0.3 s for 10,000, so this is about
0.1 s."""

NODES_PER_STEP = 2_048
"""Values inside a value that one question may visit before it counts as another: the engine visits about 80 in a µs
under a small schema."""

WIDE = 8
"""The width from which on the values inside a value count more than once: with this an explanation of 10,000 questions
took at most 2 s. Ordinary schemas have a width of 2 to 60."""

COMPILED_PER_STEP = 8
"""Subschemas that are compiled in the time of one question (4 µs each)."""

DEEPEST = 150
"""Places that the walk enters one inside the other: three Python frames each, of a thousand that are allowed."""

TRIAL_STEPS = 300
"""Questions to try out one branch. A trial tries out no branches itself, so trials do not multiply with depth."""


@dataclass(frozen=True, slots=True)
class Spot:
    """A value that is invalid by the schema at its place."""

    place: SchemaPlace
    schema: dict[str, Any]
    """The schema at `place`."""
    value: Any
    at: str
    """JSON Pointer of the value."""


class Explained(NamedTuple):
    """The faults of an instance, and how many questions are left."""

    faults: Faults
    left: int


def explained(
    judges: Judges, instance: Any, *, at: str = "", most: int = 20, steps: int = STEPS, width: int = 1
) -> Explained:
    """Return the faults of *instance*, which is known to be invalid: at least one, however small the budget."""
    if judges.root is None:
        return Explained(Faults((Fault(at, "$schema", "a value that fits the schema", found(instance), "#"),)), steps)
    inside = weights(instance, 1 + width // WIDE) if steps else None
    # An instance that is too large to be weighed gets one fault for the whole.
    walk = Walk(judges, most, steps if inside is not None else 0, inside or {})
    walk.into(judges.root, instance, at)
    return Explained(Faults(tuple(walk.listed), walk.more), max(walk.steps, 0))


class Walk:
    """One explanation in progress: the faults so far, and the questions that are left."""

    __slots__ = ("branches", "depth", "judges", "listed", "more", "most", "outline", "steps", "trial", "weights")

    def __init__(
        self, judges: Judges, most: int, steps: int, weights: dict[int, int], *, trial: bool = False, depth: int = 0
    ) -> None:
        assert judges.outline is not None  # noqa: S101 - the caller has checked it
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
        """The number of faults so far."""
        return len(self.listed) + self.more

    def fits(self, place: SchemaPlace, value: Any) -> bool:
        """Whether *value* is valid by *place*; costs one question, and more if a validator has to be compiled."""
        judge, compiled = self.judges.of(place)
        self.steps -= 1 + compiled // COMPILED_PER_STEP
        return judge(value)

    def check(self, place: SchemaPlace | None, value: Any, at: str) -> None:
        """Explain *value* by *place* if it is invalid."""
        if place is not None and self.steps > 0 and not self.fits(place, value):
            self.into(place, value, at)

    def into(self, place: SchemaPlace, value: Any, at: str) -> None:
        """Record the faults of *value*, which is invalid by *place*: at least one."""
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
        Record that *keyword* refuses *spot*, or only count it if enough faults are listed.

        *at* is the place of the fault, if not the spot itself; *key* is the entry of the keyword that refused it.
        """
        self.steps -= 1
        if len(self.listed) >= self.most:
            self.more += 1
            return
        below = f"{spot.place.at}/{escaped(keyword)}" + (f"/{escaped(key)}" if key else "")
        wrong_type = not at and not self.branches.takes_type(spot.place, keyword, spot.value)
        self.listed.append(Fault(at or spot.at, keyword, wants, has, as_fragment(below), wrong_type))

    def tried(self, branch: SchemaPlace, value: Any) -> int:
        """Return how many faults *value* has by *branch*, counted with a small part of the budget."""
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
        # Only if nothing else is wrong here can this be the reason.
        if self.count == before:
            check_unevaluated(self, spot)

    def _refused(self, spot: Spot, keyword: str) -> bool:
        """Whether *keyword*, which holds no subschema, refuses *spot*; if so, record the fault."""
        asked = spot.schema.get(keyword)
        if keyword not in spot.schema or (isinstance(asked, bool) and keyword.startswith("exclusive")):
            return False
        self.steps -= 1
        if self.judges.keyword(spot.place, keyword)(spot.value):
            return False
        self.add(spot, keyword, expected(keyword, spot.schema), found_for(keyword, spot.value))
        return True

    def _unexplained(self, spot: Spot) -> None:
        """Record one fault for the whole spot, if the part of the schema that refused it was not found."""
        keyword = next((one for one in SAID if one in spot.schema), "$schema")
        self.add(spot, keyword, self.branches.described(spot.place), found(spot.value))

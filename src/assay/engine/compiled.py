"""Schemas made ready to judge by: one call into the engine to judge, our own bounded explainer to say why not."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jsonschema_rs

from assay.engine.budget import Budget, affordable, is_narrow
from assay.engine.dialects import DRAFT_2020_12, Draft, Schema, draft_of
from assay.engine.fault import Fault, Faults
from assay.engine.formats import FORMATS
from assay.engine.outline import UNNAMED, joined
from assay.engine.pointers import from_fragment

if TYPE_CHECKING:
    from assay.engine.judges import Judges

PATTERN_SIZE = 1 << 20
"""Bytes one compiled regular expression may take: ``^.{0,1000}$`` needs just that."""

BACKTRACKS = 1_000
"""Steps back the other engine may take, for operators who allow it. The limit holds for each place a match may start
at, not for the whole: ``(?=a)a*a*a*a*b`` on 100 kB takes 0.2 s with this one, 2 s with ten times as many."""

Options = dict[str, Any]
"""What every validator of one schema is made with."""


class Compiled:
    """
    A schema to judge by.

    `is_valid` is the engine's own method, so judging costs one call. `faults` agrees with it: it lists something
    exactly when `is_valid` says no.
    """

    __slots__ = ("_judges", "_options", "always_affordable", "at", "dialect", "effort", "is_valid", "schema", "width")

    is_valid: Callable[[Any], bool]
    schema: Schema
    """The whole document."""
    at: str
    """What in the document is judged by, as a URI fragment: ``#`` for all of it."""
    dialect: str
    """The URI of the draft it is judged by."""
    width: int
    """The most steps of the engine that any one value of an instance can take; 1 for schemas we trust."""
    always_affordable: bool
    """Whether no message that is not large can cost too much: then `Budget.affords` need not be asked."""
    effort: int
    """What admission took, in entries looked at (about 0.2 µs each): for whoever has to account for it."""

    def __init__(
        self, schema: Schema, at: str, draft: Draft, options: Options, *, width: int = 1, effort: int = 0
    ) -> None:
        """Raises what the engine raises; schemas from outside go through `admission.compile_untrusted`."""
        self.schema = schema
        self.at = at
        self.dialect = draft.uri
        self._options = options
        self._judges: Judges | None = None
        self.width = width
        self.always_affordable = is_narrow(width)
        self.effort = effort
        self.is_valid = _validator(schema, at, draft, options).is_valid

    def faults(self, instance: Any, *, at: str = "", most: int = 20) -> Faults:
        """
        Where and how *instance* differs from the schema, in at most *most* places.

        *at* is put in front of every pointer. Time and memory are bounded whatever the schema and the instance.
        """
        if not affordable(self, instance):
            return self.too_dear(at)
        if self.is_valid(instance):
            return Faults(())
        return self.explained(instance, Budget(b"", most), at=at)

    def too_dear(self, at: str) -> Faults:
        """The fault of an instance that would take too long to judge, and was not looked at."""
        wanted = "a value that can be judged in bounded time"
        return Faults((Fault(at, "cost", wanted, "one that is too large for its schema", self.at or "#"),))

    def explained(self, instance: Any, budget: Budget, *, at: str = "") -> Faults:
        """The faults of *instance*, which is known not to fit: at least one, as good as what is left can tell."""
        # Most schemas are never broken: what explaining needs is made when it is first needed, and kept.
        from assay.engine.explain import STEPS, explained  # noqa: PLC0415 - only what is broken needs it
        from assay.engine.judges import Judges  # noqa: PLC0415 - as above

        if self._judges is None:
            self._judges = Judges(self.schema, from_fragment(self.at[1:]) or "", self._options)
        steps = budget.questions(STEPS)
        faults, left = explained(self._judges, instance, at=at, most=budget.violations, steps=steps, width=self.width)
        budget.asked(steps - left)
        return faults


def compile_schema(schema: Schema, *, at: str = "#", formats: bool = False, backtracking: bool = False) -> Compiled:
    """
    *schema* made ready, or the part of it *at* points to, with the whole document to resolve references in.

    For schemas we trust: there is no limit on their cost, and a broken one raises `ValueError`.
    """
    draft = draft_of(schema)
    if draft is None:
        raise ValueError("the schema names a dialect we do not know")
    return Compiled(schema, at, draft, options(formats=formats, backtracking=backtracking))


def options(*, formats: bool, backtracking: bool, pattern_size: int = PATTERN_SIZE) -> Options:
    """How validators are made: never fetching, `format` asserted or not whatever the draft, patterns bounded."""
    patterns: jsonschema_rs.RegexOptions | jsonschema_rs.FancyRegexOptions
    if backtracking:
        patterns = jsonschema_rs.FancyRegexOptions(
            backtrack_limit=BACKTRACKS, size_limit=pattern_size, dfa_size_limit=pattern_size
        )
    else:
        patterns = jsonschema_rs.RegexOptions(size_limit=pattern_size, dfa_size_limit=pattern_size)
    known = {"formats": dict(FORMATS)} if formats else {}
    return {"offline": True, "validate_formats": formats, "pattern_options": patterns, **known}


def registered(schema: Schema) -> tuple[str, jsonschema_rs.Registry]:
    """A registry with *schema* in it, and the URI it is found by there."""
    draft = draft_of(schema) or DRAFT_2020_12
    name = schema.get(draft.identifier) if isinstance(schema, dict) else None
    uri = (joined(UNNAMED, name) if isinstance(name, str) else None) or UNNAMED
    return uri, jsonschema_rs.Registry([(uri, schema)])


def _validator(schema: Schema, at: str, draft: Draft, options: Options) -> jsonschema_rs.Validator:
    if at in ("", "#"):
        return jsonschema_rs.validator_for(schema, registry=jsonschema_rs.Registry([]), **options)
    uri, registry = registered(schema)
    return jsonschema_rs.validator_for({"$schema": draft.uri, "$ref": uri + at}, registry=registry, **options)

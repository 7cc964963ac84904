"""Compiled schemas: one call into the engine judges an instance, and our own bounded walk explains a refusal."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import jsonschema_rs

from assay.engine.backtracking import Backtracking, stepping_back, undecided
from assay.engine.budget import Budget, affordable, is_narrow
from assay.engine.drafts import DRAFT_7, DRAFT_2020_12, FORMATS, Draft, Schema, draft_of
from assay.engine.fault import Fault, Faults, SchemaRefusal
from assay.engine.patterns import STEPPING_BACK
from assay.engine.pointers import from_fragment
from assay.engine.schema_index import UNNAMED, joined
from assay.engine.wording import shown

if TYPE_CHECKING:
    from assay.engine.explain import Subschemas

PATTERN_SIZE = 1 << 20
"""Bytes that one compiled regular expression may take: ``^.{0,1000}$`` needs exactly that."""

Options = dict[str, Any]
"""The options of every validator of one schema."""


class Compiled:
    """
    A compiled schema.

    `is_valid` is the engine's own method, so judging costs one call. `faults` agrees with it: it lists a fault exactly
    if `is_valid` returns False.
    """

    __slots__ = (
        "_doubts", "_options", "_subschemas", "always_affordable", "at", "dialect", "effort", "fits", "is_valid",
        "left_out", "schema", "width",
    )  # fmt: skip

    is_valid: Callable[[Any], bool]
    fits: Callable[[Any], bool]
    """The engine's own method, whatever patterns there are. `judging` decides whether its result can be used."""
    schema: Schema
    """The whole document."""
    at: str
    """The part of the document that judges, as a URI fragment: ``#`` for the whole."""
    dialect: str
    """The URI of its draft."""
    width: int
    """The most steps of the engine that any one value of an instance can take; 1 for trusted schemas."""
    always_affordable: bool
    """Whether no small message can cost too much; then `Budget.affords` need not be called."""
    left_out: "tuple[SchemaRefusal, ...]"
    """The parts of the schema that are not used, because no engine supports them."""
    effort: int
    """The cost of admission, in table entries (about 0.2 µs each)."""

    def __init__(
        self,
        schema: Schema,
        at: str,
        draft: Draft,
        options: Options,
        *,
        width: int = 1,
        effort: int = 0,
        valid: Callable[[Any], bool] | None = None,
    ) -> None:
        """
        Raises what the engine raises; untrusted schemas go through `admission.compile_untrusted`.

        *valid* judges a value in place of a validator made with *options*, if it is faster.
        """
        self.schema = schema
        self.at = at
        self.dialect = draft.uri
        self._options = options
        self._subschemas: Subschemas | None = None
        self.width = width
        self.always_affordable = is_narrow(width)
        self.effort = effort
        self.is_valid = self.fits = valid or _validator(schema, at, draft, options).is_valid
        self.left_out = ()
        self._doubts: _Doubts | None = None

    def steps_back(self, patterns: "Sequence[Backtracking]", less: "Callable[[], Compiled | SchemaRefusal]") -> None:
        """Set the patterns that may step back, and the function that compiles the same schema without them."""
        self._doubts = _Doubts(self.fits, patterns, max(1, self.width // STEPPING_BACK), less)
        self.is_valid = self._doubts.is_valid

    @property
    def is_sure(self) -> bool:
        """Whether every instance can be judged by the whole schema."""
        return self._doubts is None

    def surely_fits(self, instance: Any) -> bool:
        """Whether *instance* can be judged by the whole schema, and is valid."""
        return self.judging(instance, Budget(b"", 1))[0] is self and self.fits(instance)

    def judging(self, instance: Any, budget: Budget) -> "tuple[Compiled | None, str | None]":
        """
        Return the schema that can judge *instance* within *budget*, and the pattern for which it is not this one.

        It is this schema, unless a text cannot be matched in bounded time with a backtracking pattern. None if no
        schema can be compiled without that pattern.
        """
        if self._doubts is None:
            return self, None
        pattern = self._doubts.undecided(instance, budget)
        return (self, None) if pattern is None else (self._doubts.milder(), pattern)

    def faults(self, instance: Any, *, at: str = "", most: int = 20) -> Faults:
        """
        Return where and how *instance* differs from the schema, in at most *most* places.

        *at* is put in front of every pointer. Time and memory are bounded for every schema and instance.
        """
        if not affordable(self, instance):
            return self.too_dear(at)
        budget = Budget(b"", most)
        by, _ = self.judging(instance, budget)
        if by is None or by.fits(instance):
            return Faults(())
        return by.explained(instance, budget, at=at)

    def too_dear(self, at: str) -> Faults:
        """Return the fault of an instance that would take too long to judge, and was not judged."""
        wanted = "a value that can be judged in bounded time"
        return Faults((Fault(at, "cost", wanted, "one that is too large for its schema", self.at or "#"),))

    def undecided(self, pattern: str, at: str) -> Fault:
        """Return the fault of an instance that was judged without *pattern*."""
        wanted = f"texts that can be matched in bounded time with {shown(pattern)}"
        return Fault(at, "cost", wanted, "one that takes too long", self.at or "#")

    def explained(self, instance: Any, budget: Budget, *, at: str = "") -> Faults:
        """Return the faults of *instance*, which is known to be invalid: at least one, as exact as *budget* allows."""
        # Most schemas never refuse anything: what an explanation needs is made on first use, and kept.
        from assay.engine.explain import STEPS, Subschemas, explained  # noqa: PLC0415 - only invalid instances need it

        if self._subschemas is None:
            self._subschemas = Subschemas(self.schema, from_fragment(self.at[1:]) or "", self._options)
        steps = budget.questions(STEPS, self.width)
        faults, left = explained(
            self._subschemas, instance, at=at, most=budget.violations, steps=steps, width=self.width
        )
        budget.asked(steps - left, self.width)
        return faults


class _Doubts:
    """The backtracking patterns of a schema, which cannot decide every text. A class of its own avoids a cycle."""

    __slots__ = ("_fits", "_less", "_milder", "_patterns", "_times")

    def __init__(
        self,
        fits: Callable[[Any], bool],
        patterns: "Sequence[Backtracking]",
        times: int,
        less: "Callable[[], Compiled | SchemaRefusal]",
    ) -> None:
        self._fits = fits
        self._patterns = patterns
        self._times = times
        self._less: Callable[[], Compiled | SchemaRefusal] | None = less
        self._milder: Compiled | None = None

    def undecided(self, instance: Any, budget: Budget) -> str | None:
        """Return the pattern that does not decide a text of *instance* within *budget*, and draw the cost."""
        pattern, budget.steps = undecided(self._patterns, instance, self._times, budget.steps)
        return None if pattern is None else pattern.pattern

    def milder(self) -> Compiled | None:
        """Return the schema without these patterns, compiled once; None if it cannot be compiled."""
        if self._less is not None:
            less, self._less = self._less(), None
            self._milder = less if isinstance(less, Compiled) else None
        return self._milder

    def is_valid(self, instance: Any) -> bool:
        """Whether *instance* is valid, as far as bounded time allows to decide."""
        if self.undecided(instance, Budget(b"", 1)) is None:
            return self._fits(instance)
        milder = self.milder()
        return milder is None or milder.is_valid(instance)


def compile_schema(schema: Schema, *, at: str = "#", formats: bool = False) -> Compiled:
    """
    Return *schema* compiled, or the part of it at *at*, with the whole document to resolve references in.

    For trusted schemas: their cost is not limited, and an invalid one raises `ValueError`.
    """
    draft = draft_of(schema)
    if draft is None:
        raise ValueError("the schema names a dialect we do not know")
    valid = _asserting(schema, at).is_valid if formats else None
    return Compiled(schema, at, draft, options(formats=formats), valid=valid)


def _asserting(schema: Schema, at: str) -> jsonschema_rs.Validator:
    """
    Return a validator that asserts every format of *schema*, and never calls back into Python.

    A validator with a format in Python takes a third longer, also for values without one. Draft 7 has all keywords of
    our schemas, and there the engine knows Base64 as an encoding.
    """
    known = options(formats=True) | {"formats": {}}
    return _validator(_with_encodings(schema) | {"$schema": DRAFT_7.uri}, at, DRAFT_7, known)


def _with_encodings(node: Any) -> Any:
    """Return *node* with Base64 as an encoding in place of a format."""
    if isinstance(node, list):
        return [_with_encodings(each) for each in node]
    if not isinstance(node, dict):
        return node
    if node.get("format") == "byte":
        node = {**node, "contentEncoding": "base64"}
        del node["format"]
    return {name: _with_encodings(each) for name, each in node.items()}


def options(
    *, formats: bool, backtracking: bool = False, pattern_size: int = PATTERN_SIZE, automaton_size: int | None = None
) -> Options:
    """
    Return the options of validators: no fetching, `format` asserted or not in every draft, bounded patterns.

    *automaton_size* limits the automaton that is built during a match, if it differs from *pattern_size*.
    """
    patterns: jsonschema_rs.RegexOptions | jsonschema_rs.FancyRegexOptions
    sizes = (pattern_size, automaton_size or pattern_size)
    if backtracking:
        patterns = stepping_back(*sizes)
    else:
        patterns = jsonschema_rs.RegexOptions(size_limit=sizes[0], dfa_size_limit=sizes[1])
    known = {"formats": dict(FORMATS)} if formats else {}
    return {"offline": True, "validate_formats": formats, "pattern_options": patterns, **known}


def registered(schema: Schema) -> tuple[str, jsonschema_rs.Registry]:
    """Return the URI of *schema* in a registry, and the registry."""
    draft = draft_of(schema) or DRAFT_2020_12
    name = schema.get(draft.identifier) if isinstance(schema, dict) else None
    uri = (joined(UNNAMED, name) if isinstance(name, str) else None) or UNNAMED
    return uri, jsonschema_rs.Registry([(uri, schema)])


def _validator(schema: Schema, at: str, draft: Draft, options: Options) -> jsonschema_rs.Validator:
    if at in ("", "#"):
        return jsonschema_rs.validator_for(schema, registry=jsonschema_rs.Registry([]), **options)
    uri, registry = registered(schema)
    return jsonschema_rs.validator_for({"$schema": draft.uri, "$ref": uri + at}, registry=registry, **options)

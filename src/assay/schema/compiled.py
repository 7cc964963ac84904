"""Compiled schemas: one call into the engine judges an instance, and our own bounded walk explains a refusal."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import jsonschema_rs

from assay.schema.budget import STEPS, Budget, affordable, is_narrow
from assay.schema.drafts import DRAFT_7, DRAFT_2020_12, FORMATS, Draft, Schema, draft_of
from assay.schema.fault import Fault, Faults, SchemaRefusal
from assay.schema.patterns import Backtracking, stepping_back, undecided
from assay.schema.pointers import from_fragment
from assay.schema.schema_index import UNNAMED, joined
from assay.schema.wording import shown

if TYPE_CHECKING:
    from assay.schema.explain import Subschemas

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
        "_backtracking", "_options", "_subschemas", "_without", "always_affordable", "at", "dialect", "fits",
        "is_valid", "left_out", "schema", "width",
    )  # fmt: skip

    is_valid: Callable[[Any], bool]
    """The engine's own method; with backtracking patterns, judged without them where bounded time does not suffice."""
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
    left_out: tuple[SchemaRefusal, ...]
    """The parts of the schema that are not used, because no engine supports them."""

    def __init__(
        self,
        schema: Schema,
        at: str,
        draft: Draft,
        options: Options,
        *,
        width: int = 1,
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
        self.is_valid = self.fits = valid or _validator(schema, at, draft, options).is_valid
        self.left_out = ()
        self._backtracking: Sequence[Backtracking] = ()
        self._without: Callable[[], Compiled | SchemaRefusal] | None = None

    def steps_back(self, patterns: Sequence[Backtracking], without: "Callable[[], Compiled | SchemaRefusal]") -> None:
        """Set the patterns that may step back, and the function that returns the same schema *without* them."""
        self._backtracking = patterns
        self._without = without
        self.is_valid = _bounded(self.fits, patterns, without, self.width)

    @property
    def is_sure(self) -> bool:
        """Whether every instance can be judged by the whole schema."""
        return not self._backtracking

    def surely_fits(self, instance: Any) -> bool:
        """Whether *instance* can be judged by the whole schema, and is valid."""
        return self.judging(instance, Budget(b"", 1))[0] is self and self.fits(instance)

    def judging(self, instance: Any, budget: Budget) -> "tuple[Compiled | None, str | None]":
        """
        Return the schema that can judge *instance* within *budget*, and the pattern for which it is not this one.

        It is this schema, unless a text cannot be matched in bounded time with a backtracking pattern; then it is the
        schema without such patterns, None if there is none.
        """
        if not self._backtracking:
            return self, None
        pattern, budget.steps = undecided(self._backtracking, instance, self.width, budget.steps)
        if pattern is None or self._without is None:
            return self, None
        without = self._without()
        return without if isinstance(without, Compiled) else None, pattern.pattern

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
        from assay.schema.explain import STEPS, Subschemas, explained  # noqa: PLC0415 - only invalid instances need it

        if self._subschemas is None:
            self._subschemas = Subschemas(self.schema, from_fragment(self.at[1:]) or "", self._options)
        steps = budget.questions(STEPS, self.width)
        faults, left = explained(
            self._subschemas, instance, at=at, most=budget.violations, steps=steps, width=self.width
        )
        budget.asked(steps - left, self.width)
        return faults


def _bounded(
    fits: Callable[[Any], bool],
    patterns: Sequence[Backtracking],
    without: Callable[[], Compiled | SchemaRefusal],
    width: int,
) -> Callable[[Any], bool]:
    """Return a function that judges as far as bounded time allows. To hold its own schema would be a cycle."""

    def is_valid(instance: Any) -> bool:
        if undecided(patterns, instance, width, STEPS)[0] is None:
            return fits(instance)
        less = without()
        return not isinstance(less, Compiled) or less.fits(instance)

    return is_valid


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

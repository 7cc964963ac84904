"""Patterns with look-around and back-references: judged, but never for long, and never wrongly for want of time."""

from typing import Any

import pytest

from assay.schema.admission import compile_untrusted
from assay.schema.budget import STEPS, Budget
from assay.schema.compiled import Compiled
from assay.schema.patterns import Backtracking
from kit.rows import rows

DECIMAL = r"^(?!^[-+.]*$)[+-]?0*\d*\.?\d*$"
EMAIL = r"^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$"
DURATION = r"^P(?:(\d+W)|(?!.*W)(?=\d|T\d)(\d+Y)?(\d+M)?(\d+D)?(T(?=\d)(\d+H)?(\d+M)?(\d+([.,]\d+)?S)?)?)$"
CATASTROPHES = [
    pytest.param(r"^(?=a)(a+)+$", "a" * 40 + "!", id="nested-repeats"),
    pytest.param(r"(?=a)a*a*a*a*b", "a" * 1_000, id="many-repeats"),
    pytest.param(r"^(a+)\1$", "a" * 1_001, id="back-reference"),
    pytest.param(r"^(?:(?=(a+))a)+b", "a" * 1_000, id="look-ahead-in-a-loop"),
    pytest.param(r"^(?=(?:(?=(?:(?=a+)a)+)a)+)b", "a" * 500, id="loops-in-loops"),
    pytest.param(r"^(?:(?:a|aa)(?=a|b))+c", "a" * 60, id="alternatives"),
    pytest.param(r"^((?!foo).)*$", "b" * 1_000, id="a-look-ahead-for-each-character"),
]


def compiled(schema: dict[str, Any]) -> Compiled:
    made = compile_untrusted(schema)
    assert isinstance(made, Compiled)
    return made


@rows(
    ("pattern", "matching", "other"),
    [
        (DECIMAL, ["1", "-0.5", "+12.", ".5", "1" * 40], ["", "-", "1e5", "one", "1.2.3"]),
        (EMAIL, ["a@b.co", "john.doe@sub.example.com", "x" * 200 + "@example.com"], [".a@b.co", "a..b@c.de", "a@b"]),
        (DURATION, ["P3W", "PT5M", "P1Y2M3DT4H5M6S"], ["P", "PT", "P1YT", "P1W2D", "hello"]),
        (r"^(.)(.)\2\1$", ["abba"], ["abab"]),
        (r"(?<=\$)\d+(?!\d*%)", ["$5"], ["5", "$5%"]),
    ],
)
def test_a_pattern_that_looks_around_is_judged_by(pattern: str, matching: list[str], other: list[str]) -> None:
    text, keys = compiled({"pattern": pattern}), compiled({"patternProperties": {pattern: {"type": "null"}}})
    names = compiled({"propertyNames": {"pattern": pattern}})
    for value in matching:
        assert text.is_valid(value)
        assert not keys.is_valid({value: 1})
        assert names.is_valid({value: 1})
    for value in other:
        assert [(each.keyword, each.schema_at) for each in text.faults(value).listed] == [("pattern", "#/pattern")]
        assert keys.is_valid({value: 1})
        assert not names.is_valid({value: 1})


@rows(("pattern", "text"), CATASTROPHES)
@rows(
    "shape",
    [
        lambda pattern: {"pattern": pattern},
        lambda pattern: {"not": {"pattern": pattern}},
        lambda pattern: {"if": {"pattern": pattern}, "then": False, "else": False},
        lambda pattern: {"oneOf": [{"pattern": pattern}, {"type": "string"}, {"type": "string"}]},
    ],
    ids=["pattern", "not", "if", "oneOf"],
)
def test_a_text_that_takes_too_long_is_judged_without_the_pattern(shape: Any, pattern: str, text: str) -> None:
    """No one can say whether it matches, so that it counts for nothing, whichever way it would count."""
    schema = compiled({"properties": {"a": shape(pattern), "b": {"type": "integer"}}})
    value = {"a": text, "b": 5}
    judging, undecided = schema.judging(value, Budget(b"", 1))
    if undecided is None:
        # Decided after all, within the steps there are.
        assert judging is schema
        return
    assert undecided == pattern
    assert schema.is_valid(value)
    assert not schema.surely_fits(value)
    assert [each.at for each in schema.faults({**value, "b": "x"}).listed] == ["/b"]


@rows(("pattern", "text"), CATASTROPHES)
def test_most_of_these_texts_cannot_be_decided(pattern: str, text: str) -> None:
    """So that the test above is about something; the first one the engine decides in a moment."""
    left = Backtracking(pattern, 1 << 20).drawn(text, 1, STEPS)
    assert (left is None) is (not pattern.startswith("^(?=a)"))


def test_a_name_that_takes_too_long_is_not_refused_for_want_of_a_pattern() -> None:
    schema = compiled({"patternProperties": {"(?=a)a*a*a*a*b": {"type": "null"}}, "additionalProperties": False})
    assert schema.is_valid({"aab": None})
    assert not schema.is_valid({"aab": 1})
    assert not schema.is_valid({"c": 1})
    assert schema.is_valid({"a" * 1_000: 1})


def test_what_matching_may_cost_is_drawn_from_the_message() -> None:
    """Each of these texts is quick to decide; so many of them are not."""
    schema = compiled({"items": {"pattern": "^(?:(?=(a+))a)+b"}})
    few, many = Budget(b"", 1), Budget(b"", 1)
    assert schema.judging(["a" * 20], few)[1] is None
    assert few.steps < STEPS
    assert schema.judging(["a" * 20 + str(number) for number in range(500)], many)[1] is not None
    assert 0 <= many.steps < few.steps


def test_a_long_text_is_judged_without_the_pattern() -> None:
    """The engine decides it in no time; but a bound that holds for every pattern has to be short."""
    schema = compiled({"pattern": DECIMAL})
    assert schema.judging("1" * 1_024, Budget(b"", 1)) == (schema, None)
    assert schema.judging("1" * 1_025, Budget(b"", 1))[1] == DECIMAL
    assert schema.is_valid("x" * 1_025)


@rows(
    ("pattern", "grows"),
    [
        (DECIMAL, 2),
        (EMAIL, 2),
        (DURATION, 2),
        (r"^(?=.{1,254}$)[a-z.]+@[a-z.]+$", 2),
        (r"^(?:(?=a+)a)+b", 4),
        (r"^(?=(?:(?=(?:(?=a+)a)+)a)+)b", 8),
    ],
)
def test_loops_around_what_looks_around_multiply_and_others_do_not(pattern: str, grows: int) -> None:
    """Of a text of twice the length."""
    each = Backtracking(pattern, 1 << 20)
    assert each.cost(199_999, 8) / each.cost(99_999, 8) == pytest.approx(grows, rel=0.01)


def test_each_copy_of_a_dear_text_counts() -> None:
    """100,000 copies of one that takes 60 µs took 6 s, since it was decided once."""
    costly = "^" + "(?=.*b)" * 10 + "a*b$"
    text, schema = "a" * 62 + "b", compiled({"items": {"pattern": costly}})
    assert schema.judging([text], Budget(b"", 1))[0] is schema
    judging, pattern = schema.judging([text] * 1_000, Budget(b"", 1))
    assert (judging is schema, pattern) == (False, costly)


def test_many_copies_of_a_short_text_are_judged() -> None:
    """A table has the same names in each row."""
    schema = compiled({"items": {"properties": {"price": {"pattern": DECIMAL}}}})
    rows = [{"price": "12.50", "name": "Moby", "in stock": "yes"}] * 10_000
    assert schema.judging(rows, Budget(b"", 1))[0] is schema
    assert schema.is_valid(rows)
    assert not schema.is_valid([*rows, {"price": "x"}])

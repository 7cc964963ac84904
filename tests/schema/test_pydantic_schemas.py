"""Schemas as Pydantic writes them, for every type of field that it has: all of them can be judged by."""

import dataclasses
import datetime as dt
import decimal
import enum
import fractions
import ipaddress
import pathlib
import re
import uuid
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, Optional, TypeVar, Union

import annotated_types
import pydantic
from pydantic import BaseModel, ConfigDict, Discriminator, Field, RootModel, Tag, TypeAdapter, networks, types
from typing_extensions import TypedDict

from assay.rules.policy import Policy
from kit.rows import rows
from kit.toolbox import Mode, Sample, found_in

DECIMALS = ["0", "1.5", "-12", "+0.25", "19.90", ".5", "123456789012345678901234567890.5"]


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Size(enum.IntEnum):
    SMALL = 1
    LARGE = 2


class Point(NamedTuple):
    x: int
    y: int


class Movie(TypedDict, total=False):
    title: str
    year: int


@dataclasses.dataclass
class Book:
    title: str
    pages: int = 0


@pydantic.dataclasses.dataclass
class Shelf:
    books: list[Book]


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = 9


class Dog(BaseModel):
    model_config = ConfigDict(extra="forbid")
    kind: Literal["dog"]
    weight: decimal.Decimal


class Tree(BaseModel):
    name: str
    price: decimal.Decimal | None = None
    children: list["Tree"] = []


class Order(BaseModel):
    model_config = ConfigDict(extra="forbid", title="An order", json_schema_extra={"examples": [{}]})
    id: uuid.UUID
    total: Annotated[decimal.Decimal, Field(max_digits=8, decimal_places=2)]
    mail: Annotated[str, Field(pattern=r"^[\w.]+@[\w.]+$")] = "a@b.c"
    lines: dict[str, decimal.Decimal] = {}

    @pydantic.computed_field
    def doubled(self) -> decimal.Decimal:
        """Only a serialised order has it."""
        return self.total * 2


class Aliased(BaseModel):
    model_config = ConfigDict(populate_by_name=True)
    inner: Annotated[int, Field(alias="Inner", ge=1, lt=10, multiple_of=3)]
    when: Annotated[dt.datetime, Field(deprecated=True, description="when")]


class Patterned(BaseModel):
    """Patterns of Python's own engine, which may look around."""

    model_config = ConfigDict(regex_engine="python-re")
    code: Annotated[str, Field(pattern=r"^(?=.*\d)(?=.*[a-z]).{4,}$")] = "abc1"
    twice: Annotated[str, Field(pattern=r"^(.)\1$")] = "aa"
    names: dict[Annotated[str, Field(pattern=r"^(?!x)[a-z]+$")], int] = {}


Kind = TypeVar("Kind")


class Page(BaseModel, Generic[Kind]):
    items: list[Kind]
    more: bool = False


class Numbers(RootModel[list[int]]):
    pass


def kind_of(value: Any) -> str:
    return "cat" if isinstance(value, dict) and "lives" in value else "dog"


User = NewType("User", int)
TOMORROW = "2999-01-01T00:00:00Z"
UUID = "f47ac10b-58cc-4372-a567-0e02b2c3d479"

# Type, values that fit it as JSON, values that do not. Formats are not asserted, so that not all that is wrong shows.
STANDARD: dict[str, tuple[Any, list[Any], list[Any]]] = {
    "any": (Any, [1, "a", None, [], {}], []),
    "object": (object, [1, "a"], []),
    "none": (None, [None], [1]),
    "bool": (bool, [True], [1, "yes"]),
    "int": (int, [1, -5], ["5", 1.5]),
    "float": (float, [1, 1.5], ["x"]),
    "str": (str, ["a"], [1]),
    "bytes": (bytes, ["a"], [1]),
    # What texts it takes only some versions say: `EARLIER` has those.
    "decimal": (decimal.Decimal, [1.5, *DECIMALS], [None, {}]),
    "decimal-digits": (Annotated[decimal.Decimal, Field(max_digits=5, decimal_places=2)], ["1", "123.45"], [None]),
    "decimal-places": (Annotated[decimal.Decimal, Field(decimal_places=3)], ["1.234", "7"], [None]),
    "decimal-most": (Annotated[decimal.Decimal, Field(max_digits=3)], ["1.23", "12.3", "999"], [None]),
    "decimal-above": (Annotated[decimal.Decimal, Field(gt=0, le=100)], [5, "5"], [0, 101, None]),
    "fraction": (fractions.Fraction, ["1/3"], [None]),
    "complex": (complex, ["1+2j"], []),
    "datetime": (dt.datetime, [TOMORROW], [True]),
    "date": (dt.date, ["2020-01-01"], [True]),
    "time": (dt.time, ["12:00:00"], [5]),
    "timedelta": (dt.timedelta, ["P1D", "PT5M"], [True]),
    "uuid": (uuid.UUID, [UUID], [5]),
    "path": (pathlib.Path, ["/a"], [5]),
    "pattern": (re.Pattern, ["^a$"], [5]),
    "ipv4-address": (ipaddress.IPv4Address, ["127.0.0.1"], [5]),
    "ipv4-network": (ipaddress.IPv4Network, ["10.0.0.0/8"], [5]),
    "enum": (Colour, ["red"], ["green", 1]),
    "int-enum": (Size, [1], [3, "1"]),
    "literal": (Literal["a", 1, None], ["a", 1, None], ["b"]),
    "optional": (Optional[int], [1, None], ["x"]),  # noqa: UP045 - the old spelling, too
    "union": (Union[int, str], [1, "a"], [None]),  # noqa: UP007 - as above
    "new-type": (User, [1], ["x"]),
    "list": (list, [[1, "a"]], [{}]),
    "list-of": (list[decimal.Decimal], [["1.5"]], [[None]]),
    "set-of": (set[int], [[1, 2]], [["x"], [1, 1]]),
    "sequence-of": (Sequence[int], [[1]], [["x"]]),
    "tuple": (tuple[int, str], [[1, "a"]], [["a", 1], [1]]),
    "tuple-of-any-length": (tuple[int, ...], [[1, 2, 3]], [["x"]]),
    "empty-tuple": (tuple[()], [[]], [[1]]),
    "named-tuple": (Point, [[1, 2]], [[1, "x"]]),
    "dict": (dict, [{"a": 1}], []),
    "dict-of": (dict[str, int], [{"a": 1}], [{"a": "x"}]),
    "dict-by-int": (dict[int, str], [{"1": "a"}], [{"1": 5}]),
    "dict-by-decimal": (dict[decimal.Decimal, int], [{"1.5": 1}], [{"1.5": "x"}]),
    "dict-by-pattern": (dict[Annotated[str, Field(pattern="^[a-z]+$")], int], [{"abc": 1}], [{"abc": "x"}]),
    "dict-by-enum": (dict[Colour, int], [{"red": 1}], [{"red": "x"}, {"green": 1}]),
    "default-dict": (defaultdict[str, list[int]], [{"a": [1]}], [{"a": 1}]),
    "counter": (Counter[str], [{"a": 1}], [{"a": "x"}]),
    "typed-dict": (Movie, [{"title": "a"}], [{"year": "x"}]),
    "dataclass": (Book, [{"title": "a"}], [{"pages": 5}]),
    "pydantic-dataclass": (Shelf, [{"books": [{"title": "a"}]}], [{"books": [{}]}]),
    "bounded-int": (Annotated[int, annotated_types.Interval(ge=1, lt=5)], [1], [0, 5]),
    "multiple": (Annotated[int, annotated_types.MultipleOf(5)], [10], [3]),
    "bounded-text": (Annotated[str, annotated_types.Len(2, 4)], ["ab"], ["a", "abcde"]),
    "patterned": (
        Patterned,
        [{}, {"code": "abc1", "twice": "bb", "names": {"abc": 1}}],
        [{"code": "abcd"}, {"code": "a1"}, {"twice": "ab"}, {"names": {"abc": "x"}}],
    ),
    "bounded-list": (Annotated[list[int], annotated_types.Len(1, 2)], [[1]], [[], [1, 2, 3]]),
    "model": (Cat, [{"kind": "cat"}], [{"kind": "dog"}]),
    "recursive-model": (
        Tree,
        [{"name": "a", "children": [{"name": "b", "price": "1.5"}]}],
        [{"name": "a", "children": [{"name": "b", "price": []}]}],
    ),
    "discriminated": (
        Annotated[Cat | Dog, Field(discriminator="kind")],
        [{"kind": "cat"}, {"kind": "dog", "weight": "12.5"}],
        [{"kind": "cow"}, {"kind": "dog", "weight": None}, {"kind": "dog", "weight": "1", "more": 1}],
    ),
    "discriminated-by-a-function": (
        Annotated[Annotated[Cat, Tag("cat")] | Annotated[Dog, Tag("dog")], Discriminator(kind_of)],
        [{"kind": "dog", "weight": 5}],
        [{"kind": "dog", "weight": None}],
    ),
    "order": (
        Order,
        [{"id": UUID, "total": "19.90", "lines": {"a": "1.50"}}],
        [{"id": UUID}, {"id": UUID, "total": None}, {"id": UUID, "total": "1", "lines": {"a": []}}],
    ),
    "aliased": (Aliased, [{"Inner": 3, "when": TOMORROW}], [{"Inner": 4, "when": TOMORROW}]),
    "generic": (Page[Dog], [{"items": [{"kind": "dog", "weight": "1"}]}], [{"items": [{"kind": "cat"}]}]),
    "root-model": (Numbers, [[1]], [["x"]]),
    "list-of-many": (list[Dog | Tree | int | None], [[None, 1, {"name": "a"}]], [["x"]]),
}

CONSTRAINED: dict[str, tuple[Any, list[Any], list[Any]]] = {
    "Strict": (Annotated[int, types.Strict()], [1], ["x"]),
    "conbytes": (types.conbytes(min_length=2), ["ab"], ["a"]),
    "conlist": (types.conlist(int, min_length=1), [[1]], [[]]),
    "conset": (types.conset(int, max_length=1), [[1]], [[1, 2]]),
    "confrozenset": (types.confrozenset(int, max_length=1), [[1]], [[1, 2]]),
    "constr": (types.constr(pattern=r"^\d+$", max_length=3), ["12"], ["x", "1234"]),
    "StringConstraints": (Annotated[str, types.StringConstraints(pattern=r"^a+$")], ["a"], ["b"]),
    "conint": (types.conint(gt=1), [2], [1]),
    "confloat": (types.confloat(lt=1.5), [1.25], [1.5]),
    "AllowInfNan": (Annotated[float, types.AllowInfNan(True)], [0.5], ["x"]),
    "condecimal": (types.condecimal(max_digits=4, decimal_places=1), ["123.4", "5"], [None]),
    "Json-of": (types.Json[dict[str, decimal.Decimal]], [], []),
    "Secret": (types.Secret[int], [], []),
    "condate": (types.condate(gt=dt.date(2020, 1, 1)), ["2021-01-01"], [5]),
    "EncodedBytes": (Annotated[bytes, types.EncodedBytes(encoder=types.Base64Encoder)], ["a"], [5]),
    "EncodedStr": (Annotated[str, types.EncodedStr(encoder=types.Base64Encoder)], ["a"], [5]),
    "OnErrorOmit": (list[types.OnErrorOmit[int]], [[1]], [["x"]]),
    "FailFast": (Annotated[list[int], types.FailFast()], [[1]], [["x"]]),
    "UrlConstraints": (Annotated[networks.AnyUrl, networks.UrlConstraints(max_length=20)], ["http://a"], ["h" * 21]),
}
NO_FIELDS = {
    *("PaymentCardNumber", "EncoderProtocol", "Base64Encoder", "GetPydanticSchema", "Tag", "Discriminator"),
    "validate_email",
}
"""Public names that are no types of fields, or ones that only do something to another type. The first is deprecated."""

EXPORTED: dict[str, tuple[Any, list[Any], list[Any]]] = {
    name: (getattr(module, name), [], [])
    for module in (types, networks)
    for name in module.__all__
    if name not in NO_FIELDS | CONSTRAINED.keys()
}
"""All other types that Pydantic exports; of these only the schema counts."""

EVERY = {**STANDARD, **CONSTRAINED, **EXPORTED}

EARLIER = {
    "decimal": Sample(
        {"type": "string", "pattern": r"^(?!^[-+.]*$)[+-]?0*\d*\.?\d*$"},
        DECIMALS,
        ["", "-", "abc", "1,5", "1.2.3", None, {}],
    ),
    "decimal-digits": Sample(
        {
            "anyOf": [
                {"type": "number"},
                {"type": "string", "pattern": r"^(?!^[-+.]*$)[+-]?0*(?:\d{0,3}|(?=[\d.]{1,6}0*$)\d{0,3}\.\d{0,2}0*$)"},
            ]
        },
        [1.5, "1", "123.45", "0.5", "-12.30", "000123.4"],
        ["", "-", None],
    ),
    "decimal-places": Sample(
        {"type": "string", "pattern": r"^(?!^[-+.]*$)[+-]?0*\d*\.?\d{0,3}0*$"}, ["1.234", "7"], ["1.2345", "x"]
    ),
    "decimal-most": Sample(
        {"type": "string", "pattern": r"^(?!^[-+.]*$)[+-]?0*(?:\d{0,3}|(?=[\d.]{1,4}0*$)\d*\.\d*0*$)"},
        ["1.23", "12.3", "999"],
        ["", "."],
    ),
    "dict-by-decimal": Sample(
        {
            "type": "object",
            "patternProperties": {r"^(?!^[-+.]*$)[+-]?0*\d*\.?\d*$": {"type": "integer"}},
            "additionalProperties": False,
        },
        [{"1.5": 1}, {"-3": 2, ".5": 1}],
        [{"1.5": "x"}, {"x": 1}],
    ),
}
"""What Pydantic 2.12 writes for decimals."""


def schema_of(kind: Any, mode: Literal["validation", "serialization"]) -> dict[str, Any]:
    return TypeAdapter(kind).json_schema(mode=mode)


def samples(mode: Literal["validation", "serialization"]) -> dict[str, Sample]:
    made = {}
    for name, (kind, good, bad) in EVERY.items():
        # Some forms are looser, or stricter, once they are written: there only the schema counts.
        plain = schema_of(kind, mode) == schema_of(kind, "validation")
        made[name] = Sample(schema_of(kind, mode), good if plain else [], bad if plain else [])
    return made


def in_models(mode: Literal["validation", "serialization"]) -> dict[str, Sample]:
    """Each type as the argument of a tool, required or not, as servers that are built with Pydantic write it."""
    made = {}
    for name, (kind, _, _) in EVERY.items():
        fields: dict[str, Any] = {"value": (kind, ...), "many": (list[kind], [])}  # type: ignore[valid-type]  # it is one
        # One of Pydantic's annotations cannot be hashed, so that no union can hold it.
        fields |= {"maybe": (Optional[kind], None)} if name != "FailFast" else {}  # noqa: UP045 - no type, to ruff
        made[name] = Sample(pydantic.create_model("Arguments", **fields).model_json_schema(mode=mode))
    return made


@rows("mode", ["enforce", "audit"])
@rows("written", ["validation", "serialization"])
def test_every_type_can_be_judged_by(written: Literal["validation", "serialization"], mode: Mode) -> None:
    assert found_in(samples(written), mode) == {}


@rows("written", ["validation", "serialization"])
def test_every_type_can_be_judged_by_as_an_argument(written: Literal["validation", "serialization"]) -> None:
    """A strict policy lets nothing pass that is not judged."""
    assert found_in(in_models(written), "enforce", policy=Policy(strict=True)) == {}


@rows("mode", ["enforce", "audit"])
def test_decimals_of_earlier_versions_can_be_judged_by(mode: Mode) -> None:
    assert found_in(EARLIER, mode) == {}
    assert found_in(EARLIER, mode, policy=Policy(strict=True)) == {}

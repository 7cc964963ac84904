"""Nothing that a caller sent in comes back in an error (specs/004: error responses must not include code contents)."""

import datetime as dt
from collections import deque
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum, StrEnum
from pathlib import PurePosixPath
from types import SimpleNamespace
from typing import Any

import orjson
import pytest
from response_examples import failure

from assay.assets.enveloper import Enveloper
from assay.assets.response_envelope import ERROR_CODES, ToolError
from kit.rows import rows

UNSAID = ToolError(ERROR_CODES["invalid_argument"], "invalid_argument")
ENVELOPER = Enveloper("t", "1.0.0", parameters=["limit", "code"])


def shown(text: str, arguments: Any) -> bool:
    """Whether the caller gets *text*, raised in a call with *arguments*."""

    def call() -> None:
        raise ValueError(text)

    error = ENVELOPER.run(call, tier="pro", request_id="r", arguments=arguments).error
    assert error in {UNSAID, ToolError(text or "-", "invalid_argument")}
    return error != UNSAID


OWN = "limit must be at least 1"


@rows(
    ("text", "arguments"),
    [
        (OWN, {}),
        (OWN, {"limit": 0, "flag": True, "none": None}),
        (OWN, b'{"limit":0}'),
        # An empty string is in everything; three letters or a sign in common are chance.
        ("no such thing", {"limit": "xyz", "code": ""}),
        ("no such thing", {"code": "a - b"}),
        ("no, such thing", {"code": ","}),
    ],
)
def test_a_text_of_the_tools_own_is_shown(text: str, arguments: Any) -> None:
    assert shown(text, arguments)


SENT = "hunter2"
CODE = "def f():\n    password = 'hunter2'\n    return é\n"


class Colour(Enum):
    RED = SENT


class Word(StrEnum):
    GIVEN = SENT


class Loud(str):
    __slots__ = ()

    def __str__(self) -> str:
        return "something else"


@dataclass
class Asked:
    what: str


class Slotted:
    __slots__ = ("__hidden", "__weakref__")

    def __init__(self, hidden: str) -> None:
        self.__hidden = hidden


class Ring:
    def __init__(self) -> None:
        self.next = self


class OwnDate(dt.date):
    """Has attributes, and state that none of them shows."""


def is_json(value: Any) -> bool:
    try:
        return bool(orjson.loads(orjson.dumps(value)) == value)
    except TypeError:
        return False


QUOTES: list[tuple[str, Any]] = [
    *((text, {"code": SENT}) for text in ("bad value hunter2", "HUNTER2 is bad", "bad value hunt…", "xxnterxx")),
    *((text, {"code": CODE}) for text in ("near password = 'h", "near f(): password", f"near {CODE}")),
    *((text, {"code": "é"}) for text in ("near \\xe9", "near %C3%A9", "near &eacute; there")),
    # Two lines, text that turns round, something encoded, something long, and nothing at all.
    *((text, {}) for text in ("line one\nline two", "near \u202e there", "got " + "QUJD" * 12, "word " * 50, "")),
    ("a limit is wrong", {"code": "limit"}),
    ("found 7 there", {"limit": 7}),
    ("found -1 there", {"limit": -1}),
    ("found 1.5 there", {"limit": 1.5}),
    ("found 5 there", {"limit": 5.0}),
    ("found 12345678901234567890 there", {"limit": 12345678901234567890.0}),
    ("found 12,345 there", {"limit": 12345}),
    (f"found {2**70} there", {"limit": 2**70}),
    ("column ab is wrong", {"code": " AB\n"}),
    ("column a/b is wrong", {"code": "a/b"}),
]
HOLDERS: list[Any] = [
    {"a": [{"b": ({"c": SENT},)}]},
    {"a": {SENT: 1}},
    {SENT: 1},
    [[SENT]],
    {"a": {SENT}},
    {"a": deque([SENT])},
    {"a": SENT.encode()},
    {"a": bytearray(b"\xff" + SENT.encode())},
    {"a": PurePosixPath("/srv", SENT)},
    {"a": Asked(SENT)},
    {"a": SimpleNamespace(b=SimpleNamespace(c=SENT))},
    {"a": Slotted(SENT)},
    {"a": Colour.RED},
    # A set is no JSON: what is beside it is looked at one by one.
    *({"a": value, "b": {1}} for value in (Colour.RED, Word.GIVEN, Loud(SENT))),
]
"""Arguments with the secret in them."""
OPAQUE: list[Any] = [
    *(object(), Decimal(1), OwnDate(2024, 1, 1), dt.date(2024, 1, 1), lambda: 1, (each for each in ["x"]), iter(["x"])),
    *(Ring(), memoryview(b"x"), ValueError("x"), range(10**12), [[]] * 5000, "~" * 20_000, {"~" * 20_000}),
]
"""What cannot be looked into, or is too much to."""


@rows(
    ("text", "arguments"),
    [
        *QUOTES,
        *((f"bad value {SENT}", each) for each in HOLDERS),
        *(("nothing to see", {"a": each}) for each in OPAQUE),
        pytest.param("nothing to see", {"a": 10**5000}, id="a very long number"),
        ("nothing to see", b"{"),
        ("nothing to see", None),
    ],
)
def test_a_text_that_may_reveal_something_is_not_shown(text: str, arguments: Any) -> None:
    """Ours: the list in specs/004 is one line long; these are the ways around it that we know of."""
    assert not shown(text, arguments)
    if isinstance(arguments, dict) and is_json(arguments):
        assert not shown(text, orjson.dumps(arguments))


def test_what_a_tool_takes_out_of_its_arguments_is_remembered() -> None:
    arguments = {"code": ["hunter2"]}

    def call() -> None:
        raise ValueError(f"bad value {arguments['code'].pop()}")

    assert ENVELOPER.run(call, tier="pro", arguments=arguments).error == UNSAID


# ── exceptions ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_only_the_text_of_a_foreseen_exception_is_shown() -> None:
    """Not its notes, its cause, the members of a group or a path of the server's own."""

    def fails(code: str) -> None:
        error = ValueError("it went wrong")
        error.add_note(code)
        raise error from KeyError(code)

    def fails_together(code: str) -> None:
        raise ExceptionGroup(code, [ValueError(code)])

    def fails_unforeseen(_: str) -> None:
        raise RuntimeError("cannot connect as admin with password hunter2")

    def fails_at_a_path(_: str) -> None:
        with open("/nowhere/at/all"):
            pass

    assert failure(fails, CODE) == ToolError("it went wrong", "invalid_argument")
    for each in (fails_together, fails_unforeseen):
        assert failure(each, CODE) == ToolError(ERROR_CODES["internal_error"], "internal_error")
    assert failure(fails_at_a_path, CODE) == ToolError("No such file or directory", "not_found")


def test_positional_arguments_beyond_the_named_ones_are_the_callers_too() -> None:
    def fails(first: str, *rest: str, **more: str) -> None:
        raise ValueError(f"bad value {rest[-1] if rest else more['*']}")

    assert failure(fails, "a", "b", "hunter2") == UNSAID
    assert failure(fails, "a", **{"*": "hunter2"}) == UNSAID


def test_names_of_parameters_are_the_tools_own() -> None:
    def fails(amount: int, **more: str) -> None:
        raise ValueError("amount must be positive, colour must not be there")

    assert failure(fails, amount=-3).error == "amount must be positive, colour must not be there"
    assert failure(fails, amount=-3, colour="-").error == ERROR_CODES["invalid_argument"]


def test_a_context_that_is_an_object_is_the_servers_own() -> None:
    def fails(ctx: Any) -> None:
        raise ValueError("it went wrong")

    assert failure(fails, ctx=object()).error == "it went wrong"
    for sent in ({"header": "wrong"}, "wrong", ["wrong"], b"wrong"):
        assert failure(fails, ctx=sent) == UNSAID

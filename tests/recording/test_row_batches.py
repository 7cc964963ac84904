"""Rows that are read together are what they are one by one, whoever wrote them; others are not read together."""

import json
from typing import Any

import orjson
import pytest
from hypothesis import event, example, given
from hypothesis import strategies as st

from assay.base.limits import DEFAULT, Limits
from assay.base.verdict import Violation
from assay.ladder import syntax
from assay.records.recording.plain_rows import MESSAGE, untimed
from assay.records.recording.row_batches import LONGEST, BatchReader
from kit.laws import law

DEPTH = 8
HEAD = b'{"dir":"c2s","conversation":1,'
NOTHING = object()


def row(message: str) -> bytes:
    """A plain row."""
    return HEAD + MESSAGE + orjson.dumps(message) + b"}"


def alone(line: bytes) -> Any:
    """The message of a row that has nothing else, read alone; `NOTHING` if it is not such a row, or not valid."""
    tail = line.partition(MESSAGE)[2]
    if not tail.endswith(b"}"):
        return NOTHING
    try:
        message = orjson.loads(tail[:-1])
    except orjson.JSONDecodeError:
        return NOTHING
    if type(message) is not str or "\r" in message:
        return NOTHING
    value = syntax.read(message.encode(), DEPTH)
    return NOTHING if isinstance(value, Violation) else (message, value)


def ended(lines: list[bytes]) -> list[bytes]:
    """The lines with their newlines."""
    return [line + b"\n" for line in lines]


def check(lines: list[bytes]) -> bool:
    """
    Check that a batch vouches for nothing else than its rows have; return whether there was a batch.

    The last row of a file may have no newline.
    """
    _check([*ended(lines[:-1]), lines[-1]])
    _check([*timed(lines[:1]), *ended(lines[1:])])
    _check(timed(lines))
    return _check(ended(lines))


def timed(lines: list[bytes]) -> list[bytes]:
    """The lines with their newlines, and the times of their messages."""
    return [line.replace(MESSAGE, b'"time":1763379999123456,' + MESSAGE, 1) for line in ended(lines)]


def _check(lines: list[bytes]) -> bool:
    batch = BatchReader(DEPTH).read(lines)
    if batch is None:
        return False
    assert len(batch.rows) == len(batch.values) == len(lines)
    for line, (head, _, rest), value in zip(lines, batch.rows, batch.values, strict=True):
        if type(value) is dict:
            plain, digits = untimed(line.partition(MESSAGE)[0])
            frame, time = batch.message(rest)
            assert (head, time) == (plain, int(digits) / 1e6 if digits else None)
            # The text of a value shows the difference between 1, 1.0 and true, and between 0 and -0.
            assert repr(alone(line.removesuffix(b"\n"))) == repr((frame.decode(), value))
    return True


GOOD = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"b":[1,{"c":"d"}]}}}'

TOGETHER = [
    [GOOD],
    [GOOD, GOOD, "{}"],
    [GOOD, " {} ", json.dumps(json.loads(GOOD)), GOOD],
    ['{"a":1.0,"b":1e2,"c":-0,"d":1e-7,"e":100000000000000000000,"f":-0.0}', GOOD],
    ['{"a:":"b:c","\\u003a":"\\u003A \\\\u003a"}', GOOD],
    ['{"a":"\\u0000 \\ud83d\\ude00 ☃ 😀 \\/"}', GOOD],
    [GOOD, "1", "[]", '"text"', "null", GOOD],
    ['{"a":' * DEPTH + "1" + "}" * DEPTH, GOOD],
    ["[" * (DEPTH - 1) + "{}" + "]" * (DEPTH - 1), GOOD],
]

ALONE = [
    # Values that span messages, and others that make up for them.
    ['{"a":[1', "2]}", "{},{}"],
    ['{"a":[1', "2]}", '{},"\x7f",{}'],
    ['{"a":[1', "2]}", '{},"\\u007f",{}'],
    ['{"a":[1', '2]} ,"\\u007F", {}', "{}"],
    ['{"a":"', '"}', "{},{}"],
    ["{}],[{}", GOOD],
    [GOOD, "{}],[{}"],
    ["{}]", "[{}"],
    ["[{}", "{}]"],
    ["{}],[[{}", GOOD, "{}]"],
    [" ", GOOD],
    [",", GOOD],
    ["{},", GOOD],
    # Repeated keys.
    ['{"a":1,"a":1}', GOOD],
    ['{"a":1,"\\u0061":2}', GOOD],
    ['{"b":[{"a":1,"a":2}]}', GOOD, "{}"],
    ['{"a":1, "a":2}', '{"b":":"}'],
    # What is no JSON.
    ["{", GOOD],
    ["{'a':1}", GOOD],
    ['{"a":NaN}', GOOD],
    ['{"a":1e999}', GOOD],
    ['{"a":"\\ud800"}', GOOD],
    ['{"a":"\t"}', GOOD],
    ['{"a":"\x00"}', GOOD],
    ["\ufeff{}", GOOD],
    # Too deep, and line breaks, which have rules of their own.
    ['{"a":' * (DEPTH + 1) + "1" + "}" * (DEPTH + 1), GOOD],
    ['{"a":\r1}', GOOD],
    ["x" * LONGEST, GOOD],
]


@pytest.mark.parametrize("messages", TOGETHER, ids=repr)
def test_good_messages_are_read_together(messages: list[str]) -> None:
    lines = list(map(row, messages))
    assert check(lines)
    assert _check(timed(lines))
    batch = BatchReader(DEPTH).read(ended(lines))
    assert batch is not None
    assert [batch.message(rest) for _, _, rest in batch.rows] == [(each.encode(), None) for each in messages]
    assert [repr(each) for each in batch.values] == [repr(orjson.loads(each)) for each in messages]


@pytest.mark.parametrize("messages", ALONE, ids=lambda messages: repr(messages)[:60])
def test_messages_that_prove_nothing_together_are_read_alone(messages: list[str]) -> None:
    assert not check(list(map(row, messages)))


ODD_TAILS = [
    b'"{}"',
    b'"{}"}}',
    b'"{}"x}',
    b'"{}",}',
    b'"{}","{}"}',
    b'["{}"]}',
    b'"{}","msg":"[]"}',
    b'"{}","m\\u0073g":"[]"}',
    b'"{}","\\u0064ir":"s2c"}',
    b'"{}","why":"x"}',
    b"7}",
    b"null}",
    b'{"a":1}}',
    b'"\xff"}',
    b'"\t"}',
    b'"\\ud800"}',
    b'"{}"}\r',
    b'"{"a":"}"}',
    b'"}',
    b"}",
    b"",
    b'"{}" }',
    b' "{}"}',
]


@pytest.mark.parametrize("tail", ODD_TAILS)
def test_rows_with_something_else(tail: bytes) -> None:
    odd = HEAD + MESSAGE + tail
    check([odd])
    check([odd, row(GOOD)])
    check([row(GOOD), odd, odd, row(GOOD)])


@pytest.mark.parametrize("line", [row(""), b"", b" ", b"{}", b'{"event":"close"}', b"}", b'"}', b'x"}'])
def test_rows_without_a_message_are_in_a_batch_that_says_nothing_of_them(line: bytes) -> None:
    batch = BatchReader(DEPTH).read(ended([row(GOOD), line, row(GOOD)]))
    assert batch is not None
    assert [type(value) is dict for value in batch.values] == [True, False, True]
    assert batch.rows[1][0] == (line + b"\n").partition(MESSAGE)[0]


def test_a_row_of_two_rows_does_not_make_up_for_one_that_is_half_there() -> None:
    """What is between the quotes of all rows is one string."""
    halves = [HEAD + MESSAGE + b'"{}', HEAD + MESSAGE + b'{}"}', HEAD + MESSAGE + b'"{}","{}"}']
    assert not check(halves)
    assert not check([HEAD + MESSAGE + b'"{}\\"}', HEAD + MESSAGE + b'"{}"}', row(GOOD)])


PARTS = st.sampled_from(
    [
        GOOD, "{}", "[]", '{"a":1}', '{"a":1,"a":2}', "{", "}", "[", "]", ",", '"', "\\", ":", " ", "1", "-0", "1.0",
        "\x7f",
        '"\x7f"', ',"\x7f",', '"\\u007f"', ',"\\u007f",', "\n", "\r", '"a":', "😀",
    ]
)  # fmt: skip
MESSAGES = st.lists(st.one_of(st.just(GOOD), st.lists(PARTS, max_size=4).map("".join)), min_size=1, max_size=6)
TAILS = st.one_of(st.sampled_from(ODD_TAILS), st.binary(max_size=6).map(lambda tail: tail.replace(b"\n", b"")))


@law(1000)
@given(MESSAGES)
@example(['{"a":[1', "2]}", '{},"\\u007f",{}'])
def test_any_messages(messages: list[str]) -> None:
    event("together" if check(list(map(row, messages))) else "alone")


@law(500)
@given(
    st.lists(
        st.one_of(MESSAGES.map(lambda them: row(them[0])), TAILS.map(lambda tail: HEAD + MESSAGE + tail)),
        min_size=1,
        max_size=5,
    )
)
def test_any_rows(lines: list[bytes]) -> None:
    event("together" if check(lines) else "alone")


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda values: st.lists(values, max_size=3) | st.dictionaries(st.text(), values, max_size=3),
    max_leaves=12,
)  # fmt: skip


@law(300)
@given(
    st.lists(
        st.tuples(st.dictionaries(st.text(), VALUES, max_size=3), st.booleans(), st.booleans()), min_size=1, max_size=6
    )
)
def test_any_objects(objects: list[tuple[dict[str, Any], bool, bool]]) -> None:
    """Also with spaces and escapes, as Python writes them."""
    messages = [
        json.dumps(value, separators=None if spaced else (",", ":"), ensure_ascii=escaped)
        for value, spaced, escaped in objects
    ]
    lines = [orjson.dumps({"dir": "c2s", "msg": message}) for message in messages if _is_whole(message)]
    if lines:
        event("together" if check(lines) else "alone")


def _is_whole(text: str) -> bool:
    """Whether a text can be written as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def test_limits() -> None:
    reader = BatchReader.of(DEFAULT)
    assert reader is not None
    assert reader.fits(DEFAULT)
    assert not reader.fits(Limits(depth=DEFAULT.depth - 1))
    assert not reader.fits(Limits(frame_bytes=LONGEST - 1))
    assert not reader.fits(Limits(values=LONGEST - 1))
    assert BatchReader.of(Limits(depth=254)) is None
    deepest = BatchReader.of(Limits(depth=253))
    assert deepest is not None
    within, beyond = (row('{"a":' * depth + "1" + "}" * depth) for depth in (253, 254))
    assert deepest.read(ended([within])) is not None
    assert deepest.read(ended([beyond])) is None

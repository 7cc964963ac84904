"""Laws about bytes: however a stream is cut the frames are the same, and a frame has one reading or none."""

import json
import math
from typing import Any

from hypothesis import assume, event, example, given
from hypothesis import strategies as st

from assay.judge import framing, syntax
from assay.judge.conversation import Facts
from assay.model.limits import DEFAULT
from assay.model.verdict import Verdict, Violation
from assay.schema.pointers import NOWHERE, looked_up, steps
from assay.spec.revisions import REVISIONS
from kit.generated_messages import scalars, texts, values
from kit.laws import law
from kit.parties import CLIENT, SERVER, frame, opened
from kit.rows import rows

# ── framing ──────────────────────────────────────────────────────────────────────────────────────────────────────────

LIMIT = 8

lines = st.lists(st.binary(max_size=20).map(lambda line: line.replace(b"\n", b"")), max_size=6)


def frames(chunks: list[bytes], limit: int = LIMIT) -> list[bytes]:
    """What a splitter makes of *chunks*; it never holds more than the limit and one chunk."""
    splitter = framing.Splitter(limit)
    found: list[bytes] = []
    for chunk in chunks:
        for each in splitter.feed(chunk):
            found.append(each)
            assert sum(map(len, splitter._pieces)) <= limit + len(chunk)
        assert sum(map(len, splitter._pieces)) == splitter._held <= limit
    last = splitter.end()
    return found if last is None else [*found, last]


@law(200)
@given(lines=lines, data=st.data())
def test_a_stream_has_the_same_frames_however_it_arrives(lines: list[bytes], data: st.DataObject) -> None:
    """house-style.md: fed whole, byte by byte, or with a tail. A line too long comes out once, cut past the limit."""
    ended = data.draw(st.booleans(), label="newline at the end")
    expected = [line[: LIMIT + 1] for line in lines]
    stream = b"".join(map(framing.write, lines)) if ended else b"\n".join(lines)
    if not ended and lines and not lines[-1]:
        expected.pop()  # nothing after the last newline is no line
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8), label="cuts"))
    pieces = [stream[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert frames([stream]) == expected
    assert frames([stream[at : at + 1] for at in range(len(stream))]) == expected
    assert frames(pieces) == expected


@law(100)
@given(line=st.binary(max_size=20).filter(lambda line: b"\n" not in line), limit=st.integers(0, 20))
def test_a_frame_is_refused_exactly_if_its_line_was_too_long(line: bytes, limit: int) -> None:
    """design.md, framing: the limit counts bytes, without the newline; what is left of a long line is refused."""
    (found,) = frames([line + b"\n"], limit) or [b""]
    refusal = framing.check(found, limit)
    assert (refusal is not None) == (len(line) > limit)
    if refusal is None:
        assert found == line
    else:
        assert refusal.rule == "framing/size"


# ── an oracle ────────────────────────────────────────────────────────────────────────────────────────────────────────


class RefusedError(Exception):
    """Strict JSON does not have this; the argument names the rule it breaks."""


def strict(spoken: bytes, depth: int = DEFAULT.depth) -> Any:
    """The value in *spoken*, by the standard library with every leniency taken out; raises `RefusedError`."""
    try:
        text = spoken.decode("utf-8")
    except UnicodeDecodeError:
        raise RefusedError("utf8") from None
    try:
        value = json.loads(
            text, object_pairs_hook=_pairs, parse_constant=_no_constant, parse_float=_finite, parse_int=_int
        )
        _whole_characters(value)
    except (json.JSONDecodeError, RecursionError):
        raise RefusedError("json") from None
    if levels(value) > depth:
        raise RefusedError("depth")
    if repeated(value):
        raise RefusedError("duplicate-key")
    return plain(value)


class Pairs(list[tuple[str, Any]]):
    """An object as it was written: no pair is lost."""


def _pairs(pairs: list[tuple[str, Any]]) -> Pairs:
    return Pairs(pairs)


def _no_constant(name: str) -> None:
    raise RefusedError("number")


def _finite(spelt: str) -> float:
    number = float(spelt)
    if not math.isfinite(number):
        raise RefusedError("number")
    return number


def _int(spelt: str) -> int | float:
    # Beyond 64 bits orjson gives the nearest double; a number is a number.
    if len(spelt) > 30:
        return _finite(spelt)
    number = int(spelt)
    return number if -(2**63) <= number < 2**64 else _finite(spelt)


def _whole_characters(value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        raise RefusedError("surrogate") from None


def items(value: Any) -> list[Any]:
    """What is directly inside *value*."""
    return [item for _, item in value] if isinstance(value, Pairs) else value if isinstance(value, list) else []


def levels(value: Any) -> int:
    """How many containers are nested in one another."""
    count, level = 0, [value]
    while containers := [item for item in level if isinstance(item, list)]:
        count += 1
        level = [inner for item in containers for inner in items(item)]
    return count


def repeated(value: Any) -> bool:
    """Whether some object in *value* has a key twice."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, Pairs) and len({key for key, _ in item}) < len(item):
            return True
        waiting += items(item)
    return False


def plain(value: Any) -> Any:
    """*value* with dicts for objects."""
    if isinstance(value, Pairs):
        return {key: plain(item) for key, item in value}
    return [plain(item) for item in value] if isinstance(value, list) else value


def exact(value: Any) -> str:
    """*value* such that 1, 1.0 and true differ, as they do on the wire."""
    return repr(value)


def assert_agreed(spoken: bytes, depth: int = DEFAULT.depth, *, one_fault: bool = False) -> str:
    """
    `syntax.read` says of *spoken* what the oracle says; returns the rule that refuses it, or "good".

    The rule is compared only where there is *one_fault*: of several, either may name any.
    """
    verdict = syntax.read(spoken, depth)
    try:
        expected = strict(spoken, depth)
    except RefusedError as refusal:
        why = str(refusal)
    else:
        assert not isinstance(verdict, Violation), verdict
        assert exact(verdict) == exact(expected)
        return "good"
    assert isinstance(verdict, Violation), f"{why} was read as {verdict!r}"
    assert not one_fault or verdict.rule in {f"syntax/{why}", "syntax/bom"}
    return verdict.rule


# ── texts of JSON in every spelling ──────────────────────────────────────────────────────────────────────────────────

_BLANKS = ("", "", "", " ", "\t", "\r", "\n", "  ")
_NUMBERS = (
    "0", "-0", "-0.0", "1", "1.0", "1e2", "1E5", "1E+5", "1e-400", "123456789012345678901234567890", str(2**63),
    str(2**64 - 1), str(2**64), str(2**70), str(-(2**63) - 1), "0.1", "1e308", "1e400", "-1e400", "01", "+1", "1.",
    ".5", "NaN", "Infinity", "-Infinity", "0x10", "1_000", "--1", "1e", "9" * 400,
)  # fmt: skip
_STRINGS = (
    r'"\ud83d\ude42"', r'"\ud800"', r'"\udc00\ud800"', r'"\ud800\u0041"', r'"\u0000"', r'"\/"', r'"\x"', r'"\u12"',
    '"\t"', '"\\u003a"', '":"', '"\\\\u003a"', "'a'", '"a', '"\x7f"', '"\u2028"', r'"\b\f\n\r\t\"\\"', "\ufeff",
    '"\ufeff"',
)  # fmt: skip
_OTHERS = (
    "nul",
    "True",
    "undefined",
    "//",
    "/**/",
    ",",
    ":",
    "{",
    "}",
    "[",
    "]",
    "{,}",
    "[1,]",
    '{"a":1,}',
    '{"a"}',
    "",
)


@st.composite
def spelt(draw: st.DrawFn, value: Any) -> str:
    """*value* as JSON, in some spelling: white space, escapes, numbers in other forms."""
    blank = draw(st.sampled_from(_BLANKS))
    if isinstance(value, dict):
        members = [f"{draw(spelt_key(key))}{blank}:{draw(spelt(item))}" for key, item in value.items()]
        return f"{{{blank}{','.join(members)}{blank}}}"
    if isinstance(value, list):
        return f"[{','.join(blank + draw(spelt(item)) for item in value)}{blank}]"
    if isinstance(value, str):
        return draw(spelt_key(value))
    return json.dumps(value) + blank


@st.composite
def spelt_key(draw: st.DrawFn, text: str) -> str:
    """*text* as a JSON string, every character escaped, or none, or as the standard library does it."""
    way = draw(st.integers(0, 3))
    if way == 3:
        units = text.encode("utf-16-be")
        return '"' + "".join(f"\\u{units[at]:02x}{units[at + 1]:02X}" for at in range(0, len(units), 2)) + '"'
    return json.dumps(text, ensure_ascii=way == 1)


@st.composite
def with_a_repeat(draw: st.DrawFn, value: Any) -> str:
    """*value* as JSON, now and then with one member of an object said twice, at a random place."""
    if isinstance(value, dict) and value:
        members = [(key, draw(with_a_repeat(item))) for key, item in value.items()]
        if draw(st.booleans()):
            key = draw(st.sampled_from(list(value)))
            members.insert(draw(st.integers(0, len(members))), (key, draw(spelt(draw(scalars)))))
        return "{" + ",".join(f"{draw(spelt_key(key))}:{item}" for key, item in members) + "}"
    if isinstance(value, list):
        return "[" + ",".join([draw(with_a_repeat(item)) for item in value]) + "]"
    return draw(spelt(value))


@st.composite
def snippets(draw: st.DrawFn) -> str:
    """A JSON text in which something odd stands where a value should."""
    odd = draw(st.sampled_from(_NUMBERS + _STRINGS + _OTHERS))
    around = draw(
        st.sampled_from(["{}", "[{}]", '{{"a":{}}}', '{{"a":1,"b":[{}]}}', "[1,{},2]", " {} ", "{{{}:1}}", "{} {}"])
    )
    return (
        around.replace("{{", "\x01").replace("}}", "\x02").replace("{}", odd).replace("\x01", "{").replace("\x02", "}")
    )


@st.composite
def mutated(draw: st.DrawFn, spoken: bytes) -> bytes:
    """*spoken* with a byte or two changed, taken out or put in."""
    made = bytearray(spoken)
    for _ in range(draw(st.integers(1, 2))):
        at = draw(st.integers(0, len(made)))
        new = draw(st.one_of(st.sampled_from(list(b'"\\{}[]:,0-e.u\xff\x00\n ')), st.integers(0, 255)))
        match draw(st.integers(0, 2)):
            case 0:
                made[at : at + 1] = bytes([new])
            case 1:
                made[at:at] = bytes([new])
            case _:
                del made[at : at + 1]
    return bytes(made)


any_text = st.one_of(values().flatmap(spelt), values().flatmap(with_a_repeat), snippets(), snippets())
any_bytes = any_text.map(str.encode)

# Longer than 4096 bytes, with no key where the module looks for one: the other parser reads it.
FILL = "x" * 5000
PADDINGS = ('{{"fill":"' + FILL + '","it":{}}}', '["' + FILL + '",{}]', '[{},"' + FILL + '"]', '"' + FILL + '"{}')


def padded(text: bytes, padding: str) -> bytes:
    """*text* in a frame that is long and mostly a string."""
    before, after = padding.replace("{{", "{").replace("}}", "}").encode().split(b"{}")
    spoken = before + text + after
    assert len(spoken) >= syntax._LONG
    return spoken


@law(400)
@given(value=values(3))
def test_what_is_written_is_read_again(value: Any) -> None:
    """house-style.md: `read(write(m)) == m`."""
    written = syntax.write(value)
    assert b"\n" not in written
    assert exact(syntax.read(written)) == exact(value)
    assert exact(syntax.read(written + b" " * 5000)) == exact(value)


@law(1500)
@given(data=st.data(), spoken=any_bytes, changed=st.booleans(), padding=st.sampled_from(("", *PADDINGS)))
def test_a_frame_is_read_as_strict_json_reads_it(
    data: st.DataObject, spoken: bytes, changed: bool, padding: str
) -> None:
    """
    RFC 8259 and hostile-input.md, by an oracle of the standard library; some frames have a byte changed.

    Long frames are read by another parser where that is faster: the two must not differ.
    """
    if changed:
        spoken = data.draw(mutated(spoken))
    whole = padded(spoken, padding) if padding else spoken
    rule = assert_agreed(whole)
    event(rule)
    if syntax._looks_like_text(whole) and syntax._read_text(whole, DEFAULT.depth) is not syntax._UNPROVED:
        event(f"by jiter: {rule}")
        assert rule == "good"


@rows("odd", _NUMBERS + _STRINGS + _OTHERS)
def test_every_oddity_gets_one_verdict_in_short_frames_and_in_long_ones(odd: str) -> None:
    """hostile-input.md, frames and JSON: numbers out of range, half pairs, control characters, leniencies."""
    for around in ("{}", "[{}]", '{"a":{}}'):
        text = around.replace("{}", odd) if around != "{}" else odd
        short = assert_agreed(text.encode(), one_fault=True)
        long = [assert_agreed(padded(text.encode(), padding)) for padding in PADDINGS[:3]]
        # What is no value by itself may be part of something else there; but a good value stays good.
        assert short != "good" or set(long) == {"good"}


# ── nesting ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def nested(depth: int, inner: str, shape: str) -> str:
    """A text with *depth* containers in one another."""
    opening, closing = {"array": ("[", "]"), "object": ('{"a":', "}")}[shape]
    if not inner and shape == "object":
        return opening * (depth - 1) + "{}" + closing * (depth - 1)
    return opening * depth + inner + closing * depth


@rows("shape", ["array", "object"])
@rows("inner", ["", "1", '"x"', '":{["'])
@rows("limit", [1, 2, 5, 40, 63, 64, 65, 128, 200])
def test_the_limit_on_nesting_is_exact(limit: int, inner: str, shape: str) -> None:
    """design.md, syntax: nesting past 128, or whatever is configured; containers count, for either parser."""
    for depth in range(max(limit - 1, 1), limit + 3):
        text = nested(depth, inner, shape)
        fill = json.dumps(FILL)
        long = {"array": f"[{fill},{nested(depth - 1, inner, shape) if depth > 1 else 1}]"}.get(
            shape, f'{{"fill":{fill},"a":{nested(depth - 1, inner, shape) if depth > 1 else 1}}}'
        )
        for spoken in (text, f" {text} ", long, long + " "):
            assert levels(json.loads(spoken, object_pairs_hook=_pairs)) == depth
            found = syntax.read(spoken.encode(), limit)
            rule = found.rule if isinstance(found, Violation) else "good"
            assert rule == ("syntax/depth" if depth > limit else "good"), (depth, spoken[:40])


@rows("depth", [1023, 1024, 1025, 5000, 200_000])
def test_nesting_that_no_parser_takes_is_called_nesting(depth: int) -> None:
    """hostile-input.md: deep nesting is `syntax/depth`, also where the parser itself gives up."""
    for text in (
        "[" * depth + "]" * depth,
        '{"a":' * depth + "1" + "}" * depth,
        f'["{FILL}",' + "[" * depth + "]" * depth + "]",
    ):
        found = syntax.read(text.encode())
        assert isinstance(found, Violation)
        assert found.rule == "syntax/depth"


# ── repeated keys ────────────────────────────────────────────────────────────────────────────────────────────────────


@law(400)
@example(text='{"a/b":{"~":1,"~":2}}', long=False)
@example(text='{"":[{"":1,"":2}]}', long=True)
@given(text=st.dictionaries(texts, values(2), min_size=1, max_size=3).flatmap(with_a_repeat), long=st.booleans())
def test_a_repeated_key_is_named_where_it_is(text: str, long: bool) -> None:
    """hostile-input.md: refused with the pointer, however the key is spelt. The object it is in has that key twice."""
    spoken = padded(text.encode(), PADDINGS[1]) if long else text.encode()
    found = syntax.read(spoken)
    assume(isinstance(found, Violation))
    assert isinstance(found, Violation)
    assert found.rule == "syntax/duplicate-key"
    *path, key = steps(found.at)
    here = json.loads(spoken, object_pairs_hook=_pairs)
    for step in path:
        # Above the first repeated key nothing is repeated: every step has one meaning.
        here = dict(here)[step] if isinstance(here, Pairs) else here[int(step)]
    assert isinstance(here, Pairs)
    assert [name for name, _ in here].count(key) > 1
    assert looked_up(json.loads(spoken), found.at) is not NOWHERE


# ── transports ───────────────────────────────────────────────────────────────────────────────────────────────────────


def seen(verdict: Verdict) -> tuple[object, ...]:
    """All that a verdict says."""
    return (
        verdict.kind,
        exact(verdict.value),
        verdict.revision,
        verdict.violations,
        verdict.more,
        verdict.onward,
        verdict.back,
    )


methods = st.sampled_from(["ping", "tools/list", "tools/call", "notifications/progress", "initialize", "no/such"])
messages = st.one_of(
    any_bytes,
    st.builds(
        lambda method, params, ident: frame({"jsonrpc": "2.0", "id": ident, "method": method, "params": params}),
        methods,
        st.one_of(values(1), st.just({})),
        scalars,
    ),
    st.builds(lambda ident, value: frame({"jsonrpc": "2.0", "id": ident, "result": value}), scalars, values(1)),
)


@rows("revision", REVISIONS)
@law(60)
@given(spoken=st.lists(st.tuples(st.sampled_from([CLIENT, SERVER]), messages), max_size=4))
def test_the_same_bytes_get_the_same_verdict_over_every_transport(revision: str, spoken: list[Any]) -> None:
    """design.md, one core: the same bytes get the same verdict over every transport."""
    over_stdio, over_http = opened(revision), opened(revision)
    for party, each in spoken:
        assert seen(over_stdio.hear(party, each, Facts("stdio"))) == seen(over_http.hear(party, each, Facts("http")))

"""The excerpt of a message: the caret is under the fault, the lines fit the terminal, and no secret is in them."""

import json
from dataclasses import replace
from io import StringIO
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from assay.cli.terminal.excerpts import excerpt_lines
from assay.cli.terminal.style import Style, columns
from assay.judge.conversation import Conversation
from assay.judge.redaction import Redactor
from assay.judge.text_edit import located
from assay.model.verdict import Party, Verdict, Violation, verdict
from assay.records.judged_records import JudgedRecords
from assay.records.record import finding_of
from assay.records.rows import Judged
from assay.rules import violation
from assay.schema.pointers import escaped, looked_up
from kit.rows import rows

REDACTOR = Redactor()
INDENT = 9


class Output(StringIO):
    """A stream in an encoding."""

    encoding = ""


def style(width: int = 80, encoding: str = "utf-8") -> Style:
    stream = Output()
    stream.encoding = encoding
    return Style(stream, {"COLUMNS": str(width)})


def message(frame: str | bytes, value: Any = None) -> Verdict:
    raw = frame.encode() if isinstance(frame, str) else frame
    return verdict(Party.CLIENT, raw, "unreadable" if value is None else "request", value, None, None)


def excerpt(said: Verdict, fault: Violation, shown: Style) -> list[str]:
    """Return the lines about *fault* in a message."""
    record = JudgedRecords("a.jsonl", whole=True).make(Judged(1, said)).record
    return excerpt_lines(record, finding_of(fault, REDACTOR), shown, INDENT)


def drawn(frame: str, at: str, shown: Style | None = None, rule: str = "protocol/params") -> tuple[str, str]:
    """Return the line and the part of it above the caret."""
    fault = violation(rule, at, expected="x", found="y")
    lines = excerpt(message(frame, json.loads(frame)), fault, shown or style())
    return marked(lines)


def marked(lines: list[str]) -> tuple[str, str]:
    line, caret = lines
    start, end = caret.index("^"), len(caret)
    assert set(caret) == {" ", "^"}
    before = next(each for each in range(len(line) + 1) if columns(line[:each]) == start)
    after = next(each for each in range(before, len(line) + 1) if columns(line[:each]) >= end)
    return line, line[before:after]


FRAME = '{"id":1,"params":{"a":[10,{"b":"text"}],"c":null}}'


@rows(
    ("at", "under"),
    [
        ("/id", "1"),
        ("/params/a/1/b", '"text"'),
        ("/params/a/1", "{"),
        ("/params/c", "null"),
        ("/params/missing", "{"),
        ("/params/a/7", "["),
        ("/params/a/1/b/below", '"'),
        ("", "{"),
    ],
)
def test_the_caret_is_under_the_value_or_the_object_that_lacks_it(at: str, under: str) -> None:
    assert drawn(FRAME, at) == (" " * INDENT + FRAME, under)


@rows("width", [40, 120])
@rows("where", [0, 50, 99])
@rows("letter", ["a", "工", "e\u0301"])
@rows("encoding", ["utf-8", "ascii"])
def test_lines_fit_the_terminal(width: int, where: int, letter: str, encoding: str) -> None:
    value = {f"key{number:02}": letter * 8 for number in range(100)}
    fault = violation("protocol/params", f"/key{where:02}", expected="x", found="y")
    frame = json.dumps(value, ensure_ascii=False)
    line, caret = excerpt(message(frame, value), fault, style(width, encoding))
    if encoding == "utf-8":
        under = marked([line, caret])[1]
        assert columns(line) <= width
        # In 40 columns a value of 18 is cut.
        assert f'"{letter * 8}"'.startswith(under)
        assert len(under) == len(letter) * 8 + 2 or width == 40
    assert line.isascii() or encoding == "utf-8"
    assert "…" in line or "..." in line


@rows(
    ("frame", "under"),
    [
        (b'{"id": 1, "a": {"k": 1, "k": 22}}', "22"),
        (b'{"id": 1, "a": nul}', "n"),
        (b'{"id": 1, "a": "x" "b": 2}', '"'),
        (b'{"id": 1, "a": "b\xff"}', "\ufffd"),
        (b'{"id": 1,\r"a": "b"}', "·"),
        (b'{"id": 1, "a": NaN}', "N"),
    ],
)
def test_a_fault_of_syntax_has_a_position(frame: bytes, under: str) -> None:
    found = Conversation(lines=True, revision="2025-11-25").hear(Party.CLIENT, frame)
    [fault] = found.violations
    assert marked(excerpt(found, fault, style()))[1] == under


@rows(
    ("frame", "fault"),
    [
        (b"log line", violation("syntax/json", expected="x", found='the text "log line"')),
        (b"", violation("syntax/json", expected="x", found="y")),
        (b'{"a":1}', violation("protocol/header-missing", "Mcp-Method", expected="x", found="y")),
        (b'{"a":"' + b"x" * (1 << 20) + b'"}', violation("protocol/params", "/a", expected="x", found="y")),
        (b'{"a":1}', replace(violation("protocol/params", expected="x", found="y"), at="/" + "x" * 10_000)),
    ],
    ids=["a log line, which is shown already", "empty", "a header", "a large message", "a long place"],
)
def test_no_excerpt_where_there_is_nothing_to_show(frame: bytes, fault: Violation) -> None:
    value = json.loads(frame) if frame[:1] == b"{" else None
    assert excerpt(message(frame, value), fault, style()) == []


@rows(
    "frame",
    [
        '{"id":1,"params":{"password":"hunter2","n":"x"}}',
        '{"id":1,"params":{"n":"x","token":"hunter2"}}',
        '{"id":1,"params":{"n":"Bearer hunter2hunter2"}}',
        '{"id":1,"params":{"n":"x","n":"x","password":"hunter2"}}',
    ],
)
def test_secrets_are_masked_and_the_caret_stays_right(frame: str) -> None:
    fault = violation("protocol/params", "/params/n", expected="x", found="y")
    lines = excerpt(message(frame, json.loads(frame)), fault, style(120))
    assert "hunter2" not in "".join(lines)
    assert "[redacted]" in lines[0]
    assert marked(lines)[1] in {'"x"', '"Bearer [redacted]"'}


# ── laws ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda below: st.lists(below, max_size=4) | st.dictionaries(st.text(max_size=4), below, max_size=4),
    max_leaves=12,
)


def places(value: Any, at: str = "") -> list[str]:
    """Every place in *value*."""
    below = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [at, *(each for name, item in below for each in places(item, f"{at}/{escaped(str(name))}"))]


@given(value=JSON, ascii_only=st.booleans(), indent=st.sampled_from([None, 1]))
def test_every_value_is_located(value: Any, ascii_only: bool, indent: int | None) -> None:
    from assay.schema.pointers import steps

    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    for at in places(value):
        found = located(text, steps(at))
        assert found.is_there
        assert json.loads(text[found.start : found.end]) == looked_up(value, at)
    assert not located(text, ["no", "such", "place"]).is_there


@given(frame=st.text(max_size=200), at=st.sampled_from(["", "/a", "/a/0"]), width=st.integers(40, 100))
def test_anything_can_be_shown(frame: str, at: str, width: int) -> None:
    found = Conversation(revision="2025-11-25").hear(Party.CLIENT, frame.encode(errors="replace"))
    for fault in (*found.violations, violation("protocol/params", at, expected="x", found="y")):
        lines = excerpt(found, fault, style(width))
        assert len(lines) in {0, 2}
        assert all(columns(line) <= width and line.isprintable() for line in lines)

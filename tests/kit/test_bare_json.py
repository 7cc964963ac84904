"""What programs without `json` read and write is what `json` reads and writes."""

import json
import subprocess
import sys
from typing import Any

import pytest

from kit import bare_json
from kit.places import TESTS
from kit.programs import compiled
from kit.rows import rows

READ: tuple[str | bytes, ...] = (
    *('{"a": [1, 2.5, "x"]}', b" [true, null]\n", '"\\ud800"', '{"a":1,"a":2}', "NaN", b"\xef\xbb\xbf{}"),
    *('{"a":1,}', "1 2", "", "{", '"\x01"', b"\xff", b'"\xed\xa0\x80"', "[1", "nul", '{"a" 1}'),
)
WRITTEN: tuple[Any, ...] = (None, True, 1, -2.5, 'é\n"☃', [], {}, {"a": [1, {"b": None}], "c": "d"}, float("inf"))

BARE = """
import sys
sys.path.insert(0, {tests!r})
from kit.bare_json import dumps, loads
assert "json" not in sys.modules and "typing" not in sys.modules
for each in {read!r}:
    try:
        print(dumps(loads(each)))
    except ValueError as error:
        print(type(error).__name__)
"""


def outcome(loads: Any, text: str | bytes) -> Any:
    """The value, or the error."""
    try:
        return repr(loads(text))
    except ValueError as error:
        return str(error)


@rows("text", READ)
def test_it_reads_what_json_reads(text: str | bytes) -> None:
    assert outcome(bare_json.loads, text) == outcome(json.loads, text)


@rows("value", WRITTEN)
def test_it_writes_what_json_writes(value: Any) -> None:
    assert bare_json.dumps(value) == json.dumps(value)
    assert bare_json.dumps(value, compact=True) == json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def test_what_is_no_json_is_not_written() -> None:
    with pytest.raises(TypeError, match="is no JSON"):
        bare_json.dumps({1, 2})


def test_a_program_that_has_not_imported_json_reads_the_same() -> None:
    """Each text alone: after the first invalid one `json` is imported."""
    for text in READ:
        code = BARE.format(tests=str(TESTS), read=(text,))
        done = subprocess.run([sys.executable, "-IS", "-c", code], capture_output=True, text=True, check=True)
        try:
            expected = json.dumps(json.loads(text))
        except ValueError as error:
            expected = type(error).__name__
        assert done.stdout == f"{expected}\n", text


def test_a_compiled_program_is_what_its_source_is() -> None:
    """It keeps its name, and finds what it imports of ours."""
    source = TESTS / "guard" / "lying_server.py"
    program = compiled(source)
    assert program.name == source.name
    said = b'{"jsonrpc":"2.0","id":1,"method":"ping",}\n{"jsonrpc":"2.0","id":2,"method":"ping"}\n'
    outputs = [
        subprocess.run([sys.executable, "-IS", str(each), "{}"], input=said, capture_output=True, check=True).stdout
        for each in (source, program)
    ]
    assert outputs == [b'{"jsonrpc":"2.0","id":2,"result":{}}\n'] * 2

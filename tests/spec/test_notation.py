"""The notation of the facts: what each form means, and what is said about a line that is wrong."""

import sys
from pathlib import Path
from threading import Barrier, Thread

import pytest

import assay.spec
from assay.spec.notation import NotationError, Schema, WireFacts
from kit.rows import rows

FACTS = Path(assay.spec.__file__).with_name("facts.txt")


@rows(
    ("text", "schema"),
    [
        pytest.param("str", {"type": "string"}, id="a-type"),
        pytest.param("any", {}, id="any-value"),
        pytest.param("uri", {"type": "string", "format": "uri"}, id="a-format"),
        pytest.param("int 0..", {"type": "integer", "minimum": 0}, id="lower-bound"),
        pytest.param("num 0..1", {"type": "number", "minimum": 0, "maximum": 1}, id="both-bounds"),
        pytest.param("[str]", {"type": "array", "items": {"type": "string"}}, id="array"),
        pytest.param("[any]..100", {"type": "array", "items": {}, "maxItems": 100}, id="array-of-at-most"),
        pytest.param("{int}", {"type": "object", "additionalProperties": {"type": "integer"}}, id="map"),
        pytest.param("str 1..100", {"type": "string", "minLength": 1, "maxLength": 100}, id="length"),
        pytest.param("int -5..5", {"type": "integer", "minimum": -5, "maximum": 5}, id="negative-bound"),
        pytest.param("record", {"type": "object", "propertyNames": {"type": "string"}}, id="names-are-strings"),
        pytest.param("{none}", {"type": "object", "additionalProperties": {"not": {}}}, id="nothing-fits"),
        ("{int} & obj", {"allOf": [{"type": "object", "additionalProperties": {"type": "integer"}},
         {"type": "object"}]}),
        pytest.param("'text'", {"const": "text"}, id="constant"),
        pytest.param("-32601", {"const": -32601}, id="negative-constant"),
        pytest.param("'a' | 'b'", {"enum": ["a", "b"]}, id="enumeration"),
        pytest.param("int | null", {"type": ["integer", "null"]}, id="union-of-types"),
        ("[str] | int", {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "integer"}]}),
        ("{a: str, b?: int}", {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}},
         "required": ["a"]}),
    ],
)  # fmt: skip
def test_a_type_compiles_to_the_fewest_keywords(text: str, schema: Schema) -> None:
    assert WireFacts(f"It = {text}").read("It", 1) == schema


@rows(
    ("mark", "revisions"),
    [
        pytest.param("", [1, 2, 3, 4, 5], id="no-mark"),
        pytest.param("@3+", [3, 4, 5], id="from-on"),
        pytest.param("@2-4", [2, 3, 4], id="from-to"),
        pytest.param("@4", [4], id="only"),
        pytest.param("@1-2 @5+", [1, 2, 5], id="two-marks"),
    ],
)
def test_a_mark_says_in_which_revisions_it_holds(mark: str, revisions: list[int]) -> None:
    facts = WireFacts(f"It {mark} = str\nObject {{ field: str {mark} }}\nUnion = null | str {mark}")
    everywhere = range(1, 6)
    assert [each for each in everywhere if facts.defines("It", each)] == revisions
    assert [each for each in everywhere if "properties" in facts.read("Object", each)] == revisions
    assert [each for each in everywhere if facts.read("Union", each) != {"type": "null"}] == revisions


def test_a_base_gives_its_fields_and_the_last_word_wins() -> None:
    facts = WireFacts("Derived < Base, other { a: int }\nBase { a?: str; b: str }\nother { b?: null; c: str }")
    assert facts.read("Derived", 1) == {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "null"}, "c": {"type": "string"}},
        "required": ["a", "c"],
    }


def test_a_base_counts_in_its_revisions_only() -> None:
    facts = WireFacts("It < Base @2\nBase @2 { a: str }")
    assert facts.read("It", 1) == {"type": "object"}
    assert facts.read("It", 2) == facts.read("Base", 2)


def test_a_name_refers_to_a_definition_and_is_written_out_where_there_is_none() -> None:
    facts = WireFacts("It { a: Named; b: ours }\nNamed @2 ~1 = str\nours = [Named]")
    assert facts.read("It", 1)["properties"] == {
        "a": {"type": "string"},
        "b": {"type": "array", "items": {"type": "string"}},
    }
    reference = {"$ref": "#/$defs/Named"}
    assert facts.read("It", 2)["properties"] == {"a": reference, "b": {"type": "array", "items": reference}}
    assert [facts.definitions(revision) for revision in (1, 2)] == [["It"], ["It", "Named"]]


def test_a_definition_may_refer_to_itself() -> None:
    assert WireFacts("Tree { children: [Tree] }").read("Tree", 1)["properties"]["children"]["items"] == {
        "$ref": "#/$defs/Tree"
    }


def test_comments_and_line_breaks_do_not_count() -> None:
    spread = WireFacts("# a tree\n\nIt { # its fields\n  a: str   # a comment\n\n  b?: 'x'\n    | 'y'\n}\n# the end\n")
    assert spread.read("It", 1) == WireFacts("It { a: str; b?: 'x' | 'y' }").read("It", 1)


@rows(
    ("text", "message"),
    [
        pytest.param("It {\n  a str\n}", 'line 2: expected ":", found "str"', id="no-colon"),
        pytest.param("It {\n  a: str\n", "line 2: the definition ends too early", id="no-closing-brace"),
        pytest.param("It {\n  a: [str\n}", 'line 3: expected "]", found "}"', id="no-closing-bracket"),
        pytest.param("It", 'line 1: expected "{", found ""', id="nothing"),
        pytest.param("It = {", "line 1: the definition ends too early", id="nothing-within"),
        pytest.param("It = str str", "line 1: the definition should end here", id="too-much"),
        pytest.param("# x\n\nIt = %", 'line 3: expected a type, found "%"', id="no-type"),
        pytest.param("It = -x", 'line 1: expected a type, found "-x"', id="no-number"),
        pytest.param("It = int 0..x", "line 1: 0..x are no bounds", id="no-bounds"),
        pytest.param("It {\n  a: Missing\n}", "line 2: Missing is not defined in revision 1", id="unknown-name"),
        pytest.param("It < Missing", "line 1: Missing is not defined in revision 1", id="unknown-base"),
        pytest.param("It {\n  a: str\n  a?: int\n}", "line 3: a is given twice in revision 1", id="field-twice"),
        pytest.param("It = str\nIt @1 = int", "line 2: It is defined twice in revision 1", id="definition-twice"),
        pytest.param("It @x = str", "line 1: @x names no revisions", id="no-revisions"),
        pytest.param("It {\n  a: str @1-\n}", "line 2: @1- names no revisions", id="open-range"),
        pytest.param("It = str @2 | int @3", "line 1: no alternative is left in revision 1", id="no-alternative"),
        pytest.param("It = loop\nloop = [loop]", "line 2: loop would be written out within itself", id="endless"),
    ],
)
def test_an_error_names_the_line(text: str, message: str) -> None:
    with pytest.raises(NotationError) as caught:
        WireFacts(text).read("It", 1)
    assert str(caught.value) == f"facts, {message}"


def test_a_wrong_definition_does_not_disturb_the_others() -> None:
    """Definitions are read when asked for; the index only needs to know where they begin."""
    facts = WireFacts("Wrong { a\nRight = str")
    assert facts.read("Right", 1) == {"type": "string"}
    assert facts.definitions(1) == ["Right", "Wrong"]


def test_an_unknown_name_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        WireFacts("It = str").read("Other", 1)


def test_a_string_of_a_pattern_is_written_out_where_it_is_named() -> None:
    facts = WireFacts("short matches ^[a-z]{2}|x$\nlink uri matches ^http\nThing { a: short 1..2; b?: link }")
    assert facts.read("Thing", 1)["properties"] == {
        "a": {"type": "string", "pattern": "^[a-z]{2}|x$", "minLength": 1, "maxLength": 2},
        "b": {"type": "string", "format": "uri", "pattern": "^http"},
    }


def test_threads_may_read_for_the_first_time_at_the_same_moment() -> None:
    """Ours: the first judgements of several threads failed, with definitions that seemed to contain themselves."""
    facts = WireFacts(FACTS.read_text(encoding="utf-8"))
    found: list[object] = []
    start = Barrier(8)

    def read() -> None:
        start.wait()
        try:
            found.append([facts.read(name, 5) for name in facts.definitions(5)])
        except NotationError as error:
            found.append(error)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [Thread(target=read) for _ in range(8)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    finally:
        sys.setswitchinterval(before)
    assert found == [[facts.read(name, 5) for name in facts.definitions(5)]] * 8

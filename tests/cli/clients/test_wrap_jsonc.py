"""JSON with comments, and TOML: what is read, where it stands, and what is refused."""

import pytest

from assay.cli.clients.parsing import ConfigError, read_json, read_toml
from kit.rows import rows


@rows(
    ("text", "value"),
    [
        ("null", None),
        (" -1.5e+2 ", -150.0),
        ('"\\u00e9\\n\\/"', "é\n/"),
        ("\ufeff[]", []),
        ("[1,2,]", [1, 2]),
        ('{"a":1,}', {"a": 1}),
        ("// one\n/* two\n*/ {} // three", {}),
        ('{"a"/*1*/:/*2*/[/*3*/true/*4*/,/*5*/]/*6*/}', {"a": [True]}),
        ('"// no comment"', "// no comment"),
        ('"/* nor this"', "/* nor this"),
        ('{"":{"":{}}}', {"": {"": {}}}),
        ("1" * 5000, float("1" * 300 + "e4700")),
        ("\r\n\t[\r0 ]", [0]),
        ('{"a": [2.5, -0.0, "\\ud83d\\ude42", {"b": false}]}', {"a": [2.5, -0.0, "🙂", {"b": False}]}),
    ],
)
def test_it_is_json_with_comments_and_trailing_commas(text: str, value: object) -> None:
    assert read_json(text).root.plain == value


@rows(
    ("text", "why"),
    [
        ("", "line 1, column 1: expected a value, found the end of the file"),
        ("{", "line 1, column 2: expected a key in double quotes, or }, found the end of the file"),
        ('{\n  "a": 1\n  "b": 2}', "line 3, column 3: expected a comma or }, found '\"'"),
        ('{"a": 1,, }', "line 1, column 9: expected a key in double quotes, found ','"),
        ("[,]", "line 1, column 2: expected a value, found ','"),
        ("{'a': 1}", 'line 1, column 2: expected a key in double quotes, or }, found "\'"'),
        ('{"a" 1}', "line 1, column 6: expected a colon, found '1'"),
        ('{"a": 1, "\\u0061": 2}', 'line 1, column 10: the key "a" is repeated'),
        ('[{"a": {"b": 1, "b": 1}}]', 'line 1, column 17: the key "b" is repeated'),
        ("[NaN]", "line 1, column 2: expected a value, found 'N'"),
        ("[01]", "line 1, column 2: expected a value, found '0'"),
        ("[1]x", "line 1, column 4: expected the end of the file, found 'x'"),
        ("[1] /* x", "line 1, column 5: an unterminated comment"),
        ("/", "line 1, column 1: expected a value, found '/'"),
        ('"a\nb"', "line 1, column 1: a string that is not terminated on its line, or has an invalid escape"),
        ('"\\x"', "line 1, column 1: a string that is not terminated on its line, or has an invalid escape"),
        ("[\ufeff]", "line 1, column 2: expected a value, found '\\ufeff'"),
        ("[" * 200, "line 1, column 129: nested deeper than 128 levels"),
        ("\r\n\r[1 1]", "line 3, column 4: expected a comma or ], found '1'"),
    ],
)
def test_anything_else_is_refused_with_its_place(text: str, why: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read_json(text)
    assert str(refused.value) == f"not valid JSON: {why}"


def test_toml_is_nested_as_deep_as_json() -> None:
    assert read_toml(f"x = {'[' * 128}{']' * 128}").root.members["x"].value.end == 260
    with pytest.raises(ConfigError, match="a form that assay cannot edit safely"):
        read_toml(f"x = {'[' * 129}{']' * 129}")


def test_a_file_full_of_brackets_quotes_or_comments_is_read_in_no_time() -> None:
    """Each of these would take minutes if something in it was tried again and again."""
    many = 200_000
    for text in ("[" * many, '"' + "\\" * many, "/*" * many, "//" * many, '"a' * many, "1" * many, " \n" * many):
        with pytest.raises(ConfigError):
            read_json(text + "}")

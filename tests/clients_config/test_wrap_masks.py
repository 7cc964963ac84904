"""What is shown of a configuration: where it changes, and no secret."""

import pytest

from assay.clients.masks import difference, masked
from assay.journal.redaction import MASK

KEY = "sk-0123456789abcdefXYZ"


def entry(text: str) -> str:
    return f'{{"mcpServers": {{"x": {text}}}}}'


@pytest.mark.parametrize(
    ("before", "shown"),
    [
        (
            '{"env": {"A": "b", "N": 5, "T": true, "E": "", "Z": null}}',
            '{"env": {"A": "***", "N": 0, "T": true, "E": "", "Z": null}}',
        ),
        ('{"env": {"A": "${env:A}", "B": "${input:my-key}"}}', '{"env": {"A": "${env:A}", "B": "${input:my-key}"}}'),
        ('{"env": {"A": "${A:-hunter2}", "B": "x${B}"}}', '{"env": {"A": "***", "B": "***"}}'),
        ('{"headers": {"A": "Bearer ${T}", "B": "Bearer x"}}', '{"headers": {"A": "Bearer ${T}", "B": "***"}}'),
        ('{"env": {/* A=b */ "A": "b" // c\n}}', '{"env": {/* *** */ "A": "***" // ***\n}}'),
        ('{"env": {"A": ["b", {"c": "d"}]}}', '{"env": {"A": ["***", {"c": "***"}]}}'),
        (
            '{"args": ["-e", "A=b", "-e", "A", "--env=A=b", "c"]}',
            '{"args": ["-e", "A=***", "-e", "A", "--env=A=***", "c"]}',
        ),
        (
            '{"args": ["--header", "A: b", "--header", "A:b", "--header=A: ${b}"]}',
            '{"args": ["--header", "A: ***", "--header", "A:***", "--header=A: ${b}"]}',
        ),
        (
            '{"args": ["--api-key", "b", "--password", "--x", "--token=b"]}',
            '{"args": ["--api-key", "***", "--password", "--x", "--token=***"]}',
        ),
        (f'{{"args": ["{KEY}", "plain", 1, []]}}', '{"args": ["***", "plain", 1, []]}'),
        ('{"args": ["postgres://jane:pw@host/db"]}', '{"args": ["postgres://***@host/db"]}'),
        ('{"url": "https://a/mcp?key=b&x=c#d"}', '{"url": "https://a/mcp?key=***&x=***#d"}'),
        ('{"oauth": {"clientSecret": "b", "clientId": "c"}}', '{"oauth": {"clientSecret": "***", "clientId": "c"}}'),
        ('{"apiKey": "b"}', '{"apiKey": "***"}'),
        ('"b"', '"b"'),
    ],
)
def test_secrets_of_an_entry_are_hidden(before: str, shown: str) -> None:
    assert masked(entry(before)) == entry(shown.replace("***", MASK))


@pytest.mark.parametrize(
    ("before", "shown"),
    [
        ('{"apiKey": "b", "theme": "c", "password": true}', '{"apiKey": "***", "theme": "c", "password": true}'),
        ('{"inputs": [{"id": "a", "default": "b"}]}', '{"inputs": [{"id": "a", "default": "b"}]}'),
        ("[]", "[]"),
        (
            '{"inputs": [{"id": "a", "password": true, "default": "b"}]}',
            '{"inputs": [{"id": "a", "password": true, "default": "***"}]}',
        ),
        ('// "env": {"A": "b"}\n{}', "// ***\n{}"),
        ('{/* "A": "b" */ }', "{/* *** */ }"),
        (f"{{}} // {KEY}", "{} // ***"),
        ("{} // a comment", "{} // a comment"),
        ('"x"', '"x"'),
    ],
)
def test_secrets_elsewhere_are_hidden(before: str, shown: str) -> None:
    assert masked(before) == shown.replace("***", MASK)


def test_a_difference_has_lines_as_an_editor_has_them() -> None:
    before = '\ufeff{"mcpServers":\r\n {"x":\r {"command":\n "a\u2028b"}}} // \x1b[31m'
    assert list(difference(before, before.replace('"a', '"c'), "f.json")) == [
        "--- f.json",
        "+++ f.json",
        "@@ -1,4 +1,4 @@",
        ' {"mcpServers":',
        '  {"x":',
        '  {"command":',
        '- "a\\u2028b"}}} // \\x1b[31m',
        '+ "c\\u2028b"}}} // \\x1b[31m',
    ]

"""What is shown of a configuration: where it changes, and no secret."""

from assay.cli.clients.dialect import CODEX
from assay.cli.clients.masks import difference, masked
from assay.cli.clients.plan import Wish, wrap
from assay.model.printable import MASK
from kit.client_files import PROGRAM
from kit.rows import rows

KEY = "sk-0123456789abcdefXYZ"


def entry(text: str) -> str:
    return f'{{"mcpServers": {{"x": {text}}}}}'


@rows(
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
        (
            '{"command": "npx", "args": ["-p", "typescript", "server", "-p", "hunter2", "--user=me:b"]}',
            '{"command": "npx", "args": ["-p", "***", "server", "-p", "***", "--user=me:***"]}',
        ),
        ('{"args": ["postgres://jane:pw@host/db"]}', '{"args": ["postgres://***@host/db"]}'),
        ('{"url": "https://a/mcp?key=b&x=c#d"}', '{"url": "https://a/mcp?key=***&x=***#d"}'),
        ('{"oauth": {"clientSecret": "b", "clientId": "c"}}', '{"oauth": {"clientSecret": "***", "clientId": "c"}}'),
        ('{"apiKey": "b"}', '{"apiKey": "***"}'),
        ('"b"', '"b"'),
    ],
)
def test_secrets_of_an_entry_are_hidden(before: str, shown: str) -> None:
    assert masked(entry(before)) == entry(shown.replace("***", MASK))


@rows(
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
def test_secrets_in_other_places_are_hidden(before: str, shown: str) -> None:
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


# ── what is shown of Codex ───────────────────────────────────────────────────────────────────────────────────────────

SIGNED_IN = '[mcp_servers.x]\nurl = "https://a/mcp"\nbearer_token_env_var = "GITHUB_TOKEN"\n'


def test_the_name_of_a_variable_is_shown() -> None:
    plan = wrap(SIGNED_IN, (), Wish(PROGRAM), CODEX)
    lines = list(difference(plan.before, plan.after, "config.toml", CODEX))
    assert '-bearer_token_env_var = "GITHUB_TOKEN"' in lines
    assert '+env_vars = ["GITHUB_TOKEN"]' in lines
    assert any('"--header", "Authorization: Bearer env:GITHUB_TOKEN"' in line for line in lines)


@rows("token", ["ghp_0123456789abcdefghijABCDEFGHIJ012345", "hunter2", "AKIA0A1B2C3D4E5F6G7H"])
@rows(
    "text",
    [
        'bearer_token_env_var = "{}"',
        'env_http_headers = {{ Authorization = "{}" }}',
        'bearer_token_env_var = ["{}"]',
        'args = ["--header", "Authorization: Bearer env:{}"]',
    ],
)
def test_a_token_in_place_of_the_name_of_a_variable_is_hidden(text: str, token: str) -> None:
    shown = masked(f"[mcp_servers.x]\n{text.format(token)}\n", CODEX)
    assert token not in shown
    assert MASK in shown


def test_an_entry_with_a_token_has_no_note_on_signing_in() -> None:
    assert [each.note for each in wrap(SIGNED_IN, (), Wish(PROGRAM), CODEX).changes] == [""]
    bare = SIGNED_IN.replace("bearer_token_env_var", "# ")
    [change] = wrap(bare, ["x"], Wish(PROGRAM), CODEX).changes
    assert "OAuth" in change.note

"""What is hidden in payloads, what is left alone, and that neither takes long."""

from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from assay.judge.redaction import Redactor
from assay.model.printable import MASK
from kit.rows import rows

REDACTOR = Redactor()

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\n-----END RSA PRIVATE KEY-----"


@rows(
    "name",
    [
        "password", "Password", "PASSWORD", "passwd", "pass_word", "userPassword", "db-password", "passphrase", "pwd",
        "secret", "clientSecret", "client_secret", "token", "accessToken", "refresh_token", "X-Auth-Token", "idToken",
        "apiKey", "api_key", "API-KEY", "X-Api-Key", "apikey", "access_key", "AWS_SECRET_ACCESS_KEY", "privateKey",
        "private_key", "private key", "authorization", "Authorization", "proxy-authorization", "auth", "cookie",
        "Set-Cookie", "credentials", "session_id", "sessionId", "Mcp-Session-Id", "bearer", "jwt", "otp", "pin", "cvv",
    ],
)  # fmt: skip
def test_what_stands_under_such_a_name_is_hidden_at_any_depth(name: str) -> None:
    assert REDACTOR.value({"a": [{name: "x"}]}) == {"a": [{name: MASK}]}


@rows(
    "name",
    [
        "author", "authors", "key", "keys", "monkey", "tokenizer", "tokenise", "secretary", "progressToken", "pint",
        "passenger", "compass", "opinion", "name", "session", "sessions", "encoder", "",
    ],
)  # fmt: skip
def test_what_stands_under_another_name_is_not(name: str) -> None:
    value = {"a": [{name: "x"}]}
    assert REDACTOR.value(value) is value


@rows(
    ("before", "after"),
    [
        ("x", MASK),
        ("", ""),
        (12345, 0),
        (1.5, 0.0),
        (True, True),
        (None, None),
        ([], []),
        (["a", 1, {"b": "c", "d": [None, "e"]}], [MASK, 0, {"b": MASK, "d": [None, MASK]}]),
    ],
)
def test_a_secret_keeps_its_type(before: Any, after: Any) -> None:
    assert REDACTOR.value({"secret": before}) == {"secret": after}


def test_tokens_that_are_counted_are_no_secrets() -> None:
    counts = {"maxTokens": 100, "usage": {"input_tokens": 7, "token_count": 3}}
    assert REDACTOR.value(counts) is counts
    assert REDACTOR.value({"tokens": ["abc"]}) == {"tokens": [MASK]}


def test_a_schema_may_say_what_a_password_is_but_not_which() -> None:
    """Else no later call could be judged by what a tool promises, when a journal is replayed."""
    schema = {
        "type": "object",
        "properties": {"password": {"type": "string", "minLength": 8}},
        "required": ["password"],
    }
    tool = {"name": "login", "inputSchema": schema}
    assert REDACTOR.value(tool) is tool
    given_away = {"inputSchema": {"properties": {"password": {"type": "string", "default": "hunter2", "enum": ["a"]}}}}
    kept = {"type": "string", "default": MASK, "enum": [MASK]}
    assert REDACTOR.value(given_away) == {"inputSchema": {"properties": {"password": kept}}}


@rows(
    ("before", "after"),
    [
        ("Authorization: Bearer abc.def-123", "Authorization: [redacted]"),
        ("use bearer abcdefgh12 now", "use bearer [redacted] now"),
        ("Basic dXNlcjpwYXNz", "Basic [redacted]"),
        (f"it is {JWT}.", "it is [redacted]."),
        ("sk-proj-0123456789abcdef", "[redacted]"),
        ("key sk_live_0123456789abcdef!", "key [redacted]!"),
        (f"ghp_{'a' * 36}", "[redacted]"),
        (f"github_pat_{'a' * 30}", "[redacted]"),
        ("glpat-0123456789abcdefghij", "[redacted]"),
        ("xoxb-1234567890-abcdef", "[redacted]"),
        ("AKIAIOSFODNN7EXAMPLE", "[redacted]"),
        (f"AIza{'a' * 35}", "[redacted]"),
        (f"before {PEM} after", "before [redacted] after"),
        ("-----BEGIN PRIVATE KEY-----\nMIIE cut short", "[redacted]"),
        ("https://user:pw@example.org/x", "https://[redacted]@example.org/x"),
        ("postgres://user:p%40w@db:5432/x", "postgres://[redacted]@db:5432/x"),
        ("https://example.org/?token=abc&page=2", "https://example.org/?token=[redacted]&page=2"),
        ("password=hunter2", "password=[redacted]"),
        ("password: hunter2\nuser: me", "password: [redacted]\nuser: me"),
        ("export API_KEY='abc def'", "export API_KEY='[redacted]'"),
        ('{"password": "a\\"b", "n": 1}', '{"password": "[redacted]", "n": 1}'),
        (r"{\"password\":\"a\\\"b\",\"n\":1}", r"{\"password\":\"[redacted]\",\"n\":1}"),
        ('{"pin": 1, "secret": {"a": "b"}}', '{"pin": 1, "secret": {[redacted]}}'),
        ("Cookie: a=b; c=d\nHost: x", "Cookie: [redacted]\nHost: x"),
        ('"password": "never closed', '"password": "[redacted]'),
    ],
)
def test_what_looks_like_a_secret_is_hidden_in_any_text(before: str, after: str) -> None:
    assert REDACTOR.text(before) == after
    assert REDACTOR.value({"note": [before]}) == {"note": [after]}
    assert REDACTOR.text(after) == after


@rows(
    "text",
    [
        "the token is here",
        "basic understanding of passwords",
        "task-management-software-system",
        "git@github.com:owner/name.git",
        "https://example.org/a@b?x=1",
        "eyJ",
        "maxTokens: 100",
        "progressToken=abc",
        "tokenizer: gpt2",
        "x",
        "",
        "password: [redacted]",
    ],
)
def test_other_text_is_left_alone(text: str) -> None:
    assert REDACTOR.text(text) is text


def test_a_name_that_is_a_secret_itself_is_hidden() -> None:
    assert REDACTOR.value({f"ghp_{'a' * 36}": 1}) == {MASK: 1}


@rows(
    ("text", "shown"),
    [
        ('{"password":"x","password":"y"}', '{"password":"[redacted]","password":"[redacted]"}'),
        ('{"x":{"password":"p"},"x":1}', '{"x":{"password":"[redacted]"},"x":1}'),
        (r'{"x":{"p\u0061ssword":"p"},"x":1}', '{"x":{"password":"[redacted]"},"x":1}'),
        (r'{"x":"\u0041","x":1}', r'{"x":"\u0041","x":1}'),
        ("no JSON, password=x", "no JSON, password=[redacted]"),
        ('{"id":1.0,"password":"x"}', '{"id":1.0,"password":"[redacted]"}'),
        ('{"id": 1e2, "n": 12345678901234567890123}', '{"id": 1e2, "n": 12345678901234567890123}'),
    ],
)
def test_a_frame_without_secrets_stays_as_it_was_spelt_readable_or_not(text: str, shown: str) -> None:
    assert REDACTOR.frame(text) == shown


WORD = st.sampled_from(["password", "token", "apiKey", "name", "note", "inputSchema", "default", "properties", "id"])
TEXT = st.text(max_size=20) | st.sampled_from([JWT, PEM, "password=x", "Bearer abcdefghij", "plain text", '"', "\\"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda below: st.lists(below, max_size=4) | st.dictionaries(WORD | st.text(max_size=6), below, max_size=4),
    max_leaves=15,
)


def shape(value: Any) -> Any:
    """What is where, and of which type."""
    if isinstance(value, dict):
        return {name: shape(item) for name, item in value.items()}
    return [shape(item) for item in value] if isinstance(value, list) else type(value)


@given(value=JSON)
def test_a_value_keeps_its_shape_and_a_frame_stays_json(value: Any) -> None:
    text = orjson.dumps(value).decode()
    shown = REDACTOR.frame(text)
    assert shape(orjson.loads(shown)) == shape(value)
    assert REDACTOR.frame(shown) == shown
    assert (shown is text) or shown != text


@given(
    value=JSON, name=st.sampled_from(["password", "x-api-key", "refreshToken"]), secret=st.text("abcdef", min_size=30)
)
def test_what_stands_under_a_secret_name_is_never_written(value: Any, name: str, secret: str) -> None:
    for hidden in (
        {name: secret},
        {name: [secret]},
        {name: {"x": secret}},
        {"text": orjson.dumps({name: secret}).decode()},
    ):
        frame = orjson.dumps({"before": value, "hidden": hidden}).decode()
        assert secret not in REDACTOR.frame(frame)
        assert secret not in REDACTOR.frame(frame[:-1])


PIECES = [
    "a", "eyJ", "eyJaaaaa.", "eyJ-", "-----BEGIN PRIVATE KEY-----", "-----BEGIN ", "password", 'password="', "token='",
    "token=\\'", "\\", "password\\\\", "://", "://a:", "://a@", "sk-", "ghp_", "bearer ", "bearer\t", "basic aaaaaaaa",
    "token ", "token :", "token =\n", "cookie=", "cookie: ", "token={", '"', "'", " ", "\\u0070", "progress", "AKIA",
]  # fmt: skip


@rows("piece", PIECES)
def test_no_text_takes_longer_than_its_length_demands(piece: str) -> None:
    """All of these are long; a pattern that tried again from every character would take hours."""
    text = piece * ((1 << 17) // len(piece))
    REDACTOR.frame(text)
    REDACTOR.frame(orjson.dumps([text]).decode())


def test_nor_do_many_names_deep_values_and_patterns_of_the_operator() -> None:
    REDACTOR.frame(orjson.dumps({f"key {number}": "value" for number in range(50_000)}).decode())
    Redactor(["(a+)+$", "^(.*)*x"]).frame("a" * (1 << 17) + "b")
    REDACTOR.frame("[" * 100 + '"password=x"' + "]" * 100)

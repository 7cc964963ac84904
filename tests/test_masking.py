"""Command lines and URLs without their secrets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.masking import is_masked, masked_command, masked_url

PIECES = st.sampled_from(
    (
        *("--token", "-H", "-e", "--env", "--header=", "A=b", "X: y", "https://u:p@h/?k=v&w#f", "Bearer abcdefgh"),
        *("[redacted]", "=", "?", "&", ":", "token", "cookie: "),
    )
)


@pytest.mark.parametrize(
    ("command", "masked"),
    [
        (["npx", "-y", "server", "/home/jane"], ["npx", "-y", "server", "/home/jane"]),
        (["s", "--token", "x1"], ["s", "--token", "[redacted]"]),
        (["s", "--api-key=x1"], ["s", "--api-key=[redacted]"]),
        (["docker", "run", "-e", "KEY=x1", "i"], ["docker", "run", "-e", "KEY=[redacted]", "i"]),
        (["s", "--header", "Authorization: Bearer x1"], ["s", "--header", "Authorization: [redacted]"]),
        (["s", "--header=X-Key: ${env:KEY}"], ["s", "--header=X-Key: ${env:KEY}"]),
        (["s", "https://jane:x1@h/mcp?tenant=x1"], ["s", "https://[redacted]@h/mcp?tenant=[redacted]"]),
    ],
)
def test_a_command_is_shown_without_its_secrets(command: list[str], masked: list[str]) -> None:
    assert list(masked_command(command)) == masked
    assert is_masked(masked_command(command)) is ("[redacted]" in str(masked))


@pytest.mark.parametrize(
    ("url", "masked"),
    [
        ("https://h/mcp", "https://h/mcp"),
        ("https://jane:x1@h/mcp", "https://[redacted]@h/mcp"),
        ("https://h/mcp?key=x1&tenant=x1", "https://h/mcp?key=[redacted]&tenant=[redacted]"),
        ("https://h/mcp?x1", "https://h/mcp?[redacted]"),
        ("https://h/mcp#x1", "https://h/mcp#[redacted]"),
        ("https://h/mcp?key=", "https://h/mcp?key="),
    ],
)
def test_of_the_query_of_a_url_only_the_names_are_shown(url: str, masked: str) -> None:
    assert masked_url(url) == masked


@given(st.lists(st.lists(PIECES | st.text(max_size=8), max_size=3).map("".join), max_size=5))
def test_to_mask_twice_is_to_mask_once(words: list[str]) -> None:
    """Otherwise a server would no longer be known by what a lock has of it."""
    once = masked_command(words)
    assert masked_command(once) == once
    for word in words:
        assert masked_url(masked_url(word)) == masked_url(word)

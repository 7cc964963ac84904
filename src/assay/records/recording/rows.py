"""
The rows that a guard adds to a recording beside messages, and what it adds to a message. No I/O.

A message is `{"dir": "c2s", "msg": "…"}` as `assay.records.transcript` describes it. Any other row has `event`:

| event | meaning |
| --- | --- |
| `recording` | the first row: `version` of this format, and the version of Assay |
| `open` | a conversation begins: its number, its server, and how it is judged |
| `unanswered` | the guard stopped waiting for the answer of `dir` to the request `id` |
| `end` | the party `dir` is gone, for `why`: its open requests stay unanswered; `stderr` has its last lines |
| `restart` | the server was restarted |
| `forget` | the ids of answered requests are free again |
| `tools` | conversations that share `conversation` begin with the tools of conversation `from` |
| `release` | the conversation is over |
| `stopped` | the recording stopped, for `why` |
| `close` | the guard ended, and the recording is complete |

A message that is masked or left out has its `findings`: see `assay.records.recording.outcome`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from assay.base.verdict import Party
from assay.core.conversation import NO_FACTS, Facts
from assay.ladder.headers import Headers

VERSION: Final = 1
"""Version of the format. It changes when a member changes its meaning, not when one is added."""

DIRECTIONS: Final = {Party.CLIENT: "c2s", Party.SERVER: "s2c"}

_SESSION: Final = b"mcp-session-id"
"""The one header of MCP that is never recorded: with it another client could take over the session."""


def spelt_facts(facts: Facts) -> dict[str, Any]:
    """Return the members of a row about the HTTP request of a message; empty for a message over STDIO."""
    if facts is NO_FACTS or facts.transport != "http":
        return {}
    http: dict[str, Any] = {}
    if facts.revision is not None:
        http["revision"] = facts.revision
    if facts.headers is not None:
        http["headers"] = _spelt_headers(facts.headers)
    if facts.served:
        http["served"] = True
    if facts.spoken is not None:
        http["spoken"] = sorted(facts.spoken)
    return {"http": http}


def read_facts(row: Mapping[str, Any]) -> Facts:
    """Return the facts that `spelt_facts` has written into *row*."""
    http = row.get("http")
    if not isinstance(http, dict):
        return NO_FACTS
    revision, headers, spoken = http.get("revision"), http.get("headers"), http.get("spoken")
    return Facts(
        "http",
        revision if isinstance(revision, str) else None,
        _read_headers(headers) if isinstance(headers, dict) else None,
        http.get("served") is True,
        frozenset(map(str, spoken)) if isinstance(spoken, list) else None,
    )


def _spelt_headers(headers: Headers) -> dict[str, str | list[str]]:
    """Return the headers of MCP, which are judged, as text. Others, such as Authorization, are not recorded."""
    kept = {name: value for name, value in headers.items() if name.startswith(b"mcp-") and name != _SESSION}
    return {name.decode("latin-1"): _spelt_header(value) for name, value in kept.items()}


def _spelt_header(value: bytes | Sequence[bytes]) -> str | list[str]:
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return [each.decode("latin-1") for each in value]


def _read_headers(headers: Mapping[str, Any]) -> dict[bytes, bytes | tuple[bytes, ...]]:
    return {name.encode("latin-1", "replace"): _read_header(value) for name, value in headers.items()}


def _read_header(value: Any) -> bytes | tuple[bytes, ...]:
    if isinstance(value, list):
        return tuple(str(each).encode("latin-1", "replace") for each in value)
    return str(value).encode("latin-1", "replace")

"""
The rows that a guard adds to a recording beside messages, and what it adds to a message. No I/O.

A message is `{"dir": "c2s", "msg": "…"}` as `assay.records.transcript` describes it. Any other row has `event`:

| event | meaning |
| --- | --- |
| `recording` | the first row: `version` of this format, and the version of Assay |
| `open` | a conversation begins: its number, its server, and how it is judged |
| `unanswered` | the guard stopped waiting for the answer of `dir` to the request `id` |
| `end` | the party `dir` says no more, for `why`: what it still owes is unanswered; `stderr` has its last lines |
| `restart` | another server takes the place of the one that ended |
| `forget` | the ids of answered requests are free again |
| `tools` | conversations that share `conversation` begin with the tools of conversation `from` |
| `release` | the conversation is over |
| `stopped` | nothing more was recorded, for what `why` says |
| `close` | the guard ended, and the recording is complete |

A message that is masked or left out has its `findings`: see `assay.records.recording.outcome`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from assay.base.verdict import Party
from assay.core.conversation import NO_FACTS, Facts
from assay.ladder.headers import Headers

VERSION: Final = 1
"""Of the format. A member that is added leaves it; one that changes its meaning does not."""

DIRECTIONS: Final = {Party.CLIENT: "c2s", Party.SERVER: "s2c"}

_SESSION: Final = b"mcp-session-id"
"""The one header of MCP that is never recorded: with it others could go on with the session."""


def spelt_facts(facts: Facts) -> dict[str, Any]:
    """Return what a row says of the HTTP request that brought a message; nothing for one that came over a stream."""
    if facts is NO_FACTS or facts.transport != "http":
        return {}
    told: dict[str, Any] = {}
    if facts.revision is not None:
        told["revision"] = facts.revision
    if facts.headers is not None:
        told["headers"] = _spelt_headers(facts.headers)
    if facts.served:
        told["served"] = True
    if facts.spoken is not None:
        told["spoken"] = sorted(facts.spoken)
    return {"http": told}


def read_facts(row: Mapping[str, Any]) -> Facts:
    """Return the facts that `spelt_facts` has written into *row*."""
    told = row.get("http")
    if not isinstance(told, dict):
        return NO_FACTS
    revision, headers, spoken = told.get("revision"), told.get("headers"), told.get("spoken")
    return Facts(
        "http",
        revision if isinstance(revision, str) else None,
        _read_headers(headers) if isinstance(headers, dict) else None,
        told.get("served") is True,
        frozenset(map(str, spoken)) if isinstance(spoken, list) else None,
    )


def _spelt_headers(headers: Headers) -> dict[str, str | list[str]]:
    """Return the headers that are judged, as text: those of MCP. Others, such as Authorization, are not recorded."""
    kept = {name: value for name, value in headers.items() if name.startswith(b"mcp-") and name != _SESSION}
    return {name.decode("latin-1"): _spelt_header(value) for name, value in kept.items()}


def _spelt_header(value: bytes | Sequence[bytes]) -> str | list[str]:
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return [each.decode("latin-1") for each in value]


def _read_headers(told: Mapping[str, Any]) -> dict[bytes, bytes | tuple[bytes, ...]]:
    return {name.encode("latin-1", "replace"): _read_header(value) for name, value in told.items()}


def _read_header(value: Any) -> bytes | tuple[bytes, ...]:
    if isinstance(value, list):
        return tuple(str(each).encode("latin-1", "replace") for each in value)
    return str(value).encode("latin-1", "replace")

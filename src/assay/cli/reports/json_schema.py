"""The JSON Schema of `assay check --format json`."""

from typing import Any, Final

VERSION: Final = 2
"""Version of the document. It changes when a member is removed or changes its meaning, not when one is added."""

_TEXT: Final = {"type": "string"}
_NUMBER: Final = {"type": "integer", "minimum": 0}
_TEXTS: Final = {"type": "array", "items": _TEXT}
_REVISION: Final = {"type": ["string", "null"], "description": "the revision of MCP; null if it is unknown"}

_KEY: Final[dict[str, Any]] = {
    "rule": {"type": "string", "description": "the rule, as of `assay rules`"},
    "party": {"enum": ["client", "server"], "description": "the sender of the message"},
    "method": {"type": "string", "description": "the method of the message, or of the request that it answers"},
    "tool": {"type": "string", "description": "the tool that is called, or whose result it is"},
    "entry": {"type": "string", "description": "the entry of a list, such as `tool search`"},
    "place": {"type": "string", "description": "a JSON Pointer with * in place of every index"},
    "server": {"type": "string", "description": "the server, if the recording has it"},
}

_FILE: Final[dict[str, Any]] = {
    "file": {"type": "string", "description": "the path, relative if it is below the working directory"},
    "revision": _REVISION,
    "messages": _NUMBER,
    "ok": {**_NUMBER, "description": "messages without findings"},
    "reported": {**_NUMBER, "description": "messages with findings, forwarded, perhaps without quarantined tools"},
    "repaired": {**_NUMBER, "description": "messages that the guard changed and forwarded"},
    "blocked": {**_NUMBER, "description": "messages that enforce mode blocks"},
    "failed": {**_NUMBER, "description": "errors of the server itself, and results with isError"},
    "unanswered": {**_NUMBER, "description": "requests that were never answered"},
    "notJudged": {**_NUMBER, "description": "further messages, which were not judged: remarks has the reasons"},
    "complete": {"type": "boolean", "description": "whether every message was judged"},
    "remarks": _TEXTS,
    "error": {"type": "string", "description": "why the file could not be judged to its end"},
}

_PLACE: Final[dict[str, Any]] = {
    "line": {**_NUMBER, "description": "the line of the recording; 0 for a request that was never answered"},
    "at": {"type": "string", "description": "a JSON Pointer from the root of the message"},
}

_FINDING: Final[dict[str, Any]] = {
    "fingerprint": {"type": "string", "pattern": "^[0-9a-f]{32}$", "description": "the same in every run"},
    "level": {"enum": ["error", "warning"]},
    "action": {"enum": ["refuse", "quarantine", "report", "drop", "repair"]},
    "known": {"type": "boolean", "description": "whether the baseline has it"},
    "count": {"type": "integer", "minimum": 1, "description": "how many equal findings the file has"},
    "file": _TEXT,
    **_PLACE,
    "title": {"type": "string", "description": "the message, for people"},
    "revision": _REVISION,
    **_KEY,
    "expected": _TEXT,
    "found": _TEXT,
    "source": _TEXT,
    "hint": _TEXT,
    "places": {
        "type": "array",
        "description": "the first places of these findings",
        "items": {"type": "object", "properties": _PLACE, "required": list(_PLACE), "additionalProperties": False},
    },
    "schemaAt": {"type": "string", "description": "the place in the schema of the tool"},
    "reason": {"type": "string", "description": "why the policy chose another action"},
    "help": {"type": "string", "description": "the address of the page about the rule"},
}

_OPTIONAL: Final = frozenset({"method", "tool", "entry", "place", "server", "schemaAt", "reason", "help", "error"})


def _object(members: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an object. Later versions may add members, so others are allowed."""
    return {"type": "object", "properties": members, "required": [each for each in members if each not in _OPTIONAL]}


SCHEMA: Final[dict[str, Any]] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$id": f"urn:assay:check:{VERSION}",
    "title": "The findings of `assay check`",
    **_object(
        {
            "$schema": _TEXT,
            "version": {"const": VERSION},
            "assay": {"type": "string", "description": "the version of Assay"},
            "status": {"enum": [0, 1, 2], "description": "the exit status"},
            "files": {"type": "array", "items": _object(_FILE)},
            "findings": {"type": "array", "items": _object(_FINDING)},
            "leftOut": {**_NUMBER, "description": "findings that are counted only: there were too many different ones"},
            "known": {**_NUMBER, "description": "findings that the baseline has"},
            "rules": {"type": "object", "additionalProperties": _NUMBER, "description": "findings by rule"},
            "remarks": _TEXTS,
            "stale": {
                "type": "array",
                "description": "entries of the baseline that were not found",
                "items": _object({**_KEY, "count": _NUMBER}),
            },
        }
    ),
}

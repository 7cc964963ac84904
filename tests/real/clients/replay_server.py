"""
A server on standard input and output that answers from a recorded conversation: `python replay_server.py FILE [aged]`.

A request gets the recorded answer to the same method, cursor and name, with its own id. Output that is not a message
comes before the answer that it preceded. Any other request is answered with -32601. With `aged` the results lack what
the revision without a handshake has added, as from a server whose library does not know it.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Key = tuple[str, str | None]
"""A method, and the cursor of a page or the name of a tool or prompt."""

ADDED = ("resultType", "ttlMs", "cacheScope")
"""Members that results have in the revision without a handshake only."""


class Recorded:
    """The answers of one recorded server."""

    def __init__(self, path: Path | str) -> None:
        self.answers: dict[Key, tuple[list[str], dict[str, Any]]] = {}
        """The first answer to each request, and the lines before it that are not messages."""
        asked: dict[Any, Key] = {}
        strays: list[str] = []
        with open(path, encoding="utf-8") as file:
            rows = file.read().splitlines()
        for row in map(json.loads, rows):
            message = _read(row["msg"])
            if not isinstance(message, dict):
                strays += [row["msg"]] if row["dir"] == "s2c" else []
            elif row["dir"] == "c2s" and "method" in message and "id" in message:
                asked[message["id"]] = key_of(message)
            elif row["dir"] == "s2c" and "method" not in message and message.get("id") in asked:
                self.answers.setdefault(asked.pop(message["id"]), (strays, message))
                strays = []

    def tools(self) -> Iterator[str]:
        """Yield the names of all listed tools, page by page."""
        cursor: str | None = None
        while ("tools/list", cursor) in self.answers:
            result = self.answers["tools/list", cursor][1].get("result", {})
            yield from (tool["name"] for tool in result.get("tools", ()))
            cursor = result.get("nextCursor")
            if cursor is None:
                return

    def answer(self, message: dict[str, Any], *, aged: bool = False) -> Iterator[str]:
        """Yield the lines for a request."""
        if "id" not in message or "method" not in message:
            return
        missing: dict[str, Any] = {"jsonrpc": "2.0", "error": {"code": -32601, "message": "Method not found"}}
        strays, answer = self.answers.get(key_of(message), ([], missing))
        yield from strays
        if aged and "result" in answer:
            kept = {name: value for name, value in answer["result"].items() if name not in ADDED}
            answer = {**answer, "result": kept}
        yield json.dumps({**answer, "id": message["id"]})


def key_of(message: dict[str, Any]) -> Key:
    """The key of a request."""
    params = message.get("params") or {}
    return message["method"], params.get("cursor", params.get("name"))


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def main() -> None:
    """Answer until the input ends."""
    recorded, aged = Recorded(sys.argv[1]), sys.argv[2:] == ["aged"]
    for line in sys.stdin:
        for answer in recorded.answer(json.loads(line), aged=aged):
            print(answer, flush=True)


if __name__ == "__main__":
    main()
